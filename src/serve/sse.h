/* Server-sent events over an HTTP stream. */
#ifndef SERVE_SSE_H
#define SERVE_SSE_H

#include "serve/http.h"

void sse_start(http_req *rq);
/* One event whose data is one line of JSON; false as http_stream_write. */
bool sse_data(http_req *rq, cairn_str json);
void sse_end(http_req *rq);

#endif
