/* HTTP/1.1 requests and replies in our own types.  One I/O thread (the caller of http_run) owns every
   object here and makes every callback; only http_wake may be called from elsewhere. */
#ifndef SERVE_HTTP_H
#define SERVE_HTTP_H

#include "base/buf.h"
#include "cairn/status.h"

typedef struct http_server http_server;
typedef struct http_req http_req;
struct tls;

typedef struct http_limits {
    int32_t max_connections;
    int32_t
        header_timeout_ms;   /* total, from the first byte (or accept) to the end of the headers */
    int32_t body_timeout_ms; /* total, from there to the end of the body */
    uint64_t max_body_bytes;
    /* Of all that are being read, and of all heads; 0: eight times the largest, at least 64 MiB. */
    uint64_t max_bodies_bytes;
    uint64_t max_replies_bytes; /* of all that clients have not taken; 0: any */
} http_limits;

typedef struct http_app {
    void *ctx;
    /* The headers are in, the body is not.  May reply: the body is then read and dropped. */
    void (*head)(void *ctx, http_req *rq);
    /* The body is in.  Replies, starts a stream, or keeps rq to do so later. */
    void (*serve)(void *ctx, http_req *rq);
    /* Replies to what the limits or the protocol forbid; `why` may be NULL. */
    void (*refuse)(void *ctx, http_req *rq, int status, const char *why);
    void (*woken)(void *ctx); /* after http_wake; calls may coalesce */
    void (*tick)(void *ctx,
                 uint64_t now_ms); /* within HTTP_TICK_MS of a wake, then as deadlines want it */
} http_app;

enum {
    HTTP_TICK_MS = 100, /* the grain of every deadline */
    /* Set by http_set_header for one reply: the page's six, cross-site ones, an API's own. */
    HTTP_MAX_REPLY_HEADERS = 16,
    HTTP_MAX_REPLY_VALUE = 160 /* bytes of one's value, its end included: the page's policy fits */
};

/* Binds and listens.  `host` is a numeric address or a name; port 0 picks one.  *out ends in
   http_close; NULL after a failure. */
cairn_status http_open(const char *host, int32_t port, const http_limits *lim, const http_app *app,
                       http_server **out, cairn_diag *dg);
/* Also on a Unix socket (local_socket.h), plain whatever TLS says; gone at http_drain and http_close.  Once. */
cairn_status http_listen_local(http_server *h, const char *path, cairn_diag *dg);
int32_t http_port(const http_server *h);
cairn_status http_run(http_server *h, cairn_diag *dg); /* until http_quit */
void http_quit(http_server *h);
void http_wake(http_server *h);                 /* any thread, signal handlers too */
void http_tick_at(http_server *h, uint64_t ms); /* a tick at this time of http_now_ms, or before */
/* No new connections or requests; replies close their connection; idle connections are cut. */
void http_drain(http_server *h);
bool http_draining(const http_server *h);
/* Connections from now on speak TLS by `t`, which is the server's from here on. */
void http_set_tls(http_server *h, struct tls *t);
bool http_is_loopback(const http_server *h);  /* it listens on a loopback address */
uint64_t http_max_body(const http_server *h); /* bytes */
size_t http_busy(const http_server *h);       /* connections with a request in progress */
size_t http_connections(const http_server *h);
uint64_t http_now_ms(void); /* monotonic */
/* Cuts what is left; requests in progress are told through on_gone.  NULL is fine. */
void http_close(http_server *h);

/* A request: valid until its reply or stream is ended, or on_gone has returned. */

const char *http_method(const http_req *rq);
const char *http_path(const http_req *rq); /* percent-decoded, without the query */
/* The value of `name` in the query, as it was sent; {0}: it has none such. */
cairn_str http_query(const http_req *rq, const char *name);
bool http_came_locally(const http_req *rq); /* by the Unix socket */
cairn_str http_body(const http_req *rq);
/* Moves it to the caller, who ends it with buf_deinit; *out holds nothing before. */
void http_take_body(http_req *rq, buf *out);
const char *http_header(const http_req *rq, const char *name); /* NULL if absent */
/* Called once if the client leaves (or is cut) before the reply is ended; not after. */
void http_on_gone(http_req *rq, void (*fn)(void *user), void *user);

/* What the request's line in the log says of tokens so far. */
void http_note_tokens(http_req *rq, int64_t n_prompt, int64_t n_generated);

/* For the reply to come; the first value of a name stays.  `name` is static text, `value` is copied (shorter than
   HTTP_MAX_REPLY_VALUE). */
void http_set_header(http_req *rq, const char *name, const char *value);
/* The whole reply; the body is copied. `type` is the content type.  Where replies that clients do not take leave it no
   room the app's refuse replies in its place, with 429. */
void http_reply(http_req *rq, int status, const char *type, cairn_str body);

/* A reply of unknown length.  The headers leave at once.  `beat` (static, may be NULL) is sent when
   nothing else was for `beat_ms`. */
void http_stream(http_req *rq, const char *type, const char *beat, uint64_t beat_ms);
void http_stream_beat(http_req *rq, const char *beat); /* another one from now on */
/* From now on fn is called in its place, until the stream is ended or the client is gone; it may write. */
void http_stream_pulse(http_req *rq, void (*fn)(void *user), void *user);
/* Queues bytes.  A client that leaves more than a bounded backlog unread is cut: on_gone may be
   called from here, and rq be invalid afterwards: false. */
bool http_stream_write(http_req *rq, cairn_str bytes);
/* `fn` writes what comes next each time that the client's system has taken all, until the stream is ended: a long
   reply is then never whole in memory.  It writes something or ends the stream.  The client has a minute, and a second
   for each 64 KiB, to take it all; then it is cut. */
void http_stream_more(http_req *rq, void (*fn)(void *user), void *user);
/* Whether the client leaves so much unread that what can be left out should be.  on_gone may be called from
   here, and rq be invalid afterwards: true. */
bool http_stream_lags(http_req *rq);
void http_stream_end(http_req *rq); /* rq is invalid afterwards */
void http_stream_cut(http_req *rq); /* likewise: the client sees no end */

#endif
