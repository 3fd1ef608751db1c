/* Items of the Responses API, made into messages. */
#ifndef SERVE_RESPONSES_ITEMS_H
#define SERVE_RESPONSES_ITEMS_H

#include "cairn/status.h"
#include "serve/body_path.h"
#include "serve/left_out.h"
#include "serve/openai_read.h"
#include "serve/turns.h"

enum { ITEMS_MOST_NAMES = 256 }; /* calls that outputs are looked up among: those of a few turns */

typedef struct call_name {
    cairn_str id, name;
} call_name;

typedef struct items {
    turns t;
    buf system; /* what it says */
    chat_fault *f;
    arena *mem;
    call_name calls[ITEMS_MOST_NAMES]; /* a ring, in mem */
    size_t n_calls;
    left_out left; /* items that say nothing to a model */
} items;

/* Messages go to out as turns_init has it; what fails sets f.  Followed by items_deinit. */
void items_init(items *w, arena *mem, buf *out, chat_fault *f);
void items_deinit(items *w);
/* The type of the item at `p`; what says none is a message, or an item_reference. */
cairn_status items_type(items *w, json_val item, body_path p, cairn_str *out);
/* Any item of that type but a reference; it may be left out. */
cairn_status items_add(items *w, json_val item, body_path p, cairn_str type);
void items_say(items *w, const char *role, cairn_str text); /* a role of turns.h */
void items_say_system(items *w, cairn_str text);

#endif
