/* One step of sampling: logits in, a token out.

   Order: logit bias → repetition → presence → frequency penalty → DRY → (a grammar's mask will go here) →
   log-probabilities, which is what is reported → temperature 0: the greatest, ties to the lower id;
   else top-k, top-p and min-p, each judged on these untempered log-probabilities over the whole
   vocabulary, a token must pass all three (so their order does not matter) → typical → XTC, each over
   what is left → times 1/temperature → draw.  Mirostat stands in the place of all cuts, after the
   temperature, and a curve in the place of both.  docs/sampling.md has the formulas and how others differ.

   Randomness is f(seed, choice, absolute position): who else is in the batch cannot matter. */
#ifndef SAMPLE_SAMPLE_H
#define SAMPLE_SAMPLE_H

#include "cairn/engine.h"
#include "cairn/status.h"
#include "text/tok.h"

/* Percent: a curve's smaller values count as this, as their logarithm is asked for. */
#define SAMPLE_CURVE_FLOOR 1e-7f

typedef struct sampler sampler; /* scratch for one vocabulary; one thread */

/* All that a request's sampling remembers beyond its tokens: plain data without addresses, to be
   copied and stored as it is.  The request's. */
typedef struct sample_state {
    double mu; /* mirostat: the greatest surprise allowed, in bits */
} sample_state;

typedef struct sample_in {
    const cairn_sampling *how; /* as sample_check passed it */
    uint32_t choice;
    const int32_t *ids; /* the sequence so far; position n_ids is being sampled */
    int32_t n_prompt, n_ids;
    int32_t n_logprobs;    /* as in cairn_request */
    const int32_t *forced; /* the id that comes, whatever its chance; NULL: it is drawn */
    sample_state *state;   /* changed by a draw under mirostat alone, else it may be NULL */
} sample_in;

typedef struct sample_out {
    int32_t id;
    float logprob; /* 0 unless n_logprobs ≥ 0 */
    int32_t n_top;
    cairn_logprob top[CAIRN_MAX_LOGPROBS]; /* descending, ties to the lower id */
} sample_out;

/* What the last token was drawn from, until the next step: tests hold it to references. */
typedef struct sample_rest {
    int32_t n;
    const int32_t *ids;  /* [n] rising; NULL: the whole vocabulary */
    const float *weight; /* [n], of sum `total` */
    double total;
} sample_rest;

/* For sequences of up to n_pos ids.  t, which must outlive it, or NULL: then no DRY breaker is found, and XTC
   spares nothing. */
cairn_status sampler_new(int32_t vocab, int32_t n_pos, const tok *t, sampler **out);
void sampler_free(sampler *s);
uint64_t sampler_bytes(const sampler *s); /* that it holds */
sample_rest sampler_rest(const sampler *s);

cairn_sampling sample_neutral(void); /* greedy, everything off, what is off at its usual strength */
/* Values in range, bias ids inside the vocabulary: E_ARG with the field's name and range. */
cairn_status sample_check(const cairn_sampling *p, int32_t vocab, cairn_diag *dg);
sample_state sample_begin(const cairn_sampling *p);

/* Changes `logits` in place.  E_INTERNAL: a logit is NaN or +inf, or every token is excluded.
   Allocates nothing. */
cairn_status sample_step(sampler *s, float *logits, const sample_in *in, sample_out *out,
                         cairn_diag *dg);
/* How likely `id` is by logits that nothing has changed, and the best n_logprobs ≥ 0.  E_INTERNAL as above, `pos` being
   the position of `id`.  Allocates nothing. */
cairn_status sample_score(sampler *s, const float *logits, int32_t id, int32_t n_logprobs,
                          int32_t pos, sample_out *out, cairn_diag *dg);

#endif
