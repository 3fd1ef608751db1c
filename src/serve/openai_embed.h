/* POST /v1/embeddings. */
#ifndef SERVE_OPENAI_EMBED_H
#define SERVE_OPENAI_EMBED_H

#include "serve/server_priv.h"

void openai_embed_serve(cairn_server *s, http_req *rq);

#endif
