/* How a request's tokens come about: a method a row, so that requests of different methods share one batch.
   The engine computes the rows that a method proposes, lets it accept tokens by their logits, tells each token,
   and asks whether the answer has ended.  It owns queueing, caches, text and events; a method owns none of
   them and keeps what it must remember in the request.  All functions run on the engine thread, but
   `accept`, which runs on any, beside those of other requests; they allocate nothing.  One method so far: method_ar. */
#ifndef ENGINE_METHOD_H
#define ENGINE_METHOD_H

#include "cairn/status.h"
#include "sample/sample.h"
#include "text/tok.h"

struct request;

/* What a request draws with. */
typedef struct method_env {
    const tok *tok; /* NULL: no token ends an answer */
    sampler *sampler;
} method_env;

/* Rows that a request wants computed next, all of whose ids are known; of the last n_out, once all n are computed,
   it reads logits. */
typedef struct method_rows {
    int32_t n, n_out;
} method_rows;

typedef enum method_end {
    METHOD_GOES_ON,
    METHOD_EOS, /* the answer was complete before this token, which is not told */
    METHOD_FULL /* it is complete with this token: its budget, or the context, is used up */
} method_end;

typedef struct method {
    const char *name;
    int32_t max_out; /* of method_rows.n_out */
    /* Once, when the request is admitted and how much of its prompt is known stands; tokens of an earlier attempt
       may be in its ids already. */
    void (*begin)(struct request *r);
    method_rows (*propose)(const struct request *r);
    /* The token after a wanted row, whose logits [vocab] it may change; called for each wanted row in rising order.
       E_ARG: nothing can be drawn, and `dg` says why. */
    cairn_status (*accept)(const method_env *env, struct request *r, float *logits, sample_out *out,
                           cairn_diag *dg);
    /* Of `id`, accepted, or drawn by an earlier attempt, and not among the request's ids yet.  t: as method_env's. */
    method_end (*finished)(const tok *t, const struct request *r, int32_t id);
} method;

extern const method method_ar; /* autoregressive: one token a step, after the last */

#endif
