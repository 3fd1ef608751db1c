/* Jobs: lanes, limits, dropping in every state, the end. */
#include "test.h"

#include <sched.h>

#include "base/clock.h"
#include "serve/jobs.h"

typedef struct task {
    job j;
    atomic_i64 *gate; /* work goes on once it is not 0; NULL: at once */
    atomic_i64 begun, worked;
    int n_done, n_refused;
    atomic_i64 n_released;
    int order;
    jobs *parks_in; /* done parks it, unless it was given something; NULL: no */
    const void *parks_on;
} task;

static int n_ended;

static void work(job *j)
{
    task *t = (task *)j;

    atomic_put(&t->begun, 1);
    while (t->gate && !atomic_get(t->gate)) (void)sched_yield();
    atomic_add(&t->worked, 1);
}

static bool done(job *j)
{
    task *t = (task *)j;

    if (t->parks_in && !j->given)
        if (jobs_park(t->parks_in, j, t->parks_on) == CAIRN_OK) return false;
    t->n_done++;
    t->order = ++n_ended;
    return true;
}

static void refuse(job *j)
{
    ((task *)j)->n_refused++;
}

static void release(job *j)
{
    atomic_add(&((task *)j)->n_released, 1);
}

static const job_kind kind = {work, done, refuse, release};

static void on_notify(void *ctx)
{
    atomic_add(ctx, 1);
}

static void put(jobs *q, task *t, size_t bytes, atomic_i64 *gate)
{
    *t = (task){.j = {.kind = &kind, .bytes = bytes}, .gate = gate};
    assert_ok(jobs_put(q, &t->j));
}

static void wait_for(const atomic_i64 *a)
{
    const uint64_t end = clock_ns() + TEST_WAIT_MS * UINT64_C(1000000);

    while (!atomic_get(a)) {
        assert_true(clock_ns() < end);
        (void)sched_yield();
    }
}

static void deliver_until(jobs *q, size_t left)
{
    const uint64_t end = clock_ns() + TEST_WAIT_MS * UINT64_C(1000000);

    while (jobs_live(q) > left) {
        jobs_deliver(q);
        assert_true(clock_ns() < end);
        (void)sched_yield();
    }
}

static void deliver_all(jobs *q)
{
    deliver_until(q, 0);
}

enum { LONG = JOBS_SHORT_BYTES + 1 };

/* Long jobs, any number, hold up no short one; each lane keeps its order. */
static void test_lanes(void **state)
{
    atomic_i64 wakes = {0}, gate = {0};
    static task l[3], s[5];
    jobs q;

    (void)state;
    n_ended = 0;
    assert_ok(jobs_init(&q, on_notify, &wakes));
    for (int i = 0; i < 3; i++) put(&q, &l[i], LONG, &gate);
    wait_for(&l[0].begun);
    for (int i = 0; i < 5; i++) put(&q, &s[i], 10, NULL);
    wait_for(&s[4].worked);
    while (jobs_live(&q) > 3) jobs_deliver(&q);
    for (int i = 0; i < 5; i++) assert_int_equal(s[i].order, i + 1);
    assert_int_equal(atomic_get(&l[1].begun), 0); /* one long one at a time */
    atomic_put(&gate, 1);
    deliver_all(&q);
    for (int i = 0; i < 3; i++) assert_int_equal(l[i].order, i + 6);
    for (int i = 0; i < 3; i++) assert_int_equal(atomic_get(&l[i].n_released), 1);
    assert_true(atomic_get(&wakes) >= 2);
    jobs_stop(&q);
    jobs_deinit(&q);
}

/* Done at once, whatever the lanes are at; or parked, and done by a worker then. */
static void test_at_once(void **state)
{
    atomic_i64 wakes = {0}, gate = {0};
    static task busy, tiny, waits;
    const int model = 0;
    jobs q;

    (void)state;
    assert_ok(jobs_init(&q, on_notify, &wakes));
    put(&q, &busy, 10, &gate);
    wait_for(&busy.begun);
    tiny = (task){.j = {.kind = &kind, .bytes = 10}};
    jobs_do(&tiny.j);
    assert_int_equal(tiny.n_done, 1);
    assert_int_equal(atomic_get(&tiny.n_released), 1);
    waits = (task){.j = {.kind = &kind, .bytes = 10}, .parks_in = &q, .parks_on = &model};
    jobs_do(&waits.j);
    assert_int_equal(atomic_get(&waits.n_released), 0);
    assert_int_equal(jobs_parked(&q, &model), 1);
    assert_int_equal(jobs_live(&q), 2);
    jobs_unpark(&q, &model, &model);
    atomic_put(&gate, 1);
    deliver_all(&q);
    assert_int_equal(atomic_get(&waits.worked), 2);
    assert_int_equal(waits.n_done, 1);
    assert_int_equal(atomic_get(&waits.n_released), 1);
    jobs_stop(&q);
    jobs_deinit(&q);
}

static void test_limits(void **state)
{
    atomic_i64 wakes = {0}, gate = {0};
    static task first, t[JOBS_MAX], more;
    jobs q;

    (void)state;
    assert_ok(jobs_init(&q, on_notify, &wakes));
    put(&q, &first, LONG, &gate);
    wait_for(&first.begun);
    put(&q, &t[0], (size_t)JOBS_MAX_BYTES + 5, &gate); /* alone it may */
    more = (task){.j = {.kind = &kind, .bytes = 1}};
    assert_int_equal(jobs_put(&q, &more.j), CAIRN_E_BUSY);
    jobs_drop(&q, &t[0].j);
    assert_int_equal(atomic_get(&t[0].n_released), 1); /* at once, and its bytes are free again */
    for (int i = 0; i < JOBS_MAX; i++) put(&q, &t[i], LONG / 4, NULL);
    atomic_put(&gate, 1);
    deliver_all(&q);
    for (int i = 0; i < JOBS_MAX; i++) assert_int_equal(t[i].n_done, 1);
    atomic_put(&gate, 0);
    put(&q, &first, 1, &gate);
    wait_for(&first.begun);
    for (int i = 0; i < JOBS_MAX; i++) put(&q, &t[i], 1, NULL);
    assert_int_equal(jobs_put(&q, &more.j), CAIRN_E_BUSY);
    atomic_put(&gate, 1);
    deliver_all(&q);
    assert_ok(jobs_put(&q, &more.j));
    deliver_all(&q);
    jobs_stop(&q);
    jobs_deinit(&q);
}

static void test_drop(void **state)
{
    atomic_i64 wakes = {0}, gate = {0};
    static task running, waiting, finished;
    jobs q;

    (void)state;
    assert_ok(jobs_init(&q, on_notify, &wakes));
    put(&q, &running, LONG, &gate);
    wait_for(&running.begun);
    put(&q, &waiting, LONG, NULL);
    put(&q, &finished, 1, NULL);
    wait_for(&wakes);
    jobs_drop(&q, &waiting.j);
    jobs_drop(&q, &finished.j);
    jobs_drop(&q, &running.j);
    assert_int_equal(jobs_live(&q), 0);
    assert_int_equal(atomic_get(&waiting.n_released), 1);
    assert_int_equal(atomic_get(&waiting.begun), 0);
    assert_int_equal(atomic_get(&finished.n_released), 1);
    assert_int_equal(atomic_get(&running.n_released), 0);
    atomic_put(&gate, 1);
    wait_for(&running.n_released); /* by its worker */
    jobs_deliver(&q);
    assert_int_equal(running.n_done + waiting.n_done + finished.n_done, 0);
    jobs_stop(&q);
    jobs_deinit(&q);
}

/* Every job is refused once, whatever its state, and released once. */
static void test_cancel_and_stop(void **state)
{
    atomic_i64 wakes = {0}, gate = {0};
    static task t[6];
    jobs q;

    (void)state;
    assert_ok(jobs_init(&q, on_notify, &wakes));
    put(&q, &t[0], 1, NULL);
    wait_for(&wakes);
    put(&q, &t[1], LONG, &gate);
    put(&q, &t[2], LONG, NULL);
    put(&q, &t[3], 1, &gate);
    wait_for(&t[1].begun);
    wait_for(&t[3].begun);
    jobs_cancel(&q);
    for (int i = 0; i < 4; i++) assert_int_equal(t[i].n_refused, 1);
    put(&q, &t[4], LONG, NULL); /* after it, never begun */
    atomic_put(&gate, 1);
    jobs_stop(&q);
    put(&q, &t[5], 1, NULL);
    jobs_drop(&q, &t[5].j);
    jobs_deinit(&q);
    for (int i = 0; i < 6; i++) assert_int_equal(atomic_get(&t[i].n_released), 1);
    for (int i = 0; i < 6; i++) assert_int_equal(t[i].n_done, 0);
}

static void deliver_parked(jobs *q, const void *on, size_t n)
{
    const uint64_t end = clock_ns() + TEST_WAIT_MS * UINT64_C(1000000);

    while (jobs_parked(q, on) < n) {
        jobs_deliver(q);
        assert_true(clock_ns() < end);
        (void)sched_yield();
    }
}

/* What is parked waits, as far as there is room for it, and is worked on again, dropped or refused. */
static void test_park(void **state)
{
    enum { MANY = JOBS_MAX_PARKED + 1 };
    static task t[MANY], big[3];
    static const char one, two, gift;
    atomic_i64 wakes = {0};
    jobs q;

    (void)state;
    assert_ok(jobs_init(&q, on_notify, &wakes));
    for (int i = 0; i < MANY; i++) {
        t[i] = (task){.j = {.kind = &kind, .bytes = 1}, .parks_in = &q};
        t[i].parks_on = i % 2 ? &one : &two;
        assert_ok(jobs_put(&q, &t[i].j));
    }
    deliver_parked(&q, &one, JOBS_MAX_PARKED / 2);
    deliver_parked(&q, &two, JOBS_MAX_PARKED / 2);
    deliver_until(&q, JOBS_MAX_PARKED);
    assert_int_equal(t[MANY - 1].n_done, 1); /* there was no room for it */
    jobs_drop(&q, &t[1].j);
    assert_int_equal(atomic_get(&t[1].n_released), 1);
    assert_int_equal(jobs_parked(&q, &one), JOBS_MAX_PARKED / 2 - 1);
    n_ended = 0;
    jobs_unpark(&q, &one, &gift);
    assert_int_equal(jobs_parked(&q, &one), 0);
    deliver_until(&q, JOBS_MAX_PARKED / 2);
    for (int i = 3; i < JOBS_MAX_PARKED; i += 2) {
        assert_int_equal(t[i].order, i / 2);
        assert_ptr_equal(t[i].j.given, &gift);
        assert_int_equal(atomic_get(&t[i].worked), 2);
    }
    for (int i = 0; i < 3; i++) {
        big[i] = (task){.j = {.kind = &kind, .bytes = JOBS_MAX_BYTES / 4 - JOBS_MAX_PARKED},
                        .parks_in = &q,
                        .parks_on = &one};
        assert_ok(jobs_put(&q, &big[i].j));
    }
    deliver_until(&q, JOBS_MAX_PARKED / 2 + 2);
    assert_int_equal(big[2].n_done, 1); /* half of the bytes are taken */
    jobs_cancel(&q);
    assert_int_equal(jobs_live(&q), 0);
    assert_int_equal(t[0].n_refused + big[0].n_refused + big[1].n_refused, 3);
    assert_int_equal(t[1].n_refused + big[2].n_refused, 0);
    jobs_stop(&q);
    jobs_deinit(&q);
    for (int i = 0; i < MANY; i++) assert_int_equal(atomic_get(&t[i].n_released), 1);
    for (int i = 0; i < 3; i++) assert_int_equal(atomic_get(&big[i].n_released), 1);
}

/* What has been parked for too long is done without being worked on again; what came later stays. */
static void test_late(void **state)
{
    static task t[3];
    static const char model;
    atomic_i64 wakes = {0};
    jobs q;

    (void)state;
    assert_ok(jobs_init(&q, on_notify, &wakes));
    assert_true(jobs_unpark_late(&q, UINT64_MAX) == UINT64_MAX);
    for (int i = 0; i < 3; i++) {
        t[i] = (task){.j = {.kind = &kind, .bytes = 1}, .parks_in = &q, .parks_on = &model};
        assert_ok(jobs_put(&q, &t[i].j));
    }
    deliver_parked(&q, &model, 3);
    for (int i = 0; i < 3; i++) t[i].j.came_ms = (uint64_t)i + 1;
    t[1].parks_in = NULL;
    t[0].parks_in = NULL;
    const int64_t before = atomic_get(&wakes);
    assert_true(jobs_unpark_late(&q, 2) == 3);
    assert_true(atomic_get(&wakes) > before);
    assert_int_equal(jobs_parked(&q, &model), 1);
    jobs_drop(&q, &t[1].j);
    deliver_until(&q, 1);
    assert_true(t[0].j.late && t[0].n_done == 1 && t[1].n_done == 0 && !t[2].j.late);
    assert_int_equal(atomic_get(&t[0].worked), 1);
    jobs_cancel(&q);
    assert_int_equal(t[2].n_refused, 1);
    jobs_stop(&q);
    jobs_deinit(&q);
    for (int i = 0; i < 3; i++) assert_int_equal(atomic_get(&t[i].n_released), 1);
}

/* Many, dropped at random moments: each is released once, done only if not dropped. */
static void test_churn(void **state)
{
    enum { N = 4000 };
    static task t[N];
    static bool dropped[N];
    atomic_i64 wakes = {0};
    jobs q;

    (void)state;
    assert_ok(jobs_init(&q, on_notify, &wakes));
    for (int i = 0; i < N; i++) {
        t[i] = (task){.j = {.kind = &kind, .bytes = i % 3 ? 1 : LONG}};
        while (jobs_put(&q, &t[i].j) != CAIRN_OK) jobs_deliver(&q);
        if (i % 7 == 0) jobs_deliver(&q);
        for (int k = i > 50 ? i - 50 : 0; k <= i && i % 5 == 0; k += 13) {
            if (dropped[k] || t[k].n_done) continue;
            dropped[k] = true;
            jobs_drop(&q, &t[k].j);
        }
    }
    deliver_all(&q);
    jobs_stop(&q);
    jobs_deinit(&q);
    for (int i = 0; i < N; i++) {
        assert_int_equal(atomic_get(&t[i].n_released), 1);
        assert_int_equal(t[i].n_done, !dropped[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lanes), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_drop),  cmocka_unit_test(test_cancel_and_stop),
        cmocka_unit_test(test_park),  cmocka_unit_test(test_late),
        cmocka_unit_test(test_churn), cmocka_unit_test(test_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
