/* OpenAI's responses: made, looked at, deleted. */
#ifndef SERVE_RESPONSES_H
#define SERVE_RESPONSES_H

#include "cairn/server.h"
#include "serve/http.h"

void responses_serve(cairn_server *s, http_req *rq);
void responses_count(cairn_server *s, http_req *rq); /* of the tokens of a body's prompt */
/* Below /v1/responses/: of one that is kept. */
void responses_get(cairn_server *s, http_req *rq); /* it, or its input_items */
void responses_delete(cairn_server *s, http_req *rq);
void responses_post(cairn_server *s, http_req *rq); /* cancel */

#endif
