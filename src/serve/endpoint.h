/* Endpoints whose body becomes a prompt on a worker, and whose prompt an answer, or a text. */
#ifndef SERVE_ENDPOINT_H
#define SERVE_ENDPOINT_H

#include "serve/served_answer.h"
#include "serve/server_priv.h"

typedef struct endpoint {
    const answer_format *format;
    /* A worker: prompt_make and its like. */
    void (*make)(prompt *p, const models *m, cairn_str body);
    bool just_text; /* p->text is the reply; else it is where there is one */
    bool slow;      /* for the worker of long prompts, whatever the body's length */
    bool direct;    /* takes time by the body's length alone: that of a tiny one is made at once */
} endpoint;

void endpoint_serve(cairn_server *s, http_req *rq, const endpoint *e);

#endif
