/* Transfers through libcurl.  Redirects are followed here, one by one: each target is checked, and
   the token stays with the endpoint's own host.

   Invariant: no request leaves for anything but https, except that an endpoint on loopback (tests, a
   mirror on this machine) may be plain http and may send us on to loopback. */
#include "hub/hub_http.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/diag.h"

enum {
    MAX_REDIRECTS = 8,
    MAX_TRIES = 3, /* in a row without a new byte */
    CONNECT_S = 20,
    STALL_S = 30, /* below STALL_RATE bytes a second for so long: broken */
    STALL_RATE = 100,
    TEXT_S = 60,           /* for a whole small text */
    MAX_RESUMES = 50,      /* with new bytes each time; a line that bad is for another day */
    IGNORED_MAX = 1 << 20, /* of an answer that is no content: an error page */
};

struct hub_http {
    CURL *curl;
    const char *token; /* the caller's */
    buf endpoint, url; /* url: of the request under way */
    long code;
    bool plain; /* the endpoint is http on loopback */
    char error[CURL_ERROR_SIZE];
};

/* One request: where its body goes. */
typedef struct sink {
    hub_http *h;
    buf *text;      /* or */
    hub_part *part; /* a file */
    uint64_t size;
    const hub_report *r;
    const char *what;
    uint64_t ignored;
    bool started;
    cairn_status st; /* why writing stopped */
    cairn_diag *dg;
} sink;

typedef struct place {
    char scheme[16], host[256], port[16];
} place;

static bool url_part(CURLU *u, CURLUPart what, unsigned flags, char *out, size_t size)
{
    char *v = NULL;
    if (curl_url_get(u, what, &v, flags) != CURLUE_OK) return false;
    const size_t n = strlen(v);
    if (n < size) memcpy(out, v, n + 1);
    curl_free(v);
    return n < size;
}

static bool place_of(const char *url, place *p)
{
    char *user = NULL;
    CURLU *u = curl_url();
    const bool ok = u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
                    curl_url_get(u, CURLUPART_USER, &user, 0) == CURLUE_NO_USER &&
                    url_part(u, CURLUPART_SCHEME, 0, p->scheme, sizeof p->scheme) &&
                    url_part(u, CURLUPART_HOST, 0, p->host, sizeof p->host) &&
                    url_part(u, CURLUPART_PORT, CURLU_DEFAULT_PORT, p->port, sizeof p->port);
    curl_free(user);
    curl_url_cleanup(u);
    return ok;
}

static bool is_loopback(const place *p)
{
    return strcmp(p->host, "127.0.0.1") == 0 || strcmp(p->host, "localhost") == 0 ||
           strcmp(p->host, "[::1]") == 0;
}

static cairn_status check_url(const hub_http *h, const char *url, bool *own_host, cairn_diag *dg)
{
    place p, end;
    if (!place_of(url, &p) || !place_of(h->endpoint.ptr, &end))
        return diag_set(dg, CAIRN_E_IO, "%.300s: expected an https:// address", url);
    *own_host = strcmp(p.scheme, end.scheme) == 0 && strcmp(p.host, end.host) == 0 &&
                strcmp(p.port, end.port) == 0;
    if (strcmp(p.scheme, "https") == 0) return CAIRN_OK;
    if (h->plain && strcmp(p.scheme, "http") == 0 && is_loopback(&p)) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_IO, "%.300s: not fetched; expected an https:// address", url);
}

cairn_status hub_http_open(const char *endpoint, const char *token, hub_http **out, cairn_diag *dg)
{
    place p;
    if (!place_of(endpoint, &p) ||
        (strcmp(p.scheme, "https") != 0 && !(strcmp(p.scheme, "http") == 0 && is_loopback(&p))))
        return diag_set(dg, CAIRN_E_ARG, "HF_ENDPOINT is %.200s; expected an https:// address",
                        endpoint);
    for (const char *c = token; c && *c; c++)
        if (*c <= ' ' || *c >= 0x7f)
            return diag_set(dg, CAIRN_E_ARG, "HF_TOKEN: expected letters, digits and signs alone");
    hub_http *h = mem_calloc(1, sizeof *h, MEM_IO);
    if (!h) return diag_set(dg, CAIRN_E_NOMEM, "no memory for a connection");
    buf_init(&h->endpoint, MEM_IO);
    buf_init(&h->url, MEM_IO);
    h->token = token;
    h->plain = strcmp(p.scheme, "http") == 0;
    buf_puts(&h->endpoint, endpoint);
    h->curl = curl_easy_init();
    if (!h->curl || buf_status(&h->endpoint) != CAIRN_OK) {
        hub_http_close(h);
        return diag_set(dg, CAIRN_E_NOMEM, "no memory for a connection");
    }
    *out = h;
    return CAIRN_OK;
}

void hub_http_close(hub_http *h)
{
    if (!h) return;
    if (h->curl) curl_easy_cleanup(h->curl);
    buf_deinit(&h->endpoint);
    buf_deinit(&h->url);
    mem_free(h);
}

long hub_http_code(const hub_http *h)
{
    return h->code;
}

/* Before the first byte of a file: does it stand where the answer begins? */
static cairn_status start_file(sink *s, long code)
{
    struct curl_header *range = NULL;
    unsigned long long from = 0;
    if (code == 200) return s->part->size ? hub_part_restart(s->part, s->dg) : CAIRN_OK;
    if (curl_easy_header(s->h->curl, "Content-Range", 0, CURLH_HEADER, -1, &range) == CURLHE_OK &&
        sscanf(range->value, "bytes %llu-", &from) == 1 && from == s->part->size)
        return CAIRN_OK;
    return diag_set(s->dg, CAIRN_E_IO,
                    "%s: the server answered another range; expected bytes from %llu on", s->what,
                    (unsigned long long)s->part->size);
}

static size_t on_body(char *p, size_t one, size_t n, void *ctx)
{
    sink *s = ctx;
    long code = 0;
    n *= one;
    (void)curl_easy_getinfo(s->h->curl, CURLINFO_RESPONSE_CODE, &code);
    if (code != 200 && !(code == 206 && s->part)) {
        s->ignored += n;
        return s->ignored > IGNORED_MAX ? 0 : n;
    }
    if (s->text) {
        buf_put(s->text, p, n);
        s->st = buf_status(s->text);
        if (s->st != CAIRN_OK)
            (void)diag_set(s->dg, s->st, "%s: a longer answer than the %zu bytes expected",
                           s->h->url.ptr, s->text->max);
    } else {
        if (!s->started) s->st = start_file(s, code);
        s->started = true;
        if (s->st == CAIRN_OK) s->st = hub_part_add(s->part, p, n, s->dg);
        if (s->st == CAIRN_OK && s->r->progress)
            s->r->progress(s->r->ctx, s->what, s->part->size, s->size);
    }
    return s->st == CAIRN_OK ? n : 0;
}

static CURLcode set_options(hub_http *h, sink *s, bool own_host)
{
    CURL *c = h->curl;
    char range[32];
    CURLcode e = CURLE_OK;
    curl_easy_reset(c);
#define SET(option, value)                                                                         \
    if (e == CURLE_OK) e = curl_easy_setopt(c, option, value)
    SET(CURLOPT_URL, h->url.ptr);
    SET(CURLOPT_PROTOCOLS_STR, h->plain ? "http,https" : "https");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_ERRORBUFFER, h->error);
    SET(CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    SET(CURLOPT_LOW_SPEED_LIMIT, (long)STALL_RATE);
    SET(CURLOPT_LOW_SPEED_TIME, (long)STALL_S);
    SET(CURLOPT_TIMEOUT, s->text ? (long)TEXT_S : 0L);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, s);
    SET(CURLOPT_USERAGENT, "cairn");
    if (h->plain) SET(CURLOPT_PROXY, ""); /* loopback is not behind one */
    if (h->token && own_host) {
        SET(CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        SET(CURLOPT_XOAUTH2_BEARER, h->token);
    }
    if (s->part && s->part->size) {
        (void)snprintf(range, sizeof range, "%llu-", (unsigned long long)s->part->size);
        SET(CURLOPT_RANGE, range);
    }
#undef SET
    return e;
}

/* One request with its redirects.  E_BUSY: trying again may help. */
static cairn_status request(hub_http *h, const char *url, sink *s)
{
    buf_clear(&h->url);
    buf_puts(&h->url, url);
    for (int i = 0; i <= MAX_REDIRECTS; i++) {
        bool own_host = false;
        char *next = NULL;
        TRY(buf_status(&h->url));
        TRY(check_url(h, h->url.ptr, &own_host, s->dg));
        h->error[0] = '\0';
        h->code = 0;
        CURLcode e = set_options(h, s, own_host);
        if (e == CURLE_OK) e = curl_easy_perform(h->curl);
        (void)curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &h->code);
        if (s->st != CAIRN_OK) return s->st;
        if (e != CURLE_OK)
            return diag_set(s->dg, CAIRN_E_BUSY, "%.250s: %s", h->url.ptr,
                            h->error[0] ? h->error : curl_easy_strerror(e));
        if (h->code == 200 || (h->code == 206 && s->part)) return CAIRN_OK;
        (void)curl_easy_getinfo(h->curl, CURLINFO_REDIRECT_URL, &next);
        if (!next)
            return diag_set(s->dg,
                            h->code == 404                                       ? CAIRN_E_NOTFOUND
                            : h->code == 416 || h->code == 429 || h->code >= 500 ? CAIRN_E_BUSY
                                                                                 : CAIRN_E_IO,
                            "%.250s: the server answered HTTP %ld; expected 200", h->url.ptr,
                            h->code);
        buf copy; /* `next` dies with the handle's next request */
        buf_init(&copy, MEM_IO);
        buf_puts(&copy, next);
        buf_deinit(&h->url);
        h->url = copy;
    }
    return diag_set(s->dg, CAIRN_E_IO, "%.250s: found more redirects than expected, %d", url,
                    MAX_REDIRECTS);
}

static void pause_before(int attempt)
{
    const struct timespec t = {.tv_sec = attempt - 1, .tv_nsec = 300 * 1000 * 1000};
    (void)nanosleep(&t, NULL);
}

cairn_status hub_http_text(hub_http *h, const char *url, size_t max, buf *out, cairn_diag *dg)
{
    cairn_status st = CAIRN_E_BUSY;
    const size_t start = out->len;
    out->max = start + max;
    for (int i = 0; st == CAIRN_E_BUSY && i < MAX_TRIES; i++) {
        sink s = {.h = h, .text = out, .dg = dg};
        if (i) pause_before(i);
        buf_cut(out, start);
        st = request(h, url, &s);
    }
    return st == CAIRN_E_BUSY ? CAIRN_E_IO : st;
}

cairn_status hub_http_file(hub_http *h, const char *url, hub_part *p, uint64_t size,
                           const hub_report *r, const char *what, cairn_diag *dg)
{
    int tries = 0;
    for (int all = 1; p->size < size; all++) {
        const uint64_t before = p->size;
        sink s = {.h = h, .part = p, .size = size, .r = r, .what = what, .dg = dg};
        cairn_status st = request(h, url, &s);
        if (st == CAIRN_OK && p->size < size)
            st = diag_set(dg, CAIRN_E_BUSY, "%s: the server sent %llu bytes; expected %llu", what,
                          (unsigned long long)p->size, (unsigned long long)size);
        if (st == CAIRN_OK) break;
        if (h->code == 416) TRY(hub_part_restart(p, dg));
        if (st != CAIRN_E_BUSY) return st;
        tries = p->size > before ? 1 : tries + 1;
        if (tries >= MAX_TRIES || all >= MAX_RESUMES) return CAIRN_E_IO;
        pause_before(tries);
    }
    return CAIRN_OK;
}

void hub_http_library(buf *out)
{
    buf_printf(out, "curl %s", curl_version_info(CURLVERSION_NOW)->version);
}
