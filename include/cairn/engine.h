/* An engine: one model, one owner thread, many requests in one batch.  Every function but open and
   close may be called from any thread; close once nobody else will call.  What a request computes
   does not depend on the others. */
#ifndef CAIRN_ENGINE_H
#define CAIRN_ENGINE_H

#include "cairn/model.h"
#include "cairn/text.h" /* IWYU pragma: export */

struct cairn_reply_opts;

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn_engine cairn_engine;
typedef uint64_t cairn_request_id; /* never 0 */

enum {
    CAIRN_MAX_SEQS = 256,    /* a decode step of more rows is no faster a row */
    CAIRN_MAX_QUEUE = 4096,  /* each waits in order; beyond that, waiting has no end */
    CAIRN_MAX_STOP = 16,     /* strings; each is matched at every byte */
    CAIRN_MAX_BIAS = 4096,   /* each is one addition a token */
    CAIRN_MAX_BREAKERS = 32, /* DRY's; each is looked for at every byte of what repeats */
    CAIRN_MAX_BREAKER_BYTES = 64,
    CAIRN_MAX_STOP_BYTES = 1024,   /* of a stop string: so much text may be held back */
    CAIRN_MAX_DRY_ALLOWED = 10000, /* tokens of one repeat: a page or more */
    CAIRN_MAX_KNOTS = 32,          /* of a curve; each token looks for its two */
    CAIRN_MAX_LOGPROBS = 20,       /* alternatives of a token, sorted at each */
    CAIRN_MAX_MARKS = 8,           /* each may cost a copy of a recurrent state */
    CAIRN_MAX_PINS = 16,           /* system prompts of a server */
    CAIRN_MAX_PRIORITY = 8         /* either way: each step weighs twice; more would mean never */
};
#define CAIRN_NO_PREFIX UINT64_MAX

typedef struct cairn_engine_opts {
    uint32_t struct_size; /* set by cairn_engine_opts_init */
    int32_t max_seqs;     /* requests decoded at once, at most CAIRN_MAX_SEQS; 0: 4 */
    int32_t max_queue;    /* requests waiting beyond those, at most CAIRN_MAX_QUEUE; 0: 64 */
    int32_t
        ctx_len; /* positions a request may use; 0: the largest that fits, at most the model's */
    int32_t max_step_rows; /* rows a step computes at most; 0: 512 */
    uint64_t memory_limit; /* bytes for caches, within the budget; 0: what that leaves */
    const char *kv_codec;  /* as cairn_model_opts has it; NULL: the model's */
    /* Bytes for prefixes: rows that a later prompt of the same beginning takes up again, to the same bits.
       0: what the requests' own caches leave idle and half of the rest, at most 8 GiB; CAIRN_NO_PREFIX: none are kept. */
    uint64_t prefix_limit;
    /* A folder where prefixes outlive the process, its whole path; NULL: none.  Opening then reads all of the
       model's files once, for their hash.  E_ARG where none are kept in memory: a limit of CAIRN_NO_PREFIX.
       Closing does not flush.  disk_limit: bytes of this model's files; 0: 32 GiB.  Both strings are read
       during open. */
    const char *disk_dir;
    uint64_t disk_limit;
    /* Every so many tokens what a request has drawn goes to the folder too, in the background; after a crash the
       same request, asked again, tells it again and goes on, to the same bits (docs/cache.md).  0: never.  E_ARG
       without disk_dir. */
    int32_t checkpoint_every;
    /* While a prompt is computed, a request that waits for its next token waits at most about so many times as
       long as without it, by measured speed: more than 1, at most 1000; 0: 3.  While several wait, that for each,
       for so many of them at most; as many as that one short prompt takes, of what prompts left before. */
    float max_gap;
    uint32_t deadline_ms; /* of requests that have none of their own; 0: none */
    /* Bytes that the process may hold with this engine open: weights, programs, caches and their tables, prefixes,
       what waits for the disk, requests, host_bytes, and what was allocated before.  0: that, and nine tenths of what
       the machine, its control groups and limits leave free.  E_LIMIT with the sum where the context does not fit. */
    uint64_t memory_budget;
    uint64_t host_bytes; /* of it, the caller's: connections, prompts, replies of a server */
    /* The longest prompt, in tokens, of which cairn_score is asked for one row while the engine is open, one at a
       time: what that takes is set aside too.  0: of none; below 0: E_ARG. */
    int32_t score_len;
    /* Above 0: the budget is this engine's own, and of what was allocated before only so much is of its model, beside
       weights: vocabulary and tables.  0: it is the process's, and all is counted. */
    uint64_t other_bytes;
    /* Asked now and then while the model's files are read for their hash, on the thread of cairn_engine_open; false: it
       ends with E_CANCELLED.  NULL: it goes on. */
    bool (*go_on)(void *ctx);
    void *go_on_ctx;
} cairn_engine_opts;

/* docs/sampling.md says what each does, in which order and after whom. */
typedef struct cairn_sampling {
    float temperature;         /* 0: greedy */
    int32_t top_k;             /* 0: off */
    float top_p;               /* 1: off */
    float min_p;               /* 0: off */
    float repetition_penalty;  /* 1: off */
    int32_t repetition_window; /* last tokens it looks at, prompt included; 0: all */
    float presence_penalty;    /* over generated tokens; 0: off */
    float frequency_penalty;
    uint64_t seed;
    const struct cairn_bias *bias; /* borrowed during submit */
    size_t n_bias;                 /* at most CAIRN_MAX_BIAS */
    /* Last tokens that these look at, prompt included; 0: all that were generated, the prompt not. */
    int32_t presence_window, frequency_window;
    float typical_p;       /* 1: off */
    float xtc_probability; /* 0: off */
    float xtc_threshold;
    int32_t
        mirostat; /* 1, 2: that version, in the place of top-k, top-p, min-p, typical and XTC; 0: off */
    float mirostat_tau, mirostat_eta; /* surprise aimed at, in bits; how quickly */
    float dry_multiplier;             /* 0: off */
    float dry_base;
    int32_t dry_allowed_length;
    int32_t dry_window;            /* last tokens it looks at, prompt included; 0: all */
    const cairn_str *dry_breakers; /* borrowed during submit; repeats do not go on over them */
    size_t n_dry_breakers;         /* at most CAIRN_MAX_BREAKERS */
    /* In the place of the temperature and of all cuts: which probability (x, percent) becomes which (y).
       x rises from knot to knot, y does not fall; borrowed during submit. */
    const struct cairn_knot *curve;
    size_t n_curve; /* 2 to CAIRN_MAX_KNOTS; 0: off */
} cairn_sampling;

typedef struct cairn_knot {
    float x, y; /* 0 to 100 */
} cairn_knot;

typedef struct cairn_bias {
    int32_t id;
    float value;
} cairn_bias;

typedef struct cairn_request {
    uint32_t struct_size;
    const int32_t *ids; /* the prompt; borrowed during submit; at least one id */
    size_t n_ids;
    int32_t max_tokens; /* 0: until the context is full */
    cairn_sampling sampling;
    const cairn_str *stop; /* stop strings, at most CAIRN_MAX_STOP; borrowed during submit */
    size_t n_stop;
    int32_t
        n_logprobs; /* -1: none; 0: of the chosen token; k ≤ CAIRN_MAX_LOGPROBS: and the best k */
    bool ignore_eos;    /* benchmarks */
    bool keep_special;  /* special tokens appear in the text */
    bool want_progress; /* PROGRESS events: when prefill begins, and after each of its steps */
    uint32_t choice;    /* index of this choice among those of one seed (n > 1) */
    /* Tokens that thoughts may have in all; the tokens that close a thought follow the last, as if
       drawn; E_ARG: the tokenizer has none that read so.  -1: no limit, and so without `reply`, which
       says how the model writes thoughts and whether the prompt ends in one (family or template_text,
       prompt); borrowed during submit. */
    int32_t think_budget;
    const struct cairn_reply_opts *reply;
    /* Requests share prefixes within one space; those of another than "" read that common one besides, and add
       nothing to it.  Borrowed during submit. */
    cairn_str cache_space;
    /* Its rows stay until cairn_engine_unpin, if there is room, at most CAIRN_MAX_PINS of them do, and it ends by
       itself: DONE says whether. */
    bool pin;
    /* Positions in the prompt, rising, at most CAIRN_MAX_MARKS, where later prompts are likely to part from
       this one (a chat's last turn, say): recurrent and windowed layers can go on from there; borrowed
       during submit. */
    const int32_t *marks;
    size_t n_marks;
    /* sampling.seed was drawn for this request alone: where it goes on from a checkpoint, that one's seed is used. */
    bool any_seed;
    /* -CAIRN_MAX_PRIORITY to CAIRN_MAX_PRIORITY; a lower one goes first: each step up waits like a request
       that came ten seconds later, and its prompt shares steps like one twice as long. */
    int32_t priority;
    /* From submit on; then it ends with E_CANCELLED, wherever it is.  0: the engine's;
       UINT32_MAX is none, nearly. */
    uint32_t deadline_ms;
    /* PROMPT events, before the first TOKEN: how likely each token of the prompt was after those before it, from the
       second on.  Needs n_logprobs of 0 or more; the model's own distribution, so penalties and bias have no part in
       it.  All rows are computed, none taken from a cache.  The token that ends the answer is told too, without text. */
    bool prompt_logprobs;
    /* It ends with the prompt, of which all rows but the last are computed: FINISH_LENGTH, nothing is drawn.
       max_tokens is not looked at, and the prompt may fill the context. */
    bool prompt_only;
    /* Whoever passes on the events of several requests of one engine: its address, or another that is its own, says
       which these are, for `more` of their events.  NULL: it is false. */
    const void *reader;
} cairn_request;

typedef enum cairn_event_kind {
    CAIRN_EV_PROGRESS,
    CAIRN_EV_PROMPT, /* id, logprob, top and n_top as of a TOKEN */
    CAIRN_EV_TOKEN,
    CAIRN_EV_DONE
} cairn_event_kind;
typedef enum cairn_finish {
    CAIRN_FINISH_STOP, /* EOS or a stop string */
    CAIRN_FINISH_LENGTH,
    CAIRN_FINISH_CANCELLED,
    CAIRN_FINISH_ERROR
} cairn_finish;

typedef struct cairn_logprob {
    int32_t id;
    float logprob;
} cairn_logprob;

/* Valid during the callback only. */
typedef struct cairn_event {
    cairn_event_kind kind;
    cairn_request_id request;
    /* TOKEN */
    int32_t id;
    cairn_str
        text; /* text this event releases (TOKEN and DONE); may be empty: held for a stop string */
    float logprob;
    const cairn_logprob *top; /* sorted descending */
    int32_t n_top;
    bool replayed; /* drawn by an earlier attempt at this request; many may come at once */
    /* DONE: exactly once for each accepted request, last */
    cairn_finish finish;
    cairn_status status; /* the reason of CAIRN_FINISH_ERROR */
    const char *message; /* likewise; and why what was to be pinned is not */
    int32_t n_prompt;    /* PROGRESS too */
    int32_t n_cached;    /* prompt positions taken from a cache */
    int32_t n_done;      /* PROGRESS: prompt positions computed or taken from a cache */
    int32_t n_generated;
    double prefill_seconds, decode_seconds;
    bool pinned;  /* DONE: the rows stay, as the request wanted */
    int32_t stop; /* DONE: which of the request's stop strings ended it; -1: none did */
    bool
        more; /* another event to the same reader follows at once: to wake somebody can wait for that one */
} cairn_event;
/* On the engine thread: must not block.  It may submit, cancel and read counters; closing the engine
   from here is forbidden, as close waits for this very thread. */
typedef void (*cairn_event_fn)(void *ctx, const cairn_event *ev);

typedef struct cairn_engine_stats {
    uint32_t struct_size; /* set by cairn_engine_stats_init */
    int32_t n_active, n_queued, max_seqs, ctx_len;
    uint64_t n_requests, n_cancelled, n_failed; /* since the engine was opened, as all below */
    uint64_t prompt_tokens, generated_tokens, steps;
    uint64_t cache_bytes_used, cache_bytes_total, weights_bytes, scratch_bytes;
    double busy_seconds;
    int32_t max_queue;
    uint64_t cached_tokens;      /* of prompts, taken from a cache; prompt_tokens: computed */
    uint64_t prefix_bytes_used;  /* of cache_bytes_used: held by no request */
    uint64_t prefix_bytes_limit; /* 0: none are kept */
    uint64_t disk_bytes;         /* in the folder for prefixes */
    uint32_t disk_entries;
    bool disk_read_only;  /* the last write failed */
    const char *kv_codec; /* what caches hold; as long as the engine */
    uint64_t checkpoints_written, checkpoints_failed;
    uint64_t checkpoints_refused; /* requests that cannot go on from one */
    uint64_t n_resumed;           /* requests that did; replayed_tokens: what they told again */
    uint64_t replayed_tokens;
    uint64_t checkpoint_bytes; /* in the folder */
    uint32_t checkpoint_files;
    int32_t checkpoint_every; /* as in the options */
    /* The budget and what of it is reserved, its parts beside weights, scratch, cache_bytes_total: allocated before,
       tables of caches and the queue to disk, the caller's, requests at most and now. */
    uint64_t memory_budget, memory_reserved, other_bytes, table_bytes, host_bytes;
    uint64_t request_bytes_limit, request_bytes;
    /* The plan of a request that asks for nothing; strings live as long as the engine. */
    const char *method, *cache_layout, *why_not_faster;
    uint64_t program;     /* hash of its ops */
    int32_t program_rows; /* of the largest form that it was compiled in */
    /* Prompts that took something from a cache, and that did not: neither where nothing may be taken. */
    uint64_t prefix_hits, prefix_misses;
    uint32_t prefix_entries; /* nodes of the tree of prefixes */
    int32_t n_global_layers,
        n_window_layers; /* that keep keys and values: of all positions, of the last ones */
    /* The folder's: runs read and written since the engine was opened, and what waits to be written. */
    bool disk;
    uint64_t disk_bytes_limit, disk_pending_bytes;
    uint32_t disk_read, disk_written, disk_failed, disk_evicted;
    uint32_t disk_dropped; /* found no room beside what precedes them */
} cairn_engine_stats;

CAIRN_API void cairn_engine_opts_init(cairn_engine_opts *o);
CAIRN_API void cairn_request_init(cairn_request *r); /* greedy, no limits, n_logprobs -1 */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_engine_open(cairn_model *m, const cairn_engine_opts *o,
                                                        cairn_engine **out, cairn_diag *dg);
/* Ends every request (CANCELLED), waits for the owner thread.  NULL is fine.  Not from a callback. */
CAIRN_API void cairn_engine_close(cairn_engine *e);
/* E_ARG: an id outside the vocabulary, a value out of range; E_LIMIT: the prompt leaves no room in
   the context; E_BUSY: the queue is full, or the engine is closing.  Everything that the request
   points to is copied.  After success the callback gets one DONE event; it may come before submit
   returns, and `*out` is written before the first event. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_engine_submit(cairn_engine *e, const cairn_request *r,
                                                          cairn_event_fn fn, void *ctx,
                                                          cairn_request_id *out, cairn_diag *dg);
/* Idempotent, unknown ids are fine; a DONE event still follows. */
CAIRN_API void cairn_engine_cancel(cairn_engine *e, cairn_request_id id);
/* The same where the caller has all it wants: the answer is complete, and no checkpoint of it stays. */
CAIRN_API void cairn_engine_stop(cairn_engine *e, cairn_request_id id);
typedef struct cairn_flush { /* runs of up to 1,024 positions, since the flush before */
    uint32_t struct_size;    /* set by cairn_flush_init */
    uint32_t pending;        /* not written in time */
    uint32_t durable, dropped, failed;
    int32_t longest; /* tokens of the longest prefix that is durable from its beginning */
    /* Requests whose checkpoint, made for this flush, is on disk; is not yet, or a completed one's file is not
       removed yet; could not be written; and files of completed ones that could not be removed. */
    uint32_t checkpoints, checkpoints_pending, checkpoints_failed, cleanups_failed;
} cairn_flush;
CAIRN_API void cairn_flush_init(cairn_flush *f);
/* Writes what is known and not on disk yet, and waits for it, at most about wait_ms; requests wait too.
   Without a folder there is nothing to write.  Any thread but the engine's own (a callback's). */
CAIRN_API void cairn_engine_flush(cairn_engine *e, uint32_t wait_ms, cairn_flush *out);
/* Of a request that is done and was pinned; others are fine. */
CAIRN_API void cairn_engine_unpin(cairn_engine *e, cairn_request_id id);
CAIRN_API void cairn_engine_stats_init(cairn_engine_stats *s);
/* Writes the first out->struct_size bytes: what the caller's version of the struct has. */
CAIRN_API void cairn_engine_get_stats(cairn_engine *e, cairn_engine_stats *out);
CAIRN_API const cairn_model *cairn_engine_model(const cairn_engine *e);
CAIRN_API bool
cairn_engine_wants_marks(const cairn_engine *e); /* makes use of cairn_request.marks */

#ifdef __cplusplus
}
#endif
#endif
