/* The answer to a chat request, from its generations to the client. */
#ifndef SERVE_OPENAI_ANSWER_H
#define SERVE_OPENAI_ANSWER_H

#include "serve/gen.h"
#include "serve/http.h"
#include "serve/openai_prompt.h"

typedef struct answer answer;

/* Submits a generation for each choice (p->ask.rq is complete but for `choice`); on success the answer
   sees to rq from here on, has taken p's readers, and frees itself.  On failure nothing runs, and rq is
   the caller's. */
cairn_status answer_start(http_req *rq, mailbox *mail, prompt *p, cairn_diag *dg);

#endif
