/* Bias and penalties: what is added to a logit for the sake of the tokens so far.  Repetition as in Keskar et
   al. 2019 ("CTRL", section 4.1), but multiplying where a logit is negative, as all do since; presence and
   frequency as OpenAI's API defines them. */
#include "base/num.h"
#include "sample/sample_priv.h"

/* The first id of a window. */
static int32_t window_from(const sample_in *in, int32_t window, int32_t all)
{
    return window ? max_i32(0, in->n_ids - window) : all;
}

/* Once for each distinct id. */
static void repetition(sampler *s, float *x, const sample_in *in)
{
    const float p = in->how->repetition_penalty;
    if (p == 1.0f) return;
    const int32_t from = window_from(in, in->how->repetition_window, 0);
    for (int32_t i = from; i < in->n_ids; i++) {
        const int32_t id = in->ids[i];
        if (s->count[id]++ == 0) x[id] = x[id] < 0 ? x[id] * p : x[id] / p;
    }
    for (int32_t i = from; i < in->n_ids; i++) s->count[in->ids[i]] = 0;
}

/* x - (once + each · count) over a window. */
static void subtract(sampler *s, float *x, const sample_in *in, int32_t window, float once,
                     float each)
{
    if (once == 0.0f && each == 0.0f) return;
    const int32_t from = window_from(in, window, in->n_prompt);
    for (int32_t i = from; i < in->n_ids; i++) s->count[in->ids[i]]++;
    for (int32_t i = from; i < in->n_ids; i++) {
        const int32_t id = in->ids[i];
        if (!s->count[id]) continue;
        x[id] = (x[id] - once) - each * (float)s->count[id];
        s->count[id] = 0;
    }
}

void penalty_apply(sampler *s, float *x, const sample_in *in)
{
    const cairn_sampling *p = in->how;
    for (size_t i = 0; i < p->n_bias; i++) x[p->bias[i].id] += p->bias[i].value;
    repetition(s, x, in);
    subtract(s, x, in, p->presence_window, p->presence_penalty, 0.0f);
    subtract(s, x, in, p->frequency_window, 0.0f, p->frequency_penalty);
}
