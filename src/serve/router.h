/* Method and path → handler, from one table. */
#ifndef SERVE_ROUTER_H
#define SERVE_ROUTER_H

#include "serve/server_priv.h"

typedef void (*route_fn)(cairn_server *s, http_req *rq);

/* The HTTP app's three calls: replies at once to what cannot be served (404, 405, 401, OPTIONS); serves
   the rest; words a refusal of the protocol's or the limits' as JSON. */
void router_head(void *server, http_req *rq);
void router_serve(void *server, http_req *rq);
void router_refuse(void *server, http_req *rq, int status, const char *why);

#endif
