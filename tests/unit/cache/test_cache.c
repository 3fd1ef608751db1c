/* The paged cache against a naive model: a list of what was written at each position. */
#include "test.h"

#include "base/num.h"
#include "base/rng.h"
#include "cache/cache.h"

enum { MAX_STEP = 40, CTX = 700, SEQS = 5, N_LAYER = 5 };

static const cache_layer_spec layers[N_LAYER] = {{2, 8, 8, .window = 0},
                                                 {2, 8, 8, .window = 100},
                                                 {1, 16, 8, .window = 0},
                                                 {4, 4, 4, .window = 100},
                                                 {1, 8, 8, .window = 1}};
static const cachespec spec = {N_LAYER, layers};
static const kv_scheme f16 = {.all = {{KV_F16, 0}, {KV_F16, 0}}};

static cache *make(uint64_t max_bytes)
{
    cache *c = NULL;
    const cache_opts o = {kv_plain(KV_F16), SEQS, CTX, MAX_STEP, max_bytes, 0, 0};
    cairn_diag dg;
    assert_ok(cache_new(&spec, &o, &c, &dg));
    return c;
}

static uint64_t one(int32_t n_pos)
{
    return cache_bytes(&spec, &f16, MAX_STEP, n_pos);
}

/* Every layer's keys and values lie inside its group's block and overlap no other's. */
static void layout(void **state)
{
    (void)state;
    cache *c = make(SEQS * one(CTX));
    const kv_layer *kv = cache_layers(c);
    assert_int_equal(cache_groups(c), 3);
    const int32_t groups[N_LAYER] = {0, 1, 0, 1, 2};
    for (int i = 0; i < N_LAYER; i++) {
        assert_int_equal(kv[i].group, groups[i]);
        const size_t k = (size_t)layers[i].n_kv_head * KV_BLOCK * (size_t)layers[i].dk * 2;
        assert_int_equal(kv[i].v_off, kv[i].k_off + k);
    }
    assert_int_equal(kv[0].k_off, 0);
    assert_int_equal(kv[2].k_off, 2 * 64 * 16 * 2);
    assert_int_equal(kv[3].k_off, 2 * 64 * 16 * 2);
    assert_int_equal(kv[4].k_off, 0);
    cache_free(c);
}

/* A latent layer has its keys alone; so has one without values. */
static void latent_layout(void **state)
{
    (void)state;
    static const cache_layer_spec l[3] = {
        {1, 24, 16, .latent = true}, {1, 8, 0, .window = 0}, {1, 8, 8, .window = 0}};
    const cachespec s = {3, l};
    const cache_opts o = {kv_plain(KV_F16), SEQS, CTX, MAX_STEP, 1 << 24, 0, 0};
    cache *c = NULL;
    assert_int_equal(cache_bytes(&s, &f16, MAX_STEP, 64), (24 + 8 + 16) * 64 * 2);
    assert_ok(cache_new(&s, &o, &c, NULL));
    const kv_layer *kv = cache_layers(c);
    assert_true(kv[0].latent && !kv[1].latent);
    assert_int_equal(kv[0].v_off, kv[0].k_off);
    assert_int_equal(kv[1].k_off, 24 * 64 * 2);
    assert_int_equal(kv[2].k_off, (24 + 8) * 64 * 2);
    assert_int_equal(kv[2].v_off, (24 + 8 + 8) * 64 * 2);
    cache_free(c);
}

/* Figures computed by hand: 700 positions are 11 blocks; a window of 100 and steps of 40 span at
   most 139 positions, which touch 4 blocks at worst; window 1 spans 40: 2 blocks. */
static void exact_bytes(void **state)
{
    (void)state;
    const uint64_t full = (2 * 16 + 1 * 24) * 64 * 2, win = (2 * 16 + 4 * 8) * 64 * 2,
                   none = 16 * 64 * 2;
    assert_int_equal(one(CTX), 11 * full + 4 * win + 2 * none);
    assert_int_equal(one(64), full + win + none);
    assert_int_equal(one(65), 2 * (full + win + none));
    assert_int_equal(one(1), one(64));
    cache *c = make(3 * one(CTX) - 1);
    assert_true(cache_total(c) <= 3 * one(CTX) - 1);
    seq_id s[3];
    assert_ok(cache_open(c, CTX, &s[0]));
    assert_int_equal(cache_reserved(c), one(CTX));
    assert_ok(cache_open(c, CTX, &s[1]));
    assert_int_equal(cache_open(c, CTX, &s[2]), CAIRN_E_BUSY);
    assert_int_equal(cache_open(c, CTX + 1, &s[2]), CAIRN_E_LIMIT);
    assert_int_equal(cache_open(c, 0, &s[2]), CAIRN_E_LIMIT);
    cache_close(c, s[0]);
    assert_ok(cache_open(c, CTX, &s[2]));
    cache_free(c);
    c = make(one(CTX) - 1);
    assert_int_equal(cache_open(c, CTX, &s[0]), CAIRN_E_LIMIT);
    cache_free(c);
}

typedef struct naive {
    bool open;
    seq_id id;
    int32_t n_pos, len, furthest;
    uint32_t row[CTX];
} naive;

static uint32_t *cell(cache *c, const naive *n, int32_t g, int32_t pos)
{
    uint8_t *block = cache_blocks(c, n->id)[g][pos / KV_BLOCK];
    assert_non_null(block);
    return (uint32_t *)(void *)block + pos % KV_BLOCK;
}

static const int32_t window[3] = {0, 100, 1};

/* Whatever the next row sees holds what was written last. */
static void verify(cache *c, const naive *n)
{
    assert_int_equal(cache_len(c, n->id), n->len);
    for (int32_t g = 0; g < 3; g++) {
        const int32_t low = window[g] ? max_i32(0, n->len - window[g] + 1) : 0;
        for (int32_t p = low; p < n->len; p++) assert_int_equal(*cell(c, n, g, p), n->row[p]);
    }
}

static void grow(cache *c, naive *n, int32_t rows, int32_t commit, uint32_t *stamp)
{
    cache_reserve(c, n->id, rows);
    for (int32_t i = 0; i < rows; i++) {
        n->row[n->len + i] = ++*stamp;
        for (int32_t g = 0; g < 3; g++) *cell(c, n, g, n->len + i) = *stamp;
    }
    cache_commit(c, n->id, commit);
    n->len += commit;
    n->furthest = max_i32(n->furthest, n->len + rows - commit);
}

static void random_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        cache *c = make(3 * one(CTX));
        naive *n = mem_calloc(SEQS, sizeof *n, MEM_MISC);
        uint32_t stamp = 0;
        uint64_t max_used = 0;
        const uint64_t calls = mem_calls();
        for (uint64_t i = 0; i < 600; i++) {
            naive *q = &n[rng_u64(seed, 0, i) % SEQS];
            const int32_t r = (int32_t)(rng_u64(seed, 1, i) % 1000);
            if (!q->open) {
                const int32_t n_pos = 1 + r * 7 % CTX;
                uint64_t held = 0;
                for (int k = 0; k < SEQS; k++)
                    if (n[k].open) held += one(n[k].n_pos);
                assert_int_equal(cache_reserved(c), held);
                const cairn_status st = cache_open(c, n_pos, &q->id);
                if (st == CAIRN_OK) *q = (naive){.open = true, .id = q->id, .n_pos = n_pos};
                assert_true(st == CAIRN_OK || st == CAIRN_E_BUSY);
            } else if (r < 60) {
                cache_close(c, q->id);
                q->open = false;
            } else if (r < 200) {
                const int32_t least = max_i32(0, q->furthest - MAX_STEP);
                if (least < q->len) {
                    q->len = least + r % (q->len - least + 1);
                    cache_rewind(c, q->id, q->len);
                }
            } else if (q->len < q->n_pos) {
                const int32_t rows = min_i32(q->n_pos - q->len, 1 + r % (r & 1 ? MAX_STEP : 2));
                grow(c, q, rows, r % 10 == 2 ? rows / 2 : rows, &stamp);
            }
            for (int k = 0; k < SEQS; k++)
                if (n[k].open) verify(c, &n[k]);
            max_used = cache_used(c) > max_used ? cache_used(c) : max_used;
            assert_true(cache_used(c) <= cache_reserved(c));
            assert_true(cache_reserved(c) <= cache_total(c));
        }
        assert_int_equal(mem_calls(), calls); /* nothing allocates once it is made */
        assert_true(max_used > 0);
        for (int k = 0; k < SEQS; k++)
            if (n[k].open) cache_close(c, n[k].id);
        assert_int_equal(cache_used(c), 0);
        assert_int_equal(cache_reserved(c), 0);
        mem_free(n);
        cache_free(c);
    }
}

/* The worst case is reached, so it could not be smaller; and never passed, by assertion inside. */
static void bound_is_tight(void **state)
{
    (void)state;
    uint64_t worst = 0;
    for (int32_t first = 1; first <= MAX_STEP; first++) {
        cache *c = make(SEQS * one(CTX));
        seq_id s;
        assert_ok(cache_open(c, CTX, &s));
        for (int32_t at = 0, rows = first; at < CTX; at += rows, rows = MAX_STEP) {
            rows = min_i32(rows, CTX - at);
            cache_reserve(c, s, rows);
            worst = cache_used(c) > worst ? cache_used(c) : worst;
            cache_commit(c, s, rows);
        }
        cache_free(c);
    }
    assert_int_equal(worst, one(CTX));
}

/* Two recurrent layers beside one of attention and one that is both. */
static const cache_layer_spec mixed[4] = {
    {.n_state = 100}, {2, 8, 8, .window = 0}, {.n_state = 30}, {1, 8, 8, .n_state = 7}};
static const cachespec hybrid = {4, mixed};
enum { STATE = 137, STATE_BYTES = 576 }; /* 137 values of 4 bytes, to the next 64 */

static void states(void **state)
{
    (void)state;
    cache *c = NULL;
    const uint64_t one = cache_bytes(&hybrid, &f16, MAX_STEP, CTX);
    assert_int_equal(one, STATE_BYTES + 11 * 64 * 2 * (2 * 16 + 16));
    const cache_opts o = {kv_plain(KV_F16), 3, CTX, MAX_STEP, 3 * one, 0, 0};
    assert_ok(cache_new(&hybrid, &o, &c, NULL));
    assert_int_equal(cache_groups(c), 1);
    assert_int_equal(cache_total(c), 3 * one);
    const size_t off[4] = {0, 100, 100, 130};
    for (int i = 0; i < 4; i++) assert_int_equal(cache_layers(c)[i].state_off, off[i]);
    assert_int_equal(cache_layers(c)[0].group, -1);
    assert_int_equal(cache_layers(c)[3].group, 0);
    seq_id s[3];
    for (int i = 0; i < 3; i++) {
        assert_ok(cache_open(c, CTX, &s[i]));
        cache_reserve(c, s[i], 1);
        for (int k = 0; k < STATE; k++) cache_state(c, s[i])[k] = (float)(i + 1);
        cache_commit(c, s[i], 1);
    }
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < STATE; k++) assert_true(cache_state(c, s[i])[k] == (float)(i + 1));
    assert_int_equal(cache_reserved(c), 3 * one);
    cache_close(c, s[1]);
    assert_int_equal(cache_used(c), 2 * (STATE_BYTES + 64 * 2 * (2 * 16 + 16)));
    assert_ok(cache_open(c, 1, &s[1])); /* a new sequence remembers nothing */
    cache_reserve(c, s[1], 1);
    for (int k = 0; k < STATE; k++) assert_true(cache_state(c, s[1])[k] == 0);
    cache_free(c);
}

/* Where states alone would pass the budget there are fewer places; one there always is. */
static void few_states(void **state)
{
    (void)state;
    static const cache_layer_spec wide = {.n_state = 1000};
    static const cachespec only = {1, &wide};
    const uint64_t one = cache_bytes(&only, &f16, MAX_STEP, CTX);
    assert_int_equal(one, 4032);
    for (uint64_t room = 0; room < 4; room++) {
        cache *c = NULL;
        seq_id s;
        const cache_opts o = {kv_plain(KV_F16), SEQS, CTX, MAX_STEP, room * one + 1, 0, 0};
        assert_ok(cache_new(&only, &o, &c, NULL));
        for (uint64_t i = 0; i < (room ? room : 1); i++) {
            assert_ok(cache_open(c, CTX, &s));
            cache_reserve(c, s, MAX_STEP);
            cache_commit(c, s, MAX_STEP);
        }
        assert_int_equal(cache_open(c, CTX, &s), CAIRN_E_BUSY);
        cache_free(c);
    }
}

static cairn_status make_and_free(void *ctx)
{
    cache *c = NULL;
    const cache_opts o = {kv_plain(KV_F32), SEQS, CTX, MAX_STEP, 1 << 24, 0, 0};
    const cairn_status st = cache_new(ctx, &o, &c, NULL);
    if (st == CAIRN_OK) cache_free(c);
    return st;
}

static void no_memory(void **state)
{
    (void)state;
    const cachespec *specs[] = {&spec, &hybrid};
    for (int i = 0; i < 2; i++)
        assert_true(fault_loop(make_and_free, (void *)(uintptr_t)specs[i]) >= 8);
}

static void bad_spec(void **state)
{
    (void)state;
    static const cache_layer_spec bad[] = {{0, 8, 8, .n_state = 5},
                                           {.n_state = -1},
                                           {1, 8, 8, .n_state = -1},
                                           {1, 8, 9, .latent = true}};
    const cache_opts o = {kv_plain(KV_F16), SEQS, CTX, MAX_STEP, 1 << 24, 0, 0};
    cache *c;
    cairn_diag dg;
    for (int i = 0; i < 4; i++) {
        const cachespec s = {1, &bad[i]};
        assert_int_equal(cache_new(&s, &o, &c, &dg), CAIRN_E_ARG);
        assert_says(&dg, "layer 0");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout),         cmocka_unit_test(latent_layout),
        cmocka_unit_test(exact_bytes),    cmocka_unit_test(random_order),
        cmocka_unit_test(bound_is_tight), cmocka_unit_test(no_memory),
        cmocka_unit_test(bad_spec),       cmocka_unit_test(states),
        cmocka_unit_test(few_states),
    };
    return cmocka_run_group_tests_name("cache", tests, NULL, NULL);
}
