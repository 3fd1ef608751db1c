/* POST /generate: short continuations of a text, drawn by a curve. */
#ifndef SERVE_GENERATE_H
#define SERVE_GENERATE_H

#include "serve/server_priv.h"

void generate_serve(cairn_server *s, http_req *rq);

#endif
