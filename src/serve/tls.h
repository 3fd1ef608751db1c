/* TLS on a connection's socket, by OpenSSL (libssl), which libcurl brings already.  Nobody else includes its
   headers.  One thread owns a context and its connections. */
#ifndef SERVE_TLS_H
#define SERVE_TLS_H

#include <sys/types.h>

#include "base/buf.h"
#include "cairn/status.h"

typedef struct tls tls;
typedef struct tls_conn tls_conn;

/* `cert`: the file of the chain, the server's own first; `key`: that of its private key, without a password.  PEM
   both, read now.  E_ARG names the file and what was found; E_NOMEM. */
cairn_status tls_open(const char *cert, const char *key, tls **out, cairn_diag *dg);
void tls_close(tls *t); /* connections may outlive it; NULL is fine */

/* Takes over what is said on fd (non-blocking), which stays the caller's.  NULL: no memory.  The first
   tls_recv shakes hands. */
tls_conn *tls_conn_open(tls *t, int fd);
/* Says that nothing more will come, without waiting, and frees it.  NULL is fine. */
void tls_conn_close(tls_conn *c);
void tls_say_end(tls_conn *c); /* the first half of that: the client may still be heard */
/* As recv and send: bytes; 0: the client's end, or a broken record; -1 with errno EAGAIN or another.  After
   EAGAIN of tls_send the same bytes must come again, more behind them at most. */
ssize_t tls_recv(tls_conn *c, void *p, size_t n);
ssize_t tls_send(tls_conn *c, const void *p, size_t n);
bool tls_is_up(const tls_conn *c);      /* hands are shaken: it may be sent to */
bool tls_wants_out(const tls_conn *c);  /* what tls_recv waits for is that the socket takes bytes */
uint64_t tls_n_sent(const tls_conn *c); /* bytes that the kernel took, records' heads included */

void tls_library(buf *out); /* name and version */

#endif
