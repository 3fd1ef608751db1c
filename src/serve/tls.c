/* OpenSSL behind our own two calls.  Its usual socket layer would raise SIGPIPE for a client that left, and
   knows nothing of our count of bytes, so the layer below it (a BIO) is ours.

   Invariant: OpenSSL holds no plain bytes back: without read-ahead a record is read whole and handed out
   whole, as tls_recv is asked for more than the 16 KiB of one, so epoll on the socket tells of all input. */
#include "serve/tls.h"

#include <errno.h>
#include <limits.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/diag.h"

struct tls {
    SSL_CTX *ctx;
    BIO_METHOD *socket;
    size_t n_users; /* its owner and its connections: the last one frees it */
};

struct tls_conn {
    tls *of;
    SSL *ssl;
    int fd;
    bool wants_out, broken;
    uint64_t n_sent;
};

static int bio_write(BIO *b, const char *p, int n)
{
    tls_conn *c = BIO_get_data(b);
    const ssize_t done = send(c->fd, p, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);

    BIO_clear_retry_flags(b);
    if (done < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(b);
    if (done > 0) c->n_sent += (uint64_t)done;
    return (int)done;
}

static int bio_read(BIO *b, char *p, int n)
{
    const tls_conn *c = BIO_get_data(b);
    const ssize_t done = recv(c->fd, p, (size_t)n, MSG_DONTWAIT);

    BIO_clear_retry_flags(b);
    if (done < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(b);
    return (int)done;
}

static long bio_ctrl(BIO *b, int what, long n, void *p)
{
    (void)b;
    (void)n;
    (void)p;
    return what == BIO_CTRL_FLUSH; /* nothing is held; nothing else can be asked */
}

static cairn_status refused(const char *path, const char *what, cairn_diag *dg)
{
    const char *why = ERR_reason_error_string(ERR_peek_last_error());

    return diag_set(dg, CAIRN_E_ARG, "%s: found %s; expected %s (PEM)", path,
                    why ? why : "what cannot be read", what);
}

/* A key with a password: nobody is there to ask.  OpenSSL gives the type. */
// NOLINTNEXTLINE(readability-non-const-parameter)
static int no_password(char *p, int n, int writing, void *user)
{
    (void)p;
    (void)n;
    (void)writing;
    (void)user;
    return 0;
}

static cairn_status load(const tls *t, const char *cert, const char *key, cairn_diag *dg)
{
    (void)SSL_CTX_set_min_proto_version(t->ctx, TLS1_2_VERSION);
    (void)SSL_CTX_set_options(t->ctx, SSL_OP_NO_RENEGOTIATION);
    /* Clients may keep tickets; sessions kept here would be 20,480 by default, outside the budget. */
    (void)SSL_CTX_set_session_cache_mode(t->ctx, SSL_SESS_CACHE_OFF);
    /* A reply grows and moves in its buffer while the kernel is full. */
    (void)SSL_CTX_set_mode(t->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                       SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                       SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_default_passwd_cb(t->ctx, no_password);
    if (SSL_CTX_use_certificate_chain_file(t->ctx, cert) != 1)
        return refused(cert, "a certificate", dg);
    if (SSL_CTX_use_PrivateKey_file(t->ctx, key, SSL_FILETYPE_PEM) != 1)
        return refused(key, "the certificate's private key, without a password", dg);
    return CAIRN_OK;
}

cairn_status tls_open(const char *cert, const char *key, tls **out, cairn_diag *dg)
{
    cairn_status st = CAIRN_E_NOMEM;
    tls *t = mem_calloc(1, sizeof *t, MEM_SERVE);

    ERR_clear_error();
    if (t) t->n_users = 1;
    if (t) t->ctx = SSL_CTX_new(TLS_server_method());
    if (t) t->socket = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "cairn");
    if (!t || !t->ctx || !t->socket || BIO_meth_set_write(t->socket, bio_write) != 1 ||
        BIO_meth_set_read(t->socket, bio_read) != 1 || BIO_meth_set_ctrl(t->socket, bio_ctrl) != 1)
        (void)diag_set(dg, st, "no memory for TLS");
    else
        st = load(t, cert, key, dg);
    if (st == CAIRN_OK)
        *out = t;
    else
        tls_close(t);
    return st;
}

void tls_close(tls *t)
{
    if (!t || --t->n_users > 0) return;
    SSL_CTX_free(t->ctx);
    BIO_meth_free(t->socket);
    mem_free(t);
}

tls_conn *tls_conn_open(tls *t, int fd)
{
    tls_conn *c = mem_calloc(1, sizeof *c, MEM_SERVE);
    BIO *b = c ? BIO_new(t->socket) : NULL;

    if (b) c->ssl = SSL_new(t->ctx);
    if (!b || !c->ssl) {
        BIO_free(b);
        mem_free(c);
        return NULL;
    }
    c->of = t;
    t->n_users++;
    c->fd = fd;
    BIO_set_data(b, c);
    BIO_set_init(b, 1);
    SSL_set_bio(c->ssl, b, b);
    SSL_set_accept_state(c->ssl);
    return c;
}

void tls_say_end(tls_conn *c)
{
    ERR_clear_error();
    if (!c->broken && SSL_is_init_finished(c->ssl)) (void)SSL_shutdown(c->ssl);
}

void tls_conn_close(tls_conn *c)
{
    if (!c) return;
    tls_say_end(c);
    SSL_free(c->ssl);
    tls_close(c->of);
    mem_free(c);
}

/* What a call that moved nothing means, in the words of recv and send. */
static ssize_t no_bytes(tls_conn *c, int rc)
{
    const int e = SSL_get_error(c->ssl, rc);

    c->wants_out = e == SSL_ERROR_WANT_WRITE;
    if (e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE) {
        errno = EAGAIN;
        return -1;
    }
    c->broken = e != SSL_ERROR_ZERO_RETURN; /* then nothing more may be said on it */
    return 0;
}

ssize_t tls_recv(tls_conn *c, void *p, size_t n)
{
    c->wants_out = false;
    ERR_clear_error();
    const int rc = SSL_read(c->ssl, p, n < INT_MAX ? (int)n : INT_MAX);

    return rc > 0 ? rc : no_bytes(c, rc);
}

ssize_t tls_send(tls_conn *c, const void *p, size_t n)
{
    ERR_clear_error();
    const int rc = SSL_write(c->ssl, p, n < INT_MAX ? (int)n : INT_MAX);

    if (rc > 0) return rc;
    /* Nothing that is sent waits for the client's bytes: it is spoken to after the handshake. */
    errno = no_bytes(c, rc) < 0 && c->wants_out ? EAGAIN : EPIPE;
    c->wants_out = false; /* that is tls_recv's */
    return -1;
}

bool tls_is_up(const tls_conn *c)
{
    return SSL_is_init_finished(c->ssl);
}

bool tls_wants_out(const tls_conn *c)
{
    return c->wants_out;
}

uint64_t tls_n_sent(const tls_conn *c)
{
    return c->n_sent;
}

void tls_library(buf *out)
{
    buf_printf(out, "openssl %s", OpenSSL_version(OPENSSL_VERSION_STRING));
}
