/* An HTTP/1.1 reply as it comes in, for load generators: its status and the lines of its body.  What it does not
   understand it takes for the end of the reply; it is no judge of servers. */
#ifndef BENCH_REPLY_LINES_H
#define BENCH_REPLY_LINES_H

#include "base/buf.h"

typedef enum reply_at {
    REPLY_HEAD,
    REPLY_BODY,
    REPLY_SIZE, /* of a chunk */
    REPLY_CHUNK,
    REPLY_CHUNK_END,
    REPLY_TRAILER,
    REPLY_WHOLE
} reply_at;

/* Zeroed is fine. */
typedef struct reply {
    reply_at at;
    int status;
    bool chunked, closes; /* the connection, behind it */
    size_t left;          /* of the body, or of a chunk */
    buf head, line;       /* one line each, not whole yet */
} reply;

/* Of the body, its line feed included where there is one; NUL behind it. */
typedef void (*reply_line_fn)(void *ctx, const char *line);

void reply_begin(reply *r);
/* Bytes of one reply; afterwards at is REPLY_WHOLE once its last byte was among them. */
void reply_take(reply *r, const char *p, size_t n, reply_line_fn fn, void *ctx);
void reply_deinit(reply *r);

#endif
