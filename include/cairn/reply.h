/* What a model writes → thought, answer and tool calls, while it streams.  One state table a family
   of models decides; it reads bytes, so any split of the same bytes gives the same events.  A
   cairn_reply belongs to one generation and one thread at a time. */
#ifndef CAIRN_REPLY_H
#define CAIRN_REPLY_H

#include "cairn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn_reply cairn_reply;

enum {
    CAIRN_REPLY_MAX_NAME = 256,    /* bytes of a function's name, an id or a parameter's name */
    CAIRN_REPLY_MAX_DEPTH = 128,   /* nested containers in the arguments of a call */
    CAIRN_REPLY_MAX_HEADER = 4096, /* bytes of markup before a call's name is known */
    CAIRN_REPLY_MAX_HELD = 1024 * 1024, /* bytes of a value whose type shows only at its end */
    CAIRN_REPLY_MAX_TOOLS = 4096        /* looked through at every call */
};

typedef enum cairn_reply_kind {
    CAIRN_REPLY_THOUGHT,
    CAIRN_REPLY_ANSWER,
    CAIRN_REPLY_CALL_BEGIN, /* name and id are known */
    CAIRN_REPLY_CALL_ARGS,  /* more of the arguments' JSON */
    CAIRN_REPLY_CALL_END,
    CAIRN_REPLY_SYNTAX /* markup that was understood, white space around it: nothing to show */
} cairn_reply_kind;

typedef enum cairn_call_end {
    CAIRN_CALL_DONE,  /* the arguments, joined, are one JSON object */
    CAIRN_CALL_CUT,   /* the text ended inside: they are the beginning of one */
    CAIRN_CALL_BROKEN /* likewise; what follows does not continue it and comes as answer */
} cairn_call_end;

/* Valid during the callback only.  `raw` holds the bytes of the input that the event stands for:
   joined over all events, in order, they are the input. */
typedef struct cairn_reply_event {
    cairn_reply_kind kind;
    cairn_call_end end; /* CALL_END */
    int32_t call;       /* CALL_*: 0, 1, … in the order of CALL_BEGIN */
    cairn_str text;     /* THOUGHT, ANSWER: text; CALL_ARGS: JSON */
    cairn_str raw;
    cairn_str name; /* CALL_BEGIN, CALL_END */
    cairn_str id;   /* CALL_BEGIN: the syntax's own, or made from the seed.  CALL_END: the syntax's
                       own where it came after the arguments, else that of CALL_BEGIN */
} cairn_reply_event;
typedef void (*cairn_reply_fn)(void *ctx, const cairn_reply_event *ev);

typedef struct cairn_reply_opts {
    uint32_t struct_size;
    const char *family;      /* a name of cairn_reply_families; NULL: found from the next two */
    cairn_str template_text; /* the chat template */
    cairn_str hint;          /* model type or architecture, for when the template says nothing */
    cairn_str tools;         /* JSON array as the template got it; empty: calls are text */
    cairn_str prompt;        /* the rendered prompt or its last bytes: where the reply starts */
    uint64_t id_seed;        /* ids of calls are a function of it and the call's index */
    bool marks_special;      /* special tokens come by cairn_reply_feed_special, and only those can
                                be what the family knows as a special token */
    bool any_tool;           /* calls of functions that are not in `tools` are calls too */
} cairn_reply_opts;
CAIRN_API void cairn_reply_opts_init(cairn_reply_opts *o);

/* Everything in `o` is copied.  E_NOTFOUND: no such family; E_ARG, E_CORRUPT: tools that are not
   JSON or no array. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_reply_new(const cairn_reply_opts *o, cairn_reply_fn fn,
                                                      void *ctx, cairn_reply **out, cairn_diag *dg);
CAIRN_API void cairn_reply_free(cairn_reply *r); /* NULL is fine */

/* UTF-8; special tokens must be shown (`keep_special`) if cairn_reply_look says so.  All that can be
   told leaves before the return.  E_NOMEM stays: every later call answers it. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_reply_feed(cairn_reply *r, cairn_str bytes);
/* The whole text of one special token. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_reply_feed_special(cairn_reply *r, cairn_str text);
/* Part of the assistant's turn that is in the prompt already (a continued message): no events. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_reply_skip(cairn_reply *r, cairn_str bytes);
/* The end of the text: what is held leaves, a call is finished or cut.  Once; nothing after it. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_reply_finish(cairn_reply *r);

typedef enum cairn_reply_where {
    CAIRN_IN_THOUGHT,
    CAIRN_IN_ANSWER,
    CAIRN_IN_CALL,  /* or in markup that may become one */
    CAIRN_IN_MARKUP /* between messages */
} cairn_reply_where;
typedef struct cairn_reply_look {
    uint32_t struct_size; /* set by cairn_reply_look_init */
    cairn_reply_where where;
    uint64_t thought_bytes; /* given out as thought so far */
    cairn_str thought_end;  /* what ends a thought now: to be encoded with special tokens parsed and
                               put after the tokens so far when a budget is spent; empty: none is open */
    const char *family;
    bool keep_special; /* the family's markup has special tokens: the detokenizer must show them */
    int32_t n_calls;   /* begun */
} cairn_reply_look;
CAIRN_API void cairn_reply_look_init(cairn_reply_look *l);
/* Writes the first out->struct_size bytes: what the caller's version of the struct has. */
CAIRN_API void cairn_reply_get_look(const cairn_reply *r, cairn_reply_look *out);

/* The i-th family's name, NULL after the last. */
CAIRN_API const char *cairn_reply_families(size_t i);
/* The family whose markup the template writes; `hint` decides when the template is empty; "generic"
   when nothing does.  Never NULL. */
CAIRN_API const char *cairn_reply_find_family(cairn_str template_text, cairn_str hint);

/* Thinking as the template has it: a JSON object of the variables that the template reads, to be
   merged into the kwargs of a render.  `think` < 0: as the template does by itself; 0: off; 1: on.
   `effort`: "none", "minimal", "low", "medium", "high", "xhigh", or empty.  "{}" when the template
   has none of them. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_reply_kwargs(cairn_str template_text, int think,
                                                         cairn_str effort, cairn_bytes *out);

/* A whole reply at once → {"content", "reasoning_content", "tool_calls"}: as an OpenAI
   assistant message, where calls that broke are text of the content again. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_reply_message(const cairn_reply_opts *o, cairn_str text,
                                                          cairn_bytes *out, cairn_diag *dg);

#ifdef __cplusplus
}
#endif
#endif
