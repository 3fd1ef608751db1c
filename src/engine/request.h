/* A request: what was asked, how far it is.  Made by the submitting thread, then the engine
   thread's, which frees it. */
#ifndef ENGINE_REQUEST_H
#define ENGINE_REQUEST_H

#include "cache/cache.h"
#include "cache/ckpt.h"
#include "cache/store.h"
#include "engine/exec_plan.h"
#include "engine/stream.h"
#include "engine/think.h"
#include "sample/sample.h"
#include "text/tok.h"

typedef enum request_state {
    REQ_QUEUED,  /* no sequence yet */
    REQ_RESTORE, /* known rows are on their way into its sequence */
    REQ_PREFILL, /* rows known in advance are being computed */
    REQ_DECODE,  /* one row a step */
    REQ_DONE,    /* its last event is out */
    REQ_STATE_COUNT
} request_state;

typedef struct request {
    arena a;
    /* immutable once submitted */
    cairn_request_id id;
    cairn_event_fn fn;
    void *ctx;
    const void *reader; /* as in cairn_request */
    cairn_sampling how;
    uint32_t choice;
    int32_t n_prompt, n_logprobs, priority;
    int32_t max_ids; /* prompt and answer: its budget and the context */
    bool ignore_eos, want_progress, pin;
    bool prompt_logprobs, prompt_only;
    bool any_seed;
    const char *no_checkpoint;         /* why it has none; NULL: it may */
    hash128 key;                       /* of its checkpoint */
    cache_ns ns;                       /* of its cache space */
    int32_t mark[CAIRN_MAX_MARKS + 1]; /* rising, ends with a number past the prompt */
    uint64_t *chain;                   /* [n_prompt / 64] cohort_prepare */
    uint32_t deadline_ms;              /* 0: none */
    uint64_t born_ns;                  /* submit */
    exec_plan plan;
    uint64_t bytes; /* of memory that it holds until it is done */
    /* guarded by the engine's mu */
    bool cancel, whole; /* whole: its answer is complete, for who cancelled it */
    bool runs;          /* rows of its are in the step under way */
    /* engine thread */
    request_state state;
    bool cancelled, ended; /* cancel and whole, seen */
    bool counted;          /* n_cached stands */
    bool more;             /* of the events that it sends now */
    seq_id seq;            /* in RESTORE, PREFILL and DECODE */
    int32_t *ids;          /* [max_ids] */
    int32_t n_ids, n_done; /* known; in the cache */
    int32_t n_cached;      /* of the prompt, taken from the cache */
    int32_t i_out;         /* its logits in this step; -1: none */
    int32_t i_scored;      /* of the first row of this step that tells of its prompt */
    int32_t n_scored;      /* tokens of its prompt that are told, the first among them */
    stream stream;
    think think;
    sample_state drawn; /* what sampling remembers; beside it a grammar's state will (sample.h) */
    uint64_t due_ns;    /* its place in the queue: the smallest is admitted first */
    uint64_t start_ns, first_ns; /* admission; first token */
    ckpt_attempt *attempt;       /* NULL: none */
    int32_t n_saved;             /* tokens of its answer that are in a checkpoint */
    bool rows_due;               /* of what was saved; to disk */
    bool asked;                  /* for a checkpoint */
    struct request *leader;      /* that computes a prefix of its own; NULL: none (cohort.c) */
    int32_t led_from, led_to;    /* positions known by then, and after it */
    int32_t n_waits;
    int32_t urgency,
        urgent_to; /* the best priority of those that wait for it, and how far one does */
    int32_t rush_to, rush_len; /* up to here somebody of such a prompt waits for it */
} request;

/* What a request is checked against. */
typedef struct request_env {
    const tok *tok; /* may be NULL */
    int32_t vocab, ctx_len;
    const store_origin *origin; /* of its prefixes, their space apart */
    const hash128
        *text_files;      /* their hash, where answers go on from checkpoints; NULL: they do not */
    uint32_t deadline_ms; /* where it has none */
    const exec_can *can;
} request_env;

/* As cairn_engine_submit says of arguments; everything is copied. */
cairn_status request_new(const cairn_request *r, const request_env *env, cairn_event_fn fn,
                         void *ctx, request **out, cairn_diag *dg);
void request_free(request *r);
/* Bytes that a request of a whole context holds at most: its ids, its text, all the lists that it may have. */
uint64_t request_worst_bytes(const tok *t, int32_t ctx_len);

cache_ns request_space(const store_origin *o, cairn_str name); /* of requests that share prefixes */

/* resume_key.c: of all that decides what r, made of q, answers. */
hash128 resume_key(const cairn_request *q, const request *r, hash128 text_files);

bool request_may(request_state from, request_state to);
void request_move(request *r, request_state to); /* asserts that it may */

#endif
