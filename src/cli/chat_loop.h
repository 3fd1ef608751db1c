/* A conversation: its messages as JSON, the prompt they make, and the loop on a terminal. */
#ifndef CLI_CHAT_LOOP_H
#define CLI_CHAT_LOOP_H

#include "base/buf.h"
#include "cli/answer.h"

/* The conversation is an unclosed JSON array in a buf. */
void chat_loop_begin(buf *conversation, const char *system); /* system may be NULL */
void chat_loop_say(buf *conversation, const char *role, cairn_str text);
/* `prompt` gets the rendered text (cairn_bytes_free), `ids` what the model gets of it. */
cairn_status chat_loop_prompt(const cairn_text *t, const buf *conversation, cairn_bytes *prompt,
                              cairn_ids *ids, cairn_diag *dg);
void chat_loop_speeds(const answer_result *r); /* one line on standard error */

/* Reads lines until end of input or /exit; `r` holds sampling and limits. */
cairn_status chat_loop(cairn_engine *e, const cairn_text *t, const cairn_request *r,
                       const char *system, bool verbose, cairn_diag *dg);

#endif
