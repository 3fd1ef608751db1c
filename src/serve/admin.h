/* What an operator asks of a running server. */
#ifndef SERVE_ADMIN_H
#define SERVE_ADMIN_H

#include "serve/http.h"
#include "serve/server_priv.h"

/* POST /admin/cache/flush: 200 when all that is known of every model is durable, else 503; counts in both. */
void admin_flush(cairn_server *s, http_req *rq);

#endif
