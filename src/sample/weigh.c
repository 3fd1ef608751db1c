/* Passes over a whole vocabulary: its greatest value, its weights and their sum, a draw.  Inner counts are
   constant, so that the compiler uses vectors, and sums have one order whatever it does. */
#include <math.h>

#include "base/rng.h"
#include "sample/fexp.h"
#include "sample/sample_priv.h"

enum { LANES = 16 };

double sample_unit(const sample_in *in, sample_draw what)
{
    const uint64_t stream = (uint64_t)what << 32 | in->choice;
    return rng_unit(in->how->seed, stream, (uint64_t)in->n_ids);
}

/* The greatest of RUN values; *bad grows where one is NaN or +inf. */
static float run_high(const float *x, int32_t *bad)
{
    float lane[LANES];
    int32_t wrong[LANES] = {0};
    for (int32_t k = 0; k < LANES; k++) lane[k] = -INFINITY;
    for (int32_t i = 0; i < RUN; i += LANES)
        for (int32_t k = 0; k < LANES; k++) {
            lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k];
            wrong[k] |= !(x[i + k] < INFINITY);
        }
    for (int32_t k = 0; k < LANES; k++) *bad |= wrong[k];
    return weigh_top(lane, LANES);
}

/* The last run, filled up with what has no weight. */
static void fill_run(const float *x, int32_t n, float run[RUN])
{
    for (int32_t i = 0; i < RUN; i++) run[i] = i < n ? x[i] : -INFINITY;
}

int32_t weigh_best(sampler *s, const float *x)
{
    int32_t bad = 0, r = 0, i = 0;
    for (; i + RUN <= s->vocab; i += RUN) s->high[r++] = run_high(x + i, &bad);
    if (i < s->vocab) {
        float rest[RUN];
        fill_run(x + i, s->vocab - i, rest);
        s->high[r++] = run_high(rest, &bad);
    }
    const float top = weigh_top(s->high, r);
    if (bad || top == -INFINITY) return -1;
    for (r = 0; s->high[r] != top; r++) {
    }
    for (i = r * RUN; x[i] != top; i++) {
    }
    return i;
}

float weigh_top(const float *x, int32_t n)
{
    float top = x[0];
    for (int32_t i = 1; i < n; i++) top = x[i] > top ? x[i] : top;
    return top;
}

/* Of RUN values; their sum is by lanes of index mod 16. */
static double weigh_run(const float *restrict x, float *restrict w, float top, float scale)
{
    double lane[LANES] = {0}, sum = 0;
    for (int32_t i = 0; i < RUN; i++) w[i] = fexp((x[i] - top) * scale);
    for (int32_t i = 0; i < RUN; i += LANES)
        for (int32_t k = 0; k < LANES; k++) lane[k] += (double)w[i + k];
    for (int32_t k = 0; k < LANES; k++) sum += lane[k];
    return sum;
}

double weigh(sampler *s, const float *x, int32_t n, float top, float scale)
{
    double sum = 0;
    int32_t r = 0, i = 0;
    for (; i + RUN <= n; i += RUN, r++) {
        s->run[r] = weigh_run(x + i, s->weight + i, top, scale);
        sum += s->run[r];
    }
    if (i < n) {
        float rest[RUN];
        fill_run(x + i, n - i, rest);
        s->run[r] = weigh_run(rest, s->weight + i, top, scale);
        sum += s->run[r];
    }
    return sum;
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
