/* Threads, locks, conditions, wake-ups and counters, all under ThreadSanitizer too. */
#include "test.h"

#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

enum { N_THREADS = 4, N_ROUNDS = 2000 };

typedef struct shared {
    mutex mu;
    cond changed;
    int64_t plain; /* guarded by mu */
    int turn;      /* guarded by mu */
    atomic_i64 count;
} shared;

static void *add_up(void *ctx)
{
    shared *s = ctx;
    for (int i = 0; i < N_ROUNDS; i++) {
        mutex_lock(&s->mu);
        s->plain++;
        mutex_unlock(&s->mu);
        (void)atomic_add(&s->count, 2);
    }
    return NULL;
}

static void locks_exclude(void **state)
{
    (void)state;
    shared s = {.plain = 0};
    thread t[N_THREADS] = {{0}};
    mutex_init(&s.mu);
    for (int i = 0; i < N_THREADS; i++)
        assert_ok(thread_start(&t[i], "adds-up-with-a-long-name", add_up, &s));
    for (int i = 0; i < N_THREADS; i++) {
        assert_true(t[i].started);
        thread_join(&t[i]);
        assert_false(t[i].started);
        thread_join(&t[i]); /* not started is fine */
    }
    assert_int_equal(s.plain, N_THREADS * N_ROUNDS);
    assert_int_equal(atomic_get(&s.count), 2 * N_THREADS * N_ROUNDS);
    mutex_deinit(&s.mu);
}

static void counters(void **state)
{
    (void)state;
    atomic_i64 a = {0};
    assert_int_equal(atomic_add(&a, 5), 0); /* the value before */
    assert_int_equal(atomic_add(&a, -7), 5);
    assert_int_equal(atomic_get(&a), -2);
    atomic_put(&a, INT64_MIN);
    assert_true(atomic_get(&a) == INT64_MIN);
}

/* Waits for turn 1, then sets turn 2. */
static void *answer(void *ctx)
{
    shared *s = ctx;
    mutex_lock(&s->mu);
    while (s->turn != 1) cond_wait(&s->changed, &s->mu);
    s->turn = 2;
    cond_signal(&s->changed);
    mutex_unlock(&s->mu);
    return NULL;
}

static void conditions_pass_turns(void **state)
{
    (void)state;
    shared s = {.turn = 0};
    thread t = {0};
    mutex_init(&s.mu);
    cond_init(&s.changed);
    assert_ok(thread_start(&t, "answers", answer, &s));
    mutex_lock(&s.mu);
    s.turn = 1;
    cond_signal(&s.changed);
    while (s.turn != 2) assert_true(cond_wait_ms(&s.changed, &s.mu, 60000));
    mutex_unlock(&s.mu);
    thread_join(&t);
    cond_deinit(&s.changed);
    mutex_deinit(&s.mu);
}

static void waiting_ends(void **state)
{
    (void)state;
    shared s = {.turn = 0};
    mutex_init(&s.mu);
    cond_init(&s.changed);
    mutex_lock(&s.mu);
    const uint64_t start = clock_ns();
    while (cond_wait_ms(&s.changed, &s.mu, 30)) {
    } /* woken for nothing is allowed */
    assert_true(clock_ns() - start >= 30u * 1000 * 1000);
    while (cond_wait_ms(&s.changed, &s.mu, 0)) {
    }
    mutex_unlock(&s.mu);
    cond_deinit(&s.changed);
    mutex_deinit(&s.mu);
}

/* Sleeps until it is set, `ms` at most. */
static bool roused(int epoll, int ms)
{
    struct epoll_event e;
    return epoll_wait(epoll, &e, 1, ms) == 1;
}

static void *set_it(void *ctx)
{
    wake_set(ctx);
    return NULL;
}

static void wakes_a_poll(void **state)
{
    (void)state;
    wake w;
    assert_ok(wake_init(&w));
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event e = {.events = EPOLLIN | EPOLLET};
    assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, w.fd, &e), 0);
    assert_true(wake_sleep(&w));
    assert_false(roused(epoll, 0));
    assert_false(wake_rouse(&w));
    for (int i = 0; i < 3; i++) wake_set(&w);
    assert_false(wake_sleep(&w));   /* set while awake: it must not sleep, */
    assert_false(roused(epoll, 0)); /* and no system call was made for that */
    assert_true(wake_rouse(&w));
    assert_true(wake_sleep(&w)); /* once for all */
    thread t = {0};
    assert_ok(thread_start(&t, "sets", set_it, &w));
    assert_true(roused(epoll, 60000));
    assert_true(wake_rouse(&w));
    thread_join(&t);
    assert_true(wake_sleep(&w));
    for (int i = 0; i < 3; i++) wake_set(&w);
    assert_true(roused(epoll, 0));
    assert_false(roused(epoll, 0));
    assert_true(wake_rouse(&w));
    assert_false(wake_rouse(&w));
    close(epoll);
    wake_deinit(&w);
    assert_int_equal(w.fd, -1);
    wake_deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locks_exclude),         cmocka_unit_test(counters),
        cmocka_unit_test(conditions_pass_turns), cmocka_unit_test(waiting_ends),
        cmocka_unit_test(wakes_a_poll),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
