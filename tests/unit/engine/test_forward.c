/* Scoring, the numerics check and the guard on the simulated backend: each must notice a flaw. */
#include "test.h"

#include "cache/cache.h"
#include "engine/guard.h"
#include "engine/step.h"
#include "sim_model.h"

enum { N = 300 };
static sim_model sim;
static int32_t ids[N];

static void open_sim(uint64_t seed, sim_flaw flaw)
{
    sim_model_open(&sim, seed, flaw);
    sim_prompt(seed, ids, N);
}

typedef struct seen {
    int32_t n, next, stop_at;
    float first[N][3];
} seen;

static bool keep(void *ctx, int32_t pos, const float *x)
{
    seen *s = ctx;
    if (s->n) assert_int_equal(pos, s->next);
    memcpy(s->first[pos], x, sizeof s->first[pos]);
    s->next = pos + 1;
    return ++s->n != s->stop_at;
}

static void score(void **state)
{
    (void)state;
    open_sim(3, SIM_SOUND);
    static seen all, some;
    cairn_score_opts o = {sizeof o, 0, 0, 0};
    memset(&all, 0, sizeof all);
    assert_ok(forward_score(&sim.m, ids, N, &o, keep, &all, NULL));
    assert_int_equal(all.n, N);
    const int32_t chunks[] = {1, 7, 64, N, 5000};
    for (int i = 0; i < 5; i++) {
        memset(&some, 0, sizeof some);
        o = (cairn_score_opts){sizeof o, chunks[i], 130, 2};
        assert_ok(forward_score(&sim.m, ids, N, &o, keep, &some, NULL));
        assert_int_equal(some.n, N - 130);
        assert_int_equal(some.next, N);
        assert_memory_equal(some.first[130], all.first[130], (N - 130) * sizeof *all.first);
    }
    memset(&some, 0, sizeof some);
    some.stop_at = 4;
    assert_ok(forward_score(&sim.m, ids, N, &o, keep, &some, NULL));
    assert_int_equal(some.n, 4);
    assert_int_equal(sim_threads_limit(sim.m.dev), 0); /* put back */
    assert_false(sim_is_busy(sim.m.dev));
    sim_model_close(&sim);
}

static bool keep_hidden(void *ctx, int32_t pos, const float *x)
{
    seen *s = ctx;
    memcpy(s->first[pos], x + 4 * SIM_HIDDEN, sizeof s->first[pos]); /* of the last layer */
    s->n++;
    return true;
}

static void hidden(void **state)
{
    (void)state;
    open_sim(4, SIM_SOUND);
    static seen a, b;
    cairn_score_opts o = {sizeof o, 0, 0, 0};
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    assert_ok(forward_hidden(&sim.m, ids, N, &o, keep_hidden, &a, NULL));
    o = (cairn_score_opts){sizeof o, 9, 100, 0};
    assert_ok(forward_hidden(&sim.m, ids, N, &o, keep_hidden, &b, NULL));
    assert_int_equal(a.n, N);
    assert_int_equal(b.n, N - 100);
    assert_memory_equal(a.first[100], b.first[100], (N - 100) * sizeof *a.first);
    assert_memory_not_equal(a.first[100], a.first[101], sizeof *a.first);
    sim_model_close(&sim);
}

static void bad_arguments(void **state)
{
    (void)state;
    open_sim(4, SIM_SOUND);
    cairn_diag dg;
    cairn_score_opts o = {sizeof o, 0, N, 0};
    seen s = {0};
    assert_int_equal(forward_score(&sim.m, ids, N, &o, keep, &s, &dg), CAIRN_E_ARG);
    assert_says(&dg, "position");
    o.first = 0;
    assert_int_equal(forward_score(&sim.m, ids, 0, &o, keep, &s, &dg), CAIRN_E_ARG);
    ids[17] = SIM_VOCAB;
    assert_int_equal(forward_score(&sim.m, ids, N, &o, keep, &s, &dg), CAIRN_E_ARG);
    assert_says(&dg, "at place 17");
    sim_model_close(&sim);
}

static void count_line(void *ctx, const char *line)
{
    assert_non_null(strstr(line, "different bits"));
    ++*(int *)ctx;
}

static void numerics(void **state)
{
    (void)state;
    cairn_numerics_report r;
    cairn_diag dg;
    int lines = 0;
    open_sim(5, SIM_SOUND);
    assert_ok(numerics_check(&sim.m, ids, N, 3, count_line, &lines, &r, &dg));
    assert_int_equal(r.n_different, 0);
    assert_true(r.n_comparisons > 10ull * N * SIM_VOCAB);
    assert_int_equal(r.first[0], 0);
    assert_true(lines >= 12 + 6);
    sim_model_close(&sim);

    open_sim(5, SIM_ROWS_MATTER);
    assert_ok(numerics_check(&sim.m, ids, N, 1, NULL, NULL, &r, &dg));
    assert_true(r.n_different > 0);
    assert_non_null(strstr(r.first, "chunks of 1: position 0, logit 0: "));
    sim_model_close(&sim);

    open_sim(5, SIM_NAN);
    assert_int_equal(numerics_check(&sim.m, ids, N, 1, NULL, NULL, &r, &dg), CAIRN_E_CORRUPT);
    assert_says(&dg, "sim: logit 0 of position");
    sim_model_close(&sim);
}

static void speed(void **state)
{
    (void)state;
    open_sim(6, SIM_SOUND);
    double p = -1, d = -1;
    cairn_bench_opts o = {sizeof o, 700, 5, 33, 3};
    assert_ok(measure_speed(&sim.m, &o, &p, &d, NULL));
    assert_true(p > 0 && d > 0);
    o = (cairn_bench_opts){sizeof o, 0, 1, 0, 1};
    assert_ok(measure_speed(&sim.m, &o, &p, &d, NULL));
    assert_true(p == 0 && d > 0);
    o.batch = 0;
    assert_int_equal(measure_speed(&sim.m, &o, &p, &d, NULL), CAIRN_E_ARG);
    const int32_t ctx = sim.m.shape.ctx_train;
    cairn_diag dg;
    o = (cairn_bench_opts){sizeof o, 1, ctx - 6, 7, 1};
    assert_int_equal(measure_speed(&sim.m, &o, &p, &d, &dg), CAIRN_E_ARG);
    assert_says(&dg, "sim: found prompt 1, decode");
    sim_model_close(&sim);

    open_sim(6, SIM_NAN);
    o = (cairn_bench_opts){sizeof o, 700, 5, 33, 3};
    assert_int_equal(measure_speed(&sim.m, &o, &p, &d, &dg), CAIRN_E_CORRUPT);
    assert_says(&dg, "sim: logits are not finite");
    sim_model_close(&sim);
}

typedef struct told {
    int32_t attends;
    int64_t head_runs[2];
    double head_bytes, head_ops, attend_bytes[2], attend_ops[2], seconds;
} told;

static void listen(void *ctx, const cairn_op_cost *c)
{
    told *t = ctx;
    t->seconds += c->seconds;
    if (strcmp(c->label, "LINEAR head F32") == 0) {
        t->head_bytes += c->bytes;
        t->head_ops += c->float_ops;
        t->head_runs[c->decode] = c->n_runs;
    } else if (strcmp(c->label, "ATTEND") == 0) {
        t->attend_bytes[c->decode] = c->bytes;
        t->attend_ops[c->decode] = c->float_ops;
        t->attends++;
    } else if (c->n_runs == 0) {
        assert_string_equal(c->label, "(between ops)");
    }
}

/* Bytes and operations of attention, position by position: keys and values of 4 numbers in f16, one head;
   two of four layers see SIM_WINDOW positions. */
static void attend_costs(int32_t from, int32_t n, int32_t chunk, double *bytes, double *ops)
{
    for (int32_t layer = 0; layer < 4; layer++) {
        const int32_t window = layer == 1 || layer == 2 ? SIM_WINDOW : SIM_CTX;
        for (int32_t at = 0; at < n; at += chunk) {
            const int32_t rows = n - at < chunk ? n - at : chunk;
            bool met[SIM_CTX] = {false};
            for (int32_t p = from + at; p < from + at + rows; p++)
                for (int32_t k = 0; k <= p; k++)
                    if (k + window > p) {
                        *ops += 2 * (4 + 4);
                        if (!met[k]) *bytes += (4 + 4) * 2;
                        met[k] = true;
                    }
        }
    }
}

static void costs_of_ops(void **state)
{
    (void)state;
    open_sim(6, SIM_SOUND);
    const cairn_bench_opts o = {sizeof o, 700, 5, 33, 3};
    told t = {0};
    double bytes[2] = {0}, ops[2] = {0};
    cairn_diag dg;
    assert_ok(measure_ops(&sim.m, &o, listen, &t, NULL));
    assert_int_equal(t.attends, 2);
    assert_int_equal(t.head_runs[0], 3 * 2); /* 700 rows: two steps a sequence */
    assert_int_equal(t.head_runs[1], 5);
    assert_true(t.head_bytes == 4000.0 * (3 + 5)); /* once a step that wants logits */
    assert_true(t.head_ops == 2.0 * SIM_VOCAB * SIM_HIDDEN * (3 + 3 * 5));
    attend_costs(33, 700, STEP_ROWS, &bytes[0], &ops[0]);
    attend_costs(33, 5, 1, &bytes[1], &ops[1]);
    for (int i = 0; i < 2; i++) {
        assert_true(t.attend_bytes[i] == 3 * bytes[i]);
        assert_true(t.attend_ops[i] == 3 * ops[i]);
    }
    assert_true(t.seconds > 0);
    told none = {0};
    assert_ok(measure_ops(&sim.m, &(cairn_bench_opts){sizeof o, 4, 0, 0, 1}, listen, &none, NULL));
    assert_true(none.attend_ops[1] == 0 && none.attend_ops[0] > 0);
    const cairn_bench_opts bad = {sizeof bad, 4, 4, 0, 0};
    assert_int_equal(measure_ops(&sim.m, &bad, listen, &none, &dg), CAIRN_E_ARG);
    assert_says(&dg, "batch of 0");
    sim_model_close(&sim);
}

/* Contexts and budgets by hand: all layers full cost 2·64·8·2·2 bytes a block and so on; the largest
   context is exact to the position. */
static void guard(void **state)
{
    (void)state;
    open_sim(7, SIM_SOUND);
    guard_in in = {.m = &sim.m, .max_seqs = 4, .max_step_rows = 64};
    guard_out out;
    cairn_diag dg;
    in.limit = cache_bytes(&sim.m.cache, &(kv_scheme){0}, 64, 1280);
    assert_ok(guard_fit(&in, &out, &dg));
    assert_int_equal(out.ctx_len, 1280);
    assert_int_equal(out.cache_bytes, in.limit);
    in.limit -= 1;
    assert_ok(guard_fit(&in, &out, &dg));
    assert_int_equal(out.ctx_len, 1280 - 64);
    in.ctx_len = 1280;
    assert_int_equal(guard_fit(&in, &out, &dg), CAIRN_E_LIMIT);
    assert_says(&dg, "a context of 1280 needs");
    in = (guard_in){.m = &sim.m,
                    .max_seqs = 2,
                    .max_step_rows = 64,
                    .free = 1 << 30,
                    .total = 1ull << 31,
                    .scratch = 1 << 20};
    assert_ok(guard_fit(&in, &out, &dg));
    assert_int_equal(out.ctx_len, SIM_CTX);
    assert_int_equal(out.cache_bytes, 2 * cache_bytes(&sim.m.cache, &(kv_scheme){0}, 64, SIM_CTX));
    const uint64_t bare = out.cache_bytes + out.prefix_room + out.overhead;
    assert_true(out.overhead > 0 && bare <= (in.free / 10 * 9) - in.scratch);
    in.prefix = 1 << 28;
    assert_ok(guard_fit(&in, &out, &dg));
    const uint64_t without = out.overhead;
    in.disk = true;
    assert_ok(guard_fit(&in, &out, &dg));
    assert_true(out.overhead > without);
    in.free = out.cache_bytes + out.overhead +
              in.scratch; /* nine tenths of it: too little for prefixes */
    in.free += in.free / 9;
    assert_ok(guard_fit(&in, &out, &dg));
    assert_true(out.prefix_room < 1 << 28);
    assert_true(out.cache_bytes + out.prefix_room + out.overhead <= in.free / 10 * 9 - in.scratch);
    in.free = in.scratch;
    assert_int_equal(guard_fit(&in, &out, &dg), CAIRN_E_LIMIT);
    assert_says(&dg, "scratch");
    sim_model_close(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(score),    cmocka_unit_test(hidden), cmocka_unit_test(bad_arguments),
        cmocka_unit_test(numerics), cmocka_unit_test(speed),  cmocka_unit_test(costs_of_ops),
        cmocka_unit_test(guard),
    };
    return cmocka_run_group_tests_name("forward", tests, NULL, NULL);
}
