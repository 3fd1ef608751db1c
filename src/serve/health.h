/* Liveness and figures. */
#ifndef SERVE_HEALTH_H
#define SERVE_HEALTH_H

#include "serve/server_priv.h"

void health_serve(cairn_server *s, http_req *rq); /* {"status": "ok"}, to the byte */
void stats_serve(cairn_server *s, http_req *rq);  /* the server's and each engine's counters */

#endif
