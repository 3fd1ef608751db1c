/* Where clients connect: the address that is listened on, and the open files that as many connections take. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/log.h"
#include "serve/http_priv.h"

enum {
    OWN_FDS = 48,       /* descriptors that are not connections */
    LEAST_FREE_FDS = 8, /* of fewer connections, a client and a check of health take all */
    /* What the kernel holds for a client that does not read; left alone it grows to megabytes and hides
       that nobody reads.  The kernel doubles the figure, for its own bookkeeping. */
    SEND_BUFFER = 128 << 10
};

static rlim_t wanted_fds(const http_server *h)
{
    return (rlim_t)h->lim.max_connections + HTTP_REFUSED_EXTRA + HTTP_LOCAL_MAX + OWN_FDS;
}

void listen_raise_fds(const http_server *h)
{
    struct rlimit r;
    const rlim_t want = wanted_fds(h);

    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur >= want) return;
    r.rlim_cur = r.rlim_max == RLIM_INFINITY || r.rlim_max > want ? want : r.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &r);
}

cairn_status listen_check_fds(const http_server *h, int last_fd, cairn_diag *dg)
{
    struct rlimit r;
    const rlim_t least = (rlim_t)last_fd + 1 + LEAST_FREE_FDS;

    if (getrlimit(RLIMIT_NOFILE, &r) != 0) return CAIRN_OK;
    if (r.rlim_cur < least)
        return diag_set(dg, CAIRN_E_LIMIT,
                        "open files: found a limit of %llu (ulimit -n); expected at least %llu",
                        (unsigned long long)r.rlim_cur, (unsigned long long)least);
    if (r.rlim_cur < wanted_fds(h))
        log_event(LOG_WARN, "http_fd_limit", "found=%llu wanted=%llu",
                  (unsigned long long)r.rlim_cur, (unsigned long long)wanted_fds(h));
    return CAIRN_OK;
}

static int bind_one(const struct addrinfo *ai)
{
    enum { BACKLOG = 1024 };
    int one = 1, room = SEND_BUFFER;
    int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room); /* connections inherit it */
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        int e = errno;
        close(fd);
        errno = e;
        return -1;
    }
    return fd;
}

/* Only this machine's programs reach it. */
static bool is_loopback(const struct sockaddr *sa)
{
    const struct sockaddr_in *v4 = (const void *)sa;
    const struct sockaddr_in6 *v6 = (const void *)sa;

    if (sa->sa_family == AF_INET) return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return sa->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

cairn_status listen_open(http_server *h, const char *host, int32_t port, cairn_diag *dg)
{
    struct addrinfo hint = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *list = NULL;
    struct sockaddr_storage sa = {0};
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
    h->loopback = is_loopback((const struct sockaddr *)&sa);
    h->port = 0;
    for (const char *s = name; *s >= '0' && *s <= '9'; s++) h->port = h->port * 10 + (*s - '0');
    return CAIRN_OK;
}
