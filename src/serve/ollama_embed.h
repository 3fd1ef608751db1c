/* POST /api/embed and /api/embeddings. */
#ifndef SERVE_OLLAMA_EMBED_H
#define SERVE_OLLAMA_EMBED_H

#include "serve/server_priv.h"

void ollama_embed_serve(cairn_server *s, http_req *rq);
void ollama_embeddings_serve(cairn_server *s, http_req *rq);

#endif
