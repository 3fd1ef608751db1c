/* The body of a chat request, read and checked. */
#ifndef SERVE_OPENAI_READ_H
#define SERVE_OPENAI_READ_H

#include "base/arena.h"
#include "base/json.h"
#include "cairn/engine.h"

/* Why a body was refused: the field's name (empty: the body as a whole) and the message. */
typedef struct chat_fault {
    char param[64];
    cairn_diag dg;
} chat_fault;

/* Of a stream, by stream_options.include_usage: not said, true, false. */
typedef enum usage_place {
    USAGE_AT_END, /* on the chunk that has the last finish_reason */
    USAGE_APART,  /* in a chunk of its own */
    USAGE_NONE
} usage_place;

typedef struct chat_ask {
    arena mem;          /* owns what the rest points to */
    json_doc *doc;      /* likewise */
    cairn_str model;    /* empty: not given */
    buf messages;       /* JSON array, normalised (openai_messages.h) */
    buf tools;          /* likewise, or empty */
    const char *custom; /* names of custom tools, a space behind each; NULL: none */
    json_val kwargs;    /* object for the template, or JSON_NONE */
    cairn_str effort;   /* how much to think; empty: not said */
    int think;          /* 0, 1; -1: not said */
    bool no_generation_prompt;
    bool one_call;    /* parallel_tool_calls is false */
    cairn_request rq; /* without ids */
    bool has_seed;
    int32_t n;     /* choices */
    int32_t n_top; /* top_logprobs; rq.n_logprobs says whether any */
    bool stream;
    usage_place usage;
    bool progress;    /* a stream tells of its prefill */
    bool echo;        /* the answer begins with the prompt */
    int32_t want_ctx; /* positions that the context must hold; 0: any */
    bool has_keep;    /* keep_ms: how long the model stays loaded afterwards; below 0: for good */
    int64_t keep_ms;
    bool omit_thoughts;       /* the client wants to know only that there were some */
    const char *tier;         /* the service_tier that is had; NULL: no such field was read */
    const char *prompt_field; /* that errors about the prompt as a whole name; static */
    const char *warning;      /* for a header beside the answer; NULL: none.  In mem */
    void *more;               /* what one API alone knows, or NULL */
    void (*more_let_go)(void *more);
} chat_ask;

enum {
    CHAT_TIER_STEPS = 2,       /* of priority: 20 s in the queue, a quarter of a prompt's length */
    CHAT_MAX_CHOICES = 128,    /* each takes a place in the engine or its queue */
    CHAT_MAX_VALUES = 100000,  /* of a body: thousands of messages, or hundreds of large tools */
    CHAT_MAX_NUMBERS = 2 << 20 /* in its lists: token ids of twice the longest context */
};

/* Always followed by chat_ask_deinit, also after a failure. */
cairn_status chat_ask_read(chat_ask *a, cairn_str body, chat_fault *fault);
void chat_ask_deinit(chat_ask *a);
/* The parts that bodies of several APIs share, each of a->doc's root.  chat_ask_open comes first, and reads
   `model`. */
cairn_status chat_ask_open(chat_ask *a, cairn_str body, chat_fault *fault);
/* Refuses what would constrain or change any generation and is not done here; chat_sampling_read asks. */
cairn_status chat_constraints_refuse(json_val root, chat_fault *f);
const char *
chat_tier(json_val root); /* priority, flex or default: what `service_tier` becomes; static */
cairn_status chat_priority_read(json_val root, chat_ask *a, chat_fault *f); /* and service_tier */
cairn_status chat_stop_read(json_val root, const char *name, chat_ask *a, chat_fault *f);
cairn_status chat_stream_read(json_val root, chat_ask *a, chat_fault *f);  /* and stream_options */
cairn_status chat_special_read(json_val root, chat_ask *a, chat_fault *f); /* tokens */

/* A field that asks for something not done here. */
typedef struct chat_refusal {
    const char *name;
    bool (*fine)(json_val v); /* values that ask for nothing; NULL: only null and false do */
    const char *why;
} chat_refusal;
bool chat_empty_list(json_val v);
bool chat_empty_text(json_val v);
bool chat_nothing(json_val v); /* not even false */
cairn_status chat_refuse(json_val root, const chat_refusal *list, size_t n, chat_fault *f);

/* json_want_*, with the name as the fault's param. */
cairn_status chat_want_int(json_val root, const char *name, int64_t lo, int64_t hi, int32_t *out,
                           chat_fault *f);
cairn_status chat_want_bool(json_val root, const char *name, bool *out, chat_fault *f);
/* Sets the fault and returns st. */
cairn_status chat_fault_set(chat_fault *f, cairn_status st, const char *param, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
