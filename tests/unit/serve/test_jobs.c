/* Jobs: lanes, limits, dropping in every state, the end. */
#include "test.h"

#include "base/clock.h"
#include "serve/jobs.h"

typedef struct task {
    job j;
    atomic_i64 *gate; /* work goes on once it is not 0; NULL: at once */
    atomic_i64 begun, worked;
    int n_done, n_refused;
    atomic_i64 n_released;
    int order;
} task;

static int n_ended;

static void work(job *j)
{
    task *t = (task *)j;

    atomic_put(&t->begun, 1);
    while (t->gate && !atomic_get(t->gate)) {
    }
    atomic_add(&t->worked, 1);
}

static bool done(job *j)
{
    task *t = (task *)j;

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
    const uint64_t start = clock_ns();

    while (!atomic_get(a)) assert_true(clock_ns() - start < 10000000000u);
}

static void deliver_all(jobs *q)
{
    const uint64_t start = clock_ns();

    while (jobs_live(q)) {
        jobs_deliver(q);
        assert_true(clock_ns() - start < 10000000000u);
    }
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
        cmocka_unit_test(test_churn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
