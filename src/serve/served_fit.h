/* What models take by context and parallel requests. */
#ifndef SERVE_SERVED_FIT_H
#define SERVE_SERVED_FIT_H

#include "serve/server_priv.h"

void fit_serve(cairn_server *s,
               http_req *rq); /* the table of `cairn fit` for each engine's model */

#endif
