/* A Unix socket that only the user who runs the server, and root, may connect to. */
#ifndef SERVE_LOCAL_SOCKET_H
#define SERVE_LOCAL_SOCKET_H

#include <sys/types.h>

#include "base/buf.h"
#include "cairn/status.h"

typedef struct local_socket {
    int fd;   /* listens, never blocks; -1: there is none */
    buf path; /* as it was given */
    dev_t dev;
    ino_t ino; /* of the file that is ours to remove */
} local_socket;

void local_socket_init(local_socket *l);
/* Makes PATH, mode 0600.  A socket there that nobody listens on is replaced; E_ARG: the path is empty or too long for
   a socket; E_BUSY: a server listens there, or has begun to meanwhile; E_IO: it is no socket, or the system's reason.  `l` is open on success
   alone. */
cairn_status local_socket_open(local_socket *l, const char *path, cairn_diag *dg);
/* The other end of a connection is the user of this process, or root; *uid says who it is, (uid_t)-1: unknown. */
bool local_socket_peer_ok(int fd, uid_t *uid);
/* Removes the file first, if it is still ours.  A second call is fine. */
void local_socket_close(local_socket *l);

#endif
