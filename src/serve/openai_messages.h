/* Messages, tools and template variables of a chat request, made ready for a chat template. */
#ifndef SERVE_OPENAI_MESSAGES_H
#define SERVE_OPENAI_MESSAGES_H

#include "base/buf.h"
#include "cairn/status.h"
#include "serve/openai_read.h"

/* The array `messages`, checked and normalised, as JSON into out. */
cairn_status chat_messages_read(json_val messages, buf *out, chat_fault *f);
/* The same array, as JSON into out, but an assistant's content that is null or left out is the text of its
   `refusal`, or "". */
cairn_status chat_messages_fill(cairn_str messages, buf *out);
/* What OpenAI's API asks of messages beyond what can be read without it: results name their calls. */
cairn_status chat_results_check(json_val messages, chat_fault *f);
/* Messages, and tools, in this form, as JSON arrays. */
cairn_status chat_messages_normalise(const buf *messages, const char *param, buf *out,
                                     chat_fault *f);
cairn_status chat_tools_normalise(const buf *tools, buf *out, chat_fault *f);
/* Sets the fault "`param` must be WHAT, found …". */
cairn_status chat_want(chat_fault *f, const char *param, const char *what, json_val v);
/* `chat_template_kwargs` and `reasoning_effort` → a->kwargs, effort and think. */
cairn_status chat_kwargs_read(json_val root, chat_ask *a, chat_fault *f);

#endif
