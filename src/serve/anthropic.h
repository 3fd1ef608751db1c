/* Anthropic's POST /v1/messages, and /v1/messages/count_tokens. */
#ifndef SERVE_ANTHROPIC_H
#define SERVE_ANTHROPIC_H

#include "serve/server_priv.h"

void anthropic_messages_serve(cairn_server *s, http_req *rq);
void anthropic_count_serve(cairn_server *s, http_req *rq);

#endif
