/* The table of endpoints.  Adding one is one line here.  HEAD is answered as GET (the HTTP layer drops
   the body); OPTIONS says what is allowed.  In this order a request must have: a name and an origin that are
   ours (site.h), a route, a key (auth.h), and, if it asks for work, its share of the rate.  The local socket has only
   the server's own user behind it: of what comes by it neither site nor key is asked. */
#include "serve/router.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "serve/admin.h"
#include "serve/anthropic.h"
#include "serve/anthropic_error.h"
#include "serve/generate.h"
#include "serve/health.h"
#include "serve/metrics.h"
#include "serve/ollama.h"
#include "serve/ollama_embed.h"
#include "serve/ollama_format.h"
#include "serve/openai_chat.h"
#include "serve/openai_completion.h"
#include "serve/openai_embed.h"
#include "serve/openai_models.h"
#include "serve/openai_wire.h"
#include "serve/responses.h"
#include "serve/served_fit.h"
#include "serve/signal.h"
#include "serve/tokens.h"
#include "serve/web.h"

typedef enum route_for {
    KEYS,  /* who has a key, where there are any */
    ALL,   /* whoever asks */
    LOCALS /* who comes by the local socket; for others it is not there */
} route_for;

typedef struct route {
    const char *method;
    const char *path; /* a final '*' matches any non-empty rest */
    route_fn fn;
    route_for who;
} route;

static void list_routes(cairn_server *s, http_req *rq);

static const route routes[] = {
    {"GET", "/", web_page, ALL},
    {"GET", "/ui/*", web_file, ALL},
    {"GET", "/chat", web_redirect, ALL},
    {"GET", "/status", web_redirect, ALL},
    {"GET", "/curves", web_redirect, ALL},
    {"GET", "/health", health_serve, ALL},
    {"GET", "/stats", stats_serve, KEYS},
    {"GET", "/metrics", metrics_serve, KEYS},
    {"GET", "/fit", fit_serve, KEYS},
    {"GET", "/v1", list_routes, KEYS},
    {"GET", "/v1/models", openai_models_list, KEYS},
    {"GET", "/v1/models/*", openai_models_one, KEYS},
    {"POST", "/v1/chat/completions", openai_chat_serve, KEYS},
    {"POST", "/v1/completions", openai_completion_serve, KEYS},
    {"POST", "/v1/embeddings", openai_embed_serve, KEYS},
    {"POST", "/v1/responses", responses_serve, KEYS},
    {"POST", "/v1/responses/input_tokens", responses_count, KEYS},
    {"GET", "/v1/responses/*", responses_get, KEYS},
    {"DELETE", "/v1/responses/*", responses_delete, KEYS},
    {"POST", "/v1/responses/*", responses_post, KEYS},
    {"POST", "/v1/messages", anthropic_messages_serve, KEYS},
    {"POST", "/v1/messages/count_tokens", anthropic_count_serve, KEYS},
    {"POST", "/admin/cache/flush", admin_flush, LOCALS},
    {"POST", "/admin/drain", admin_drain, LOCALS},
    {"POST", "/signal", signal_serve, KEYS},
    {"POST", "/generate", generate_serve, KEYS},
    {"POST", "/tokenize", tokens_encode, KEYS},
    {"POST", "/detokenize", tokens_decode, KEYS},
    {"POST", "/apply-template", openai_chat_render, KEYS},
    {"GET", "/api/version", ollama_version_serve, KEYS},
    {"GET", "/api/tags", ollama_tags_serve, KEYS},
    {"GET", "/api/ps", ollama_running_serve, KEYS},
    {"POST", "/api/show", ollama_show_serve, KEYS},
    {"POST", "/api/chat", ollama_chat_serve, KEYS},
    {"POST", "/api/generate", ollama_generate_serve, KEYS},
    {"POST", "/api/embed", ollama_embed_serve, KEYS},
    {"POST", "/api/embeddings", ollama_embeddings_serve, KEYS},
};
enum { N_ROUTES = sizeof routes / sizeof routes[0] };

/* GET /v1: who answers here, and what it may be asked. */
static void list_routes(cairn_server *s, http_req *rq)
{
    const served_model *unnamed = models_unnamed(&s->models);
    buf b;
    json_writer w;

    buf_init(&b, MEM_SERVE);
    w = json_write(&b);
    json_w_obj(&w);
    json_w_kstr(&w, "name", STR_LIT("cairn"));
    json_w_kstr(&w, "version", str_of(cairn_version()));
    json_w_kstr(&w, "model", str_of(unnamed->id));
    json_w_key(&w, "endpoints");
    json_w_arr(&w);
    for (size_t i = 0; i < N_ROUTES; i++) {
        char text[80]; /* the longest is half of it */
        if (routes[i].who == LOCALS && !http_came_locally(rq)) continue;
        (void)snprintf(text, sizeof text, "%s %s", routes[i].method, routes[i].path);
        json_w_str(&w, str_of(text));
    }
    json_w_end_arr(&w);
    json_w_end_obj(&w);
    openai_reply(rq, &b);
    buf_deinit(&b);
}

static bool path_matches(const char *pattern, const char *path)
{
    size_t n = strlen(pattern);

    if (pattern[n - 1] != '*') return strcmp(pattern, path) == 0;
    return strncmp(pattern, path, n - 1) == 0 && path[n - 1] != 0;
}

static bool method_matches(const route *r, const char *method)
{
    return strcmp(r->method, method) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(r->method, "GET") == 0);
}

/* The route of rq; NULL if none, then *other is one of the same path, or NULL. */
static const route *find(const http_req *rq, const route **other)
{
    *other = NULL;
    for (size_t i = 0; i < N_ROUTES; i++) {
        if (!path_matches(routes[i].path, http_path(rq))) continue;
        if (method_matches(&routes[i], http_method(rq))) return &routes[i];
        *other = &routes[i];
    }
    return NULL;
}

static void refuse(http_req *rq, int status, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* An error in the shape of the API that the path is of. */
static void refuse(http_req *rq, int status, const char *code, const char *fmt, ...)
{
    static const struct {
        const char *path; /* with all below it */
        void (*refuse)(http_req *rq, int status, const char *param, const char *code,
                       const char *message);
    } shapes[] = {{"/v1/messages", anthropic_refuse}, {"/api", ollama_refuse}};
    char message[600];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const size_t n = strlen(shapes[i].path);
        const char *path = http_path(rq);
        if (strncmp(path, shapes[i].path, n) != 0 || (path[n] && path[n] != '/')) continue;
        shapes[i].refuse(rq, status, NULL, code, message);
        return;
    }
    openai_refuse(rq, status, NULL, code, message);
}

/* The methods of the path, for the header. */
static void allowed(const char *path, char *out, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < N_ROUTES; i++) {
        const route *r = &routes[i];
        if (!path_matches(r->path, path) || strstr(out, r->method)) continue;
        n += (size_t)snprintf(out + n, size - n, "%s, %s", r->method,
                              strcmp(r->method, "GET") == 0 ? "HEAD, " : "");
    }
    (void)snprintf(out + n, size - n, "OPTIONS");
}

/* A path that is ours, by another method. */
static void other_method(const cairn_server *s, http_req *rq, const route *r)
{
    char methods[64] = ""; /* all that there are: 40 */

    allowed(http_path(rq), methods, sizeof methods);
    http_set_header(rq, "Allow", methods);
    if (strcmp(http_method(rq), "OPTIONS") == 0) {
        site_preflight(&s->site, rq, methods);
        http_reply(rq, 204, "text/plain", STR_LIT(""));
    } else {
        refuse(rq, 405, "method_not_allowed", "%s takes %s, not %s", http_path(rq), r->method,
               http_method(rq));
    }
}

/* Of a request that has its key.  False: it was refused. */
static bool in_rate(cairn_server *s, http_req *rq)
{
    rate *r = s->rate ? auth_rate(&s->auth, rq) : NULL;
    char wait[16];
    int32_t wait_s;

    if (!r || strcmp(http_method(rq), "POST") != 0) return true;
    if (rate_take(r, s->rate, http_now_ms(), &wait_s)) return true;
    (void)snprintf(wait, sizeof wait, "%d", (int)wait_s);
    http_set_header(rq, "Retry-After", wait);
    refuse(rq, 429, "rate_limit_exceeded", "more than %d requests a minute; the next in %s s",
           (int)s->rate, wait);
    return false;
}

void router_head(void *server, http_req *rq)
{
    cairn_server *s = server;
    const bool local = http_came_locally(rq);
    const route *other;
    const route *r = find(rq, &other), *any = r ? r : other;
    const char *stranger = local ? NULL : site_check(&s->site, rq);

    if (stranger) {
        refuse(rq, 403, "forbidden_site", "%s", stranger);
    } else if (any && any->who == LOCALS && !local) {
        refuse(rq, 404, "not_found",
               "not found: %s is answered on the local socket alone (--admin-socket PATH)",
               any->path);
    } else if (!r && other) {
        other_method(s, rq, other);
    } else if (!r) {
        refuse(rq, 404, "not_found", "not found");
    } else if (r->who == KEYS && !local && !auth_ok(&s->auth, rq)) {
        http_set_header(rq, "WWW-Authenticate", "Bearer");
        refuse(rq, 401, "invalid_api_key", "missing or wrong API key");
    } else if (r->who == KEYS && !local) {
        (void)in_rate(s, rq);
    }
}

void router_serve(void *server, http_req *rq)
{
    cairn_server *s = server;
    const route *other;
    const route *r = find(rq, &other);

    s->n_requests++;
    if (s->log_requests && http_body(rq).len)
        log_event(LOG_INFO, "http_body", "path=%s body=\"%.*s\"", http_path(rq),
                  STR_ARG(http_body(rq)));
    r->fn(s, rq); /* router_head found one */
}

void router_refuse(void *server, http_req *rq, int status, const char *why)
{
    const cairn_server *s = server;

    if (status == 413) {
        refuse(rq, 413, "request_too_large",
               "the body is over the limit of this server, %llu bytes",
               (unsigned long long)http_max_body(s->http));
    } else if (status == 429) {
        http_set_header(rq, "Retry-After", "1");
        refuse(rq, status, "replies_full", "%s", why);
    } else if (status == 503) {
        http_set_header(rq, "Retry-After", "1");
        refuse(rq, status, "server_busy",
               http_draining(s->http) ? "the server is shutting down"
                                      : "too many connections or bytes at once");
    } else {
        refuse(rq, status, status == 408 ? "request_timeout" : "bad_http", "%s", why);
    }
}
