/* POST /tokenize and /detokenize, as llama-server has them. */
#ifndef SERVE_TOKENS_H
#define SERVE_TOKENS_H

#include "serve/server_priv.h"

void tokens_encode(cairn_server *s, http_req *rq);
void tokens_decode(cairn_server *s, http_req *rq);

#endif
