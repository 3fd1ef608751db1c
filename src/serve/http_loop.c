/* The I/O thread's loop: accepts, watches every descriptor, keeps every deadline.  What the bytes mean
   is http_conn.c's and http.c's.

   A client that leaves is noticed while its request is pending, and a deadline counts from the first
   byte: what libraries for HTTP servers do not do.

   Invariant: each open connection is in our epoll set, so its FIN or reset is seen in any state.  The
   set is level-triggered, but for the wake-up: what is not wanted now is taken out of a connection's interest. */
#include <errno.h>
#include <limits.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/log.h"
#include "base/str.h"
#include "serve/http_priv.h"

enum {
    ACCEPT_BURST = 64, /* a turn of the loop, so that a flood does not starve streams */
    REFUSED_MS = 2000, /* for those over the limit to ask */
    QUIET_MS = 1000,   /* whoever asks nothing for so long has its place until another wants it */
    LOOK_MS = 50,      /* between searches in vain, each of which meets all connections */
    STALL_MS = 30000   /* nothing acknowledged of what waits for so long: the reader is cut */
};

static int tag_listener, tag_local, tag_wake; /* addresses that tell epoll events apart */

static bool epoll_add(const http_server *h, int fd, uint32_t events, void *ptr)
{
    struct epoll_event e = {.events = events, .data = {.ptr = ptr}};

    return epoll_ctl(h->epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

void conn_want(http_conn *c, uint32_t events, bool on)
{
    const uint32_t now = on ? c->interest | events : c->interest & ~events;
    struct epoll_event e = {.events = now, .data = {.ptr = c}};

    if (now == c->interest || c->gone) return;
    c->interest = now;
    if (epoll_ctl(c->h->epoll, EPOLL_CTL_MOD, c->fd, &e) != 0) conn_cut(c);
}

static void tick_by(http_server *h, uint64_t ms)
{
    if (ms < h->next_tick_ms) h->next_tick_ms = ms;
}

void conn_set_deadline(http_conn *c, uint64_t in_ms)
{
    c->deadline_ms = in_ms ? http_now_ms() + in_ms : 0;
    if (in_ms) tick_by(c->h, c->deadline_ms);
}

/* The FIN: nothing more will come than is already here. */
static void conn_closing(http_conn *c)
{
    switch (c->state) {
    case CONN_IDLE:
    case CONN_HEADERS:
    case CONN_BODY:
    case CONN_LINGER:
        break;       /* the reading side meets it */
    case CONN_REPLY: /* may still be read by one that only shut its sending side */
        c->half_closed = true;
        c->close = true;
        conn_want(c, EPOLLRDHUP, false);
        break;
    case CONN_PENDING:
    case CONN_STREAM:
        conn_cut(c);
        break;
    }
}

static void conn_event(http_conn *c, uint32_t events)
{
    if (c->gone) return;
    if (events & (EPOLLERR | EPOLLHUP)) {
        conn_cut(c);
        return;
    }
    if (events & EPOLLRDHUP) conn_closing(c);
    if (!c->gone && (events & EPOLLIN)) conn_input(c);
    if (!c->gone && (events & EPOLLOUT)) {
        if (c->tls && tls_wants_out(c->tls)) conn_input(c);
        if (!c->gone) conn_output(c);
        if (!c->gone && c->rq.more && c->out_at == c->out.len) c->rq.more(c->rq.more_user);
    }
}

/* Who has asked nothing for longest, QUIET_MS at least; NULL: nobody. */
static http_conn *quietest(const http_server *h, uint64_t now)
{
    http_conn *found = NULL;
    uint64_t since = now - QUIET_MS;

    for (http_conn *c = h->conns; c; c = c->next) {
        if (c->gone || c->local || c->over_limit || c->quiet_ms > since) continue;
        if (c->state != CONN_IDLE && c->state != CONN_HEADERS) continue;
        found = c;
        since = c->quiet_ms;
    }
    return found;
}

/* All places are taken: the quietest connection gives way, so that those who only connect shut nobody out. */
static bool make_room(http_server *h)
{
    const uint64_t now = http_now_ms();
    http_conn *c;
    int unread = 0;

    if (now < h->no_room_ms) return false;
    while ((c = quietest(h, now)) && ioctl(c->fd, FIONREAD, &unread) == 0 && unread > 0)
        c->quiet_ms = now; /* it has just asked */
    if (!c) {
        h->no_room_ms = now + LOOK_MS;
        return false;
    }
    log_event(LOG_DEBUG, "http_made_room", "quiet_ms=%llu",
              (unsigned long long)(now - c->quiet_ms));
    conn_cut(c);
    h->n_going++;
    return true;
}

static bool has_place(http_server *h)
{
    return h->n_conns - h->n_local - h->n_going < (size_t)h->lim.max_connections || make_room(h);
}

static void conn_open(http_server *h, int fd, bool local)
{
    http_conn *c = mem_calloc(1, sizeof *c, MEM_SERVE);
    int one = 1;

    if (!c) {
        close(fd);
        return;
    }
    c->h = h;
    c->fd = fd;
    c->rq.conn = c;
    buf_init(&c->rq.body, MEM_SERVE);
    buf_init(&c->rq.head_bytes, MEM_SERVE);
    buf_init(&c->in, MEM_SERVE);
    buf_init(&c->out, MEM_SERVE);
    c->local = local;
    c->over_limit = !local && !has_place(h);
    c->state = CONN_HEADERS;
    c->quiet_ms = http_now_ms();
    conn_set_deadline(c, c->over_limit ? REFUSED_MS : (uint64_t)h->lim.header_timeout_ms);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->interest = EPOLLIN | EPOLLRDHUP;
    c->next = h->conns;
    if (c->next) c->next->prev = c;
    h->conns = c;
    h->n_conns++;
    h->n_local += local;
    if (h->tls && !local) c->tls = tls_conn_open(h->tls, fd);
    if (!epoll_add(h, fd, c->interest, c) || (h->tls && !local && !c->tls)) conn_cut(c);
}

static void reap(http_server *h)
{
    http_conn *next;

    if (!h->has_gone) return;
    h->has_gone = false;
    h->n_going = 0;
    for (http_conn *c = h->conns; c; c = next) {
        next = c->next;
        if (!c->gone) continue;
        if (c->prev)
            c->prev->next = c->next;
        else
            h->conns = c->next;
        if (c->next) c->next->prev = c->prev;
        h->n_conns--;
        h->n_local -= c->local;
        conn_free(c);
    }
}

/* Sends what the turn's callbacks wrote; sending may bring up the next request of a pipeline. */
static void settle(http_server *h)
{
    while (h->dirty) {
        http_conn *c = h->dirty;

        h->dirty = c->next_dirty;
        c->dirty = false;
        conn_output(c);
    }
    reap(h);
}

static void listen_set(http_server *h, bool on)
{
    if (on == h->listening || h->listener < 0) return;
    if (on)
        h->listening = epoll_add(h, h->listener, EPOLLIN, &tag_listener);
    else
        h->listening = epoll_ctl(h->epoll, EPOLL_CTL_DEL, h->listener, NULL) != 0;
    if (h->local.fd < 0) return;
    if (on)
        (void)epoll_add(h, h->local.fd, EPOLLIN, &tag_local);
    else
        (void)epoll_ctl(h->epoll, EPOLL_CTL_DEL, h->local.fd, NULL);
}

static bool is_stranger(int fd)
{
    uid_t uid;

    if (local_socket_peer_ok(fd, &uid)) return false;
    log_event(LOG_WARN, "local_socket_refused", "uid=%lld", (long long)uid);
    return true;
}

/* Neither side shuts the other out: an operator gets in however many clients there are. */
static bool is_full(http_server *h, bool local)
{
    if (local) return h->n_local >= HTTP_LOCAL_MAX;
    return h->n_conns - h->n_local - h->n_going >=
               (size_t)h->lim.max_connections + HTTP_REFUSED_EXTRA &&
           !make_room(h);
}

static void accept_some(http_server *h, bool local)
{
    static const char busy[] = HTTP_RAW("503 Service Unavailable", "server_error", "server_busy",
                                        "too many connections at once");

    for (int i = 0; i < ACCEPT_BURST; i++) {
        const int fd =
            accept4(local ? h->local.fd : h->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0) {
            /* Out of descriptors: the listener stays readable, so look away until the next tick. */
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
                listen_set(h, false);
            return;
        }
        if (local && is_stranger(fd)) {
            close(fd);
        } else if (is_full(h, local)) {
            if ((local || !h->tls) &&
                send(fd, busy, sizeof busy - 1, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
                shutdown(fd, SHUT_WR);
            close(fd);
        } else {
            conn_open(h, fd, local);
        }
    }
}

static void conn_expire(http_conn *c)
{
    log_event(LOG_DEBUG, "http_timeout", "state=%d", (int)c->state);
    if ((c->state == CONN_HEADERS || c->state == CONN_BODY) && (!c->tls || tls_is_up(c->tls)))
        conn_refuse(c, 408, "the request did not come in time");
    else
        conn_cut(c);
}

/* Has the client taken anything?  The kernel says what is still unacknowledged; what it took off us
   says nothing. */
int conn_note_taking(http_conn *c, uint64_t now)
{
    int unacked = 0;

    if (ioctl(c->fd, SIOCOUTQ, &unacked) != 0) return 0;
    const uint64_t taken = c->n_sent - (uint64_t)unacked;
    if (taken > c->n_taken || (unacked == 0 && c->out_at == c->out.len)) {
        c->n_taken = taken;
        c->taken_ms = now;
    }
    return unacked;
}

static void watch_taking(http_conn *c, uint64_t now)
{
    const int unacked = conn_note_taking(c, now);

    if (now - c->taken_ms <= STALL_MS) return;
    log_event(LOG_INFO, "http_stalled_reader", "unacknowledged=%d", unacked);
    conn_cut(c);
}

static void beat(http_conn *c)
{
    if (c->pulse)
        c->pulse(c->pulse_user);
    else if (c->beat)
        http_stream_write(&c->rq, str_of(c->beat));
}

static void conn_tick(http_conn *c, uint64_t now)
{
    bool waits = c->state == CONN_IDLE || c->state == CONN_HEADERS ||
                 (c->state == CONN_LINGER && c->linger_ms);
    bool streams = c->state == CONN_STREAM;

    if (c->gone) return;
    if (c->deadline_ms && now >= c->deadline_ms)
        conn_expire(c);
    else if (waits && c->h->draining)
        conn_cut(c);
    else if (streams)
        watch_taking(c, now);
    if (streams && !c->gone && !c->ended && now - c->written_ms >= c->beat_ms) beat(c);
}

/* The next tick is then: soon while something is watched over, else at the first deadline, however many
   connections are kept.  What a wake brings is seen by a tick, so http_run has one after anything that came. */
static void tick(http_server *h, uint64_t now)
{
    bool soon = false;
    http_conn *next;

    h->next_tick_ms = UINT64_MAX;
    for (http_conn *c = h->conns; c; c = next) {
        next = c->next;
        conn_tick(c, now);
        if (c->gone) continue;
        soon = soon || c->state == CONN_STREAM;
        if (c->deadline_ms) tick_by(h, c->deadline_ms);
    }
    listen_set(h, !h->draining);
    h->app.tick(h->app.ctx, now);
    if (soon || !h->listening) tick_by(h, now + HTTP_TICK_MS);
}

/* -1: for ever. */
static int wait_ms(const http_server *h)
{
    const uint64_t now = http_now_ms();

    if (h->next_tick_ms == UINT64_MAX) return -1;
    if (h->next_tick_ms <= now) return 0;
    return h->next_tick_ms - now < INT_MAX ? (int)(h->next_tick_ms - now) : INT_MAX;
}

cairn_status http_run(http_server *h, cairn_diag *dg)
{
    enum { MAX_EVENTS = 128 };
    struct epoll_event ev[MAX_EVENTS];

    while (!h->quit) {
        const int n = epoll_wait(h->epoll, ev, MAX_EVENTS, wake_sleep(&h->wake) ? wait_ms(h) : 0);

        if (n < 0 && errno != EINTR)
            return diag_set(dg, CAIRN_E_IO, "epoll_wait: %s", strerrordesc_np(errno));
        if (wake_rouse(&h->wake) || n > 0) tick_by(h, http_now_ms() + HTTP_TICK_MS);
        for (int i = 0; i < n; i++) {
            void *p = ev[i].data.ptr;

            if (p == &tag_listener)
                accept_some(h, false);
            else if (p == &tag_local)
                accept_some(h, true);
            else if (p != &tag_wake)
                conn_event(p, ev[i].events);
        }
        h->app.woken(h->app.ctx);
        if (http_now_ms() >= h->next_tick_ms) tick(h, http_now_ms());
        settle(h); /* connections are freed in here only, so no event above met a freed one */
    }
    return CAIRN_OK;
}

void http_quit(http_server *h)
{
    h->quit = true;
}

void http_wake(http_server *h)
{
    wake_set(&h->wake);
}

void http_drain(http_server *h)
{
    if (h->draining) return;
    listen_set(h, false);
    close(h->listener);
    h->listener = -1;
    local_socket_close(&h->local);
    h->draining = true;
}

void http_set_tls(http_server *h, tls *t)
{
    tls_close(h->tls);
    h->tls = t;
}

bool http_is_loopback(const http_server *h)
{
    return h->loopback;
}

uint64_t http_max_body(const http_server *h)
{
    return h->lim.max_body_bytes;
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
        n += !c->gone && c->state != CONN_IDLE && c->state != CONN_HEADERS;
    return n;
}

void http_tick_at(http_server *h, uint64_t ms)
{
    tick_by(h, ms);
}

int32_t http_port(const http_server *h)
{
    return h->port;
}

cairn_status http_open(const char *host, int32_t port, const http_limits *lim, const http_app *app,
                       http_server **out, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    http_server *h = mem_calloc(1, sizeof *h, MEM_SERVE);

    if (!h) return diag_set(dg, CAIRN_E_NOMEM, "no memory for the server");
    h->app = *app;
    h->lim = *lim;
    h->epoll = h->listener = h->wake.fd = -1;
    local_socket_init(&h->local);
    listen_raise_fds(h);
    TRY_GOTO(listen_open(h, host, port, dg), out);
    TRY_GOTO(wake_init(&h->wake), out);
    h->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (h->epoll < 0 || !epoll_add(h, h->wake.fd, EPOLLIN | EPOLLET, &tag_wake)) {
        st = diag_set(dg, CAIRN_E_IO, "cannot start the HTTP loop: %s", strerrordesc_np(errno));
        goto out;
    }
    TRY_GOTO(listen_check_fds(h, h->epoll, dg), out);
    listen_set(h, true);
    *out = h;
    h = NULL;
out:
    http_close(h);
    return st;
}

cairn_status http_listen_local(http_server *h, const char *path, cairn_diag *dg)
{
    TRY(local_socket_open(&h->local, path, dg));
    if (epoll_add(h, h->local.fd, EPOLLIN, &tag_local)) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_IO, "%s: cannot be watched: %s", path, strerrordesc_np(errno));
}

void http_close(http_server *h)
{
    if (!h) return;
    for (http_conn *c = h->conns; c; c = c->next) conn_cut(c);
    reap(h);
    if (h->listener >= 0) close(h->listener);
    local_socket_close(&h->local);
    if (h->epoll >= 0) close(h->epoll);
    if (h->wake.fd >= 0) wake_deinit(&h->wake);
    tls_close(h->tls);
    mem_free(h);
}
