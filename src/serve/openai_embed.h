/* POST /v1/embeddings; /api/embed and /api/embeddings. */
#ifndef SERVE_OPENAI_EMBED_H
#define SERVE_OPENAI_EMBED_H

#include "serve/server_priv.h"

void openai_embed_serve(cairn_server *s, http_req *rq);
void ollama_embed_serve(cairn_server *s, http_req *rq);
void ollama_embeddings_serve(cairn_server *s, http_req *rq);

#endif
