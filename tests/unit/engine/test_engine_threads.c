/* The engine with its thread: submitters, cancellers, readers of statistics and closing, all at once.
   Run under a thread sanitizer by `make test-tsan`. */
#include <sched.h>

#include "test.h"

#include "base/rng.h"
#include "base/thread.h"
#include "sim_model.h"
#include "watch.h"

enum { THREADS = 4, EACH = 25 };

static sim_model sim;

typedef struct job {
    engine *e;
    uint64_t seed;
    watch w[EACH];
    atomic_i64 n_done;
    int32_t n_refused;
    int32_t ids[300];
} job;
static job jobs[THREADS];

static void on_event(void *ctx, const cairn_event *ev)
{
    watch *w = ctx;
    watch_event(w, ev);
    if (ev->kind != CAIRN_EV_DONE) return;
    for (int i = 0; i < THREADS; i++)
        if (w >= jobs[i].w && w < jobs[i].w + EACH) (void)atomic_add(&jobs[i].n_done, 1);
}

static void *work(void *ctx)
{
    job *j = ctx;
    for (uint64_t i = 0; i < EACH; i++) {
        const uint64_t u = rng_u64(j->seed, 0, i);
        cairn_request r =
            watch_request(j->ids, 1 + (int32_t)(u % 300), 1 + (int32_t)((u >> 8) % 30));
        cairn_request_id id;
        cairn_diag dg;
        const cairn_status st = engine_submit(j->e, &r, on_event, &j->w[i], &id, &dg);
        if (st != CAIRN_OK) {
            assert_int_equal(st, CAIRN_E_BUSY);
            j->n_refused++;
        } else if (u % 3 == 0) {
            engine_cancel(j->e, id);
        }
        cairn_engine_stats s = {.struct_size = sizeof s};
        engine_get_stats(j->e, &s);
        assert_in_range(s.n_active, 0, 3);
    }
    return NULL;
}

static engine *open_engine(int32_t max_queue)
{
    engine *e = NULL;
    const cairn_engine_opts o = {.max_seqs = 3, .max_queue = max_queue, .max_step_rows = 64};
    assert_ok(engine_open(&sim.m, NULL, &o, NULL, &e, NULL));
    return e;
}

static void start(engine *e, thread *t)
{
    memset(jobs, 0, sizeof jobs);
    for (int i = 0; i < THREADS; i++) {
        jobs[i].e = e;
        jobs[i].seed = 50 + (uint64_t)i;
        sim_prompt(50 + (uint64_t)i, jobs[i].ids, 300);
        t[i] = (thread){0};
        assert_ok(thread_start(&t[i], "submit", work, &jobs[i]));
    }
}

static void every_request_ends_once(void)
{
    for (int i = 0; i < THREADS; i++) {
        int32_t n = 0;
        for (int k = 0; k < EACH; k++) n += jobs[i].w[k].n_done_events;
        assert_int_equal(n, EACH - jobs[i].n_refused);
    }
}

static void all_answered(void **state)
{
    (void)state;
    thread t[THREADS];
    sim_model_open(&sim, 31, SIM_SOUND);
    engine *e = open_engine(THREADS * EACH);
    start(e, t);
    for (int i = 0; i < THREADS; i++) thread_join(&t[i]);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(jobs[i].n_refused, 0);
        while (atomic_get(&jobs[i].n_done) < EACH) (void)sched_yield();
    }
    engine_close(e);
    every_request_ends_once();
    sim_model_close(&sim);
}

static void closed_in_the_middle(void **state)
{
    (void)state;
    thread t[THREADS];
    sim_model_open(&sim, 32, SIM_SOUND);
    engine *e = open_engine(10);
    start(e, t);
    for (int i = 0; i < THREADS; i++) thread_join(&t[i]);
    engine_close(e); /* some still run or wait */
    every_request_ends_once();
    sim_model_close(&sim);
}

static bool add_up(void *ctx, int32_t pos, const float *x)
{
    (void)pos;
    *(double *)ctx += (double)x[0];
    return true;
}

/* Scoring on the caller's thread while the engine runs: their steps take turns on the device. */
static void score_beside_an_engine(void **state)
{
    (void)state;
    static int32_t ids[200];
    const cairn_score_opts o = {sizeof o, 20, 0, 0};
    double want = 0;
    thread t[THREADS];
    sim_model_open(&sim, 33, SIM_SOUND);
    sim_prompt(33, ids, 200);
    assert_ok(forward_score(&sim.m, ids, 200, &o, add_up, &want, NULL));
    engine *e = open_engine(THREADS * EACH);
    start(e, t);
    for (int i = 0; i < 20; i++) {
        double sum = 0;
        assert_ok(forward_score(&sim.m, ids, 200, &o, add_up, &sum, NULL));
        assert_true(sum == want);
    }
    for (int i = 0; i < THREADS; i++) thread_join(&t[i]);
    engine_close(e);
    every_request_ends_once();
    sim_model_close(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_answered),
                                       cmocka_unit_test(closed_in_the_middle),
                                       cmocka_unit_test(score_beside_an_engine)};
    return cmocka_run_group_tests_name("engine_threads", tests, NULL, NULL);
}
