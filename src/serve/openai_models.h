/* GET /v1/models and /v1/models/{id}. */
#ifndef SERVE_OPENAI_MODELS_H
#define SERVE_OPENAI_MODELS_H

#include "serve/server_priv.h"

void openai_models_list(cairn_server *s, http_req *rq);
void openai_models_one(cairn_server *s, http_req *rq);

#endif
