/* A response under way, and how it and its events are written. */
#ifndef SERVE_RESPONSES_WIRE_H
#define SERVE_RESPONSES_WIRE_H

#include "base/json.h"
#include "cairn/status.h"
#include "serve/custom_call.h"
#include "serve/responses_ask.h"
#include "serve/served_answer.h"

typedef enum item_kind {
    ITEM_NONE,
    ITEM_THOUGHT,
    ITEM_SUMMARY, /* thoughts, told as the summary of themselves */
    ITEM_MESSAGE,
    ITEM_FUNCTION,
    ITEM_CUSTOM
} item_kind;

typedef struct item_words {
    const char *id, *type;
    const char *part, *part_added, *part_done; /* of those that have parts */
    const char *part_index;
    const char *delta, *done, *key; /* key: of the whole text in `done` */
} item_words;

typedef struct response_out {
    responses_ask *ask; /* a reference */
    char id[RESPONSE_ID];
    const char *model;
    int64_t created;
    const struct cairn_text *text;
    bool logprobs;
    int32_t n_top;
    int64_t sequence;
    item_kind open;
    int32_t index; /* of the open item, or of the next */
    char item[64]; /* its id */
    buf said;      /* its text, arguments or input */
    buf call_id, call_name;
    const responses_tool *tool; /* that is called; NULL: none of the client's */
    custom_call call;
    buf new_logprobs; /* JSON, like the next: elements, of tokens that told nothing yet */
    buf logprobs_of_item;
    buf output; /* JSON: the items that are done */
    answer_end end;
} response_out;

extern const item_words responses_words[]; /* by item_kind */

/* `u`: NULL as long as it is not known.  `failed`: why, if it did; else {0}. */
void responses_write(json_writer *w, const response_out *o, const char *status,
                     const answer_usage *u, cairn_str failed);
/* The open item: as it begins, or whole. */
void responses_write_item(json_writer *w, const response_out *o, const char *status, bool whole);

/* Events.  Of the response: `response` is its JSON. */
void responses_put(response_out *o, const char *event, cairn_str response, buf *frames);
/* Where there is no response yet. */
void responses_put_error(const char *code, cairn_str message, buf *frames);
/* Of the open item: it begins; more of its text; it ends. */
void responses_put_added(response_out *o, buf *frames);
void responses_put_delta(response_out *o, cairn_str text, buf *frames);
void responses_put_done(response_out *o, const char *status, buf *frames);

#endif
