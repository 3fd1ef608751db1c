/* Requests and replies over libmicrohttpd: collects bodies under the limits, hands requests to the
   app, sends whole replies and streams.  Sockets, deadlines and the loop are http_loop.c's.

   Why this shape (measured with 0.9.75): a thousand suspended connections are no trouble, but a
   suspended one is in no poll set, so a client that leaves while it waits is never noticed; and the
   library's time-out counts from the last byte, so headers dripped at 4 bytes a second were still
   accepted after 12 s under a time-out of 3 s.  So the library parses and writes HTTP inside *our*
   epoll loop, and we watch each descriptor for its end and keep all deadlines.  A FIN counts as
   leaving, as the work for a client that is gone must stop at once.

   Invariant: while a request is pending or a stream has nothing to send the connection is suspended,
   and only conn_resume makes the library look at it again. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/diag.h"
#include "base/log.h"
#include "base/str.h"
#include "serve/http_priv.h"

enum {
    STREAM_BACKLOG = 1 << 20, /* unread bytes at which a slow reader is cut: hours of text */
    REPLY_MS = 60000,         /* for a client to take a whole reply */
    IDLE_MS = 60000,          /* kept alive between requests; above the usual clients' 5 to 30 s */
    BODIES_FACTOR = 8,        /* all bodies in memory: at most this many of the largest size, */
    BODIES_LEAST = 64 << 20,  /* or this many bytes, if the largest size is small */
    DROP_FACTOR = 4           /* a body that is refused is still read up to this many, then cut:
                                 closing on unread bytes would destroy the reply on its way */
};

uint64_t http_now_ms(void)
{
    return clock_ns() / 1000000;
}

static void conn_suspend(http_conn *c)
{
    c->suspended = true;
    MHD_suspend_connection(c->mhd);
}

static void conn_resume(http_conn *c)
{
    if (!c->suspended) return;
    c->suspended = false;
    MHD_resume_connection(c->mhd);
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
    c->gone = true;
    shutdown(c->fd, SHUT_RDWR);
    request_lost(c);
    conn_resume(c);
}

void conn_send_raw(const http_conn *c, const char *bytes)
{
    ssize_t n = send(c->fd, bytes, strlen(bytes), MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0) log_event(LOG_DEBUG, "http_raw_lost", "fd=%d", c->fd);
}

static void response_set(http_req *rq, int status, const char *type, struct MHD_Response *r)
{
    bool ok = r && MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES;

    for (int i = 0; ok && i < rq->n_header; i++)
        ok = MHD_add_response_header(r, rq->header[i].name, rq->header[i].value) == MHD_YES;
    if (ok && (rq->conn->h->draining || rq->conn->over_limit))
        ok = MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES;
    if (!ok) {
        if (r) MHD_destroy_response(r);
        conn_cut(rq->conn);
        return;
    }
    rq->response = r;
    rq->status = status;
    conn_resume(rq->conn);
}

void http_set_header(http_req *rq, const char *name, const char *value)
{
    if (rq->n_header == HTTP_MAX_REPLY_HEADERS) return;
    rq->header[rq->n_header].name = name;
    (void)snprintf(rq->header[rq->n_header].value, sizeof rq->header[0].value, "%s", value);
    rq->n_header++;
}

void http_reply(http_req *rq, int status, const char *type, cairn_str body)
{
    union {
        const char *in;
        void *out; /* the library takes no const, and copies */
    } p = {body.len ? body.ptr : ""};

    if (rq->response || rq->conn->gone) return;
    rq->on_gone = NULL;
    response_set(rq, status, type,
                 MHD_create_response_from_buffer(body.len, p.out, MHD_RESPMEM_MUST_COPY));
}

static ssize_t stream_read(void *cls, uint64_t pos, char *out, size_t max)
{
    http_conn *c = cls;
    size_t n = c->out.len - c->out_at;

    (void)pos;
    if (c->gone) return MHD_CONTENT_READER_END_WITH_ERROR;
    c->taken_ms = http_now_ms();
    if (n == 0 && c->ended) return MHD_CONTENT_READER_END_OF_STREAM;
    if (n == 0) {
        conn_suspend(c);
        return 0;
    }
    if (n > max) n = max;
    memcpy(out, c->out.ptr + c->out_at, n);
    c->out_at += n;
    if (c->out_at == c->out.len) {
        buf_clear(&c->out);
        c->out_at = 0;
    }
    return (ssize_t)n;
}

void http_stream(http_req *rq, const char *type, const char *beat, uint64_t beat_ms)
{
    enum { BLOCK = 4096 };
    http_conn *c = rq->conn;

    if (rq->response || c->gone) return;
    rq->streaming = true;
    c->beat = beat;
    c->beat_ms = beat_ms;
    c->written_ms = c->taken_ms = http_now_ms();
    response_set(rq, 200, type,
                 MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, stream_read, c, NULL));
}

bool http_stream_write(http_req *rq, cairn_str bytes)
{
    http_conn *c = rq->conn;

    if (c->gone) return false;
    if (c->out_at > STREAM_BACKLOG / 2) { /* keeps the buffer's size near what is unread */
        memmove(c->out.ptr, c->out.ptr + c->out_at, c->out.len - c->out_at);
        buf_cut(&c->out, c->out.len - c->out_at);
        c->out_at = 0;
    }
    if (c->out.len == c->out_at) c->taken_ms = http_now_ms();
    buf_str(&c->out, bytes);
    c->written_ms = http_now_ms();
    if (buf_status(&c->out) != CAIRN_OK || c->out.len - c->out_at > STREAM_BACKLOG) {
        log_event(LOG_INFO, "http_slow_reader", "backlog=%zu", c->out.len - c->out_at);
        conn_cut(c);
        return false;
    }
    conn_resume(c);
    return true;
}

void http_stream_end(http_req *rq)
{
    rq->on_gone = NULL;
    rq->conn->ended = true;
    conn_resume(rq->conn);
}

const char *http_method(const http_req *rq)
{
    return rq->method;
}

const char *http_path(const http_req *rq)
{
    return rq->path;
}

cairn_str http_body(const http_req *rq)
{
    return buf_view(&rq->body);
}

const char *http_header(const http_req *rq, const char *name)
{
    return MHD_lookup_connection_value(rq->conn->mhd, MHD_HEADER_KIND, name);
}

void http_on_gone(http_req *rq, void (*fn)(void *user), void *user)
{
    rq->on_gone = fn;
    rq->user = user;
}

static enum MHD_Result response_queue(http_conn *c)
{
    struct MHD_Response *r = c->rq.response;
    enum MHD_Result ok;

    c->state = c->rq.streaming ? CONN_STREAM : CONN_REPLY;
    conn_set_deadline(c, c->rq.streaming ? 0 : REPLY_MS);
    ok = MHD_queue_response(c->mhd, (unsigned)c->rq.status, r);
    c->rq.response = NULL;
    MHD_destroy_response(r);
    return ok;
}

static void refuse(http_conn *c, int status)
{
    c->rq.drop_body = true;
    c->h->body_bytes -= c->rq.body.len;
    buf_deinit(&c->rq.body);
    c->h->app.refuse(c->h->app.ctx, &c->rq, status);
}

/* SIZE_MAX when there is none (chunked, or no body). */
static uint64_t content_length(const http_req *rq)
{
    const char *s = http_header(rq, MHD_HTTP_HEADER_CONTENT_LENGTH);
    uint64_t n = 0;

    if (!s) return UINT64_MAX;
    for (; *s >= '0' && *s <= '9' && n < UINT64_MAX / 20; s++) n = n * 10 + (uint64_t)(*s - '0');
    return n;
}

static enum MHD_Result request_begin(http_conn *c, const char *method, const char *url)
{
    http_req *rq = &c->rq;
    const char *expect;
    uint64_t n, max = c->h->lim.max_body_bytes;
    size_t path_len = strlen(url) + 1;

    *rq = (http_req){.conn = c};
    buf_init(&rq->body, MEM_SERVE);
    rq->path = mem_alloc(path_len, MEM_SERVE);
    if (!rq->path) return MHD_NO;
    memcpy(rq->path, url, path_len);
    (void)snprintf(rq->method, sizeof rq->method, "%s", method);
    c->state = CONN_BODY;
    conn_set_deadline(c, (uint64_t)c->h->lim.body_timeout_ms);
    expect = http_header(rq, MHD_HTTP_HEADER_EXPECT);
    rq->expects = expect && strcasecmp(expect, "100-continue") == 0;
    n = content_length(rq);
    if (c->over_limit || c->h->draining)
        refuse(c, 503);
    else if (n != UINT64_MAX && n > max)
        refuse(c, 413);
    else
        c->h->app.head(c->h->app.ctx, rq);
    if (c->gone) return MHD_NO;
    if (!rq->response) return MHD_YES;
    rq->drop_body = true;
    /* A client that waits for leave has sent nothing; one that means to send far too much is not
       worth the wait. */
    if (rq->expects || (n != UINT64_MAX && n / DROP_FACTOR > max)) return response_queue(c);
    return MHD_YES;
}

static uint64_t bodies_limit(const http_server *h)
{
    uint64_t n = h->lim.max_body_bytes * BODIES_FACTOR;

    return n > BODIES_LEAST ? n : BODIES_LEAST;
}

static enum MHD_Result request_body(http_conn *c, const char *p, size_t n)
{
    http_req *rq = &c->rq;
    uint64_t max = c->h->lim.max_body_bytes;

    rq->n_received += n;
    if (c->gone || rq->n_received / DROP_FACTOR > max) return MHD_NO;
    if (rq->drop_body) return MHD_YES;
    if (rq->n_received > max) {
        refuse(c, 413);
    } else if (c->h->body_bytes + n > bodies_limit(c->h)) {
        refuse(c, 503);
    } else {
        buf_put(&rq->body, p, n);
        if (buf_status(&rq->body) != CAIRN_OK) return MHD_NO;
        c->h->body_bytes += n;
    }
    return MHD_YES;
}

/* The body is in, or a kept request was woken. */
static enum MHD_Result request_go(http_conn *c)
{
    if (c->gone) return MHD_NO;
    if (c->state == CONN_BODY) {
        c->state = CONN_PENDING;
        conn_set_deadline(c, 0);
        if (!c->rq.response) c->h->app.serve(c->h->app.ctx, &c->rq);
        if (c->half_closed && (!c->rq.response || c->rq.streaming)) conn_cut(c);
        if (c->gone) return MHD_NO;
    }
    if (c->rq.response) return response_queue(c);
    conn_suspend(c);
    return MHD_YES;
}

static enum MHD_Result on_access(void *cls, struct MHD_Connection *mhd, const char *url,
                                 const char *method, const char *version, const char *upload,
                                 size_t *n_upload, void **slot)
{
    const union MHD_ConnectionInfo *ci =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    http_conn *c = ci ? ci->socket_context : NULL;

    (void)cls;
    (void)version;
    if (!c) return MHD_NO;
    if (!*slot) {
        *slot = c;
        return request_begin(c, method, url);
    }
    if (*n_upload) {
        size_t n = *n_upload;
        *n_upload = 0;
        return request_body(c, upload, n);
    }
    return request_go(c);
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **slot,
                         enum MHD_RequestTerminationCode code)
{
    http_conn *c = *slot;

    (void)cls;
    (void)mhd;
    (void)code;
    if (!c) return;
    *slot = NULL;
    request_lost(c);
    c->h->body_bytes -= c->rq.body.len;
    buf_deinit(&c->rq.body);
    buf_deinit(&c->out);
    buf_init(&c->out, MEM_SERVE);
    mem_free(c->rq.path);
    if (c->rq.response) MHD_destroy_response(c->rq.response);
    c->rq = (http_req){.conn = c};
    c->out_at = 0;
    c->ended = false;
    c->state = CONN_IDLE;
    conn_set_deadline(c, c->half_closed ? HTTP_HALF_CLOSED_MS : IDLE_MS);
}

static void conn_started(http_server *h, struct MHD_Connection *mhd, void **slot)
{
    enum { REFUSED_MS = 2000 };
    http_conn *c = mem_calloc(1, sizeof *c, MEM_SERVE);
    const union MHD_ConnectionInfo *ci =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);

    *slot = c; /* NULL: on_access says no to it */
    if (!c) return;
    c->h = h;
    c->mhd = mhd;
    c->fd = ci->connect_fd;
    c->rq.conn = c;
    buf_init(&c->out, MEM_SERVE);
    c->over_limit = h->n_conns >= (size_t)h->lim.max_connections;
    c->state = CONN_HEADERS;
    conn_set_deadline(c, c->over_limit ? REFUSED_MS : (uint64_t)h->lim.header_timeout_ms);
    c->next = h->conns;
    if (c->next) c->next->prev = c;
    h->conns = c;
    h->n_conns++;
    conn_watch(c);
}

static void conn_ended(http_server *h, http_conn *c)
{
    if (c->prev)
        c->prev->next = c->next;
    else
        h->conns = c->next;
    if (c->next) c->next->prev = c->prev;
    h->n_conns--;
    buf_deinit(&c->out);
    mem_free(c);
}

static void on_connection(void *cls, struct MHD_Connection *mhd, void **slot,
                          enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        conn_started(cls, mhd, slot);
    else if (*slot)
        conn_ended(cls, *slot);
}

static void on_log(void *cls, const char *fmt, va_list ap)
{
    char line[200];

    (void)cls;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* the format is the library's */
    (void)vsnprintf(line, sizeof line, fmt, ap);
#pragma GCC diagnostic pop
    line[strcspn(line, "\n")] = 0;
    log_event(LOG_DEBUG, "http_library", "message=\"%s\"", line);
}

struct MHD_Daemon *http_daemon_start(http_server *h)
{
    /* No polling thread, no listener: http_loop.c has both.  No time-out and no limit on
       connections of the library's either. */
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0,
        NULL, NULL, on_access, h, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, h, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
        h, MHD_OPTION_CONNECTION_LIMIT, (unsigned)INT32_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)HTTP_MAX_HEADER_BYTES, MHD_OPTION_END);
}
