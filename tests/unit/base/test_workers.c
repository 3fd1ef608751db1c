/* Every task runs exactly once, on a thread that takes part, whatever the number of threads; and
   what tasks wrote is visible when workers_run returns. */
#include "test.h"

#include <sched.h>
#include <time.h>

#include "base/thread.h"
#include "base/workers.h"

enum { N_MAX = 1000 };

static void sleep_us(long us)
{
    const struct timespec t = {0, us * 1000};
    if (us > 0) (void)nanosleep(&t, NULL);
}

typedef struct job {
    workers *w;
    int32_t n_threads;
    uint32_t hits[N_MAX]; /* plain: a task owns its element */
    double value[N_MAX];
    atomic_i64 bad_thread;
} job;

static void task(void *ctx, int32_t i, int32_t i_thread)
{
    job *j = ctx;
    if (i_thread < 0 || i_thread >= j->n_threads) (void)atomic_add(&j->bad_thread, 1);
    j->hits[i]++;
    double x = i + 1;
    for (int k = 0; k < 20; k++) x = x * 1.0001 + 1.0 / x;
    j->value[i] = x;
}

static void run_and_check(job *j, int32_t n)
{
    memset(j->hits, 0, sizeof j->hits);
    workers_run(j->w, n, task, j);
    for (int32_t i = 0; i < n; i++) assert_int_equal(j->hits[i], 1);
    for (int32_t i = n; i < N_MAX; i++) assert_int_equal(j->hits[i], 0);
    assert_int_equal(atomic_get(&j->bad_thread), 0);
}

static void each_task_once(void **state)
{
    (void)state;
    static job j;
    static double first[N_MAX];
    for (int32_t threads = 1; threads <= 8; threads++) {
        assert_ok(workers_new(threads, &j.w));
        assert_int_equal(workers_count(j.w), threads);
        assert_int_equal(workers_active(j.w), threads);
        j.n_threads = threads;
        workers_begin(j.w);
        for (int round = 0; round < 20; round++)
            for (int32_t n = 0; n < 40; n++) run_and_check(&j, n);
        run_and_check(&j, N_MAX);
        workers_end(j.w);
        if (threads == 1) memcpy(first, j.value, sizeof first);
        assert_memory_equal(first, j.value, sizeof first);
        workers_free(j.w);
    }
    assert_int_equal(mem_used_all(), 0);
}

/* Advice about memory that is there, that is not, and past the end of all. */
static void fetching_ahead_changes_nothing(void **state)
{
    (void)state;
    static job j;
    static uint8_t there[8192];
    const struct {
        const void *p;
        size_t n;
    } advice[] = {{there, sizeof there},
                  {NULL, sizeof there},
                  {NULL, 0},
                  {(const void *)(UINTPTR_MAX - 1000), SIZE_MAX},
                  {there + 1, 1}};
    j.n_threads = 3;
    assert_ok(workers_new(j.n_threads, &j.w));
    workers_begin(j.w);
    for (size_t k = 0; k < sizeof advice / sizeof *advice; k++)
        for (int32_t n = 0; n < 40; n++) {
            for (int32_t t = 0; t < j.n_threads; t++)
                workers_ahead(j.w, t, advice[(k + (size_t)t) % 5].p, advice[k].n);
            run_and_check(&j, n);
        }
    workers_end(j.w);
    workers_free(j.w);
    assert_int_equal(mem_used_all(), 0);
}

static void works_while_asleep(void **state)
{
    (void)state;
    static job j;
    assert_ok(workers_new(4, &j.w));
    j.n_threads = 4;
    for (int round = 0; round < 200; round++) {
        run_and_check(&j, round % 50);
        if (round % 10 != 0) continue;
        workers_begin(j.w);
        run_and_check(&j, 33);
        workers_end(j.w);
    }
    workers_free(j.w);
}

static void limit_is_kept(void **state)
{
    (void)state;
    static job j;
    assert_ok(workers_new(6, &j.w));
    for (int round = 0; round < 300; round++) {
        j.n_threads = 1 + round % 6;
        workers_limit(j.w, j.n_threads);
        assert_int_equal(workers_active(j.w), j.n_threads);
        workers_begin(j.w);
        for (int k = 0; k < 5; k++) run_and_check(&j, 64);
        workers_end(j.w);
    }
    workers_free(j.w);
}

/* All threads on one core, and pauses between the jobs that are longer than any patience: everybody
   sleeps now and then, inside a job and between jobs, and nobody is forgotten. */
static void one_core_for_all(void **state)
{
    (void)state;
    static job j;
    cpu_set_t mine, one;
    assert_int_equal(sched_getaffinity(0, sizeof mine, &mine), 0);
    CPU_ZERO(&one);
    for (int i = 0; CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &mine)) CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0); /* threads inherit it */
    assert_ok(workers_new(8, &j.w));
    for (int round = 0; round < 60; round++) {
        j.n_threads = round % 3 ? 8 : 2;
        workers_limit(j.w, j.n_threads);
        workers_begin(j.w);
        for (int k = 0; k < 10; k++) {
            if (k == 5) sleep_us(round % 10 * 1000);
            run_and_check(&j, 3 + 7 * k);
        }
        workers_end(j.w);
    }
    workers_free(j.w);
    assert_int_equal(sched_setaffinity(0, sizeof mine, &mine), 0);
}

static void long_task(void *ctx, int32_t i, int32_t i_thread)
{
    (void)i_thread;
    sleep_us(i == 0 ? 12000 : 0);
    task(ctx, i, i_thread);
}

/* The last task of another thread outlasts the caller's patience, and the caller's that of others. */
static void waits_asleep_for_the_last(void **state)
{
    (void)state;
    static job j;
    assert_ok(workers_new(3, &j.w));
    j.n_threads = 3;
    workers_begin(j.w);
    for (int round = 0; round < 10; round++) {
        memset(j.hits, 0, sizeof j.hits);
        workers_run(j.w, 4, long_task, &j);
        for (int32_t i = 0; i < 4; i++) assert_int_equal(j.hits[i], 1);
        run_and_check(&j, 100);
    }
    workers_end(j.w);
    workers_free(j.w);
}

static void run_allocates_nothing(void **state)
{
    (void)state;
    static job j;
    assert_ok(workers_new(3, &j.w));
    j.n_threads = 3;
    mem_fail_nth(0);
    for (int round = 0; round < 10; round++) run_and_check(&j, 100);
    assert_int_equal(mem_calls(), 0);
    workers_free(j.w);
}

static void refuses_silly_counts(void **state)
{
    (void)state;
    workers *w = NULL;
    assert_int_equal(workers_new(0, &w), CAIRN_E_ARG);
    assert_int_equal(workers_new(5000, &w), CAIRN_E_ARG);
    assert_null(w);
    workers_free(NULL);
}

static cairn_status make(void *ctx)
{
    (void)ctx;
    workers *w;
    TRY(workers_new(3, &w));
    workers_free(w);
    return CAIRN_OK;
}

static void memory_may_fail(void **state)
{
    (void)state;
    assert_int_equal(fault_loop(make, NULL), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_task_once),
        cmocka_unit_test(fetching_ahead_changes_nothing),
        cmocka_unit_test(works_while_asleep),
        cmocka_unit_test(limit_is_kept),
        cmocka_unit_test(run_allocates_nothing),
        cmocka_unit_test(one_core_for_all),
        cmocka_unit_test(waits_asleep_for_the_last),
        cmocka_unit_test(refuses_silly_counts),
        cmocka_unit_test(memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
