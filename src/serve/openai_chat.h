/* POST /v1/chat/completions, and POST /apply-template. */
#ifndef SERVE_OPENAI_CHAT_H
#define SERVE_OPENAI_CHAT_H

#include "serve/server_priv.h"

void openai_chat_serve(cairn_server *s, http_req *rq);
/* The same body → {"prompt": text}: what the model would be given. */
void openai_chat_render(cairn_server *s, http_req *rq);

#endif
