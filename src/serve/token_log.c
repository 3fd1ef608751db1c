/* Records in a row: what a token was, then its alternatives. */
#include "serve/token_log.h"

#include <assert.h>

typedef struct record {
    int64_t place;
    int32_t id, n_top;
    float logprob;
    int32_t unused; /* no byte of it is left to chance */
} record;

void token_log_put(buf *log, const gen_token *t, int32_t n_top, int64_t place)
{
    if (n_top > t->n_top) n_top = t->n_top;
    if (n_top < 0) n_top = 0;
    const record r = {place, t->id, n_top, t->logprob, 0};
    buf_put(log, &r, sizeof r);
    buf_put(log, t->top, (size_t)n_top * sizeof *t->top);
}

bool token_log_next(const buf *log, size_t *at, logged_token *out)
{
    record r;

    if (*at >= log->len) return false;
    memcpy(&r, log->ptr + *at, sizeof r);
    assert(r.n_top >= 0 && r.n_top <= CAIRN_MAX_LOGPROBS);
    *at += sizeof r;
    out->t =
        (gen_token){.id = r.id, .n = 1, .logprob = r.logprob, .top = out->top, .n_top = r.n_top};
    out->place = r.place;
    memcpy(out->top, log->ptr + *at, (size_t)r.n_top * sizeof *out->top);
    *at += (size_t)r.n_top * sizeof *out->top;
    return true;
}

uint64_t token_log_bytes(uint64_t n, int32_t n_top)
{
    const uint64_t each =
        sizeof(record) + (uint64_t)(n_top > 0 ? n_top : 0) * sizeof(cairn_logprob);
    return 2 * n * each;
}
