/* The page: GET / and what it loads below /ui/.  It holds nothing secret, so no key is asked. */
#ifndef SERVE_WEB_H
#define SERVE_WEB_H

#include "serve/server_priv.h"

void web_page(cairn_server *s, http_req *rq);
void web_file(cairn_server *s, http_req *rq);
/* GET /chat, /status and /curves: a part of the page. */
void web_redirect(cairn_server *s, http_req *rq);

#endif
