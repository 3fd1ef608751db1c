/* Which web pages may use the server: the names it answers to, against DNS rebinding, and the origins that
   CORS lets in.  Immutable once made.  docs/security.md states the model. */
#ifndef SERVE_SITE_H
#define SERVE_SITE_H

#include "serve/http.h"

typedef struct site_names { /* one block: pointers, then what they point to */
    char **name;
    size_t n;
} site_names;

typedef struct site {
    site_names hosts, origins;
    char own[256]; /* this machine's name; empty: it has none */
} site;

enum { SITE_MAX_NAME = 128 }; /* bytes of an origin: it goes back in a reply's header */

/* `hosts`: names without port that Host may give beside addresses, localhost and the machine's own; "*": any.
   `origins`: as browsers write them, "SCHEME://" and "*" for all of a scheme, "*" for any.  Both are copied.  E_ARG:
   a name that is empty or too long, no origin; E_NOMEM.  Followed by site_deinit either way. */
cairn_status site_init(site *s, const char *const *hosts, size_t n_hosts,
                       const char *const *origins, size_t n_origins, cairn_diag *dg);
void site_deinit(site *s);

/* `host`: a header's value, with its port; NULL is fine. */
bool site_host_ok(const site *s, const char *host);
bool site_origin_listed(const site *s, const char *origin);
/* From a page of this server itself. */
bool site_same_origin(const char *origin, const char *host);
/* NULL: the request may go on, with CORS's headers set where its origin is listed.  Else why not. */
const char *site_check(const site *s, http_req *rq);
/* What a preflight asks of a route with these methods, for a listed origin; else nothing. */
void site_preflight(const site *s, http_req *rq, const char *methods);

#endif
