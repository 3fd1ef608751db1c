/* What an operator asks of a running server, by the local socket. */
#ifndef SERVE_ADMIN_H
#define SERVE_ADMIN_H

#include "serve/http.h"
#include "serve/server_priv.h"

/* POST /admin/cache/flush: 200 when all that is known of every model is durable, else 503; counts in both. */
void admin_flush(cairn_server *s, http_req *rq);
/* POST /admin/drain: as cairn_server_stop; says what runs still. */
void admin_drain(cairn_server *s, http_req *rq);

#endif
