/* The public doors of the engine and of scoring, around the simulated model: arguments, defaults, one
   request from submit to its last event. */
#include "test.h"

#include <sched.h>

#include "api/api_model.h"
#include "base/thread.h"
#include "cairn/engine.h"
#include "cairn/score.h"
#include "sim_model.h"

static sim_model sim;
static cairn_model m;
static int32_t ids[50];

static int setup(void **state)
{
    (void)state;
    sim_model_open(&sim, 41, SIM_SOUND);
    sim_prompt(41, ids, 50);
    m = (cairn_model){.m = &sim.m};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sim_model_close(&sim);
    return 0;
}

typedef struct tally {
    int32_t n_tokens, ids[20];
    atomic_i64 done;
} tally;

static void count(void *ctx, const cairn_event *ev)
{
    tally *t = ctx;
    if (ev->kind == CAIRN_EV_TOKEN) t->ids[t->n_tokens++] = ev->id;
    if (ev->kind == CAIRN_EV_DONE) atomic_put(&t->done, 1);
}

static void one_request(void **state)
{
    (void)state;
    cairn_engine *e;
    cairn_request r;
    cairn_request_id id = 0;
    tally t = {0};
    int32_t want[7];
    assert_ok(cairn_engine_open(&m, NULL, &e, NULL));
    assert_ptr_equal(cairn_engine_model(e), &m);
    cairn_request_init(&r);
    r.ids = ids;
    r.n_ids = 50;
    r.max_tokens = 7;
    assert_ok(cairn_engine_submit(e, &r, count, &t, &id, NULL));
    assert_true(id != 0);
    while (!atomic_get(&t.done)) (void)sched_yield();
    cairn_engine_cancel(e, id); /* too late is fine */
    sim_greedy(&sim, ids, 50, want, 7);
    assert_int_equal(t.n_tokens, 7);
    assert_memory_equal(t.ids, want, sizeof want);
    cairn_engine_stats s;
    cairn_engine_stats_init(&s);
    cairn_engine_get_stats(e, &s);
    assert_int_equal(s.struct_size, sizeof s);
    assert_int_equal(s.max_seqs, 4);
    assert_int_equal(s.ctx_len, SIM_CTX);
    cairn_engine_close(e);
    cairn_engine_close(NULL);
}

/* A caller built against an older, shorter struct keeps what lies behind it. */
static void short_structs(void **state)
{
    (void)state;
    cairn_engine *e;
    cairn_engine_stats s;
    cairn_numerics_report r;
    assert_ok(cairn_engine_open(&m, NULL, &e, NULL));
    memset(&s, 0x5a, sizeof s);
    s.struct_size = (uint32_t)offsetof(cairn_engine_stats, n_requests);
    cairn_engine_get_stats(e, &s);
    assert_int_equal(s.struct_size, offsetof(cairn_engine_stats, n_requests));
    assert_int_equal(s.ctx_len, SIM_CTX);
    assert_int_equal(s.n_requests, 0x5a5a5a5a5a5a5a5a);
    cairn_engine_close(e);

    memset(&r, 0x5a, sizeof r);
    r.struct_size = (uint32_t)offsetof(cairn_numerics_report, first);
    assert_ok(cairn_check_numerics(&m, ids, 50, 1, NULL, NULL, &r, NULL));
    assert_int_equal(r.struct_size, offsetof(cairn_numerics_report, first));
    assert_true(r.n_comparisons > 0);
    assert_int_equal(r.n_different, 0);
    assert_int_equal(r.first[0], 0x5a);
    cairn_numerics_report_init(&r);
    assert_int_equal(r.struct_size, sizeof r);
    r.struct_size = 0;
    assert_int_equal(cairn_check_numerics(&m, ids, 50, 1, NULL, NULL, &r, NULL), CAIRN_E_ARG);
}

static void bad_arguments(void **state)
{
    (void)state;
    cairn_engine *e;
    cairn_engine_opts o = {0}; /* not initialised */
    cairn_request r = {0};
    cairn_request_id id;
    cairn_diag dg;
    assert_int_equal(cairn_engine_open(NULL, NULL, &e, &dg), CAIRN_E_ARG);
    assert_int_equal(cairn_engine_open(&m, &o, &e, &dg), CAIRN_E_ARG);
    assert_says(&dg, "not initialised");
    cairn_engine_opts_init(&o);
    assert_ok(cairn_engine_open(&m, &o, &e, &dg));
    assert_int_equal(cairn_engine_submit(e, &r, count, NULL, &id, &dg), CAIRN_E_ARG);
    assert_says(&dg, "not initialised");
    cairn_request_init(&r);
    assert_int_equal(cairn_engine_submit(e, &r, count, NULL, &id, &dg), CAIRN_E_ARG);
    assert_says(&dg, "no ids");
    assert_int_equal(cairn_engine_submit(e, &r, NULL, NULL, &id, &dg), CAIRN_E_ARG);
    cairn_engine_close(e);

    double a, b;
    const cairn_score_opts so = {0};
    const cairn_bench_opts bo = {0};
    assert_int_equal(cairn_score(&m, ids, 50, NULL, NULL, NULL, &dg), CAIRN_E_ARG);
    assert_int_equal(cairn_score_hidden(&m, NULL, 50, NULL, NULL, NULL, &dg), CAIRN_E_ARG);
    assert_int_equal(cairn_score(&m, ids, 50, &so, NULL, NULL, &dg), CAIRN_E_ARG);
    assert_says(&dg, "not initialised");
    assert_int_equal(cairn_bench_run(&m, &bo, &a, &b, &dg), CAIRN_E_ARG);
    assert_int_equal(cairn_bench_run(NULL, NULL, &a, &b, &dg), CAIRN_E_ARG);
    assert_int_equal(cairn_bench_machine(&m, NULL, &dg), CAIRN_E_ARG);
    assert_int_equal(cairn_check_numerics(&m, ids, 50, 1, NULL, NULL, NULL, &dg), CAIRN_E_ARG);
    dev *d = sim.m.dev;
    sim.m.dev = NULL;
    assert_int_equal(cairn_bench_run(&m, NULL, &a, &b, &dg), CAIRN_E_ARG);
    assert_says(&dg, "without its weights; expected");
    sim.m.dev = d;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_request, setup, teardown),
        cmocka_unit_test_setup_teardown(short_structs, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_arguments, setup, teardown),
    };
    return cmocka_run_group_tests_name("api_engine", tests, NULL, NULL);
}
