/* The file's mode keeps strangers out before they connect; who connected is asked of the kernel all the same, as the
   folder may be one where modes mean little.  A server that was killed leaves its file behind: nobody listens there,
   which connecting to it tells. */
#include "serve/local_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/str.h"

enum { BACKLOG = 16 /* an operator's scripts, not a crowd */ };

void local_socket_init(local_socket *l)
{
    *l = (local_socket){.fd = -1};
    buf_init(&l->path, MEM_SERVE);
}

static cairn_status address_of(const char *path, struct sockaddr_un *out, cairn_diag *dg)
{
    const size_t n = strlen(path);

    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (n == 0 || n >= sizeof out->sun_path)
        return diag_set(dg, CAIRN_E_ARG, "%.40s: a socket's path of %zu bytes; expected 1 to %zu",
                        path, n, sizeof out->sun_path - 1);
    memcpy(out->sun_path, path, n + 1);
    return CAIRN_OK;
}

static cairn_status failed(const char *path, const char *what, cairn_diag *dg)
{
    return diag_set(dg, CAIRN_E_IO, "%s: %s: %s", path, what, strerrordesc_np(errno));
}

/* What a dead server left there goes. */
static cairn_status make_way(const struct sockaddr_un *sa, cairn_diag *dg)
{
    struct stat st;
    int fd, rc, why;

    if (lstat(sa->sun_path, &st) != 0)
        return errno == ENOENT ? CAIRN_OK : failed(sa->sun_path, "no place for a socket", dg);
    if (!S_ISSOCK(st.st_mode))
        return diag_set(dg, CAIRN_E_IO, "%s: there is a file that is no socket; expected none",
                        sa->sun_path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return failed(sa->sun_path, "no socket", dg);
    rc = connect(fd, (const struct sockaddr *)sa, sizeof *sa);
    why = errno;
    close(fd);
    if (rc == 0 || why == EAGAIN) /* EAGAIN: its queue is full */
        return diag_set(dg, CAIRN_E_BUSY, "%s: another server listens there", sa->sun_path);
    errno = why;
    if (why != ECONNREFUSED) return failed(sa->sun_path, "there is a socket", dg);
    if (unlink(sa->sun_path) != 0 && errno != ENOENT)
        return failed(sa->sun_path, "a dead server's socket stays", dg);
    return CAIRN_OK;
}

cairn_status local_socket_open(local_socket *l, const char *path, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    struct sockaddr_un sa;
    struct stat made;
    int fd;

    TRY(address_of(path, &sa, dg));
    TRY(make_way(&sa, dg));
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return failed(path, "no socket", dg);
    buf_clear(&l->path);
    buf_puts(&l->path, path);
    /* The file that bind makes has the socket's own mode: it is never open to others, not for a moment. */
    if (buf_status(&l->path) != CAIRN_OK)
        st = diag_set(dg, CAIRN_E_NOMEM, "%s: no memory for a path", path);
    else if (fchmod(fd, S_IRUSR | S_IWUSR) != 0 ||
             bind(fd, (const struct sockaddr *)&sa, sizeof sa) != 0)
        st = failed(path, "cannot make a socket", dg);
    else if (lstat(path, &made) != 0 || listen(fd, BACKLOG) != 0)
        st = failed(path, "cannot listen", dg);
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
