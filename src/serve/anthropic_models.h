/* GET /v1/models and /v1/models/{id} as Anthropic's clients know them: openai_models.c hands them over. */
#ifndef SERVE_ANTHROPIC_MODELS_H
#define SERVE_ANTHROPIC_MODELS_H

#include "serve/server_priv.h"

bool anthropic_asks(const http_req *rq); /* it says which version of Anthropic's API it speaks */
void anthropic_models_list(cairn_server *s, http_req *rq);
void anthropic_models_one(cairn_server *s, http_req *rq, cairn_str id);

#endif
