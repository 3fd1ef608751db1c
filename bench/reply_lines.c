/* States of a reply.  A line of the body may be half read when its chunk ends, so lines of the framing lie in a
   buffer of their own. */
#include "reply_lines.h"

#include <stdlib.h>

#include "base/num.h"

void reply_begin(reply *r)
{
    buf_clear(&r->head);
    buf_clear(&r->line);
    r->at = REPLY_HEAD;
    r->status = 0;
    r->chunked = r->closes = false;
    r->left = 0;
}

void reply_deinit(reply *r)
{
    buf_deinit(&r->head);
    buf_deinit(&r->line);
}

static void tell(reply *r, reply_line_fn fn, void *ctx)
{
    if (r->line.len) fn(ctx, r->line.ptr);
    buf_clear(&r->line);
}

static void take_body(reply *r, const char *p, size_t n, reply_line_fn fn, void *ctx)
{
    while (n > 0) {
        const char *nl = memchr(p, '\n', n);
        const size_t m = nl ? (size_t)(nl - p) + 1 : n;
        buf_put(&r->line, p, m);
        if (nl) tell(r, fn, ctx);
        p += m;
        n -= m;
    }
}

/* What a line of the head says that matters. */
static void take_field(reply *r, const char *s)
{
    if (strncmp(s, "HTTP/1.1 ", 9) == 0) r->status = (int)strtol(s + 9, NULL, 10);
    if (strncasecmp(s, "content-length:", 15) == 0) r->left = (size_t)strtoull(s + 15, NULL, 10);
    if (strncasecmp(s, "transfer-encoding: chunked", 26) == 0) r->chunked = true;
    if (strncasecmp(s, "connection: close", 17) == 0) r->closes = true;
}

/* A line of the framing is whole; answers what follows. */
static reply_at after(reply *r, const char *s, bool empty)
{
    switch (r->at) {
    case REPLY_HEAD:
        take_field(r, s);
        if (!empty) return REPLY_HEAD;
        return r->chunked ? REPLY_SIZE : REPLY_BODY;
    case REPLY_SIZE:
        r->left = (size_t)strtoull(s, NULL, 16);
        return r->left ? REPLY_CHUNK : REPLY_TRAILER;
    case REPLY_CHUNK_END:
        return REPLY_SIZE;
    case REPLY_TRAILER:
        return empty ? REPLY_WHOLE : REPLY_TRAILER;
    case REPLY_BODY:
    case REPLY_CHUNK:
    case REPLY_WHOLE:
        break;
    }
    return REPLY_WHOLE;
}

void reply_take(reply *r, const char *p, size_t n, reply_line_fn fn, void *ctx)
{
    while (r->at != REPLY_WHOLE) {
        const bool body = r->at == REPLY_BODY || r->at == REPLY_CHUNK;
        const char *nl = body || n == 0 ? NULL : memchr(p, '\n', n);
        const size_t m = body ? min_size(n, r->left) : nl ? (size_t)(nl - p) + 1 : n;
        if (body) {
            take_body(r, p, m, fn, ctx);
            r->left -= m;
            if (r->left > 0) return;
            r->at = r->at == REPLY_CHUNK ? REPLY_CHUNK_END : REPLY_WHOLE;
        } else {
            buf_put(&r->head, p, m);
            if (!nl || !r->head.ptr) return;
            r->at = after(r, r->head.ptr, r->head.len <= 2);
            buf_clear(&r->head);
        }
        p += m;
        n -= m;
    }
    tell(r, fn, ctx); /* a last line without its feed */
}
