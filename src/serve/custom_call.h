/* A call of a custom tool, which takes a text: to the model it is a function of one text, `input`, whose JSON comes in
   pieces, and the client gets the text in it.  One piece of code for all APIs that have such tools. */
#ifndef SERVE_CUSTOM_CALL_H
#define SERVE_CUSTOM_CALL_H

#include "base/buf.h"
#include "serve/json_member.h"
#include "serve/reply_reader.h"

typedef struct custom_call {
    bool on; /* the call under way is one of a custom tool */
    json_member input;
    buf args; /* as the model wrote them; failures of memory stay here */
} custom_call;

void custom_call_init(custom_call *c);
void custom_call_deinit(custom_call *c);
/* A call begins; `on`: of a custom tool. */
void custom_call_begin(custom_call *c, bool on);
/* Of the call that is on: appends to `text` what d, which is DELTA_ARGS or DELTA_CALL_END, adds to its text.  Arguments
   without an input are the text as they are, and come at the end. */
void custom_call_text(custom_call *c, const reply_delta *d, buf *text);

#endif
