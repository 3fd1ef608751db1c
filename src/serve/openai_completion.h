/* OpenAI's POST /v1/completions: text that goes on, without a template. */
#ifndef SERVE_OPENAI_COMPLETION_H
#define SERVE_OPENAI_COMPLETION_H

#include "serve/openai_read.h"
#include "serve/server_priv.h"

/* Its body, as chat_ask_read: all but the prompt, which needs a model's vocabulary. */
cairn_status completion_ask_read(chat_ask *a, cairn_str body, chat_fault *f);
void openai_completion_serve(cairn_server *s, http_req *rq);

#endif
