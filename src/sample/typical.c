/* Locally typical sampling (Meister et al. 2022, "Locally typical sampling", equation 10): the tokens
   whose surprise is nearest to the entropy, the fewest that reach the mass p.  With w = e^(x - top) of sum W
   the surprise is ln W - (x - top), the entropy is ln W - E where E is the mean of x - top under w: their
   distance is |x - top - E|, and ln W drops out. */
#include <math.h>

#include "sample/sample_priv.h"

/* x - top of a token that has no weight at all: finite, so that 0 times it is 0. */
static const float LOWEST = -1e30f;

/* Products in f32, sixteen sums of them by index mod 16, then these. */
static double dot(const float *a, const float *b, int32_t n)
{
    double lane[PASS_LANES] = {0}, sum = 0;
    int32_t i = 0;
    for (; i + PASS_LANES <= n; i += PASS_LANES)
        for (int32_t k = 0; k < PASS_LANES; k++) lane[k] += (double)(a[i + k] * b[i + k]);
    for (; i < n; i++) lane[i % PASS_LANES] += (double)(a[i] * b[i]);
    for (int32_t k = 0; k < PASS_LANES; k++) sum += lane[k];
    return sum;
}

void typical_keep(sampler *s, float p)
{
    if (p >= 1.0f || s->n < 2) return;
    const float top = weigh_top(s, s->value, s->n);
    const double sum = weigh(s, s->value, s->n, top, 1.0f);
    for (int32_t i = 0; i < s->n; i++) {
        const float d = s->value[i] - top;
        s->score[i] = d > LOWEST ? d : LOWEST;
    }
    const float mean = (float)(dot(s->weight, s->score, s->n) / sum);
    for (int32_t i = 0; i < s->n; i++) s->score[i] = -fabsf(s->score[i] - mean);
    cutter_begin(s->cutter, s->n, s->score, s->weight, weigh_top(s, s->score, s->n));
    keep_cut(s, s->score, cut_top_mass(s->cutter, (double)p * sum));
}
