/* Passes over a whole vocabulary: its greatest value, its weights and their sum, a draw.  What touches each value
   is a pass (pass.h). */
#include <math.h>

#include "base/rng.h"
#include "sample/sample_priv.h"

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

/* Fills s->high; false: one is NaN or +inf. */
static bool find_high(sampler *s, const float *x, int32_t n)
{
    const int32_t whole = n / RUN, i = whole * RUN;
    const bool good = s->pass->high(x, whole, s->high);
    if (i == n) return good;
    float rest[RUN];
    fill_run(x + i, n - i, rest);
    return s->pass->high(rest, 1, s->high + whole) && good;
}

static float highest(const sampler *s, int32_t n)
{
    float top = s->high[0];
    for (int32_t r = 1; r * RUN < n; r++) top = s->high[r] > top ? s->high[r] : top;
    return top;
}

int32_t weigh_best(sampler *s, const float *x)
{
    const bool good = find_high(s, x, s->vocab);
    const float top = highest(s, s->vocab);
    if (!good || top == -INFINITY) return -1;
    int32_t r = 0;
    while (s->high[r] != top) r++;
    int32_t i = r * RUN;
    while (x[i] != top) i++;
    return i;
}

float weigh_top(sampler *s, const float *x, int32_t n)
{
    (void)find_high(s, x, n);
    return highest(s, n);
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
