/* A browser runs pages of strangers beside a server on this machine, and tells in two headers what they do.

   Host: a page whose name was made to point at 127.0.0.1 (DNS rebinding) is of the same origin as we are, to
   the browser, but it cannot hide its name.  An address needs no name server, so it is nobody's trick.
   Origin: who asks from a page of another site, even with a form that needs no leave (no preflight).  Only
   those that are listed may, and only they can read the answer (CORS). */
#include "serve/site.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/str.h"

static cairn_status copy_names(const char *const *list, size_t n, site_names *out, cairn_diag *dg)
{
    size_t bytes = 0;

    *out = (site_names){0};
    for (size_t i = 0; i < n; i++) {
        const size_t len = list[i] ? strlen(list[i]) : 0;
        if (len == 0 || len > SITE_MAX_NAME)
            return diag_set(dg, CAIRN_E_ARG,
                            "a host or an origin of %zu bytes; expected 1 to %d: %.40s", len,
                            SITE_MAX_NAME, len ? list[i] : "");
        bytes += len + 1;
    }
    if (n == 0) return CAIRN_OK;
    out->name = mem_alloc(n * sizeof *out->name + bytes, MEM_SERVE);
    if (!out->name) return diag_set(dg, CAIRN_E_NOMEM, "no memory for %zu names", n);
    char *to = (char *)(out->name + n);
    for (size_t i = 0; i < n; i++) {
        const size_t size = strlen(list[i]) + 1;
        memcpy(to, list[i], size);
        out->name[i] = to;
        to += size;
    }
    out->n = n;
    return CAIRN_OK;
}

/* A browser writes scheme, host and port, and no more. */
static cairn_status check_origins(const char *const *list, size_t n, cairn_diag *dg)
{
    for (size_t i = 0; i < n; i++) {
        const char *host = list[i] ? strstr(list[i], "://") : NULL;
        if (list[i] && (strcmp(list[i], "*") == 0 || strcmp(list[i], "null") == 0)) continue;
        if (host && host > list[i] && host[3] && !strpbrk(host + 3, "/?#@ ") &&
            (!strchr(host + 3, '*') || strcmp(host + 3, "*") == 0))
            continue;
        return diag_set(dg, CAIRN_E_ARG,
                        "origin %.80s; expected SCHEME://HOST[:PORT], SCHEME://* or *",
                        list[i] ? list[i] : "");
    }
    return CAIRN_OK;
}

cairn_status site_init(site *s, const char *const *hosts, size_t n_hosts,
                       const char *const *origins, size_t n_origins, cairn_diag *dg)
{
    *s = (site){0};
    TRY(check_origins(origins, n_origins, dg));
    TRY(copy_names(hosts, n_hosts, &s->hosts, dg));
    TRY(copy_names(origins, n_origins, &s->origins, dg));
    if (gethostname(s->own, sizeof s->own - 1) != 0) s->own[0] = '\0';
    return CAIRN_OK;
}

void site_deinit(site *s)
{
    mem_free(s->hosts.name);
    mem_free(s->origins.name);
    *s = (site){0};
}

static bool same(cairn_str a, const char *b)
{
    return a.len == strlen(b) && strncasecmp(a.ptr, b, a.len) == 0;
}

/* Without the port and the dot of a full name; an IPv6 address in brackets without these too. */
static cairn_str name_of(const char *host)
{
    const char *end = host[0] == '[' ? strchr(host, ']') : strrchr(host, ':');

    if (host[0] == '[') return (cairn_str){host + 1, end ? (size_t)(end - host - 1) : 0};
    cairn_str name = {host, end ? (size_t)(end - host) : strlen(host)};
    if (name.len > 1 && name.ptr[name.len - 1] == '.') name.len--;
    return name;
}

static bool is_address(cairn_str name, bool v6)
{
    char z[INET6_ADDRSTRLEN];
    struct in6_addr a;

    if (name.len == 0 || name.len >= sizeof z) return false;
    memcpy(z, name.ptr, name.len);
    z[name.len] = '\0';
    return inet_pton(v6 ? AF_INET6 : AF_INET, z, &a) == 1;
}

bool site_host_ok(const site *s, const char *host)
{
    static const char sub[] = ".localhost";

    if (!host || !host[0]) return true; /* HTTP/1.0: no browser */
    const cairn_str name = name_of(host);
    if (is_address(name, host[0] == '[')) return true;
    if (same(name, sub + 1) || (s->own[0] && same(name, s->own))) return true;
    if (name.len > sizeof sub - 1 &&
        same(str_sub(name, name.len - (sizeof sub - 1), sizeof sub - 1), sub))
        return true;
    for (size_t i = 0; i < s->hosts.n; i++)
        if (strcmp(s->hosts.name[i], "*") == 0 || same(name, s->hosts.name[i])) return true;
    return false;
}

bool site_origin_listed(const site *s, const char *origin)
{
    for (size_t i = 0; i < s->origins.n; i++) {
        const char *name = s->origins.name[i];
        const size_t n = strlen(name);
        if (name[n - 1] == '*' ? strncasecmp(origin, name, n - 1) == 0
                               : strcasecmp(origin, name) == 0)
            return true;
    }
    return false;
}

/* A proxy that speaks TLS for us leaves the scheme to be either. */
bool site_same_origin(const char *origin, const char *host)
{
    static const char *const schemes[] = {"http://", "https://"};

    for (size_t i = 0; host && host[0] && i < sizeof schemes / sizeof schemes[0]; i++) {
        const size_t n = strlen(schemes[i]);
        if (strncasecmp(origin, schemes[i], n) == 0 && strcasecmp(origin + n, host) == 0)
            return true;
    }
    return false;
}

const char *site_check(const site *s, http_req *rq)
{
    const char *host = http_header(rq, "Host"), *origin = http_header(rq, "Origin");

    if (!site_host_ok(s, host)) return "Host is none of this server's names (--allow-host NAME)";
    if (!origin) return NULL;
    if (strlen(origin) <= SITE_MAX_NAME && site_origin_listed(s, origin)) {
        http_set_header(rq, "Access-Control-Allow-Origin", origin);
        http_set_header(rq, "Vary", "Origin");
        return NULL;
    }
    return site_same_origin(origin, host)
               ? NULL
               : "Origin is no site that this server answers (--cors-origin ORIGIN)";
}

void site_preflight(const site *s, http_req *rq, const char *methods)
{
    const char *origin = http_header(rq, "Origin");

    if (!origin || !site_origin_listed(s, origin)) return;
    http_set_header(rq, "Access-Control-Allow-Methods", methods);
    /* No cookies are read here, so all headers may be sent; the star does not mean this one. */
    http_set_header(rq, "Access-Control-Allow-Headers", "*, Authorization");
    /* Seconds; what browsers allow at least. */
    http_set_header(rq, "Access-Control-Max-Age", "600");
}
