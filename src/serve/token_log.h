/* The log-probabilities of an answer that is not streamed, kept as the engine told them until they are written: a
   tenth of their JSON, and of a size that is known before the answer begins. */
#ifndef SERVE_TOKEN_LOG_H
#define SERVE_TOKEN_LOG_H

#include "base/buf.h"
#include "serve/gen.h"

typedef struct logged_token {
    gen_token t; /* without text; its top is in `top` */
    int64_t place;
    cairn_logprob top[CAIRN_MAX_LOGPROBS];
} logged_token;

/* A token with its first n_top alternatives; `place` is given back. */
void token_log_put(buf *log, const gen_token *t, int32_t n_top, int64_t place);
/* The one at *at, which moves on; false: there is none.  Of a log whose buf_status is OK. */
bool token_log_next(const buf *log, size_t *at, logged_token *out);
/* Bytes that n tokens take at most, the room that a buffer has in hand included. */
uint64_t token_log_bytes(uint64_t n, int32_t n_top);

#endif
