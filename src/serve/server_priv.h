/* What the handlers of one server share. */
#ifndef SERVE_SERVER_PRIV_H
#define SERVE_SERVER_PRIV_H

#include "base/thread.h"
#include "cairn/server.h"
#include "serve/auth.h"
#include "serve/gen.h"
#include "serve/http.h"
#include "serve/jobs.h"
#include "serve/models.h"
#include "serve/responses_store.h"
#include "serve/site.h"

struct cairn_server { /* I/O thread, but for the _asked, closing and http_wake */
    http_server *http;
    mailbox mail;
    jobs jobs; /* prompts being made */
    models models;
    responses_store responses; /* any thread */
    size_t most_text;          /* immutable: bytes of a reply that a worker makes; 0: any */
    auth auth;
    site site; /* immutable */
    int64_t started_unix_s;
    uint64_t started_ns; /* of a clock that nobody sets */
    atomic_i64 stop_asked, reload_asked, closing;
    int32_t rate; /* as the options say, like the next */
    bool log_requests;
    buf tls_cert, tls_key; /* names, or empty */
    void (*on_reload)(void *ctx, cairn_server *s);
    void *reload_ctx;
    int32_t drain_ms;
    uint64_t drain_until_ms, flush_until_ms; /* 0: not draining, not cancelled yet */
    uint64_t n_requests;                     /* that reached a handler */
};

#endif
