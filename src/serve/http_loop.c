/* The I/O thread's loop: accepts, watches every descriptor for its end, keeps every deadline, and
   runs libmicrohttpd when its own epoll set has something.  What requests mean is http.c's.

   Invariant: each open connection is in our epoll set, edge-triggered, so its FIN or reset is seen
   in any state, also while the library has it suspended. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/log.h"
#include "base/str.h"
#include "serve/http_priv.h"

enum {
    ACCEPT_BURST = 64,  /* a turn of the loop, so that a flood does not starve streams */
    REFUSED_EXTRA = 64, /* connections over the limit that are still told 503 properly */
    OWN_FDS = 64,       /* descriptors that are not connections */
    STALL_MS = 30000    /* a stream's bytes untaken for this long: the reader is cut */
};

#define RAW(status)                                                                                \
    "HTTP/1.1 " status "\r\nContent-Type: application/json\r\nContent-Length: 0\r\n"               \
    "Connection: close\r\n\r\n"

static int tag_listener, tag_daemon, tag_wake; /* addresses that tell epoll events apart */

static bool epoll_add(const http_server *h, int fd, uint32_t events, void *ptr)
{
    struct epoll_event e = {.events = events, .data = {.ptr = ptr}};

    return epoll_ctl(h->epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

void conn_watch(http_conn *c)
{
    if (!epoll_add(c->h, c->fd, EPOLLIN | EPOLLRDHUP | EPOLLET, c)) conn_cut(c);
}

void conn_set_deadline(http_conn *c, uint64_t in_ms)
{
    c->deadline_ms = in_ms ? http_now_ms() + in_ms : 0;
}

/* The FIN or a reset: nothing more will come than is already here. */
static void conn_closing(http_conn *c, bool reset)
{
    c->half_closed = true;
    switch (c->state) {
    case CONN_IDLE:
    case CONN_HEADERS:
    case CONN_BODY:
        /* The library reads what there is and closes.  But it takes a short read to mean that its
           edge is used up, so it misses a FIN that came in one edge with a request (0.9.75): then
           the deadline closes. */
        conn_set_deadline(c, HTTP_HALF_CLOSED_MS);
        break;
    case CONN_REPLY: /* may still be read by one that only shut its sending side */
        if (reset) conn_cut(c);
        break;
    case CONN_PENDING:
    case CONN_STREAM:
        conn_cut(c);
        break;
    }
}

static void conn_event(http_conn *c, uint32_t events)
{
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
        conn_closing(c, (events & EPOLLERR) != 0);
    } else if (c->state == CONN_IDLE && (events & EPOLLIN)) {
        c->state = CONN_HEADERS;
        conn_set_deadline(c, (uint64_t)c->h->lim.header_timeout_ms);
    }
}

static void listen_set(http_server *h, bool on)
{
    if (on == h->listening || h->listener < 0) return;
    if (on)
        h->listening = epoll_add(h, h->listener, EPOLLIN, &tag_listener);
    else
        h->listening = epoll_ctl(h->epoll, EPOLL_CTL_DEL, h->listener, NULL) != 0;
}

static void accept_some(http_server *h)
{
    for (int i = 0; i < ACCEPT_BURST; i++) {
        struct sockaddr_storage sa;
        socklen_t n = sizeof sa;
        int one = 1;
        int fd = accept4(h->listener, (struct sockaddr *)&sa, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0) {
            /* Out of descriptors: the listener stays readable, so look away until the next tick. */
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
                listen_set(h, false);
            return;
        }
        if (h->n_conns >= (size_t)h->lim.max_connections + REFUSED_EXTRA) {
            ssize_t sent =
                send(fd, RAW("503 Service Unavailable"), sizeof RAW("503 Service Unavailable") - 1,
                     MSG_DONTWAIT | MSG_NOSIGNAL);
            if (sent > 0) shutdown(fd, SHUT_WR);
            close(fd);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (MHD_add_connection(h->daemon, fd, (struct sockaddr *)&sa, n) != MHD_YES)
            log_event(LOG_WARN, "http_add_failed", "errno=%d", errno);
    }
}

static void conn_expire(http_conn *c)
{
    if (!c->half_closed && (c->state == CONN_HEADERS || c->state == CONN_BODY))
        conn_send_raw(c, RAW("408 Request Timeout"));
    log_event(LOG_DEBUG, "http_timeout", "state=%d", (int)c->state);
    conn_cut(c);
}

static void conn_tick(http_conn *c, uint64_t now)
{
    bool waits = c->state == CONN_IDLE || c->state == CONN_HEADERS;
    bool streams = c->state == CONN_STREAM;
    bool unread = c->out.len > c->out_at;

    if (c->gone) return;
    if (c->deadline_ms && now >= c->deadline_ms)
        conn_expire(c);
    else if ((waits && c->h->draining) || (streams && unread && now - c->taken_ms > STALL_MS))
        conn_cut(c);
    else if (streams && !c->ended && c->beat && now - c->written_ms >= c->beat_ms)
        http_stream_write(&c->rq, str_of(c->beat));
}

static void tick(http_server *h, uint64_t now)
{
    http_conn *next;

    for (http_conn *c = h->conns; c; c = next) {
        next = c->next;
        conn_tick(c, now);
    }
    listen_set(h, !h->draining);
    h->app.tick(h->app.ctx, now);
    h->next_tick_ms = now + HTTP_TICK_MS;
}

static int wait_ms(const http_server *h)
{
    MHD_UNSIGNED_LONG_LONG lib;
    uint64_t now = http_now_ms();
    uint64_t ms = h->next_tick_ms > now ? h->next_tick_ms - now : 0;

    if (MHD_get_timeout(h->daemon, &lib) == MHD_YES && lib < ms) ms = lib;
    return (int)ms;
}

cairn_status http_run(http_server *h, cairn_diag *dg)
{
    enum { MAX_EVENTS = 128 };
    struct epoll_event ev[MAX_EVENTS];

    while (!h->quit) {
        int n = epoll_wait(h->epoll, ev, MAX_EVENTS, wait_ms(h));

        if (n < 0 && errno != EINTR)
            return diag_set(dg, CAIRN_E_IO, "epoll_wait: %s", strerrordesc_np(errno));
        for (int i = 0; i < n; i++) {
            void *p = ev[i].data.ptr;

            if (p == &tag_listener)
                accept_some(h);
            else if (p == &tag_wake)
                wake_clear(&h->wake);
            else if (p != &tag_daemon)
                conn_event(p, ev[i].events);
        }
        h->app.woken(h->app.ctx);
        /* Connections are freed in here only, so no event above met a freed one. */
        if (MHD_run(h->daemon) != MHD_YES) return diag_set(dg, CAIRN_E_IO, "the HTTP loop failed");
        if (http_now_ms() >= h->next_tick_ms) tick(h, http_now_ms());
    }
    return CAIRN_OK;
}

void http_quit(http_server *h)
{
    h->quit = true;
}

void http_wake(const http_server *h)
{
    wake_set(&h->wake);
}

void http_drain(http_server *h)
{
    if (h->draining) return;
    listen_set(h, false);
    close(h->listener);
    h->listener = -1;
    h->draining = true;
}

bool http_draining(const http_server *h)
{
    return h->draining;
}

size_t http_connections(const http_server *h)
{
    return h->n_conns;
}

size_t http_busy(const http_server *h)
{
    size_t n = 0;

    for (const http_conn *c = h->conns; c; c = c->next)
        n += c->state != CONN_IDLE && c->state != CONN_HEADERS;
    return n;
}

int32_t http_port(const http_server *h)
{
    return h->port;
}

/* A connection is two descriptors' worth at most; the usual soft limit of 1,024 is less than the
   connections we promise. */
static void raise_fd_limit(int32_t max_connections)
{
    struct rlimit r;
    rlim_t want = (rlim_t)max_connections + REFUSED_EXTRA + OWN_FDS;

    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur >= want) return;
    r.rlim_cur = r.rlim_max == RLIM_INFINITY || r.rlim_max > want ? want : r.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur < want)
        log_event(LOG_WARN, "http_fd_limit", "wanted=%llu", (unsigned long long)want);
}

static int bind_one(const struct addrinfo *ai)
{
    enum { BACKLOG = 1024 };
    int one = 1;
    int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        int e = errno;
        close(fd);
        errno = e;
        return -1;
    }
    return fd;
}

static cairn_status listener_open(http_server *h, const char *host, int32_t port, cairn_diag *dg)
{
    struct addrinfo hint = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *list = NULL;
    struct sockaddr_storage sa;
    socklen_t n = sizeof sa;
    char service[12], name[12];
    int rc;

    (void)snprintf(service, sizeof service, "%d", port);
    rc = getaddrinfo(host, service, &hint, &list);
    if (rc != 0) return diag_set(dg, CAIRN_E_ARG, "host %s: %s", host, gai_strerror(rc));
    for (const struct addrinfo *ai = list; ai && h->listener < 0; ai = ai->ai_next)
        h->listener = bind_one(ai);
    freeaddrinfo(list);
    if (h->listener < 0)
        return diag_set(dg, CAIRN_E_IO, "cannot listen on %s port %d: %s", host, port,
                        strerrordesc_np(errno));
    if (getsockname(h->listener, (struct sockaddr *)&sa, &n) != 0 ||
        getnameinfo((struct sockaddr *)&sa, n, NULL, 0, name, sizeof name, NI_NUMERICSERV) != 0)
        return diag_set(dg, CAIRN_E_IO, "cannot tell the port of %s", host);
    h->port = 0;
    for (const char *s = name; *s >= '0' && *s <= '9'; s++) h->port = h->port * 10 + (*s - '0');
    return CAIRN_OK;
}

cairn_status http_open(const char *host, int32_t port, const http_limits *lim, const http_app *app,
                       http_server **out, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    const union MHD_DaemonInfo *di;
    http_server *h = mem_calloc(1, sizeof *h, MEM_SERVE);

    if (!h) return diag_set(dg, CAIRN_E_NOMEM, "no memory for the server");
    h->app = *app;
    h->lim = *lim;
    h->epoll = h->listener = h->wake.fd = -1;
    raise_fd_limit(lim->max_connections);
    TRY_GOTO(listener_open(h, host, port, dg), out);
    TRY_GOTO(wake_init(&h->wake), out);
    h->epoll = epoll_create1(EPOLL_CLOEXEC);
    h->daemon = http_daemon_start(h);
    di = h->daemon ? MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (h->epoll < 0 || !di || !epoll_add(h, di->epoll_fd, EPOLLIN, &tag_daemon) ||
        !epoll_add(h, h->wake.fd, EPOLLIN, &tag_wake)) {
        st = diag_set(dg, CAIRN_E_IO, "cannot start the HTTP loop: %s", strerrordesc_np(errno));
        goto out;
    }
    listen_set(h, true);
    *out = h;
    h = NULL;
out:
    http_close(h);
    return st;
}

void http_close(http_server *h)
{
    if (!h) return;
    /* The library refuses to stop with suspended connections; conn_cut resumes them. */
    for (http_conn *c = h->conns; c; c = c->next) conn_cut(c);
    if (h->daemon) {
        if (h->n_conns) MHD_run(h->daemon);
        MHD_stop_daemon(h->daemon);
    }
    if (h->listener >= 0) close(h->listener);
    if (h->epoll >= 0) close(h->epoll);
    if (h->wake.fd >= 0) wake_deinit(&h->wake);
    mem_free(h);
}
