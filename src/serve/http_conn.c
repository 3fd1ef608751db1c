/* The bytes of one connection: input becomes heads and bodies under the limits, and requests for the
   app; output goes out as far as the kernel takes it; then comes the next request.

   Input is read only while a request is wanted: during a reply the next ones of a pipeline wait in the
   kernel, and its window holds the client back.  A FIN counts as leaving while an answer is being made,
   as the work for a client that is gone must stop at once.

   Invariant: a connection is freed by the loop alone, at the end of a turn; `gone` says so before. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "serve/http_priv.h"

enum {
    READS = 4,               /* blocks a turn, so that a big body does not starve streams */
    IDLE_MS = 60000,         /* kept alive between requests; above the usual clients' 5 to 30 s */
    LOG_PATH_BYTES = 200,    /* of a path, in the log */
    LINGER_MS = 1000,        /* for a client to read the last reply and close */
    BODIES_FACTOR = 8,       /* all bodies in memory: at most this many of the largest size, */
    BODIES_LEAST = 64 << 20, /* or this many bytes, if the largest size is small */
    DROP_FACTOR = 4          /* a body that is refused is still read up to this many, then cut */
};

/* One line a request, when its reply is with the kernel or `cut` short. */
static void request_log(const http_conn *c, bool cut)
{
    const http_req *rq = &c->rq;
    char tokens[80] = "";

    if (rq->n_prompt)
        (void)snprintf(tokens, sizeof tokens, " prompt_tokens=%lld generated_tokens=%lld",
                       (long long)rq->n_prompt, (long long)rq->n_generated);
    log_event(LOG_INFO, "http_request", "method=%s path=%.*s status=%d%s ms=%llu%s",
              http_method(rq), LOG_PATH_BYTES, http_path(rq), rq->status, tokens,
              (unsigned long long)(http_now_ms() - rq->begun_ms), cut ? " cut=1" : "");
}

static void request_lost(http_conn *c)
{
    void (*fn)(void *) = c->rq.on_gone;

    c->rq.on_gone = NULL;
    if (fn) fn(c->rq.user);
}

void conn_cut(http_conn *c)
{
    if (c->gone) return;
    if (c->rq.head.len) request_log(c, true);
    c->gone = c->h->has_gone = true;
    request_lost(c);
}

void conn_touch(http_conn *c)
{
    if (c->dirty || c->gone) return;
    c->dirty = true;
    c->next_dirty = c->h->dirty;
    c->h->dirty = c;
}

static void request_deinit(http_conn *c)
{
    c->h->body_bytes -= c->rq.body.len;
    buf_deinit(&c->rq.body);
    buf_deinit(&c->rq.head_bytes);
}

static void request_init(http_conn *c)
{
    c->rq = (http_req){.conn = c};
    buf_init(&c->rq.body, MEM_SERVE);
    buf_init(&c->rq.head_bytes, MEM_SERVE);
}

/* As recv and send. */
static ssize_t take_bytes(http_conn *c, char *p, size_t n)
{
    return c->tls ? tls_recv(c->tls, p, n) : recv(c->fd, p, n, MSG_DONTWAIT);
}

static ssize_t give_bytes(http_conn *c, const char *p, size_t n)
{
    const ssize_t done =
        c->tls ? tls_send(c->tls, p, n) : send(c->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (c->tls)
        c->n_sent = tls_n_sent(c->tls);
    else if (done > 0)
        c->n_sent += (uint64_t)done;
    return done;
}

/* The room of `in`, as it is now. */
static void count_in(http_conn *c)
{
    c->h->in_bytes += c->in.cap;
    c->h->in_bytes -= c->in_counted;
    c->in_counted = c->in.cap;
}

static void drop_in(http_conn *c)
{
    buf_deinit(&c->in);
    count_in(c);
}

void conn_free(http_conn *c)
{
    tls_conn_close(c->tls);
    request_deinit(c);
    drop_in(c);
    buf_deinit(&c->out);
    close(c->fd);
    mem_free(c);
}

static void in_used(http_conn *c, size_t n)
{
    c->in_at += n;
    if (c->in_at < c->in.len) return;
    buf_clear(&c->in);
    c->in_at = 0;
}

static void drop_body(http_conn *c)
{
    c->rq.drop_body = true;
    c->h->body_bytes -= c->rq.body.len;
    buf_deinit(&c->rq.body);
}

/* The body is too long, of which at least `rest` is to come: told at once.  One that is not far too
   long is then still read, as most clients read no reply before they have sent all. */
static void refuse_body(http_conn *c, uint64_t rest)
{
    const bool far = rest / DROP_FACTOR > c->h->lim.max_body_bytes;

    drop_body(c);
    c->linger_ms = far ? LINGER_MS : (uint64_t)c->h->lim.body_timeout_ms;
    conn_refuse(c, 413, NULL);
}

/* The head is in. */
static void request_begin(http_conn *c)
{
    http_req *rq = &c->rq;
    const http_head *d = &rq->head;
    uint64_t max = c->h->lim.max_body_bytes;

    rq->begun_ms = http_now_ms();
    c->state = CONN_BODY;
    c->close = d->close;
    /* A client that waits for leave has sent nothing; one that means to send too much is not worth the
       wait. */
    c->hasty = d->expects || d->length > max;
    conn_set_deadline(c, (uint64_t)c->h->lim.body_timeout_ms);
    if (c->over_limit || c->h->draining)
        c->h->app.refuse(c->h->app.ctx, rq, 503, NULL);
    else if (d->length > max)
        refuse_body(c, d->length);
    else
        c->h->app.head(c->h->app.ctx, rq);
    if (c->gone || c->state != CONN_BODY) return;
    if (rq->replied) {
        rq->drop_body = true;
        if (c->hasty) conn_refuse(c, 413, NULL);
    } else if (d->expects && c->in_at == c->in.len) {
        static const char go[] = "HTTP/1.1 100 Continue\r\n\r\n";
        if (give_bytes(c, go, sizeof go - 1) < 0) conn_cut(c);
    }
}

/* False: more is needed, or the connection is at its end. */
static bool use_head(http_conn *c)
{
    http_req *rq = &c->rq;
    char *p = c->in.ptr + c->in_at;

    switch (http_head_feed(&rq->head, p, c->in.len - c->in_at)) {
    case HEAD_MORE:
        return false;
    case HEAD_REFUSED:
        log_event(LOG_INFO, "http_refused", "status=%d why=\"%s\"", rq->head.status, rq->head.why);
        conn_refuse(c, rq->head.status, rq->head.why);
        return false;
    case HEAD_DONE:
        break;
    }
    buf_put(&rq->head_bytes, p, rq->head.len);
    if (buf_status(&rq->head_bytes) != CAIRN_OK) {
        conn_cut(c);
        return false;
    }
    in_used(c, rq->head.len);
    request_begin(c);
    return !c->gone;
}

static uint64_t bodies_limit(const http_server *h)
{
    uint64_t n = h->lim.max_body_bytes * BODIES_FACTOR;

    if (h->lim.max_bodies_bytes) return h->lim.max_bodies_bytes;
    return n > BODIES_LEAST ? n : BODIES_LEAST;
}

static void body_add(http_conn *c, cairn_str data)
{
    http_req *rq = &c->rq;
    uint64_t max = c->h->lim.max_body_bytes;

    rq->n_received += data.len;
    if (rq->n_received / DROP_FACTOR > max) {
        conn_cut(c);
    } else if (rq->drop_body) {
        return;
    } else if (rq->n_received > max) {
        refuse_body(c, 0);
    } else if (c->h->body_bytes + data.len > bodies_limit(c->h)) {
        drop_body(c);
        c->h->app.refuse(c->h->app.ctx, rq, 503, NULL);
    } else {
        buf_str(&rq->body, data);
        if (buf_status(&rq->body) != CAIRN_OK)
            conn_cut(c);
        else
            c->h->body_bytes += data.len;
    }
}

/* The body is in. */
static void request_go(http_conn *c)
{
    c->state = CONN_PENDING;
    conn_set_deadline(c, 0);
    if (c->rq.replied)
        conn_begin_send(c);
    else
        c->h->app.serve(c->h->app.ctx, &c->rq);
}

/* A chunk says its size before it comes: one that cannot fit is refused then. */
static void check_chunk(http_conn *c)
{
    http_req *rq = &c->rq;
    const uint64_t max = c->h->lim.max_body_bytes;
    if (rq->chunks.state != CHUNK_DATA || rq->chunks.left <= max - rq->n_received) return;
    refuse_body(c, rq->chunks.left);
}

/* As use_head. */
static bool use_body(http_conn *c)
{
    http_req *rq = &c->rq;
    const char *p = c->in.ptr + c->in_at;
    size_t n = c->in.len - c->in_at;
    cairn_str data = {p, n};

    if (rq->head.chunked) {
        n = http_chunks_feed(&rq->chunks, p, n, &data);
    } else if (n > rq->head.length - rq->n_received) {
        n = data.len = (size_t)(rq->head.length - rq->n_received);
    }
    if (data.len) body_add(c, data);
    if (c->gone) return false;
    in_used(c, n);
    if (rq->head.chunked && rq->n_received <= c->h->lim.max_body_bytes) check_chunk(c);
    if (c->gone || c->state != CONN_BODY) return false;
    if (rq->head.chunked && rq->chunks.state == CHUNK_BAD) {
        if (!rq->replied) drop_body(c);
        conn_refuse(c, 400, "the chunked body is malformed");
        return false;
    }
    if (rq->head.chunked ? rq->chunks.state == CHUNK_END : rq->n_received == rq->head.length) {
        request_go(c);
        return false;
    }
    return c->in_at < c->in.len;
}

/* Requests out of the bytes that are here, until one is at the app. */
static void use_input(http_conn *c)
{
    bool more = true;

    while (more && !c->gone) {
        if (c->state == CONN_IDLE && c->in_at < c->in.len) {
            c->state = CONN_HEADERS;
            c->quiet_ms = http_now_ms();
            conn_set_deadline(c, (uint64_t)c->h->lim.header_timeout_ms);
        }
        more = (c->state == CONN_HEADERS && c->in_at < c->in.len && use_head(c)) ||
               (c->state == CONN_BODY && use_body(c));
    }
    if (c->in_at == 0 || c->gone) return;
    memmove(c->in.ptr, c->in.ptr + c->in_at, c->in.len - c->in_at);
    buf_cut(&c->in, c->in.len - c->in_at);
    c->in_at = 0;
}

/* After a block was used: a connection keeps no room for the next, and heads that come in pieces have so much
   together, whoever sends them. */
static void check_in(http_conn *c)
{
    if (c->in.len == 0) drop_in(c);
    if (c->state == CONN_HEADERS && c->in.len && c->h->in_bytes > bodies_limit(c->h))
        conn_refuse(c, 503, "the heads of other requests take all the room there is");
}

static bool wants_input(const http_conn *c)
{
    return !c->gone && (c->state == CONN_IDLE || c->state == CONN_HEADERS ||
                        c->state == CONN_BODY || c->state == CONN_LINGER);
}

void conn_input(http_conn *c)
{
    if (!wants_input(c))
        conn_want(c, EPOLLIN, false); /* only now: most clients send one at a time */
    for (int i = 0; i < READS && wants_input(c); i++) {
        const ssize_t n = take_bytes(c, c->h->block, sizeof c->h->block);

        if (c->tls) conn_want(c, EPOLLOUT, tls_wants_out(c->tls)); /* a handshake's */
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n <= 0) { /* an end before a request's end, or between requests */
            conn_cut(c);
            return;
        }
        if (c->state == CONN_LINGER) continue;
        buf_put(&c->in, c->h->block, (size_t)n);
        count_in(c);
        if (buf_status(&c->in) != CAIRN_OK)
            conn_cut(c);
        else
            use_input(c);
        if (!c->gone) check_in(c);
    }
}

bool conn_flush(http_conn *c)
{
    while (c->out_at < c->out.len) {
        const ssize_t n = give_bytes(c, c->out.ptr + c->out_at, c->out.len - c->out_at);

        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) {
            conn_want(c, EPOLLOUT, true);
            return false;
        }
        if (n < 0) {
            conn_cut(c);
            return false;
        }
        c->out_at += (size_t)n;
    }
    buf_clear(&c->out);
    c->out_at = 0;
    conn_want(c, EPOLLOUT, c->rq.more != NULL); /* which is called on the loop's next turn */
    return true;
}

/* The reply is with the kernel: close, or make ready for the next request. */
static void request_end(http_conn *c)
{
    if (c->rq.head.len) request_log(c, false); /* else http_refused has said it */
    request_lost(c);
    request_deinit(c);
    request_init(c);
    buf_deinit(&c->out);
    if (c->in.len == 0) drop_in(c);
    c->ended = false;
    if (c->close && c->unread && !c->half_closed) {
        if (c->tls) tls_say_end(c->tls);
        shutdown(c->fd, SHUT_WR);
        drop_in(c);
        c->state = CONN_LINGER;
        conn_set_deadline(c, c->linger_ms ? c->linger_ms : LINGER_MS);
    } else if (c->close) {
        conn_cut(c);
    } else {
        c->state = CONN_IDLE;
        c->quiet_ms = http_now_ms();
        conn_set_deadline(c, IDLE_MS);
    }
    if (!c->gone) conn_want(c, EPOLLIN, true);
}

void conn_output(http_conn *c)
{
    if (c->gone || (c->state != CONN_REPLY && c->state != CONN_STREAM) || !conn_flush(c)) return;
    if (c->state == CONN_STREAM && !c->ended) return;
    request_end(c);
    /* The next of a pipeline may be here already; its reply comes back through conn_touch. */
    if (!c->gone && c->state == CONN_IDLE) use_input(c);
}
