/* Shared by http.c (requests, replies), http_conn.c (bytes of a connection), http_loop.c (connections, deadlines)
   and http_listen.c (the address).  Nobody else's. */
#ifndef SERVE_HTTP_PRIV_H
#define SERVE_HTTP_PRIV_H

#include "base/thread.h"
#include "serve/http.h"
#include "serve/http_head.h"
#include "serve/local_socket.h"
#include "serve/tls.h"

/* For what must be said without memory or a request. */
#define HTTP_RAW(status, type, code, message)                                                      \
    "HTTP/1.1 " status "\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"           \
    "{\"error\":{\"message\":\"" message "\",\"type\":\"" type                                     \
    "\",\"param\":null,\"code\":\"" code "\"}}"

enum {
    HTTP_REFUSED_EXTRA = 64, /* connections over the limit that are still told 503 properly */
    HTTP_LOCAL_MAX = 16      /* by the local socket, beside the others: an operator's scripts */
};

typedef enum conn_state {
    CONN_IDLE,    /* kept alive, no byte of a request yet */
    CONN_HEADERS, /* waiting for the rest of the headers */
    CONN_BODY,
    CONN_PENDING, /* the app has the request */
    CONN_REPLY,   /* a whole reply is being sent */
    CONN_STREAM,
    CONN_LINGER /* all is said; what still comes is dropped, as closing on unread bytes resets */
} conn_state;

typedef struct http_header_out {
    const char *name;
    char value[HTTP_MAX_REPLY_VALUE];
} http_header_out;

struct http_req {
    struct http_conn *conn;
    http_head head;
    buf head_bytes; /* what `head` points into; empty until it is whole or refused */
    http_chunks chunks;
    buf body;
    uint64_t n_received; /* body bytes, kept or dropped */
    bool drop_body;
    bool replied; /* the reply, or a stream's head, is in conn->out */
    bool streaming;
    http_header_out header[HTTP_MAX_REPLY_HEADERS];
    int n_header;
    int status; /* of the reply; 0: none yet */
    uint64_t begun_ms;
    int64_t n_prompt, n_generated; /* for the log; n_prompt 0: not such a request */
    void (*on_gone)(void *user);
    void *user;
    void (*more)(void *user); /* http_stream_more; NULL: none */
    void *more_user;
};

typedef struct http_conn { /* I/O thread */
    struct http_conn *prev, *next;
    struct http_conn *next_dirty; /* of http_server.dirty */
    http_server *h;
    int fd;
    tls_conn *tls;     /* NULL: what is sent is plain */
    uint32_t interest; /* what our epoll set watches it for */
    conn_state state;
    uint64_t deadline_ms; /* 0: none */
    uint64_t quiet_ms;    /* IDLE, HEADERS: since when */
    bool dirty;
    bool gone;          /* cut: freed at the end of the loop's turn */
    bool half_closed;   /* its FIN has come */
    bool local;         /* it came by the local socket */
    bool over_limit;    /* accepted only to be told 503 */
    bool close;         /* after the reply */
    bool hasty;         /* a reply made before the body is in is sent at once, and closes */
    bool unread;        /* closing: input may still be on its way, */
    uint64_t linger_ms; /* read for so long; 0: the usual time */
    http_req rq;
    buf in; /* bytes not used yet, from in_at */
    size_t in_at;
    size_t in_counted; /* of its room, in h->in_bytes */
    buf out;           /* bytes that the kernel has not taken, from out_at */
    size_t out_at;
    bool ended;               /* a stream's last bytes are in `out` */
    uint64_t n_sent, n_taken; /* bytes given to the kernel; of these, acknowledged by the client */
    uint64_t taken_ms;        /* when n_taken last grew, or nothing was waiting */
    uint64_t written_ms;      /* when bytes were last put into out */
    const char *beat;
    uint64_t beat_ms;
    void (*pulse)(void *user); /* in place of the beat */
    void *pulse_user;
} http_conn;

struct http_server { /* I/O thread, but for wake */
    http_app app;
    http_limits lim;
    wake wake;
    tls *tls; /* of connections to come; NULL: none is asked for */
    int epoll, listener;
    local_socket local;
    int32_t port;
    bool listening; /* the listener, and the local socket, are in the epoll set */
    bool draining, quit, loopback;
    http_conn *conns;
    http_conn *dirty;        /* have something to send, or a request to end */
    bool has_gone;           /* some connection is to be freed */
    size_t n_conns, n_local; /* n_local: of n_conns, by the local socket */
    size_t n_going;          /* of n_conns, cut to make room in this turn of the loop */
    uint64_t no_room_ms;     /* nobody is to be cut for room before */
    size_t body_bytes;       /* of all requests in progress */
    size_t in_bytes;         /* the room of what is read and not used yet, of all connections */
    uint64_t next_tick_ms;   /* UINT64_MAX: when something has come */
    char block[65536];       /* what one read takes */
};

/* http.c */
/* Answers so unless a reply has begun, and closes either way. */
void conn_refuse(http_conn *c, int status, const char *why);
void conn_begin_send(http_conn *c); /* the reply that is in out */
/* http_conn.c */
void conn_cut(http_conn *c);    /* tells on_gone, closes at the end of the turn */
void conn_input(http_conn *c);  /* reads and uses what came */
void conn_output(http_conn *c); /* sends, and goes on to the next request when all is sent */
bool conn_flush(http_conn *c);  /* sends; false: the kernel is full, or the connection is gone */
int conn_note_taking(http_conn *c, uint64_t now); /* taken_ms; bytes not acknowledged yet */
void conn_touch(http_conn *c);                    /* conn_output follows at the end of the turn */
void conn_free(http_conn *c);                     /* not in any list */
/* http_loop.c */
void conn_want(http_conn *c, uint32_t events, bool on);
void conn_set_deadline(http_conn *c, uint64_t in_ms); /* 0: none */
/* http_listen.c */
/* Binds: the listener, its port, and whether it is on loopback. */
cairn_status listen_open(http_server *h, const char *host, int32_t port, cairn_diag *dg);
/* The usual soft limit of 1,024 files is less than the connections we promise. */
void listen_raise_fds(const http_server *h);
/* The kernel gives the lowest number that is free: what the last descriptor of our own got counts those
   in use. */
cairn_status listen_check_fds(const http_server *h, int last_fd, cairn_diag *dg);

#endif
