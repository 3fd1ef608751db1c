/* Which tokens are left: top-k, top-p, min-p.  Each cut has a bound from below that costs little, the runs'
   greatest values for top-k, a few nats below the top for top-p; what lies under it is never looked at again,
   and the cut itself is found among the rest. */
#include <float.h>

#include "base/fmath.h"
#include "base/num.h"
#include "sample/sample_priv.h"

void keep_from(sampler *s, const float *x, float at)
{
    int32_t n = 0;
    for (int32_t r = 0; r < s->n_runs; r++) {
        if (s->high[r] < at) continue;
        const int32_t i = r * RUN, end = min_i32(i + RUN, s->vocab);
        n += s->pass->collect(x + i, end - i, at, i, s->id + n, s->value + n);
    }
    s->n = n;
}

void keep_one(sampler *s, const float *x, int32_t id)
{
    s->id[0] = id;
    s->value[0] = x[id];
    s->n = 1;
}

void keep_cut(sampler *s, const float *key, cut c)
{
    int32_t n = 0, equal = c.n_equal;
    for (int32_t i = 0; i < s->n; i++) {
        if (key[i] < c.at || (key[i] == c.at && equal-- <= 0)) continue;
        s->id[n] = s->id[i];
        s->value[n++] = s->value[i];
    }
    s->n = n;
}

/* At least k values are as great: the k-th greatest of the runs' greatest. */
static float bound_of_k(const sampler *s, int32_t k, float top)
{
    if (k > s->n_runs) return -FLT_MAX;
    cutter_begin(s->cutter, s->n_runs, s->high, NULL, top);
    const float at = cut_top_k(s->cutter, k).at;
    return at > -FLT_MAX ? at : -FLT_MAX;
}

/* Keeps what is at `at` or above and may be among the greatest of weight `want` together.  Answers the weight
   that is left, by s->weight. */
static double keep_mass(sampler *s, const float *x, float top, float at, double want)
{
    /* enough for a usual token; for an open one; 262,144 tokens below weigh 3 % of the top */
    static const float nats[] = {3, 8, 16};
    for (size_t i = 0; i < sizeof nats / sizeof *nats && top - nats[i] > at; i++) {
        keep_from(s, x, top - nats[i]);
        const double mass = weigh(s, s->value, s->n, top, 1.0f);
        if (mass >= want) return mass;
    }
    keep_from(s, x, at);
    return weigh(s, s->value, s->n, top, 1.0f);
}

void keep_likely(sampler *s, const float *x, float top, double sum, const cairn_sampling *p)
{
    const bool by_count = p->top_k > 0 && p->top_k < s->vocab, by_mass = p->top_p < 1.0f;
    const double want = (double)p->top_p * sum;
    float at = p->min_p > 0.0f ? top + (float)fmath_log((double)p->min_p) : -FLT_MAX;
    double mass = 0;
    if (by_count) {
        const float of_k = bound_of_k(s, p->top_k, top);
        at = of_k > at ? of_k : at;
    }
    if (by_mass)
        mass = keep_mass(s, x, top, at, want);
    else
        keep_from(s, x, at);
    const bool too_many = by_count && s->n > p->top_k, too_much = by_mass && mass >= want;
    if (!too_many && !too_much) return;
    cutter_begin(s->cutter, s->n, s->value, by_mass ? s->weight : NULL, top);
    cut c = {-FLT_MAX, s->n};
    if (too_many) c = cut_both(c, cut_top_k(s->cutter, p->top_k));
    if (too_much) c = cut_both(c, cut_top_mass(s->cutter, want));
    keep_cut(s, s->value, c);
}

void keep_top_k(sampler *s, const float *x, float top, int32_t k)
{
    const cairn_sampling p = {.top_k = k, .top_p = 1.0f};
    keep_likely(s, x, top, 0, &p);
}
