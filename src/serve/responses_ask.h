/* What a body of POST /v1/responses asks for beyond what every chat does. */
#ifndef SERVE_RESPONSES_ASK_H
#define SERVE_RESPONSES_ASK_H

#include "serve/openai_read.h"
#include "serve/responses_store.h"

typedef struct responses_tool { /* the ask's strings */
    cairn_str called;           /* by the model */
    cairn_str name, space;      /* by the client; space empty: it is in no namespace */
    bool custom;                /* takes a text instead of arguments */
} responses_tool;

typedef struct responses_ask {
    uint32_t refs; /* one thread at a time */
    arena mem;
    char digits[RESPONSE_DIGITS + 1]; /* of the id: those of items begin with them */
    responses_tool *tools;
    size_t n_tools;
    buf echo;           /* JSON: the members that the response repeats, without brackets */
    buf items;          /* JSON array: the input as it is kept; empty if it is not */
    cairn_str previous; /* the response that this one follows; empty: none */
    bool keep;          /* it is stored */
    bool summary;       /* thoughts are told as summaries of themselves */
    owner by;
    responses_store *store; /* NULL: there is none */
    kept_response *past;    /* `previous`, a reference */
} responses_ask;

/* Reads all but the input into a; a->more is a responses_ask then. */
cairn_status responses_ask_read(chat_ask *a, cairn_str body, chat_fault *f);
/* Then, of the same body: `instructions`, the past and `input` become a->messages, and ask->items.  Seconds where
   they are long. */
cairn_status responses_input_read(chat_ask *a, chat_fault *f);
/* `tools`, into a->tools and the ask; `tool_choice` decides which. */
cairn_status responses_tools_read(json_val root, chat_ask *a, responses_ask *r, chat_fault *f);
/* What the model calls a client's tool, in the ask's memory; empty: no memory. */
cairn_str responses_tool_called(arena *mem, cairn_str space, cairn_str name);
void responses_ask_let_go(void *ask); /* one reference */

#endif
