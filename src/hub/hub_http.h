/* HTTPS for fetching: GET of a small text or of a file that resumes. */
#ifndef HUB_HUB_HTTP_H
#define HUB_HUB_HTTP_H

#include "base/buf.h"
#include "cairn/status.h"
#include "hub/hub_part.h"

typedef struct hub_http hub_http;

/* For URLs under `endpoint`: https, or http on loopback.  The token (or NULL) goes to the endpoint's
   own host only, never along with a redirect to another. */
cairn_status hub_http_open(const char *endpoint, const char *token, hub_http **out, cairn_diag *dg);
void hub_http_close(hub_http *h); /* NULL is fine */
/* Appends the body; E_LIMIT over max bytes.  HTTP's 404 is E_NOTFOUND, other codes are E_IO;
   hub_http_code tells them apart. */
cairn_status hub_http_text(hub_http *h, const char *url, size_t max, buf *out, cairn_diag *dg);
/* Downloads into p until it has `size` bytes, from where it stands; tries again a few times when a
   connection breaks.  What arrived stays in p on failure. */
cairn_status hub_http_file(hub_http *h, const char *url, hub_part *p, uint64_t size,
                           const hub_report *r, const char *what, cairn_diag *dg);
void hub_http_library(buf *out);       /* name and version */
long hub_http_code(const hub_http *h); /* of the last answer; 0: there was none */

#endif
