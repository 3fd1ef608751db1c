/* The assistant message of a whole answer, collected from deltas. */
#ifndef SERVE_OPENAI_WHOLE_H
#define SERVE_OPENAI_WHOLE_H

#include "base/buf.h"
#include "base/json.h"
#include "serve/reply_reader.h"

typedef struct whole {
    buf content, thought;
    buf calls;          /* JSON: the elements of tool_calls */
    buf id, name, args; /* of the call under way; args: a custom one's text */
    bool custom;        /* it is one */
} whole;

void whole_init(whole *w);
void whole_deinit(whole *w);
void whole_add(whole *w, const reply_delta *d);
cairn_status whole_status(const whole *w); /* E_NOMEM: a delta is missing */
void whole_write(const whole *w, json_writer *out);

#endif
