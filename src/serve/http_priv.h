/* Shared by http.c (requests, replies) and http_loop.c (sockets, deadlines).  Nobody else's. */
#ifndef SERVE_HTTP_PRIV_H
#define SERVE_HTTP_PRIV_H

#include <microhttpd.h>

#include "base/thread.h"
#include "serve/http.h"

enum { HTTP_HALF_CLOSED_MS = 500 }; /* after a FIN: to read what came before it */

typedef enum conn_state {
    CONN_IDLE,    /* kept alive, no byte of a request yet */
    CONN_HEADERS, /* waiting for the rest of the headers */
    CONN_BODY,
    CONN_PENDING, /* the app has the request */
    CONN_REPLY,   /* a whole reply is being sent */
    CONN_STREAM
} conn_state;

typedef struct http_header_out {
    const char *name;
    char value[160];
} http_header_out;

struct http_req {
    struct http_conn *conn;
    char method[16];
    char *path;
    buf body;
    uint64_t n_received; /* body bytes, kept or dropped */
    bool drop_body;
    bool expects;                  /* the client waits for 100 Continue */
    struct MHD_Response *response; /* set by http_reply or http_stream, until queued */
    int status;
    bool streaming;
    http_header_out header[HTTP_MAX_REPLY_HEADERS];
    int n_header;
    void (*on_gone)(void *user);
    void *user;
};

typedef struct http_conn { /* I/O thread */
    struct http_conn *prev, *next;
    http_server *h;
    struct MHD_Connection *mhd;
    int fd; /* libmicrohttpd's; open as long as this struct lives */
    conn_state state;
    uint64_t deadline_ms; /* 0: none */
    bool suspended;
    bool gone;        /* cut, or left while a request was in progress: say no to libmicrohttpd */
    bool half_closed; /* its FIN has come */
    bool over_limit;  /* accepted only to be told 503 */
    http_req rq;
    buf out; /* a stream's bytes not yet taken, from out_at */
    size_t out_at;
    bool ended;
    uint64_t taken_ms;   /* when bytes were last taken from out, or out was last empty */
    uint64_t written_ms; /* when bytes were last put into out */
    const char *beat;
    uint64_t beat_ms;
} http_conn;

struct http_server { /* I/O thread, but for wake */
    http_app app;
    http_limits lim;
    struct MHD_Daemon *daemon;
    wake wake;
    int epoll, listener;
    int32_t port;
    bool listening; /* the listener is in the epoll set */
    bool draining, quit;
    http_conn *conns;
    size_t n_conns;
    size_t body_bytes; /* of all requests in progress */
    uint64_t next_tick_ms;
};

/* http.c */
struct MHD_Daemon *http_daemon_start(http_server *h);
void conn_cut(http_conn *c); /* tells on_gone, shuts the socket; libmicrohttpd then closes it */
void conn_send_raw(const http_conn *c, const char *bytes); /* only while no reply has begun */
/* http_loop.c */
void conn_watch(http_conn *c);
void conn_set_deadline(http_conn *c, uint64_t in_ms); /* 0: none */

#endif
