/* POST /signal: how probable the tokens are that may come next, all of them, as a histogram. */
#ifndef SERVE_SIGNAL_H
#define SERVE_SIGNAL_H

#include "serve/server_priv.h"

void signal_serve(cairn_server *s, http_req *rq);

#endif
