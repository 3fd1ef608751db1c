/* cairn_server_*: puts the parts together, and the end of a server's life: asked to stop, it accepts
   nothing new, lets running requests finish for drain_ms, then cancels them and waits until the
   engines have said DONE for each, as their callbacks point into this server, and until the prompts
   that are being made are. */
#include "cairn/server.h"

#include <poll.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/log.h"
#include "base/thread.h"
#include "serve/auth.h"
#include "serve/gen.h"
#include "serve/http.h"
#include "serve/jobs.h"
#include "serve/models.h"
#include "serve/responses_store.h"
#include "serve/router.h"
#include "serve/site.h"
#include "serve/tls.h"

enum { FLUSH_MS = 2000 }; /* for the last bytes after the last request was cancelled */

void cairn_server_opts_init(cairn_server_opts *o)
{
    *o = (cairn_server_opts){.struct_size = sizeof *o};
}

static void turn_models(cairn_server *s)
{
    http_tick_at(s->http, models_turn(&s->models, &s->jobs, http_now_ms()));
}

static void on_woken(void *ctx)
{
    cairn_server *s = ctx;

    jobs_deliver(&s->jobs);
    mailbox_deliver(&s->mail);
    turn_models(s);
}

/* At every tick from then on: a body that was on its way may still bring a request. */
static void cancel_all(cairn_server *s, uint64_t now)
{
    if (!s->flush_until_ms) {
        log_event(LOG_WARN, "server_cancel", "requests=%zu prompts=%zu", s->mail.n_live,
                  jobs_live(&s->jobs));
        atomic_put(&s->closing, 1); /* a flush that runs ends soon */
        s->flush_until_ms = now + FLUSH_MS;
    }
    jobs_cancel(&s->jobs);
    mailbox_cancel(&s->mail);
}

static void drain_tick(cairn_server *s, uint64_t now)
{
    bool idle = http_busy(s->http) == 0 && s->mail.n_live == 0;

    if (!s->drain_until_ms) {
        log_event(LOG_INFO, "server_drain", "requests=%zu", s->mail.n_live);
        http_drain(s->http);
        s->drain_until_ms = now + (uint64_t)s->drain_ms;
    } else if (idle || (s->flush_until_ms && now >= s->flush_until_ms && !s->mail.n_live)) {
        http_quit(s->http);
    } else if (now >= s->drain_until_ms) {
        cancel_all(s, now);
    }
}

static cairn_status load_tls(cairn_server *s, cairn_diag *dg)
{
    tls *t;

    if (s->tls_cert.len == 0) return CAIRN_OK;
    TRY(tls_open(s->tls_cert.ptr, s->tls_key.ptr, &t, dg));
    http_set_tls(s->http, t);
    return CAIRN_OK;
}

static void reload(cairn_server *s)
{
    cairn_diag dg = {0};

    atomic_put(&s->reload_asked, 0);
    if (load_tls(s, &dg) != CAIRN_OK)
        log_event(LOG_WARN, "tls_kept", "why=\"%s\"", dg.message);
    else if (s->tls_cert.len)
        log_event(LOG_INFO, "tls_loaded", "certificate=%s", s->tls_cert.ptr);
    if (s->on_reload) s->on_reload(s->reload_ctx, s);
}

static void on_tick(void *ctx, uint64_t now_ms)
{
    cairn_server *s = ctx;

    turn_models(s);
    if (atomic_get(&s->reload_asked)) reload(s);
    if (atomic_get(&s->stop_asked)) drain_tick(s, now_ms);
}

/* Engine threads, and those of jobs. */
static void on_mail(void *ctx)
{
    cairn_server *s = ctx;

    http_wake(s->http);
}

static int32_t or_default(int32_t v, int32_t otherwise)
{
    return v > 0 ? v : otherwise;
}

static cairn_status check_opts(const cairn_server_opts *o, cairn_diag *dg)
{
    if (o->struct_size != sizeof *o || o->port < 0 || o->port > 65535 || o->rate < 0)
        return diag_set(dg, CAIRN_E_ARG, "server options: struct_size, port or rate out of range");
    if (o->max_body_bytes > (uint64_t)1 << 32)
        return diag_set(dg, CAIRN_E_ARG, "server options: max_body_bytes over 4 GiB");
    if (!o->tls_cert != !o->tls_key)
        return diag_set(dg, CAIRN_E_ARG,
                        "server options: one of tls_cert and tls_key; expected both");
    return CAIRN_OK;
}

/* What is kept of the options; the rest goes to those who use it. */
static cairn_status take_opts(cairn_server *s, const cairn_server_opts *o, cairn_diag *dg)
{
    TRY(models_init(&s->models, o, on_mail, s, dg));
    TRY(auth_init(&s->auth, o->api_keys, o->n_api_keys, dg));
    TRY(site_init(&s->site, o->allow_hosts, o->n_allow_hosts, o->cors_origins, o->n_cors_origins,
                  dg));
    s->rate = o->rate;
    s->log_requests = o->log_requests;
    s->on_reload = o->on_reload;
    s->reload_ctx = o->reload_ctx;
    if (o->tls_cert) buf_puts(&s->tls_cert, o->tls_cert);
    if (o->tls_key) buf_puts(&s->tls_key, o->tls_key);
    if (buf_status(&s->tls_cert) == CAIRN_OK && buf_status(&s->tls_key) == CAIRN_OK)
        return CAIRN_OK;
    return diag_set(dg, CAIRN_E_NOMEM, "no memory for the server's options");
}

/* Of host_bytes.  Buffers take up to twice what is in them: so bodies being read, and those that wait, are an eighth
   each, and the one long body that is being made a prompt, whose JSON takes up to 15 times its size, three.  A reply that
   a worker makes is in that room of its body.  Replies that are on their way, and answers that are not yet, an eighth each; responses that are kept, and connections, a
   sixteenth each. */
enum {
    BODY_PART = 40,
    WAITING_PART = 16,
    REPLIES_PART = 8,
    ANSWERS_PART = 8,
    KEPT_PART = 16,
    CONNECTIONS_PART = 16,
    LEAST_SHARED = 16, /* connections, whatever the budget: a few clients and who watches */
    CONNECTION_BYTES = 5 << 10, /* a head's worth included; what is read is counted by itself */
    TLS_BYTES = 48 << 10        /* two records, and what OpenSSL keeps between them */
};

static int32_t most_connections(uint64_t bytes, bool secure)
{
    const uint64_t each = CONNECTION_BYTES + (secure ? (uint64_t)TLS_BYTES : 0);
    const uint64_t n = bytes / CONNECTIONS_PART / each;

    return n > LEAST_SHARED ? n < INT32_MAX ? (int32_t)n : INT32_MAX : LEAST_SHARED;
}

static void share_host_bytes(cairn_server *s, const cairn_server_opts *o, http_limits *lim)
{
    const uint64_t bytes = o->host_bytes;
    const int32_t most = most_connections(bytes, o->tls_cert != NULL);

    if (!bytes) return;
    if (lim->max_connections > most) lim->max_connections = most;
    if (s->responses.max_bytes > bytes / KEPT_PART) s->responses.max_bytes = bytes / KEPT_PART;
    s->mail.most_kept = bytes / ANSWERS_PART;
    if (lim->max_body_bytes > bytes / BODY_PART) lim->max_body_bytes = bytes / BODY_PART;
    lim->max_bodies_bytes = bytes / WAITING_PART;
    lim->max_replies_bytes = bytes / REPLIES_PART;
    s->most_text = (size_t)(bytes / REPLIES_PART / 2); /* its buffer may have doubled */
}

static cairn_status start_listening(cairn_server *s, const cairn_server_opts *o, cairn_diag *dg)
{
    const char *host = o->host ? o->host : "127.0.0.1";
    const http_app app = {s, router_head, router_serve, router_refuse, on_woken, on_tick};
    http_limits lim = {
        .max_connections = or_default(o->max_connections, 2048),
        .header_timeout_ms = or_default(o->header_timeout_ms, 10000),
        .body_timeout_ms = or_default(o->body_timeout_ms, 30000),
        .max_body_bytes = o->max_body_bytes ? o->max_body_bytes : (uint64_t)32 << 20,
    };

    share_host_bytes(s, o, &lim);
    TRY(http_open(host, o->port, &lim, &app, &s->http, dg));
    if (!http_is_loopback(s->http) && s->auth.n == 0 && !o->open_to_all)
        return diag_set(dg, CAIRN_E_ARG,
                        "host %s: other machines reach it, and there is no API key; expected keys "
                        "(--api-key-file), or the wish that anyone may ask (--open)",
                        host);
    TRY(load_tls(s, dg));
    return o->admin_socket ? http_listen_local(s->http, o->admin_socket, dg) : CAIRN_OK;
}

cairn_status cairn_server_open(const cairn_server_opts *o, cairn_server **out, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    cairn_server *s;

    if (!o || !out) return diag_set(dg, CAIRN_E_ARG, "cairn_server_open: options or out is NULL");
    TRY(check_opts(o, dg));
    s = mem_calloc(1, sizeof *s, MEM_SERVE);
    if (!s) return diag_set(dg, CAIRN_E_NOMEM, "no memory for the server");
    buf_init(&s->tls_cert, MEM_SERVE);
    buf_init(&s->tls_key, MEM_SERVE);
    mailbox_init(&s->mail, on_mail, s);
    responses_store_init(&s->responses);
    st = jobs_init(&s->jobs, on_mail, s);
    if (o->host_bytes) s->jobs.max_bytes = o->host_bytes / WAITING_PART;
    if (st != CAIRN_OK) {
        (void)diag_set(dg, st, "the server's threads could not be started");
        goto out;
    }
    s->started_unix_s = clock_unix_s();
    s->started_ns = clock_ns();
    TRY_GOTO(take_opts(s, o, dg), out);
    TRY_GOTO(start_listening(s, o, dg), out);
    *out = s;
    s = NULL;
out:
    cairn_server_close(s);
    return st;
}

int32_t cairn_server_port(const cairn_server *s)
{
    return http_port(s->http);
}

/* After the loop failed: nobody is told any more, but the engines must let go. */
static void abandon(cairn_server *s)
{
    mailbox_cancel(&s->mail);
    while (s->mail.n_live) {
        mailbox_deliver(&s->mail);
        if (s->mail.n_live) poll(NULL, 0, HTTP_TICK_MS);
    }
}

cairn_status cairn_server_run(cairn_server *s, int32_t drain_ms, cairn_diag *dg)
{
    cairn_status st;

    s->drain_ms = drain_ms > 0 ? drain_ms : 0;
    st = http_run(s->http, dg);
    if (st != CAIRN_OK) abandon(s);
    return st;
}

void cairn_server_stop(cairn_server *s)
{
    atomic_put(&s->stop_asked, 1);
    http_wake(s->http);
}

void cairn_server_reload(cairn_server *s)
{
    atomic_put(&s->reload_asked, 1);
    http_wake(s->http);
}

cairn_status cairn_server_set_keys(cairn_server *s, const char *const *keys, size_t n,
                                   cairn_diag *dg)
{
    if (n == 0 && s->auth.n)
        return diag_set(dg, CAIRN_E_ARG, "no API key, where one was wanted; expected at least one");
    return auth_replace(&s->auth, keys, n, dg);
}

void cairn_server_close(cairn_server *s)
{
    if (!s) return;
    atomic_put(&s->closing, 1); /* if it is not yet */
    models_stop(&s->models);
    jobs_stop(&s->jobs);
    http_close(s->http); /* lets go of requests whose prompts were not made */
    jobs_deinit(&s->jobs);
    responses_store_deinit(&s->responses);
    auth_deinit(&s->auth);
    site_deinit(&s->site);
    buf_deinit(&s->tls_cert);
    buf_deinit(&s->tls_key);
    models_deinit(&s->models);
    mailbox_deinit(&s->mail);
    mem_free(s);
}
