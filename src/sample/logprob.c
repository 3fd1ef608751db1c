/* Log-probabilities: the best k of a vocabulary without sorting it. */
#include "base/num.h"
#include "sample/sample_priv.h"

static void insert(sample_out *out, int32_t cap, int32_t id, float x)
{
    int32_t i = out->n_top < cap ? out->n_top++ : cap - 1;
    for (; i > 0 && out->top[i - 1].logprob < x; i--) out->top[i] = out->top[i - 1];
    out->top[i] = (cairn_logprob){id, x};
}

void logprob_find(const sampler *s, const float *x, int32_t k, sample_out *out)
{
    k = min_i32(k, s->vocab);
    for (int32_t r = 0; r < s->n_runs && k > 0; r++) {
        if (out->n_top == k && s->high[r] <= out->top[k - 1].logprob) continue;
        const int32_t end = min_i32((r + 1) * RUN, s->vocab);
        for (int32_t i = r * RUN; i < end; i++)
            if (out->n_top < k || x[i] > out->top[k - 1].logprob) insert(out, k, i, x[i]);
    }
}

void logprob_report(double lse, sample_out *out)
{
    out->logprob = (float)((double)out->logprob - lse);
    for (int32_t i = 0; i < out->n_top; i++)
        out->top[i].logprob = (float)((double)out->top[i].logprob - lse);
}
