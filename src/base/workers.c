/* Fork-join pool.  One word, `ticket`, says all that a thread needs before it takes a task: how many
   tasks are left, how many threads may take part, and a serial number.  A task is taken by lowering
   that word with compare-and-swap, so whoever succeeds holds a task of the job then published: the
   job's plain fields cannot change before the task is counted in `n_done`.  A thread that comes late
   finds no task left, or takes one of the next job, and both are right.  So a core that is taken
   away never stalls the others, except for the task it holds.
   Waiting: between begin and end threads spin for a bounded time, since the next job is microseconds
   away; then, and whenever the gate is closed, they sleep.  A spinning thread keeps a core from
   whoever has none, perhaps from the thread that it waits for; a sleeping one leaves its core free,
   and the scheduler moves that thread there.  Sleepers wait on `gate`, whose odd values mean "open";
   the caller, for the last tasks of others, on `n_done`.  Each side announces that it sleeps before
   it looks once more, and the other publishes before it looks for sleepers: none is missed. */
#include "base/workers.h"

#include <assert.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/machine.h"
#include "base/thread.h"

enum {
    SPINS_MAX = 4000,   /* 50–150 µs of pauses: what a sleep and its wake-up would cost */
    YIELD_NS = 1000000, /* then give way, but keep warm: most of what stalls us ends sooner */
    NAP_NS = 100000,    /* the first nap; each is twice as long as the one before */
    NAPS = 6,           /* 6.3 ms: a scheduler's slice is 3 to 4 */
    FETCH = 1024,       /* bytes between two looks for a task: 40 ns at what a core reads */
    LINE = 64           /* bytes apart, so that two words never share a cache line */
};

/* Of worker 0, who is the caller, only what it fetches. */
typedef struct worker {
    workers *pool;
    thread t;
    int32_t id;
    char gap0[LINE];
    _Atomic uintptr_t ahead; /* the caller writes: addresses to fetch while waiting … */
    _Atomic size_t n_ahead;
    uintptr_t fetching; /* the thread's own: … and how far that is */
    size_t n_fetched;
    char gap1[LINE];
} worker;

struct workers {
    /* caller's, between runs */
    int32_t n;
    bool open;
    worker *all;
    /* the job: written by the caller while no task is out */
    worker_fn fn;
    void *ctx;
    int32_t n_tasks;
    char gap0[LINE];
    _Atomic uint64_t ticket; /* serial:22 | active:10 | tasks left:32 */
    char gap1[LINE];
    _Atomic uint32_t n_done;
    _Atomic bool caller_sleeps;
    char gap2[LINE];
    _Atomic uint32_t gate;    /* odd: open */
    _Atomic int32_t n_asleep; /* those that take part and wait for a job */
    _Atomic int32_t active;
    _Atomic uint32_t spins; /* pauses before a sleep */
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

/* Some lines of what this thread is to read next, into its second cache; false: none is left. */
static bool fetch_ahead(worker *me)
{
    const uintptr_t at = atomic_load_explicit(&me->ahead, memory_order_relaxed);
    if (at != me->fetching) {
        me->fetching = at;
        me->n_fetched = 0;
    }
    if (me->n_fetched >= atomic_load_explicit(&me->n_ahead, memory_order_relaxed)) return false;
    for (uintptr_t i = 0; i < FETCH; i += LINE)
        __builtin_prefetch((const void *)(at + me->n_fetched + i), 0, 2);
    me->n_fetched += FETCH;
    return true;
}

/* How long a thread has waited. */
typedef struct patience {
    uint32_t n_spin, n_nap;
    uint64_t yields_from_ns;
} patience;

/* A pause or a turn given to others; false: it is time to sleep. */
static bool wait_awake(patience *p, uint32_t spins)
{
    if (p->n_spin < spins) {
        p->n_spin++;
        pause_cpu();
        return true;
    }
    const uint64_t now = clock_ns();
    if (p->yields_from_ns == 0) p->yields_from_ns = now;
    if (now - p->yields_from_ns > YIELD_NS) return false;
    (void)sched_yield();
    return true;
}

/* A core that falls idle looks for a thread that waits for one, but passes over those that ran a
   moment ago; so whoever waits for a thread without a core sleeps in naps, which end in a look. */
static void futex_sleep(_Atomic uint32_t *word, uint32_t seen, uint32_t i_nap)
{
    const struct timespec nap = {0, i_nap < NAPS ? NAP_NS << i_nap : 0};
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, i_nap < NAPS ? &nap : NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int32_t n)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

static bool has_task(uint64_t ticket, int32_t id)
{
    return (uint32_t)ticket != 0 && (uint32_t)id < (ticket >> 32 & WORKERS_MAX);
}

/* Runs tasks until none is left for this thread; answers whether it ran any. */
static bool take_tasks(workers *w, int32_t id)
{
    bool any = false;
    uint64_t t = atomic_load_explicit(&w->ticket, memory_order_acquire);
    while (has_task(t, id)) {
        if (!atomic_compare_exchange_weak_explicit(&w->ticket, &t, t - 1, memory_order_acq_rel,
                                                   memory_order_acquire))
            continue;
        const int32_t n = w->n_tasks; /* before the caller may change it */
        w->fn(w->ctx, n - (int32_t)(uint32_t)t, id);
        if (atomic_fetch_add(&w->n_done, 1) + 1 == (uint32_t)n && atomic_load(&w->caller_sleeps))
            futex_wake(&w->n_done, 1);
        any = true;
        t = atomic_load_explicit(&w->ticket, memory_order_acquire);
    }
    return any;
}

/* Until the gate changes from `seen`, which was read before the last look for a task. */
static void gate_sleep(workers *w, int32_t id, uint32_t seen, uint32_t i_nap)
{
    const bool counts = id < atomic_load_explicit(&w->active, memory_order_relaxed);
    if (counts) atomic_fetch_add(&w->n_asleep, 1);
    if (!has_task(atomic_load(&w->ticket), id) && !atomic_load(&w->quit))
        futex_sleep(&w->gate, seen, i_nap);
    if (counts) atomic_fetch_sub(&w->n_asleep, 1);
}

/* n of those that take part; a sleeper that takes none may be woken in place of one that does. */
static void gate_wake(workers *w, uint32_t step, int32_t n)
{
    atomic_fetch_add(&w->gate, step);
    futex_wake(&w->gate, workers_active(w) < w->n ? WORKERS_MAX : n);
}

static void *worker_main(void *arg)
{
    worker *me = arg;
    workers *w = me->pool;
    patience p = {0};
    while (!atomic_load_explicit(&w->quit, memory_order_acquire)) {
        const uint32_t gate = atomic_load_explicit(&w->gate, memory_order_acquire);
        if (take_tasks(w, me->id)) {
            p = (patience){0};
        } else if (!(gate & 1)) {
            gate_sleep(w, me->id, gate, NAPS);
            p = (patience){0};
        } else if (!fetch_ahead(me) &&
                   !wait_awake(&p, atomic_load_explicit(&w->spins, memory_order_relaxed))) {
            gate_sleep(w, me->id, gate, p.n_nap++);
        }
    }
    return NULL;
}

cairn_status workers_new(int32_t n_threads, workers **out)
{
    if (n_threads < 1 || n_threads > WORKERS_MAX) return CAIRN_E_ARG;
    workers *w = mem_calloc(1, sizeof *w, MEM_ENGINE);
    if (!w) return CAIRN_E_NOMEM;
    w->n = n_threads;
    atomic_init(&w->active, n_threads);
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
    gate_wake(w, 2, WORKERS_MAX);
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
    atomic_store(&w->active, n_threads);
    gate_wake(w, 2, WORKERS_MAX); /* who takes part counts itself among the sleepers */
}

int32_t workers_active(const workers *w)
{
    return atomic_load_explicit(&w->active, memory_order_relaxed);
}

void workers_ahead(workers *w, int32_t id, const void *p, size_t n)
{
    assert(id >= 0 && id < w->n);
    atomic_store_explicit(&w->all[id].n_ahead, n, memory_order_relaxed);
    atomic_store_explicit(&w->all[id].ahead, (uintptr_t)p, memory_order_relaxed);
}

/* Where there are fewer cores than threads, what is waited for cannot run while we spin. */
void workers_begin(workers *w)
{
    assert(!w->open);
    w->open = true;
    const int32_t active = workers_active(w);
    if (active == 1) return;
    const uint32_t spins = active <= machine_affinity() ? SPINS_MAX : 0;
    atomic_store_explicit(&w->spins, spins, memory_order_relaxed);
    gate_wake(w, 1, active - 1);
}

void workers_end(workers *w)
{
    assert(w->open);
    w->open = false;
    /* to the next even value: never one that a thread about to sleep has seen before */
    if (atomic_load_explicit(&w->gate, memory_order_relaxed) & 1)
        atomic_fetch_add_explicit(&w->gate, 1, memory_order_release);
}

/* Until others have ended the tasks that they took. */
static void await_others(workers *w, uint32_t n_tasks)
{
    const uint32_t spins = atomic_load_explicit(&w->spins, memory_order_relaxed);
    patience p = {0};
    uint32_t done = 0;
    do
        if (atomic_load_explicit(&w->n_done, memory_order_acquire) == n_tasks) return;
    while (fetch_ahead(&w->all[0]) || wait_awake(&p, spins));
    atomic_store(&w->caller_sleeps, true);
    while ((done = atomic_load(&w->n_done)) != n_tasks) futex_sleep(&w->n_done, done, p.n_nap++);
    atomic_store(&w->caller_sleeps, false);
}

void workers_run(workers *w, int32_t n_tasks, worker_fn fn, void *ctx)
{
    assert(n_tasks >= 0);
    const int32_t active = workers_active(w);
    if (active == 1 || n_tasks <= 1) {
        for (int32_t i = 0; i < n_tasks; i++) fn(ctx, i, 0);
        return;
    }
    const bool alone = !w->open;
    const uint64_t serial = (atomic_load_explicit(&w->ticket, memory_order_relaxed) >> 42) + 1;
    w->fn = fn;
    w->ctx = ctx;
    w->n_tasks = n_tasks;
    atomic_store_explicit(&w->n_done, 0, memory_order_relaxed);
    atomic_store(&w->ticket, serial << 42 | (uint64_t)active << 32 | (uint32_t)n_tasks);
    if (alone)
        workers_begin(w);
    else if (atomic_load(&w->n_asleep) > 0)
        gate_wake(w, 2, n_tasks - 1);
    (void)take_tasks(w, 0);
    await_others(w, (uint32_t)n_tasks);
    if (alone) workers_end(w);
}
