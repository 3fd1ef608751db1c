/* Server-sent events: framing and the heartbeat.  Back-pressure is http_stream_write's: its backlog is
   bounded, and who does not read is cut. */
#include "serve/sse.h"

#include "base/str.h"

enum { BEAT_MS = 10000 }; /* agents give up after 20 s without a byte */

void sse_start(http_req *rq)
{
    http_set_header(rq, "Cache-Control", "no-cache");
    http_set_header(rq, "X-Accel-Buffering", "no"); /* proxies must not hold events back */
    http_stream(rq, "text/event-stream; charset=utf-8", ": waiting\n\n", BEAT_MS);
}

bool sse_data(http_req *rq, cairn_str json)
{
    buf b;
    bool ok;

    buf_init(&b, MEM_SERVE);
    buf_puts(&b, "data: ");
    buf_str(&b, json);
    buf_puts(&b, "\n\n");
    /* A frame that memory does not suffice for is never sent in part. */
    ok = buf_status(&b) == CAIRN_OK && http_stream_write(rq, buf_view(&b));
    buf_deinit(&b);
    return ok;
}

void sse_end(http_req *rq)
{
    http_stream_end(rq);
}
