/* The engine's inside: engine.c (doors and thread), turn.c (one turn), queue.c (who is admitted), behind.c (the
   disk tier), resume.c (checkpoints) and stats.c. */
#ifndef ENGINE_ENGINE_PRIV_H
#define ENGINE_ENGINE_PRIV_H

#include "base/thread.h"
#include "cache/ckpt.h"
#include "cache/scheme.h"
#include "cache/store.h"
#include "engine/cohort.h"
#include "engine/draw.h"
#include "engine/engine.h"
#include "engine/exec_plan.h"
#include "engine/guard.h"
#include "engine/pace.h"
#include "engine/request.h"
#include "engine/sched.h"
#include "engine/step.h"
#include "sample/sample.h"

enum { MAX_PINS = CAIRN_MAX_PINS };

typedef struct engine_pin {
    cairn_request_id request;
    int32_t node;
} engine_pin;

struct engine {
    /* immutable */
    const model *m;
    const tok *tok;
    engine_hooks hooks;
    int32_t max_seqs, max_queue, max_step_rows, ctx_len;
    int32_t mark_every;    /* positions; 0: the cache needs no marks */
    uint32_t deadline_ms;  /* of requests that have none */
    guard_out fit;         /* who has how much of the budget */
    uint64_t prefix_bytes; /* of fit; 0: none are kept */
    exec_can can;
    exec_plan plan;      /* of a request that asks for nothing */
    store_origin origin; /* of all prefixes, their space apart */
    char coded[304];     /* origin.scheme: compute mode and what caches hold */
    cache_ns common;     /* the space of requests that name none */
    scheme scheme;       /* zeroed: the model's */
    int32_t checkpoint_every;
    thread owner;

    /* guarded by mu */
    mutex mu;
    cond news;       /* for the owner: a request, closing */
    request **live;  /* [capacity] accepted and not done */
    request **inbox; /* [capacity] accepted and not yet received */
    int32_t n_live, n_inbox;
    int32_t n_coming;       /* slots promised to submits under way */
    uint64_t request_bytes; /* that live ones hold */
    cairn_request_id last_id;
    cairn_engine_stats shown;
    engine_pin pin[MAX_PINS]; /* written by the owner alone, who reads it without the lock */
    cairn_request_id unpin[MAX_PINS];
    int32_t n_pins, n_unpin;
    cairn_flush *flush; /* asked for and not done; NULL: none */
    cond flushed;
    uint32_t flush_ms;
    bool arrived, cancels; /* since the last turn: rows came from files; somebody cancels */
    bool closing;
    int32_t n_wanted; /* requests that have rows in the step under way and nobody cancelled */
    /* A note: n_wanted is 0, or the engine closes, so that step is not worth its time.  Set under mu. */
    uint8_t give_up;

    /* engine thread */
    stepper *stepper;
    drawer *drawer;
    ckpt *ckpt;         /* NULL: no checkpoints */
    hash128 text_files; /* of the model, where there are */
    request **
        mine; /* [capacity] the active ones in order of admission, then the queued in that of arrival */
    int32_t n_mine, n_active;
    sched_item *item; /* [max_seqs] */
    cohort_env cohort;
    pace pace;
    uint64_t idle_ns; /* since when; 0: it is not */
    cairn_engine_stats stats;
    uint64_t busy_ns;
    bool waits;         /* nobody can run before there is news */
    bool busy;          /* as the backend was told */
    bool writes_behind; /* something is not on disk yet */
};

static inline int32_t engine_capacity(const engine *e)
{
    return e->max_seqs + e->max_queue;
}
uint64_t engine_now(const engine *e);

/* turn.c; engine thread */
bool engine_take_turn(engine *e);
void turn_end_all(engine *e); /* every request ends CANCELLED */

/* turn_end.c; engine thread: an event of a request, without what it tells; mine[i] leaves, and is gone then */
#define TURN_NO_TEXT ((cairn_str){"", 0})
cairn_event turn_event(const engine *e, const request *r, cairn_event_kind kind);
void turn_finish(engine *e, int32_t i, cairn_finish how, cairn_str text, const cairn_diag *why);
void turn_finish_error(engine *e, int32_t i, cairn_status st, const char *what);
void turn_finish_text_error(engine *e, int32_t i, cairn_status st); /* of turning tokens to text */
void turn_finish_whole(engine *e, int32_t i,
                       cairn_finish how);    /* the model's end, or the budget's */
void turn_finish_late(engine *e, int32_t i); /* its deadline is over */

/* queue.c; engine thread */
void queue_enter(const engine *e, request *r); /* once: its place */
int32_t queue_next(engine *e); /* who is to be admitted, as an index of mine; -1: nobody now */
void queue_admit(engine *e, int32_t i);             /* mine[i] is the youngest of the active ones */
bool queue_late(const request *r, uint64_t now_ns); /* its deadline is over */

/* behind.c; engine thread */
cairn_status behind_open(engine *e, const cairn_engine_opts *opts, cairn_diag *dg);
void behind_idle(engine *e); /* a turn with nothing to do */
void behind_busy(engine *e);
void behind_flush(engine *e); /* if somebody asked for it */
uint32_t
behind_wait_ms(const engine *e); /* how long an idle engine may sleep; 0: until there is news */

/* resume.c; engine thread */
cairn_status resume_open(engine *e, const cairn_engine_opts *o, cairn_diag *dg);
/* Before a request is admitted, any number of times: it knows then what an earlier attempt had drawn. */
void resume_begin(engine *e, request *r);
void resume_note(engine *e, request *r); /* a token was drawn; saves now and then */
void resume_save_all(engine *e);         /* what is not saved yet */
void resume_push(engine *e); /* hands over rows of what was saved, as many as may be on their way */
void resume_end(engine *e, request *r, cairn_finish how);

/* stats.c; engine thread */
void stats_count_done(engine *e, cairn_finish finish);
void stats_show(engine *e);

#endif
