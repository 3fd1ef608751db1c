/* What a request brought that is not here and that the model can do without: the client is told in a header. */
#ifndef SERVE_LEFT_OUT_H
#define SERVE_LEFT_OUT_H

#include "serve/openai_read.h"

typedef struct left_out { /* zeroed: nothing */
    char types[46];       /* with those of another, what a header's value has room for */
} left_out;

/* type: of ours, never a client's text, as it stands in a header; each is told once. */
void left_out_add(left_out *l, const char *type);
/* Adds "WHAT of type …" to a->warning, if there is any.  E_NOMEM. */
cairn_status left_out_warn(const left_out *l, const char *what, chat_ask *a, chat_fault *f);

#endif
