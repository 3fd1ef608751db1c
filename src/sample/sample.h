/* One step of sampling: logits in, a token out.

   Order: logit bias → repetition → presence → frequency penalty → (a grammar's mask will go here) →
   log-probabilities, which is what is reported → temperature 0: the greatest, ties to the lower id;
   else top-k, top-p and min-p, each judged on these untempered log-probabilities over the whole
   vocabulary, a token must pass all three (so their order does not matter) → times 1/temperature →
   draw.  This is mlx-lm's order; llama.cpp judges top-p after renormalising what top-k left, which
   keeps fewer tokens when both are set.

   Randomness is f(seed, choice, absolute position): who else is in the batch cannot matter. */
#ifndef SAMPLE_SAMPLE_H
#define SAMPLE_SAMPLE_H

#include "cairn/engine.h"
#include "cairn/status.h"

typedef struct sampler sampler; /* scratch for one vocabulary; one thread */

typedef struct sample_in {
    const cairn_sampling *how; /* as sample_check passed it */
    uint32_t choice;
    const int32_t *ids; /* the sequence so far; position n_ids is being sampled */
    int32_t n_prompt, n_ids;
    int32_t n_logprobs;    /* as in cairn_request */
    const int32_t *forced; /* the id that comes, whatever its chance; NULL: it is drawn */
} sample_in;

typedef struct sample_out {
    int32_t id;
    float logprob; /* 0 unless n_logprobs ≥ 0 */
    int32_t n_top;
    cairn_logprob top[CAIRN_MAX_LOGPROBS]; /* descending, ties to the lower id */
} sample_out;

cairn_status sampler_new(int32_t vocab, sampler **out);
void sampler_free(sampler *s);

/* Values in range, bias ids inside the vocabulary: E_ARG with the field's name and range. */
cairn_status sample_check(const cairn_sampling *p, int32_t vocab, cairn_diag *dg);

/* Changes `logits` in place.  E_INTERNAL: a logit is NaN or +inf, or every token is excluded.
   Allocates nothing. */
cairn_status sample_step(sampler *s, float *logits, const sample_in *in, sample_out *out,
                         cairn_diag *dg);

#endif
