/* The guard's division of a budget, over random shapes of models: the sum never passes the budget, the context is the
   longest that fits, and prefixes are given up only where even the shortest leaves them no tree. */
#include "test.h"

#include "base/num.h"
#include "base/rng.h"
#include "cache/cache.h"
#include "engine/guard.h"

enum { MOST_LAYERS = 6, LEAST_CTX = 64, SEEDS = 3000 };

typedef struct shape {
    cache_layer_spec layer[MOST_LAYERS];
    model m;
    guard_in in;
} shape;

static uint64_t draw(uint64_t seed, uint64_t what, uint64_t most)
{
    return rng_u64(seed, what, 0) % most;
}

static void make_layer(uint64_t seed, cache_layer_spec *l)
{
    const bool state = draw(seed, 1, 3) == 0, keys = !state || draw(seed, 2, 2);
    *l = (cache_layer_spec){.n_state =
                                state ? 1 + (int32_t)draw(seed, 3, 1 << draw(seed, 4, 18)) : 0};
    if (!keys) return;
    l->n_kv_head = 1 + (int32_t)draw(seed, 5, 4);
    l->dk = l->dv = 4 << draw(seed, 6, 5);
    l->window = draw(seed, 7, 3) ? 0 : 1 + (int32_t)draw(seed, 8, 1000);
}

/* A budget somewhere between too small and plenty: what the program takes, and a part of what all would. */
static void make_shape(uint64_t seed, shape *s)
{
    memset(s, 0, sizeof *s);
    s->m.cache = (cachespec){1 + (int32_t)draw(seed, 10, MOST_LAYERS), s->layer};
    for (int32_t i = 0; i < s->m.cache.n_layer; i++)
        make_layer(seed * MOST_LAYERS + (uint64_t)i, &s->layer[i]);
    s->m.shape.ctx_train = 20 + (int32_t)draw(seed, 11, 1 << (5 + draw(seed, 12, 14)));
    s->in = (guard_in){.m = &s->m,
                       .codec = kv_plain(KV_F16),
                       .max_seqs = 1 + (int32_t)draw(seed, 13, 16),
                       .max_queue = 1 + (int32_t)draw(seed, 14, 64),
                       .weights = 1 + draw(seed, 15, 1 << 20),
                       .scratch = draw(seed, 16, 1 << 20),
                       .disk = draw(seed, 17, 3) == 0};
    s->in.max_step_rows = max_i32(s->in.max_seqs, 1 + (int32_t)draw(seed, 18, 512));
    s->in.live = s->in.scratch + draw(seed, 19, 1 << 20);
    if (draw(seed, 20, 4) == 0)
        s->in.prefix = draw(seed, 21, 2) ? GUARD_NO_PREFIX : 1 + draw(seed, 22, 1 << 26);
    const uint64_t one =
        cache_bytes(&s->m.cache, &s->in.codec, s->in.max_step_rows, s->m.shape.ctx_train);
    s->in.budget = (UINT64_C(17) << 20) + draw(seed, 23, 6 << 20) +
                   draw(seed, 24, 1 + 4 * one / (1 + draw(seed, 27, 64)));
    if (draw(seed, 25, 4) == 0) s->in.limit = 1 + draw(seed, 26, 2 * one) + one / 8;
}

static uint64_t sum(const guard_out *o)
{
    return o->weights_bytes + o->scratch_bytes + o->other_bytes + o->request_bytes + o->host_bytes +
           o->cache_bytes + o->prefix_room + o->overhead;
}

/* What the figures stand for is there: what the cache's own sums say of them. */
static void check_sum(const guard_in *in, const guard_out *o)
{
    uint64_t overhead;
    const cache_opts c = {.codec = in->codec,
                          .max_seqs = in->max_seqs,
                          .ctx_len = o->ctx_len,
                          .max_step_rows = in->max_step_rows,
                          .max_bytes = o->cache_bytes,
                          .prefix_room = o->prefix_room,
                          .prefix_bytes = o->prefix_bytes};
    assert_ok(cache_overhead(&in->m->cache, &c, in->disk, &overhead, NULL));
    assert_int_equal(overhead, o->overhead);
    assert_int_equal(sum(o), o->reserved);
    assert_true(o->reserved <= in->budget);
    assert_true(!in->limit || o->cache_bytes + o->prefix_room <= in->limit);
    assert_true(o->cache_bytes >=
                cache_bytes(&in->m->cache, &in->codec, in->max_step_rows, o->ctx_len));
    if (in->prefix != GUARD_NO_PREFIX && in->prefix) assert_true(o->prefix_bytes <= in->prefix);
}

static bool fits(const shape *s, int32_t ctx, bool prefixes)
{
    guard_in in = s->in;
    guard_out out;
    cairn_diag dg = {0};
    in.ctx_len = ctx;
    if (!prefixes) in.prefix = GUARD_NO_PREFIX;
    const cairn_status st = guard_fit(&in, &out, &dg);
    assert_true(st == CAIRN_OK || st == CAIRN_E_LIMIT);
    if (st == CAIRN_OK) check_sum(&in, &out);
    return st == CAIRN_OK && (in.prefix == GUARD_NO_PREFIX || out.prefix_bytes > 0);
}

/* Every one behind it for three blocks, then some, and the last. */
static void check_longest(const shape *s, int32_t ctx, bool prefixes)
{
    const int32_t most = guard_model_ctx(&s->m);
    for (int32_t c = ctx + 1; c <= most; c += c < ctx + 192 ? 1 : 1 + most / 16)
        assert_false(fits(s, c, prefixes));
    assert_true(ctx == most || !fits(s, most, prefixes));
}

static void random_shapes(void **state)
{
    (void)state;
    int32_t fit = 0, refused = 0, shorter = 0, bare = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        if (left_out()) continue;
        shape s;
        guard_out out;
        cairn_diag dg = {0};
        make_shape(seed, &s);
        const bool wanted = s.in.prefix != GUARD_NO_PREFIX;
        const int32_t least = min_i32(LEAST_CTX, guard_model_ctx(&s.m));
        const cairn_status st = guard_fit(&s.in, &out, &dg);
        if (st != CAIRN_OK) {
            assert_int_equal(st, CAIRN_E_LIMIT);
            assert_false(fits(&s, least, s.in.disk && wanted));
            refused++;
            continue;
        }
        const bool kept = wanted && out.prefix_bytes > 0;
        check_sum(&s.in, &out);
        assert_in_range(out.ctx_len, least, guard_model_ctx(&s.m));
        check_longest(&s, out.ctx_len, kept);
        if (wanted && !kept)
            assert_false(fits(&s, least, true)); /* given up for good reason only */
        fit++;
        shorter += out.ctx_len < guard_model_ctx(&s.m);
        bare += wanted && !kept;
    }
    print_message("%d fit, %d of them a shorter context, %d without the prefixes that were wanted; "
                  "%d were refused\n",
                  (int)fit, (int)shorter, (int)bare, (int)refused);
    if (test_part() == 1)
        assert_true(fit > SEEDS / 4 && shorter > SEEDS / 10 && bare > 0 && refused > SEEDS / 10);
}

/* A byte less than a context needs is a shorter one, with its prefixes and its disk; a byte less than the shortest
   needs is none. */
static void to_the_byte(void **state)
{
    (void)state;
    for (int32_t disk = 0; disk < 2; disk++) {
        shape s = {.layer = {{.n_kv_head = 2, .dk = 16, .dv = 16}, {.n_state = 100}}};
        guard_out all, less;
        cairn_diag dg = {0};
        s.m.cache = (cachespec){2, s.layer};
        s.m.shape.ctx_train = 64 * 100;
        s.in = (guard_in){.m = &s.m,
                          .codec = kv_plain(KV_F16),
                          .max_seqs = 4,
                          .max_step_rows = 128,
                          .weights = 1,
                          .disk = disk,
                          .ctx_len = 6400,
                          .budget = UINT64_C(1) << 40};
        assert_ok(guard_fit(&s.in, &all, &dg));
        uint64_t lo = 0,
                 hi = all.reserved; /* the least budget of the whole context with prefixes */
        while (lo < hi) {
            s.in.budget = lo + (hi - lo) / 2;
            if (fits(&s, 6400, true))
                hi = s.in.budget;
            else
                lo = s.in.budget + 1;
        }
        s.in.ctx_len = 0;
        s.in.budget = hi;
        assert_ok(guard_fit(&s.in, &all, &dg));
        assert_true(all.ctx_len == 6400 && all.prefix_bytes > 0);
        s.in.budget = hi - 1;
        assert_ok(guard_fit(&s.in, &less, &dg));
        assert_in_range(less.ctx_len, 6400 - 64, 6399);
        assert_true(less.prefix_bytes > 0);
        check_sum(&s.in, &less);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_shapes),
                                       cmocka_unit_test(to_the_byte)};
    return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
