/* Autoregressive decoding: every known row is computed once, the last one's logits give the next token. */
#include "engine/method.h"

#include <assert.h>

#include "engine/request.h"

/* Nothing to set up: what sampling remembers began with the request, or where an earlier attempt had come to. */
static void ar_begin(request *r)
{
    assert(r->n_ids >= r->n_prompt && r->n_ids <= r->max_ids);
    (void)r; /* without asserts */
}

static method_rows ar_propose(const request *r)
{
    return (method_rows){.n = r->n_ids - r->n_done, .n_out = 1};
}

static cairn_status ar_accept(const method_env *env, request *r, float *logits, sample_out *out,
                              cairn_diag *dg)
{
    const sample_in in = {.how = &r->how,
                          .choice = r->choice,
                          .ids = r->ids,
                          .n_prompt = r->n_prompt,
                          .n_ids = r->n_ids,
                          .n_logprobs = r->n_logprobs,
                          .forced = think_next(&r->think),
                          .state = &r->drawn};
    return sample_step(env->sampler, logits, &in, out, dg);
}

static method_end ar_finished(const tok *t, const request *r, int32_t id)
{
    if (t && !r->ignore_eos && tok_is_eos(t, id)) return METHOD_EOS;
    return r->n_ids + 1 < r->max_ids ? METHOD_GOES_ON : METHOD_FULL;
}

const method method_ar = {.name = "autoregressive",
                          .max_out = 1,
                          .begin = ar_begin,
                          .propose = ar_propose,
                          .accept = ar_accept,
                          .finished = ar_finished};
