/* Threads, locks, conditions and an eventfd wake-up.  Atomics and pthreads stay in base/. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

#include "cairn/status.h"

typedef struct thread {
    pthread_t id;
    bool started;
} thread;
cairn_status thread_start(thread *t, const char *name, void *(*fn)(void *), void *ctx);
void thread_join(thread *t); /* not started is fine */
/* The calling thread gives way to others: its nice value, 0 to 19. */
void thread_be_nice(int nice);

typedef struct mutex {
    pthread_mutex_t m;
} mutex;
void mutex_init(mutex *m);
void mutex_deinit(mutex *m);
void mutex_lock(mutex *m);
void mutex_unlock(mutex *m);

typedef struct cond {
    pthread_cond_t c; /* on the monotonic clock */
} cond;
void cond_init(cond *c);
void cond_deinit(cond *c);
void cond_signal(cond *c);
void cond_broadcast(cond *c);
void cond_wait(cond *c, mutex *m);
bool cond_wait_ms(cond *c, mutex *m, uint32_t ms); /* false: timed out */

/* Runs fn the first time only; every caller returns after it has run. */
typedef struct once {
    pthread_once_t o;
} once;
#define ONCE_INIT                                                                                  \
    {                                                                                              \
        PTHREAD_ONCE_INIT                                                                          \
    }
void once_run(once *o, void (*fn)(void));

/* A byte that several threads may set, all to the same value: no order is implied. */
static inline uint8_t note_get(const uint8_t *p)
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}
/* NOLINTNEXTLINE(readability-non-const-parameter): it is stored through */
static inline void note_set(uint8_t *p, uint8_t v)
{
    __atomic_store_n(p, v, __ATOMIC_RELAXED);
}

/* Sequentially consistent counters and flags. */
typedef struct atomic_i64 {
    _Atomic int64_t v;
} atomic_i64;
int64_t atomic_get(const atomic_i64 *a);
void atomic_put(atomic_i64 *a, int64_t v);
int64_t atomic_add(atomic_i64 *a, int64_t d); /* the value before */

/* Wakes the one thread that sleeps on `fd`, by epoll and edge-triggered, as nobody reads it.  To set it costs a system
   call only where that thread sleeps. */
typedef struct wake {
    int fd;
    atomic_i64 asked, asleep;
} wake;
cairn_status wake_init(wake *w);
void wake_deinit(wake *w);
void wake_set(wake *w);   /* any thread, signal handlers too */
bool wake_sleep(wake *w); /* before the thread sleeps; false: it is set, so it must not */
bool wake_rouse(wake *w); /* after that: whether it was set since the last call */

#endif
