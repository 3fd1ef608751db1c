/* Passes over a whole vocabulary: its greatest value, its weights and their sum, a draw.  What touches each value
   is a pass (pass.h). */
#include <math.h>

#include "base/rng.h"
#include "sample/sample_priv.h"

enum { LANES = PASS_LANES };

double sample_unit(const sample_in *in, sample_draw what)
{
    const uint64_t stream = (uint64_t)what << 32 | in->choice;
    return rng_unit(in->how->seed, stream, (uint64_t)in->n_ids);
}

/* The last run, filled up with what has no weight. */
static void fill_run(const float *x, int32_t n, float run[RUN])
{
    for (int32_t i = 0; i < RUN; i++) run[i] = i < n ? x[i] : -INFINITY;
}

int32_t weigh_best(sampler *s, const float *x)
{
    const int32_t whole = s->vocab / RUN, i_rest = whole * RUN;
    bool good = s->pass->high(x, whole, s->high);
    if (i_rest < s->vocab) {
        float rest[RUN];
        fill_run(x + i_rest, s->vocab - i_rest, rest);
        good &= s->pass->high(rest, 1, s->high + whole);
    }
    const float top = weigh_top(s->high, s->n_runs);
    if (!good || top == -INFINITY) return -1;
    int32_t r = 0;
    while (s->high[r] != top) r++;
    int32_t i = r * RUN;
    while (x[i] != top) i++;
    return i;
}

float weigh_top(const float *x, int32_t n)
{
    float lane[LANES], top = x[0];
    int32_t i = 0;
    for (int32_t k = 0; k < LANES; k++) lane[k] = x[0];
    for (; i + LANES <= n; i += LANES)
        for (int32_t k = 0; k < LANES; k++) lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k];
    for (int32_t k = 0; k < LANES; k++) top = lane[k] > top ? lane[k] : top;
    for (; i < n; i++) top = x[i] > top ? x[i] : top;
    return top;
}

double weigh(sampler *s, const float *x, int32_t n, float top, float scale)
{
    const int32_t whole = n / RUN, i = whole * RUN;
    const double sum = s->pass->weigh(x, whole, top, scale, s->weight, s->run);
    if (i == n) return sum;
    float rest[RUN];
    fill_run(x + i, n - i, rest);
    return sum + s->pass->weigh(rest, 1, top, scale, s->weight + i, s->run + whole);
}

double weigh_roughly(const sampler *s, const float *x, float top)
{
    const int32_t whole = s->vocab / RUN, i = whole * RUN;
    const double sum = s->pass->estimate(x, whole, top);
    if (i == s->vocab) return sum;
    float rest[RUN];
    fill_run(x + i, s->vocab - i, rest);
    return sum + s->pass->estimate(rest, 1, top);
}

int32_t weigh_draw(const sampler *s, int32_t n, double sum, double u)
{
    double left = u * sum;
    int32_t r = 0, pick = -1;
    while (r < (n - 1) / RUN && left >= s->run[r]) left -= s->run[r++];
    for (int32_t i = r * RUN; i < n; i++) { /* past the run's end only by a rounding */
        if (s->weight[i] == 0.0f) continue;
        pick = i;
        if (left < (double)s->weight[i]) break;
        left -= (double)s->weight[i];
    }
    for (int32_t i = r * RUN; pick < 0; i--) /* a rounding left nothing behind */
        if (s->weight[i] > 0.0f) pick = i;
    return pick;
}
