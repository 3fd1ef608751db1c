/* POST /generate: short continuations of a text, drawn by a curve. */
#ifndef SERVE_GENERATE_H
#define SERVE_GENERATE_H

#include "serve/openai_read.h"
#include "serve/server_priv.h"

/* Its body, as chat_ask_read: all but the prompt. */
cairn_status generate_ask_read(chat_ask *a, cairn_str body, chat_fault *f);
void generate_serve(cairn_server *s, http_req *rq);

#endif
