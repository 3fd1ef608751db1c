/* Work too long for the I/O thread: done by a few threads of a server's own, the results brought back.
   Every function is for the I/O thread. */
#ifndef SERVE_JOBS_H
#define SERVE_JOBS_H

#include "base/thread.h"

enum {
    JOBS_MAX = 1024,            /* waiting: half of the connections, which have one each at most */
    JOBS_MAX_BYTES = 128 << 20, /* waiting: four bodies of the default limit, but jobs.max_bytes */
    JOBS_MAX_PARKED = 256, /* of those; and half of the bytes: others' prompts go on meanwhile */
    JOBS_SHORT_BYTES = 256 << 10, /* up to this, a job goes to the lane for short ones */
    JOBS_LANES = 2
};

typedef struct job job;

typedef struct job_kind {
    void (*work)(job *j); /* a worker thread */
    bool (*done)(
        job *j); /* after work; not of dropped ones.  False: it is parked, and goes on later */
    /* Instead of done, when the server ends first; work may be running: touch nothing of its. */
    void (*refuse)(job *j);
    void (*release)(job *j); /* the last call for each accepted job; any thread */
} job_kind;

/* The first member of what a kind works on. */
struct job {
    const job_kind *kind;  /* set before jobs_put, like bytes */
    size_t bytes;          /* what it works on: its lane, and its share of the limit */
    const void *parked_on; /* I/O thread, like the next: what it waits for */
    const void *given;     /* what jobs_unpark said last */
    uint64_t came_ms;      /* to jobs_put, like the clock of http_now_ms */
    bool late;             /* it was parked for too long: done has only to say so */
    job *next;             /* guarded by jobs.mu, like the rest */
    bool running, dropped;
};

typedef struct job_list {
    job *first, **end;
} job_list;

typedef struct job_lane {
    struct jobs *of;
    thread worker;
    cond news;
    job_list waiting; /* guarded by jobs.mu, like the next */
    job *running;
} job_lane;

typedef struct jobs {
    mutex mu;
    job_lane lane[JOBS_LANES]; /* short, long */
    job_list finished;         /* guarded by mu, like the rest */
    job_list parked;
    size_t n_waiting, bytes_waiting; /* in lanes and parked */
    size_t n_parked, bytes_parked;
    size_t max_bytes; /* waiting; JOBS_MAX_BYTES, which may be changed before the first is put */
    bool closing;
    void (*notify)(void *ctx); /* on worker threads, when jobs_deliver has work */
    void *ctx;
} jobs;

/* Always followed by jobs_stop and jobs_deinit, also after a failure. */
cairn_status jobs_init(jobs *q, void (*notify)(void *ctx), void *ctx);
/* E_BUSY: too many, or too many bytes, wait; the job is the caller's again. */
cairn_status jobs_put(jobs *q, job *j);
/* One so short that to wake a worker takes longer: work, done and release are called at once. */
void jobs_do(job *j);
/* Inside done, which then answers false: its work is done again after jobs_unpark.  E_BUSY: too many are parked. */
cairn_status jobs_park(jobs *q, job *j, const void *on);
size_t jobs_parked(jobs *q, const void *on);
/* All that were parked on it go to their lanes, in their order, with `given`. */
void jobs_unpark(jobs *q, const void *on, const void *given);
/* Those that are parked and came at `by_ms` or before are late: done is called without more work.  When the first of the
   others came; UINT64_MAX: there are none. */
uint64_t jobs_unpark_late(jobs *q, uint64_t by_ms);
/* Its result is not wanted: released at once, or when its worker is through with it. */
void jobs_drop(jobs *q, job *j);
/* Inside work: whether its result is wanted no more. */
bool jobs_is_dropped(jobs *q, const job *j);
void jobs_deliver(jobs *q); /* done, then release, in the order of their ends */
void jobs_cancel(jobs *q);  /* refuse, then drop, every one */
size_t jobs_live(jobs *q);  /* neither delivered nor dropped */
/* Waits for running work.  Nothing is delivered after it: jobs_deinit releases what is left. */
void jobs_stop(jobs *q);
void jobs_deinit(jobs *q); /* releases what is left */

#endif
