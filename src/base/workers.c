/* Fork-join pool.  One word, `ticket`, says all that a thread needs before it takes a task: how many
   tasks are left, how many threads may take part, and a serial number.  A task is taken by lowering
   that word with compare-and-swap, so whoever succeeds holds a task of the job then published: the
   job's plain fields cannot change before the task is counted in `n_done`.  A thread that comes late
   finds no task left, or takes one of the next job, and both are right.  So a core that is taken
   away never stalls the others, except for the task it holds.
   Waiting: between begin and end threads spin (and yield, once they have spun for long); otherwise
   they sleep on `gate`, whose odd values mean "open". */
#include "base/workers.h"

#include <assert.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"

enum {
    SPINS_MAX = 4000, /* about 50–150 µs of pauses; then others may need the core */
    LINE = 64         /* bytes apart, so that two words never share a cache line */
};

typedef struct worker {
    workers *pool;
    thread t;
    int32_t id;
} worker;

struct workers {
    /* caller's, between runs */
    int32_t n, active;
    bool open;
    worker *all;
    /* the job: written by the caller while no task is out */
    worker_fn fn;
    void *ctx;
    int32_t n_tasks;
    char gap0[LINE];
    _Atomic uint64_t ticket; /* serial:22 | active:10 | tasks left:32 */
    char gap1[LINE];
    _Atomic int32_t n_done;
    char gap2[LINE];
    _Atomic uint32_t gate; /* odd: open */
    _Atomic bool quit;
};

static void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void spin(uint32_t *n)
{
    if (*n < SPINS_MAX) {
        ++*n;
        pause_cpu();
    } else {
        (void)sched_yield();
    }
}

static void gate_sleep(workers *w, uint32_t seen)
{
    (void)syscall(SYS_futex, &w->gate, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void gate_wake(workers *w)
{
    (void)syscall(SYS_futex, &w->gate, FUTEX_WAKE_PRIVATE, WORKERS_MAX, NULL, NULL, 0);
}

/* Runs tasks until none is left for this thread; answers whether it ran any. */
static bool take_tasks(workers *w, int32_t id)
{
    bool any = false;
    uint64_t t = atomic_load_explicit(&w->ticket, memory_order_acquire);
    for (;;) {
        const uint32_t left = (uint32_t)t, active = t >> 32 & WORKERS_MAX;
        if (left == 0 || (uint32_t)id >= active) return any;
        if (!atomic_compare_exchange_weak_explicit(&w->ticket, &t, t - 1, memory_order_acq_rel,
                                                   memory_order_acquire))
            continue;
        w->fn(w->ctx, w->n_tasks - (int32_t)left, id);
        atomic_fetch_add_explicit(&w->n_done, 1, memory_order_release);
        any = true;
        t = atomic_load_explicit(&w->ticket, memory_order_acquire);
    }
}

static void *worker_main(void *arg)
{
    const worker *me = arg;
    workers *w = me->pool;
    uint32_t spins = 0;
    while (!atomic_load_explicit(&w->quit, memory_order_acquire)) {
        const uint32_t gate = atomic_load_explicit(&w->gate, memory_order_acquire);
        if (take_tasks(w, me->id))
            spins = 0;
        else if (gate & 1)
            spin(&spins);
        else if (!atomic_load_explicit(&w->quit, memory_order_acquire))
            gate_sleep(w, gate);
    }
    return NULL;
}

cairn_status workers_new(int32_t n_threads, workers **out)
{
    if (n_threads < 1 || n_threads > WORKERS_MAX) return CAIRN_E_ARG;
    workers *w = mem_calloc(1, sizeof *w, MEM_ENGINE);
    if (!w) return CAIRN_E_NOMEM;
    w->n = w->active = n_threads;
    w->all = mem_calloc((size_t)n_threads, sizeof *w->all, MEM_ENGINE);
    if (!w->all) {
        workers_free(w);
        return CAIRN_E_NOMEM;
    }
    for (int32_t i = 1; i < n_threads; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "worker-%d", (int)i);
        w->all[i].pool = w;
        w->all[i].id = i;
        const cairn_status st = thread_start(&w->all[i].t, name, worker_main, &w->all[i]);
        if (st != CAIRN_OK) {
            workers_free(w);
            return st;
        }
    }
    *out = w;
    return CAIRN_OK;
}

void workers_free(workers *w)
{
    if (!w) return;
    assert(!w->open);
    atomic_store_explicit(&w->quit, true, memory_order_release);
    atomic_fetch_add_explicit(&w->gate, 2, memory_order_release);
    gate_wake(w);
    for (int32_t i = 1; w->all && i < w->n; i++) thread_join(&w->all[i].t);
    mem_free(w->all);
    mem_free(w);
}

int32_t workers_count(const workers *w)
{
    return w->n;
}

void workers_limit(workers *w, int32_t n_threads)
{
    assert(n_threads >= 1 && n_threads <= w->n);
    w->active = n_threads;
}

int32_t workers_active(const workers *w)
{
    return w->active;
}

void workers_begin(workers *w)
{
    assert(!w->open);
    w->open = true;
    if (w->active == 1) return;
    atomic_fetch_or_explicit(&w->gate, 1, memory_order_release);
    gate_wake(w);
}

void workers_end(workers *w)
{
    assert(w->open);
    w->open = false;
    /* to the next even value: never one that a thread about to sleep has seen before */
    if (atomic_load_explicit(&w->gate, memory_order_relaxed) & 1)
        atomic_fetch_add_explicit(&w->gate, 1, memory_order_release);
}

void workers_run(workers *w, int32_t n_tasks, worker_fn fn, void *ctx)
{
    assert(n_tasks >= 0);
    if (w->active == 1 || n_tasks <= 1) {
        for (int32_t i = 0; i < n_tasks; i++) fn(ctx, i, 0);
        return;
    }
    const bool alone = !w->open;
    const uint64_t serial = (atomic_load_explicit(&w->ticket, memory_order_relaxed) >> 42) + 1;
    w->fn = fn;
    w->ctx = ctx;
    w->n_tasks = n_tasks;
    atomic_store_explicit(&w->n_done, 0, memory_order_relaxed);
    atomic_store_explicit(&w->ticket, serial << 42 | (uint64_t)w->active << 32 | (uint32_t)n_tasks,
                          memory_order_release);
    if (alone) workers_begin(w);
    (void)take_tasks(w, 0);
    uint32_t spins = 0;
    while (atomic_load_explicit(&w->n_done, memory_order_acquire) != n_tasks) spin(&spins);
    if (alone) workers_end(w);
}
