/* Threads, locks, wake-ups and counters: a thin face over pthreads, eventfd and C11 atomics.  A lock
   call that fails is a mistake of ours (a lock not initialised, or used twice), so it asserts. */
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

cairn_status thread_start(thread *t, const char *name, void *(*fn)(void *), void *ctx)
{
    pthread_t id;
    char shown[16]; /* the kernel's limit */
    if (pthread_create(&id, NULL, fn, ctx) != 0) return CAIRN_E_NOMEM;
    (void)snprintf(shown, sizeof shown, "%s", name);
    (void)pthread_setname_np(id, shown); /* for people only */
    *t = (thread){id, true};
    return CAIRN_OK;
}

void thread_join(thread *t)
{
    if (!t->started) return;
    const int rc = pthread_join(t->id, NULL);
    assert(rc == 0);
    (void)rc;
    t->started = false;
}

void thread_be_nice(int nice)
{
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), nice); /* fails for no value we are given */
}

static void must(int rc)
{
    assert(rc == 0);
    (void)rc;
}

void mutex_init(mutex *m)
{
    must(pthread_mutex_init(&m->m, NULL));
}

void mutex_deinit(mutex *m)
{
    must(pthread_mutex_destroy(&m->m));
}

void mutex_lock(mutex *m)
{
    must(pthread_mutex_lock(&m->m));
}

void mutex_unlock(mutex *m)
{
    must(pthread_mutex_unlock(&m->m));
}

void cond_init(cond *c)
{
    pthread_condattr_t a;
    must(pthread_condattr_init(&a));
    must(pthread_condattr_setclock(&a, CLOCK_MONOTONIC));
    must(pthread_cond_init(&c->c, &a));
    must(pthread_condattr_destroy(&a));
}

void cond_deinit(cond *c)
{
    must(pthread_cond_destroy(&c->c));
}

void cond_signal(cond *c)
{
    must(pthread_cond_signal(&c->c));
}

void cond_broadcast(cond *c)
{
    must(pthread_cond_broadcast(&c->c));
}

void cond_wait(cond *c, mutex *m)
{
    must(pthread_cond_wait(&c->c, &m->m));
}

bool cond_wait_ms(cond *c, mutex *m, uint32_t ms)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (time_t)(ms / 1000);
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    const int rc = pthread_cond_timedwait(&c->c, &m->m, &t);
    assert(rc == 0 || rc == ETIMEDOUT);
    return rc == 0;
}

cairn_status wake_init(wake *w)
{
    const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) return CAIRN_E_IO;
    *w = (wake){.fd = fd};
    return CAIRN_OK;
}

void wake_deinit(wake *w)
{
    if (w->fd >= 0) (void)close(w->fd);
    w->fd = -1;
}

/* Either it sees that the thread sleeps, or the thread sees what was asked. */
void wake_set(wake *w)
{
    const int saved = errno; /* a signal handler must not change it */
    const uint64_t one = 1;
    atomic_store(&w->asked.v, 1);
    if (!atomic_load(&w->asleep.v) || !atomic_exchange(&w->asleep.v, 0)) return;
    /* fails only when the counter is full, which takes longer than any machine runs */
    const ssize_t put = write(w->fd, &one, sizeof one);
    (void)put;
    errno = saved;
}

bool wake_sleep(wake *w)
{
    atomic_store(&w->asleep.v, 1);
    return !atomic_load(&w->asked.v);
}

bool wake_rouse(wake *w)
{
    atomic_store(&w->asleep.v, 0);
    return atomic_exchange(&w->asked.v, 0) != 0;
}

int64_t atomic_get(const atomic_i64 *a)
{
    return atomic_load(&a->v);
}

void atomic_put(atomic_i64 *a, int64_t v)
{
    atomic_store(&a->v, v);
}

int64_t atomic_add(atomic_i64 *a, int64_t d)
{
    return atomic_fetch_add(&a->v, d);
}

void once_run(once *o, void (*fn)(void))
{
    pthread_once(&o->o, fn);
}
