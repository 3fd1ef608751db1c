/* The page, the other addresses that lead to it, and its files, from the table that the build makes of serve/web/: no
   path of a request reaches the file system.  The browser asks each time whether a file is still the same, which an
   ETag answers with 304: a newer program is then never mixed with an older one's scripts. */
#include "serve/web.h"

#include <string.h>

#include "base/str.h"
#include "serve/openai_wire.h"
#include "serve/web_table.h"

/* Nothing but this server's own files runs, styles, is shown or asked; pictures that the user adds are data:
   addresses.  Nobody may frame the page. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
_Static_assert(sizeof policy <= HTTP_MAX_REPLY_VALUE, "the policy would be cut");

static const web_asset *find(const char *name)
{
    for (size_t i = 0; i < web_n_assets; i++)
        if (strcmp(web_assets[i].name, name) == 0) return &web_assets[i];
    return NULL;
}

/* If-None-Match is a list of tags, weak ones too, or "*". */
static bool is_known(const http_req *rq, const char *etag)
{
    const char *known = http_header(rq, "If-None-Match");

    return known && (strcmp(known, "*") == 0 || strstr(known, etag));
}

static void serve(http_req *rq, const char *name)
{
    const web_asset *a = find(name);

    if (!a) {
        openai_error(rq, 404, NULL, "not_found", "not found");
        return;
    }
    http_set_header(rq, "ETag", a->etag);
    http_set_header(rq, "Cache-Control", "no-cache");
    http_set_header(rq, "Content-Security-Policy", policy);
    http_set_header(rq, "X-Content-Type-Options", "nosniff");
    http_set_header(rq, "Referrer-Policy", "no-referrer");
    http_set_header(rq, "Cross-Origin-Resource-Policy", "same-origin");
    if (is_known(rq, a->etag))
        http_reply(rq, 304, a->type, STR_LIT(""));
    else
        http_reply(rq, 200, a->type, (cairn_str){(const char *)a->ptr, a->len});
}

void web_page(cairn_server *s, http_req *rq)
{
    (void)s;
    serve(rq, "index.html");
}

void web_file(cairn_server *s, http_req *rq)
{
    (void)s;
    serve(rq, http_path(rq) + strlen("/ui/"));
}

void web_redirect(cairn_server *s, http_req *rq)
{
    static const struct {
        const char *path, *to;
    } pages[] = {{"/chat", "/#/chat"}, {"/status", "/#/status"}, {"/curves", "/#/sampler"}};

    (void)s;
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
        if (strcmp(http_path(rq), pages[i].path) == 0) http_set_header(rq, "Location", pages[i].to);
    http_reply(rq, 302, "text/plain", STR_LIT(""));
}
