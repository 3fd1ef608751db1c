/* Ollama's routes, for clients that know no other: docs/ollama.md. */
#ifndef SERVE_OLLAMA_H
#define SERVE_OLLAMA_H

#include "serve/server_priv.h"

void ollama_chat_serve(cairn_server *s, http_req *rq);
void ollama_generate_serve(cairn_server *s, http_req *rq);
void ollama_tags_serve(cairn_server *s, http_req *rq);
void ollama_running_serve(cairn_server *s, http_req *rq);
void ollama_version_serve(cairn_server *s, http_req *rq);
void ollama_show_serve(cairn_server *s, http_req *rq);

#endif
