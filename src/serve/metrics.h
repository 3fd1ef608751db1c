/* GET /metrics: Prometheus' text format. */
#ifndef SERVE_METRICS_H
#define SERVE_METRICS_H

#include "serve/server_priv.h"

void metrics_serve(cairn_server *s, http_req *rq);

#endif
