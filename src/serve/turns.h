/* A conversation that an API says in pieces, made into messages for a chat template: pieces of one role in a
   row are one message, an assistant's texts, thoughts and calls among them. */
#ifndef SERVE_TURNS_H
#define SERVE_TURNS_H

#include "base/buf.h"
#include "base/json.h"

/* Told apart by their addresses. */
extern const char turns_user[], turns_assistant[], turns_system[];

typedef struct turns {
    json_writer w;
    const char *role; /* of the message under way; NULL: there is none */
    bool has_text;
    const char *between; /* this message's text and what comes next; the next one is a newline's */
    buf text, thought;
    buf calls; /* JSON: the elements of tool_calls */
} turns;

/* Messages go into out as they are done, with commas between them; followed by turns_deinit. */
void turns_init(turns *t, buf *out);
void turns_deinit(turns *t);
cairn_status turns_status(const turns *t); /* E_NOMEM: a piece is missing */

void turns_flush(turns *t); /* the message under way is done */
void turns_to(turns *t, const char *role);
/* Of the message under way. */
void turns_text(turns *t, cairn_str text);
void turns_thought(turns *t, cairn_str text);
/* A call; its arguments are written with the writer, one value, before turns_called. */
json_writer turns_call(turns *t, cairn_str id, cairn_str name);
void turns_called(json_writer *w);
/* A message of its own: what the call `id` came to.  Either may be empty: not given. */
void turns_result(turns *t, cairn_str id, cairn_str name, cairn_str text);

#endif
