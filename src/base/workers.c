/* Fork-join pool.  One word, `ticket`, says that a job is published: its serial number and how many tasks it has.
   Only the caller writes it, so that it reaches all threads at once and stays in their caches.  Each thread owns a
   stretch of the tasks, and `claim`, a word in a line of its own, says how many of them are taken, and of which job:
   one that bears an older serial counts as none taken, so nothing has to be set back between jobs.  A task is taken
   by compare-and-swap of its owner's claim, by the owner first, and by others when they have none left; whoever
   succeeds holds a task of the job whose serial he wrote, and the job's plain fields cannot change before that task
   is counted.  A thread that comes late finds all claims full, or newer than the job it knows, and takes none.  So a
   core that is taken away never stalls the others, except for the task it holds; and where all threads are awake,
   no line is written by two of them: threads that fight for one word take microseconds to hand out 16 tasks.
   Each thread counts what it ran in its own line; the caller adds these up.
   Waiting: between begin and end threads spin for a bounded time, since the next job is microseconds
   away; then, and whenever the gate is closed, they sleep.  A spinning thread keeps a core from
   whoever has none, perhaps from the thread that it waits for; a sleeping one leaves its core free,
   and the scheduler moves that thread there.  Sleepers wait on `gate`, whose odd values mean "open";
   the caller, for the last tasks of others, on `ended`.  Each side announces that it sleeps before
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
#include "base/nodes.h"
#include "base/thread.h"

enum {
    SPINS_MAX = 4000,        /* 50–150 µs of pauses: what a sleep and its wake-up would cost */
    YIELD_NS = 1000000,      /* then give way, but keep warm: most of what stalls us ends sooner */
    NAP_NS = 100000,         /* the first nap; each is twice as long as the one before */
    NAPS = 6,                /* 6.3 ms: a scheduler's slice is 3 to 4 */
    STEAL_SPINS = 24,        /* 0.4 to 1 µs of pauses that others have to begin what is theirs */
    FETCH = 1024,            /* bytes between two looks for a task: 40 ns at what a core reads */
    FETCH_MOST = UINT16_MAX, /* of these: what fits beside an address */
    LINE = 64,               /* bytes apart, so that two words never share a cache line */
    /* Jobs after which claims are renewed: serials are told apart by their difference. */
    SERIALS = 1 << 30
};

typedef struct worker {
    workers *pool;
    thread t;
    int32_t id;
    uint32_t drained;  /* serial of the last job of which it found no task left */
    uint64_t fetching; /* what it fetches while it waits … */
    size_t n_fetched;  /* … and how far that is */
    char gap0[LINE];
    _Atomic uint64_t claim; /* serial:32 | taken of its own tasks:32 */
    char gap1[LINE];
    _Atomic uint32_t n_ran; /* tasks, of all jobs */
    char gap2[LINE];
} worker;

struct workers {
    /* caller's, between runs */
    int32_t n;
    bool open;
    worker *all;
    const char *root; /* of the nodes' files */
    nodes nodes;
    uint32_t n_ran; /* tasks of all jobs so far */
    /* the job: written by the caller while no task is out */
    worker_fn fn;
    void *ctx;
    char gap0[LINE];
    _Atomic uint64_t ticket; /* serial:32 | tasks:32 */
    char gap1[LINE];
    _Atomic uint32_t ended; /* what the caller sleeps on */
    _Atomic bool caller_sleeps;
    char gap2[LINE];
    _Atomic uint32_t gate;    /* odd: open */
    _Atomic int32_t n_asleep; /* those that take part and wait for a job */
    _Atomic int32_t active;
    _Atomic uint32_t spins; /* pauses before a sleep */
    _Atomic bool quit;
    char gap3[LINE];
    _Atomic uint64_t
        ahead[]; /* a thread: address:48 | units of FETCH:16.  Packed: the caller writes them all */
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
    const uint64_t ahead = atomic_load_explicit(&me->pool->ahead[me->id], memory_order_relaxed);
    if (ahead != me->fetching) {
        me->fetching = ahead;
        me->n_fetched = 0;
    }
    if (me->n_fetched >= (ahead & FETCH_MOST)) return false;
    const uintptr_t at = (uintptr_t)(ahead >> 16) + me->n_fetched * FETCH;
    for (uintptr_t i = 0; i < FETCH; i += LINE) __builtin_prefetch((const void *)(at + i), 0, 2);
    me->n_fetched++;
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

static uint32_t serial_of(uint64_t ticket)
{
    return (uint32_t)(ticket >> 32);
}

/* The first of what thread t owns of n tasks. */
static int32_t stretch(uint32_t n_tasks, int32_t t, int32_t active)
{
    return (int32_t)((uint64_t)n_tasks * (uint32_t)t / (uint32_t)active);
}

/* Takes the next of owner's tasks in the job of this ticket; -1: none is left, or the job is over. */
static int32_t claim_task(workers *w, int32_t owner, uint64_t ticket, int32_t active)
{
    const int32_t begin = stretch((uint32_t)ticket, owner, active);
    const uint32_t n = (uint32_t)(stretch((uint32_t)ticket, owner + 1, active) - begin);
    _Atomic uint64_t *claim = &w->all[owner].claim;
    if (n == 0) return -1;
    uint64_t c = atomic_load_explicit(claim, memory_order_acquire);
    for (;;) {
        const int32_t older = (int32_t)(serial_of(ticket) - serial_of(c));
        const uint32_t taken = older > 0 ? 0 : (uint32_t)c;
        if (older < 0 || taken >= n) return -1;
        const uint64_t next = (uint64_t)serial_of(ticket) << 32 | (taken + 1);
        if (atomic_compare_exchange_weak_explicit(claim, &c, next, memory_order_acq_rel,
                                                  memory_order_acquire))
            return begin + (int32_t)taken;
    }
}

static void run_task(workers *w, worker *me, int32_t i_task)
{
    w->fn(w->ctx, i_task, me->id);
    atomic_fetch_add(&me->n_ran, 1);
    if (atomic_load(&w->caller_sleeps)) {
        atomic_fetch_add(&w->ended, 1);
        futex_wake(&w->ended, 1);
    }
}

static bool is_news(workers *w, const worker *me, uint64_t ticket)
{
    return serial_of(ticket) != me->drained &&
           me->id < atomic_load_explicit(&w->active, memory_order_acquire);
}

static bool all_ran(workers *w)
{
    uint32_t n = 0;
    for (int32_t t = 0; t < w->n; t++)
        n += atomic_load(&w->all[t].n_ran); /* in one order with caller_sleeps */
    return n == w->n_ran;
}

/* As far as this thread can see cheaply; n_ran is the caller's. */
static bool is_over(workers *w, const worker *me, uint64_t ticket)
{
    if (me->id == 0) return all_ran(w);
    return atomic_load_explicit(&w->ticket, memory_order_relaxed) != ticket;
}

/* What others have not begun after a moment. */
static void take_from_others(workers *w, worker *me, uint64_t ticket, int32_t active)
{
    int32_t i;
    for (int32_t k = 0; k < STEAL_SPINS; k++) {
        if (is_over(w, me, ticket)) return;
        if (!fetch_ahead(me)) pause_cpu();
    }
    for (int32_t k = 1; k < active; k++)
        while ((i = claim_task(w, (me->id + k) % active, ticket, active)) >= 0) run_task(w, me, i);
}

/* Runs tasks until none is left; answers whether there was a job that it had not seen. */
static bool take_tasks(workers *w, worker *me)
{
    const uint64_t ticket = atomic_load(&w->ticket);
    const int32_t active = atomic_load_explicit(&w->active, memory_order_acquire);
    int32_t i;
    if (!is_news(w, me, ticket)) return false;
    while ((i = claim_task(w, me->id, ticket, active)) >= 0) run_task(w, me, i);
    take_from_others(w, me, ticket, active);
    me->drained = serial_of(ticket);
    return true;
}

/* Until the gate changes from `seen`, which was read before the last look for a task. */
static void gate_sleep(workers *w, worker *me, uint32_t seen, uint32_t i_nap)
{
    const bool counts = me->id < atomic_load_explicit(&w->active, memory_order_relaxed);
    if (counts) atomic_fetch_add(&w->n_asleep, 1);
    if (!is_news(w, me, atomic_load(&w->ticket)) && !atomic_load(&w->quit))
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
    if (w->nodes.n > 1)
        (void)nodes_bind(w->root, w->nodes.of[nodes_place(&w->nodes, me->id, w->n)].id);
    while (!atomic_load_explicit(&w->quit, memory_order_acquire)) {
        const uint32_t gate = atomic_load_explicit(&w->gate, memory_order_acquire);
        if (take_tasks(w, me)) {
            p = (patience){0};
        } else if (!(gate & 1)) {
            gate_sleep(w, me, gate, NAPS);
            p = (patience){0};
        } else if (!fetch_ahead(me) &&
                   !wait_awake(&p, atomic_load_explicit(&w->spins, memory_order_relaxed))) {
            gate_sleep(w, me, gate, p.n_nap++);
        }
    }
    return NULL;
}

cairn_status workers_new_at(const char *root, int32_t n_threads, workers **out)
{
    if (n_threads < 1 || n_threads > WORKERS_MAX) return CAIRN_E_ARG;
    workers *w = mem_calloc(1, sizeof *w + (size_t)n_threads * sizeof *w->ahead, MEM_ENGINE);
    if (!w) return CAIRN_E_NOMEM;
    w->n = n_threads;
    w->root = root;
    if (n_threads > 1) nodes_read(root, &w->nodes);
    atomic_init(&w->active, n_threads);
    w->all = mem_calloc((size_t)n_threads, sizeof *w->all, MEM_ENGINE);
    if (!w->all) {
        workers_free(w);
        return CAIRN_E_NOMEM;
    }
    for (int32_t i = 0; i < n_threads; i++) {
        w->all[i].pool = w;
        w->all[i].id = i;
    }
    for (int32_t i = 1; i < n_threads; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "worker-%d", (int)i);
        const cairn_status st = thread_start(&w->all[i].t, name, worker_main, &w->all[i]);
        if (st != CAIRN_OK) {
            workers_free(w);
            return st;
        }
    }
    *out = w;
    return CAIRN_OK;
}

cairn_status workers_new(int32_t n_threads, workers **out)
{
    return workers_new_at("", n_threads, out);
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

/* No task of a job until now is left: whoever still looks for one finds so. */
static void renew_claims(workers *w)
{
    const uint32_t serial = serial_of(atomic_load_explicit(&w->ticket, memory_order_relaxed)) + 1;
    for (int32_t t = 0; t < w->n; t++)
        atomic_store(&w->all[t].claim, (uint64_t)serial << 32 | UINT32_MAX);
    atomic_store(&w->ticket, (uint64_t)serial << 32);
}

void workers_limit(workers *w, int32_t n_threads)
{
    assert(n_threads >= 1 && n_threads <= w->n);
    renew_claims(w); /* stretches are cut anew */
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
    const size_t units = n / FETCH < FETCH_MOST ? n / FETCH : FETCH_MOST;
    atomic_store_explicit(&w->ahead[id], (uint64_t)(uintptr_t)p << 16 | units,
                          memory_order_relaxed);
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
static void await_others(workers *w)
{
    const uint32_t spins = atomic_load_explicit(&w->spins, memory_order_relaxed);
    patience p = {0};
    do
        if (all_ran(w)) return;
    while (fetch_ahead(&w->all[0]) || wait_awake(&p, spins));
    atomic_store(&w->caller_sleeps, true);
    for (;;) {
        const uint32_t seen = atomic_load(&w->ended);
        if (all_ran(w)) break;
        futex_sleep(&w->ended, seen, p.n_nap++);
    }
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
    uint32_t serial = serial_of(atomic_load_explicit(&w->ticket, memory_order_relaxed)) + 1;
    if (serial % SERIALS == 0) {
        renew_claims(w);
        serial++;
    }
    w->fn = fn;
    w->ctx = ctx;
    w->n_ran += (uint32_t)n_tasks;
    atomic_store(&w->ticket, (uint64_t)serial << 32 | (uint32_t)n_tasks);
    if (alone)
        workers_begin(w);
    else if (atomic_load(&w->n_asleep) > 0)
        gate_wake(w, 2, n_tasks - 1);
    (void)take_tasks(w, &w->all[0]);
    await_others(w);
    if (alone) workers_end(w);
}
