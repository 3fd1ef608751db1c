/* Server-sent events: framing and the heartbeat.  Back-pressure is http_stream_write's: its backlog is
   bounded, and who does not read is cut. */
#include "serve/sse.h"

enum {
    BEAT_MS = 9000
}; /* at least every 10 s is promised, and the clock is looked at now and then */

void sse_start(http_req *rq)
{
    http_set_header(rq, "Cache-Control", "no-cache");
    http_set_header(rq, "X-Accel-Buffering", "no"); /* proxies must not hold events back */
    http_stream(rq, "text/event-stream; charset=utf-8", SSE_WAITING, BEAT_MS);
}

json_writer sse_open(buf *b, const char *event)
{
    if (event) {
        buf_puts(b, "event: ");
        buf_puts(b, event);
        buf_byte(b, '\n');
    }
    buf_puts(b, "data: ");
    return json_write(b);
}

void sse_close(buf *b)
{
    buf_puts(b, "\n\n");
}

void sse_end(http_req *rq)
{
    http_stream_end(rq);
}
