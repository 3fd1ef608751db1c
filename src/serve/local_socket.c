/* The file's mode keeps strangers out before they connect; who connected is asked of the kernel all the same, as the
   folder may be one where modes mean little.  A server that was killed leaves its file behind: nobody listens there,
   which connecting to it tells.

   Several may start at once.  Invariant: a socket of ours is at PATH only while it listens: it is made under another
   name, and linked to PATH, which fails where something is.  So what refuses a connection is dead. */
#include "serve/local_socket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/diag.h"
#include "serve/random.h"

enum {
    BACKLOG = 16,   /* an operator's scripts, not a crowd */
    NAME_DIGITS = 6 /* of the other name, after a dot: no two that start at once have the same */
};

void local_socket_init(local_socket *l)
{
    *l = (local_socket){.fd = -1};
    buf_init(&l->path, MEM_SERVE);
}

static cairn_status failed(const char *path, const char *what, cairn_diag *dg)
{
    return diag_set(dg, CAIRN_E_IO, "%s: %s: %s", path, what, strerrordesc_np(errno));
}

static cairn_status taken(const char *path, cairn_diag *dg)
{
    return diag_set(dg, CAIRN_E_BUSY, "%s: another server listens there", path);
}

/* *aside: a name beside it that nothing has. */
static cairn_status addresses_of(const char *path, struct sockaddr_un *out,
                                 struct sockaddr_un *aside, cairn_diag *dg)
{
    const size_t n = strlen(path), most = sizeof out->sun_path - 1 - 1 - NAME_DIGITS;
    char end[NAME_DIGITS + 2];

    *aside = *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (n == 0 || n > most)
        return diag_set(dg, CAIRN_E_ARG, "%.40s: a socket's path of %zu bytes; expected 1 to %zu",
                        path, n, most);
    memcpy(out->sun_path, path, n + 1);
    random_name(end, sizeof end, ".", NAME_DIGITS);
    memcpy(aside->sun_path, path, n);
    memcpy(aside->sun_path + n, end, sizeof end);
    return CAIRN_OK;
}

/* 0: somebody listens there; else why not. */
static int ask(const struct sockaddr_un *sa)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int why;

    if (fd < 0) return errno;
    why = connect(fd, (const struct sockaddr *)sa, sizeof *sa) == 0 ? 0 : errno;
    close(fd);
    return why == EAGAIN ? 0 : why; /* its queue is full */
}

/* `aside` has its name no longer, whatever comes of it. */
static cairn_status take_place(const struct sockaddr_un *sa, const struct sockaddr_un *aside,
                               cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;

    if (link(aside->sun_path, sa->sun_path) != 0)
        st = errno == EEXIST ? taken(sa->sun_path, dg)
                             : failed(sa->sun_path, "cannot make a socket", dg);
    (void)unlink(aside->sun_path);
    return st;
}

/* What a dead server left there goes.  Another that starts now may have replaced it meanwhile: so it is moved first,
   and asked once more where only we know it. */
static cairn_status make_way(const struct sockaddr_un *sa, const struct sockaddr_un *aside,
                             cairn_diag *dg)
{
    const char *path = sa->sun_path;
    struct stat st;

    if (lstat(path, &st) != 0)
        return errno == ENOENT ? CAIRN_OK : failed(path, "no place for a socket", dg);
    if (!S_ISSOCK(st.st_mode))
        return diag_set(dg, CAIRN_E_IO, "%s: there is a file that is no socket; expected none",
                        path);
    const int why = ask(sa);
    if (why == 0) return taken(path, dg);
    if (why == ENOENT) return CAIRN_OK;
    errno = why;
    if (why != ECONNREFUSED) return failed(path, "there is a socket", dg);
    if (rename(path, aside->sun_path) != 0)
        return errno == ENOENT ? CAIRN_OK : failed(path, "a dead server's socket stays", dg);
    if (ask(aside) != ECONNREFUSED) {
        TRY(take_place(sa, aside, dg));
        return taken(path, dg);
    }
    if (unlink(aside->sun_path) != 0 && errno != ENOENT)
        return failed(path, "a dead server's socket stays", dg);
    return CAIRN_OK;
}

/* Listens at `aside`, which is there on success alone.  `path` is for people. */
static cairn_status listen_aside(int fd, const char *path, const struct sockaddr_un *aside,
                                 struct stat *made, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;

    /* The file that bind makes has the socket's own mode: it is never open to others, not for a moment. */
    if (fchmod(fd, S_IRUSR | S_IWUSR) != 0 ||
        bind(fd, (const struct sockaddr *)aside, sizeof *aside) != 0)
        return failed(path, "cannot make a socket", dg);
    if (lstat(aside->sun_path, made) != 0 || listen(fd, BACKLOG) != 0) {
        st = failed(path, "cannot listen", dg);
        (void)unlink(aside->sun_path);
    }
    return st;
}

cairn_status local_socket_open(local_socket *l, const char *path, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    struct sockaddr_un sa, aside;
    struct stat made;
    int fd;

    TRY(addresses_of(path, &sa, &aside, dg));
    TRY(make_way(&sa, &aside, dg));
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return failed(path, "no socket", dg);
    buf_clear(&l->path);
    buf_puts(&l->path, path);
    if (buf_status(&l->path) != CAIRN_OK)
        st = diag_set(dg, CAIRN_E_NOMEM, "%s: no memory for a path", path);
    if (st == CAIRN_OK) st = listen_aside(fd, path, &aside, &made, dg);
    if (st == CAIRN_OK) st = take_place(&sa, &aside, dg);
    if (st != CAIRN_OK) {
        close(fd);
        return st;
    }
    l->fd = fd;
    l->dev = made.st_dev;
    l->ino = made.st_ino;
    return CAIRN_OK;
}

bool local_socket_peer_ok(int fd, uid_t *uid)
{
    struct ucred who;
    socklen_t n = sizeof who;

    *uid = (uid_t)-1;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) != 0) return false;
    *uid = who.uid;
    return who.uid == geteuid() || who.uid == 0;
}

void local_socket_close(local_socket *l)
{
    struct stat st;

    /* Removed while we still listen: a server that starts now finds us, or nothing. */
    if (l->fd >= 0 && lstat(l->path.ptr, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino)
        (void)unlink(l->path.ptr);
    if (l->fd >= 0) close(l->fd);
    buf_deinit(&l->path);
    local_socket_init(l);
}
