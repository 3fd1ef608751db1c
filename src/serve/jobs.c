/* Two lanes, a queue and a thread each: short jobs and long ones.  A short prompt thus never waits
   behind a long one, however many of those there are, which neither two workers on one queue (two long
   ones fill them) nor shortest-first (a stream of short ones starves the long) would give; and since
   only one long job runs at a time, so does only one need its many times the body in memory.  Within a
   lane the order is that of arrival.

   What finds that it has to wait for something else is parked: it counts as waiting, and begins anew.

   Long work runs at a lower priority: it takes seconds as it is, and the engine's threads, which wait
   for each other at every step, must not wait for it. */
#include "serve/jobs.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"

/* A third of the share of a thread at 0.  Less, and a busy machine starves prompts. */
enum { LONG_NICE = 5 };

static void list_init(job_list *l)
{
    *l = (job_list){NULL, &l->first};
}

static void list_put(job_list *l, job *j)
{
    j->next = NULL;
    *l->end = j;
    l->end = &j->next;
}

static job *list_take(job_list *l)
{
    job *j = l->first;

    if (!j) return NULL;
    l->first = j->next;
    if (!l->first) l->end = &l->first;
    return j;
}

static bool list_cut(job_list *l, const job *j)
{
    for (job **p = &l->first; *p; p = &(*p)->next) {
        if (*p != j) continue;
        *p = j->next;
        if (!*p) l->end = p;
        return true;
    }
    return false;
}

static job_lane *lane_of(jobs *q, const job *j)
{
    return &q->lane[j->bytes > JOBS_SHORT_BYTES];
}

/* Under the lock: what a lane's thread takes next; NULL: the end. */
static job *next_of(job_lane *l)
{
    job *j;

    while (!l->waiting.first && !l->of->closing) cond_wait(&l->news, &l->of->mu);
    if (l->of->closing) return NULL;
    j = list_take(&l->waiting);
    l->of->n_waiting--;
    l->of->bytes_waiting -= j->bytes;
    l->running = j;
    j->running = true;
    return j;
}

/* Under the lock, which it lets go. */
static void run(job_lane *l, job *j)
{
    jobs *q = l->of;
    bool first;

    mutex_unlock(&q->mu);
    j->kind->work(j);
    mutex_lock(&q->mu);
    l->running = NULL;
    j->running = false;
    if (j->dropped) {
        mutex_unlock(&q->mu);
        j->kind->release(j);
        mutex_lock(&q->mu);
        return;
    }
    first = !q->finished.first;
    list_put(&q->finished, j);
    if (first) q->notify(q->ctx); /* inside the lock: after it, the server may be gone */
}

static void *lane_main(void *ctx)
{
    job_lane *l = ctx;
    job *j;

    if (l != &l->of->lane[0]) thread_be_nice(LONG_NICE);
    mutex_lock(&l->of->mu);
    while ((j = next_of(l))) run(l, j);
    mutex_unlock(&l->of->mu);
    return NULL;
}

cairn_status jobs_init(jobs *q, void (*notify)(void *ctx), void *ctx)
{
    static const char *const names[JOBS_LANES] = {"cairn-short", "cairn-long"};
    cairn_status st = CAIRN_OK;

    *q = (jobs){.notify = notify, .ctx = ctx, .max_bytes = JOBS_MAX_BYTES};
    mutex_init(&q->mu);
    list_init(&q->finished);
    list_init(&q->parked);
    for (int i = 0; i < JOBS_LANES; i++) {
        q->lane[i].of = q;
        cond_init(&q->lane[i].news);
        list_init(&q->lane[i].waiting);
    }
    for (int i = 0; i < JOBS_LANES && st == CAIRN_OK; i++)
        st = thread_start(&q->lane[i].worker, names[i], lane_main, &q->lane[i]);
    return st;
}

static void begin(job *j)
{
    j->running = j->dropped = false;
    j->parked_on = j->given = NULL;
    j->came_ms = clock_ns() / 1000000;
    j->late = false;
}

cairn_status jobs_put(jobs *q, job *j)
{
    job_lane *l = lane_of(q, j);
    bool room;

    mutex_lock(&q->mu);
    /* A body over the limit all by itself has its turn when nothing waits. */
    room = q->n_waiting < JOBS_MAX &&
           (q->bytes_waiting == 0 || q->bytes_waiting + j->bytes <= q->max_bytes);
    if (room) {
        begin(j);
        list_put(&l->waiting, j);
        q->n_waiting++;
        q->bytes_waiting += j->bytes;
    }
    mutex_unlock(&q->mu);
    if (room) cond_signal(&l->news); /* outside, as it would only wait for the lock */
    return room ? CAIRN_OK : CAIRN_E_BUSY;
}

void jobs_do(job *j)
{
    begin(j);
    j->kind->work(j);
    if (j->kind->done(j)) j->kind->release(j);
}

cairn_status jobs_park(jobs *q, job *j, const void *on)
{
    mutex_lock(&q->mu);
    const bool room = q->n_parked < JOBS_MAX_PARKED && q->n_waiting < JOBS_MAX &&
                      (q->n_parked == 0 || q->bytes_parked + j->bytes <= q->max_bytes / 2);
    if (room) {
        j->parked_on = on;
        list_put(&q->parked, j);
        q->n_parked++;
        q->bytes_parked += j->bytes;
        q->n_waiting++;
        q->bytes_waiting += j->bytes;
    }
    mutex_unlock(&q->mu);
    return room ? CAIRN_OK : CAIRN_E_BUSY;
}

size_t jobs_parked(jobs *q, const void *on)
{
    size_t n = 0;

    mutex_lock(&q->mu);
    for (const job *j = q->parked.first; j; j = j->next) n += j->parked_on == on;
    mutex_unlock(&q->mu);
    return n;
}

void jobs_unpark(jobs *q, const void *on, const void *given)
{
    job_list stay;
    job *j;

    list_init(&stay);
    mutex_lock(&q->mu);
    while ((j = list_take(&q->parked))) {
        if (j->parked_on != on) {
            list_put(&stay, j);
            continue;
        }
        j->parked_on = NULL;
        j->given = given;
        q->n_parked--;
        q->bytes_parked -= j->bytes;
        list_put(&lane_of(q, j)->waiting, j);
        cond_signal(&lane_of(q, j)->news);
    }
    while ((j = list_take(&stay))) list_put(&q->parked, j);
    mutex_unlock(&q->mu);
}

uint64_t jobs_unpark_late(jobs *q, uint64_t by_ms)
{
    uint64_t oldest = UINT64_MAX;
    job_list stay;
    bool some = false;
    job *j;

    list_init(&stay);
    mutex_lock(&q->mu);
    while ((j = list_take(&q->parked))) {
        if (j->came_ms > by_ms) {
            if (j->came_ms < oldest) oldest = j->came_ms;
            list_put(&stay, j);
            continue;
        }
        j->parked_on = NULL;
        j->late = some = true;
        q->n_parked--;
        q->bytes_parked -= j->bytes;
        q->n_waiting--;
        q->bytes_waiting -= j->bytes;
        list_put(&q->finished, j);
    }
    while ((j = list_take(&stay))) list_put(&q->parked, j);
    if (some) q->notify(q->ctx);
    mutex_unlock(&q->mu);
    return oldest;
}

void jobs_drop(jobs *q, job *j)
{
    bool mine;

    mutex_lock(&q->mu);
    assert(!j->dropped);
    j->dropped = true;
    mine = !j->running;
    if (mine && !list_cut(&q->finished, j)) {
        /* Waiting; a job that is being delivered is in no list and may not be dropped. */
        const bool parked = j->parked_on != NULL;
        const bool cut = list_cut(parked ? &q->parked : &lane_of(q, j)->waiting, j);
        assert(cut);
        (void)cut;
        q->n_parked -= parked;
        q->bytes_parked -= parked ? j->bytes : 0;
        q->n_waiting--;
        q->bytes_waiting -= j->bytes;
    }
    mutex_unlock(&q->mu);
    if (mine) j->kind->release(j);
}

bool jobs_is_dropped(jobs *q, const job *j)
{
    mutex_lock(&q->mu);
    const bool dropped = j->dropped;
    mutex_unlock(&q->mu);
    return dropped;
}

void jobs_deliver(jobs *q)
{
    for (;;) {
        mutex_lock(&q->mu);
        job *j = list_take(&q->finished);
        mutex_unlock(&q->mu);
        if (!j) return;
        if (j->kind->done(j)) j->kind->release(j);
    }
}

/* Under the lock: one that jobs_cancel has yet to see. */
static job *any(const jobs *q)
{
    for (int i = 0; i < JOBS_LANES; i++) {
        if (q->lane[i].running && !q->lane[i].running->dropped) return q->lane[i].running;
        if (q->lane[i].waiting.first) return q->lane[i].waiting.first;
    }
    if (q->parked.first) return q->parked.first;
    return q->finished.first;
}

void jobs_cancel(jobs *q)
{
    for (;;) {
        mutex_lock(&q->mu);
        job *j = any(q);
        mutex_unlock(&q->mu);
        if (!j) return;
        j->kind->refuse(j);
        jobs_drop(q, j);
    }
}

size_t jobs_live(jobs *q)
{
    size_t n;

    mutex_lock(&q->mu);
    n = q->n_waiting;
    for (int i = 0; i < JOBS_LANES; i++) n += q->lane[i].running && !q->lane[i].running->dropped;
    for (const job *j = q->finished.first; j; j = j->next) n++;
    mutex_unlock(&q->mu);
    return n;
}

void jobs_stop(jobs *q)
{
    mutex_lock(&q->mu);
    q->closing = true;
    for (int i = 0; i < JOBS_LANES; i++) cond_signal(&q->lane[i].news);
    mutex_unlock(&q->mu);
    for (int i = 0; i < JOBS_LANES; i++) thread_join(&q->lane[i].worker);
}

void jobs_deinit(jobs *q)
{
    job *j;

    for (int i = 0; i < JOBS_LANES; i++) {
        while ((j = list_take(&q->lane[i].waiting))) j->kind->release(j);
        cond_deinit(&q->lane[i].news);
    }
    while ((j = list_take(&q->parked))) j->kind->release(j);
    while ((j = list_take(&q->finished))) j->kind->release(j);
    mutex_deinit(&q->mu);
}
