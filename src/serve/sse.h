/* Server-sent events over an HTTP stream. */
#ifndef SERVE_SSE_H
#define SERVE_SSE_H

#include "base/json.h"
#include "serve/http.h"

#define SSE_WAITING ": waiting\n\n" /* a comment: the heartbeat */

void sse_start(http_req *rq);
/* One event into b, whose data is what is written before sse_close: one line of JSON.  `event`: its name, or NULL. */
json_writer sse_open(buf *b, const char *event);
void sse_close(buf *b);
void sse_end(http_req *rq);

#endif
