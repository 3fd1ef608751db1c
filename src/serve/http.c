/* Requests and replies as the app sees them: whole replies and streams, written as HTTP/1.1 into the
   connection's buffer.  The bytes of a connection are http_conn.c's, sockets and time http_loop.c's.

   Invariant: a reply made while the body is still coming waits in the buffer, and one made later is sent
   at the end of the loop's turn, so that a callback never ends its own request under its feet. */
#include "serve/http.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "serve/http_priv.h"

enum {
    STREAM_BACKLOG = 1 << 20, /* unread bytes at which a slow reader is cut: hours of text */
    SLOW_BACKLOG = 16 << 10,  /* from here on all replies are summed; a turn's burst is less */
    STANDING_MS = 1000,       /* without a byte taken: a lost packet is sent again sooner */
    REPLY_MS = 60000,         /* for a client to take a whole reply, */
    REPLY_RATE = 64 << 10     /* and a second for each so many bytes: half a megabit, a slow link */
};

uint64_t http_now_ms(void)
{
    return clock_ns() / 1000000;
}

static const struct {
    int status;
    const char *text;
} phrases[] = {
    {200, "OK"},
    {204, "No Content"},
    {302, "Found"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {417, "Expectation Failed"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {505, "HTTP Version Not Supported"},
};

static const char *phrase_of(int status)
{
    for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++)
        if (phrases[i].status == status) return phrases[i].text;
    return "Status";
}

static bool has_body(int status)
{
    return status != 204 && status != 304;
}

/* The head but for its last, empty line. */
static void write_head(http_req *rq, int status, const char *type)
{
    buf *out = &rq->conn->out;
    const time_t now = (time_t)clock_unix_s();
    struct tm tm;
    char date[40];

    rq->status = status;
    if (rq->conn->h->draining || rq->conn->over_limit ||
        (rq->conn->hasty && rq->conn->state == CONN_BODY))
        rq->conn->close = true;
    (void)strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &tm));
    buf_printf(out, "HTTP/1.1 %d %s\r\nDate: %s\r\n", status, phrase_of(status), date);
    if (has_body(status)) buf_printf(out, "Content-Type: %s\r\n", type);
    for (int i = 0; i < rq->n_header; i++)
        buf_printf(out, "%s: %s\r\n", rq->header[i].name, rq->header[i].value);
    if (rq->conn->close) buf_puts(out, "Connection: close\r\n");
}

static void replied(http_req *rq)
{
    http_conn *c = rq->conn;

    rq->replied = true;
    if (buf_status(&c->out) != CAIRN_OK)
        conn_cut(c);
    else if (c->state == CONN_PENDING)
        conn_begin_send(c);
}

static uint64_t time_for(size_t n_bytes)
{
    return (uint64_t)n_bytes * 1000 / REPLY_RATE;
}

void conn_begin_send(http_conn *c)
{
    c->state = c->rq.streaming ? CONN_STREAM : CONN_REPLY;
    c->taken_ms = http_now_ms();
    conn_set_deadline(c, c->rq.streaming ? 0 : REPLY_MS + time_for(c->out.len - c->out_at));
    conn_touch(c);
}

/* The path decides about the shape of what is said: known as soon as the request line is. */
static void keep_line(http_conn *c)
{
    http_req *rq = &c->rq;

    if (c->state == CONN_HEADERS && rq->head.begun && !rq->head_bytes.len)
        buf_put(&rq->head_bytes, c->in.ptr + c->in_at, rq->head.at);
    if (buf_status(&rq->head_bytes) != CAIRN_OK) buf_deinit(&rq->head_bytes);
}

void conn_refuse(http_conn *c, int status, const char *why)
{
    keep_line(c);
    c->close = c->unread = true;
    c->state = CONN_PENDING;
    if (!c->rq.replied)
        c->h->app.refuse(c->h->app.ctx, &c->rq, status, why);
    else
        conn_begin_send(c);
}

void http_set_header(http_req *rq, const char *name, const char *value)
{
    if (rq->n_header == HTTP_MAX_REPLY_HEADERS) return;
    for (int i = 0; i < rq->n_header; i++)
        if (strcmp(rq->header[i].name, name) == 0) return;
    rq->header[rq->n_header].name = name;
    (void)snprintf(rq->header[rq->n_header].value, sizeof rq->header[0].value, "%s", value);
    rq->n_header++;
}

/* A stream is as fast as its writer, a whole reply was there at once: the time to take it has begun only now. */
static bool reads_slowly(http_conn *c, uint64_t now)
{
    if (c->state == CONN_REPLY) (void)conn_note_taking(c, now);
    return c->state == CONN_STREAM || (c->state == CONN_REPLY && now - c->taken_ms > STANDING_MS);
}

typedef struct replies {
    uint64_t all, slow; /* bytes of them; of those that read slowly, who may be cut */
    http_conn *worst;   /* of these, who has left most unread; NULL: none */
} replies;

/* Of all connections but `beside` (-1: of all). */
static replies sum_replies(const http_server *h, int beside)
{
    const uint64_t now = http_now_ms();
    replies sum = {0};
    size_t most = SLOW_BACKLOG;

    for (http_conn *c = h->conns; c; c = c->next) {
        const size_t unread = c->out.len - c->out_at;
        if (c->gone || c->fd == beside) continue;
        sum.all += c->out.cap;
        if (unread <= SLOW_BACKLOG || !reads_slowly(c, now)) continue;
        sum.slow += c->out.cap;
        if (unread <= most) continue;
        most = unread;
        sum.worst = c;
    }
    return sum;
}

static void cut_slow(http_conn *worst, uint64_t sum)
{
    log_event(LOG_INFO, "http_slow_reader", "backlog=%zu replies=%llu limit=%llu",
              worst->out.len - worst->out_at, (unsigned long long)sum,
              (unsigned long long)worst->h->lim.max_replies_bytes);
    conn_cut(worst);
}

/* While replies take more than they may, who has left most unread is cut. */
static void relieve(const http_server *h)
{
    const replies sum = sum_replies(h, -1);

    if (sum.worst && sum.all > h->lim.max_replies_bytes) cut_slow(sum.worst, sum.all);
}

/* For a whole reply of n bytes; false: others have it, and *taken bytes.  Nobody is cut where that would not do. */
static bool has_room(const http_conn *c, size_t n, uint64_t *taken)
{
    const uint64_t max = c->h->lim.max_replies_bytes;

    if (!max || n <= SLOW_BACKLOG) return true;
    for (;;) {
        const replies sum = sum_replies(c->h, c->fd);
        *taken = sum.all;
        if (n <= max && sum.all <= max - n) return true;
        if (!sum.worst || n > max || sum.all - sum.slow > max - n) return false;
        cut_slow(sum.worst, sum.all);
    }
}

static void refuse_large(http_conn *c, size_t n, uint64_t taken)
{
    const uint64_t max = c->h->lim.max_replies_bytes;
    char why[160];

    (void)snprintf(
        why, sizeof why,
        "the reply has %zu bytes; of the %llu that replies on their way may take, others hold "
        "%llu",
        n, (unsigned long long)max, (unsigned long long)taken);
    c->h->app.refuse(c->h->app.ctx, &c->rq, n > max ? 400 : 429, why);
}

void http_reply(http_req *rq, int status, const char *type, cairn_str body)
{
    buf *out = &rq->conn->out;

    uint64_t taken = 0;

    if (rq->replied || rq->conn->gone) return;
    rq->on_gone = NULL;
    if (!has_room(rq->conn, body.len, &taken)) {
        refuse_large(rq->conn, body.len, taken);
        return;
    }
    write_head(rq, status, type);
    if (has_body(status)) buf_printf(out, "Content-Length: %zu\r\n", body.len);
    buf_puts(out, "\r\n");
    if (has_body(status) && strcmp(rq->head.method, "HEAD") != 0) buf_str(out, body);
    replied(rq);
}

void http_stream(http_req *rq, const char *type, const char *beat, uint64_t beat_ms)
{
    http_conn *c = rq->conn;

    if (rq->replied || c->gone) return;
    rq->streaming = true;
    c->beat = beat;
    c->beat_ms = beat_ms;
    c->pulse = NULL;
    c->written_ms = http_now_ms();
    write_head(rq, 200, type);
    buf_puts(&c->out, rq->head.old ? "\r\n" : "Transfer-Encoding: chunked\r\n\r\n");
    replied(rq);
}

void http_stream_beat(http_req *rq, const char *beat)
{
    rq->conn->beat = beat;
}

void http_stream_pulse(http_req *rq, void (*fn)(void *user), void *user)
{
    rq->conn->pulse = fn;
    rq->conn->pulse_user = user;
}

/* Sent bytes make room, so that the buffer's size stays near what is unsent. */
static void drop_sent(http_conn *c)
{
    if (c->out_at == 0) return;
    memmove(c->out.ptr, c->out.ptr + c->out_at, c->out.len - c->out_at);
    buf_cut(&c->out, c->out.len - c->out_at);
    c->out_at = 0;
}

bool http_stream_write(http_req *rq, cairn_str bytes)
{
    http_conn *c = rq->conn;

    if (c->gone) return false;
    if (bytes.len == 0) return true; /* an empty chunk would be the end */
    /* A burst of one turn is not the client's fault. */
    if (c->out.len - c->out_at > STREAM_BACKLOG / 2 && c->state == CONN_STREAM) (void)conn_flush(c);
    if (c->gone) return false;
    if (c->out_at > STREAM_BACKLOG / 2) drop_sent(c);
    if (!rq->head.old) buf_printf(&c->out, "%zx\r\n", bytes.len);
    buf_str(&c->out, bytes);
    if (!rq->head.old) buf_puts(&c->out, "\r\n");
    c->written_ms = http_now_ms();
    if (rq->more) c->deadline_ms += time_for(bytes.len);
    if (buf_status(&c->out) != CAIRN_OK || c->out.len - c->out_at > STREAM_BACKLOG) {
        log_event(LOG_INFO, "http_slow_reader", "backlog=%zu", c->out.len - c->out_at);
        conn_cut(c);
        return false;
    }
    conn_touch(c);
    if (c->h->lim.max_replies_bytes && c->out.len - c->out_at > SLOW_BACKLOG) relieve(c->h);
    return !c->gone;
}

bool http_stream_lags(http_req *rq)
{
    http_conn *c = rq->conn;

    /* A burst of one turn is not the client's fault. */
    if (!c->gone && c->out.len - c->out_at > SLOW_BACKLOG && c->state == CONN_STREAM)
        (void)conn_flush(c);
    return c->gone || c->out.len - c->out_at > SLOW_BACKLOG;
}

void http_stream_more(http_req *rq, void (*fn)(void *user), void *user)
{
    http_conn *c = rq->conn;

    if (!rq->more) conn_set_deadline(c, REPLY_MS + time_for(c->out.len - c->out_at));
    rq->more = fn;
    rq->more_user = user;
    conn_want(c, EPOLLOUT, true);
}

void http_stream_end(http_req *rq)
{
    http_conn *c = rq->conn;

    rq->on_gone = NULL;
    rq->more = NULL;
    if (c->gone) return;
    if (!rq->head.old) buf_puts(&c->out, "0\r\n\r\n");
    c->ended = true;
    if (buf_status(&c->out) != CAIRN_OK)
        conn_cut(c);
    else
        conn_touch(c);
}

void http_stream_cut(http_req *rq)
{
    rq->on_gone = NULL;
    rq->more = NULL;
    conn_cut(rq->conn);
}

const char *http_method(const http_req *rq)
{
    return rq->head.method;
}

const char *http_path(const http_req *rq)
{
    return rq->head_bytes.ptr ? rq->head_bytes.ptr + rq->head.path : "";
}

cairn_str http_query(const http_req *rq, const char *name)
{
    const size_t n = strlen(name);
    const char *s = rq->head.query ? rq->head_bytes.ptr + rq->head.query : "";

    for (size_t len; *s; s += len + (s[len] == '&')) {
        len = strcspn(s, "&");
        if (len > n && s[n] == '=' && memcmp(s, name, n) == 0)
            return (cairn_str){s + n + 1, len - n - 1};
    }
    return (cairn_str){0};
}

bool http_came_locally(const http_req *rq)
{
    return rq->conn->local;
}

cairn_str http_body(const http_req *rq)
{
    return buf_view(&rq->body);
}

void http_take_body(http_req *rq, buf *out)
{
    *out = rq->body;
    rq->conn->h->body_bytes -= rq->body.len;
    buf_init(&rq->body, MEM_SERVE);
}

const char *http_header(const http_req *rq, const char *name)
{
    return rq->head_bytes.ptr ? http_head_find(&rq->head, rq->head_bytes.ptr, name) : NULL;
}

void http_note_tokens(http_req *rq, int64_t n_prompt, int64_t n_generated)
{
    rq->n_prompt = n_prompt;
    rq->n_generated = n_generated;
}

void http_on_gone(http_req *rq, void (*fn)(void *user), void *user)
{
    rq->on_gone = fn;
    rq->user = user;
}
