/* Which tokens are left: top-k, top-p, min-p.  Each cut has a bound from below that costs little, the runs'
   greatest values for top-k, a few nats below the top for top-p; what lies under it is never looked at again,
   and the cut itself is found among the rest. */
#include <float.h>
#include <math.h>

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

/* A weight that lies somewhere between. */
typedef struct bounds {
    double lo, hi;
} bounds;

/* Of more tokens the cut lies between two of them too often. */
enum { FEW = 1024 };

/* Keeps what is at `at` or above and may be among the greatest of weight `want` together; *mass becomes the weight
   that is left, by s->weight.  False: that hangs on where `want` lies. */
static bool keep_mass(sampler *s, const float *x, float top, float at, bounds want, double *mass)
{
    /* enough for a usual token; for an open one; 262,144 tokens below weigh 3 % of the top; the last: all */
    static const float nats[] = {3, 8, 16, INFINITY};
    for (size_t i = 0; i < sizeof nats / sizeof *nats; i++) {
        const float from = top - nats[i] > at ? top - nats[i] : at;
        keep_from(s, x, from);
        if (want.lo < want.hi && s->n > FEW) return false;
        *mass = weigh(s, s->value, s->n, top, 1.0f);
        if (*mass >= want.hi) return true;
        if (*mass >= want.lo) return false;
        if (from == at) return true;
    }
    return true;
}

/* False: the cut hangs on where `want` lies. */
static bool cut_mass(cutter *c, bounds want, cut *out)
{
    *out = cut_top_mass(c, want.hi);
    if (want.lo == want.hi) return true;
    const cut other = cut_top_mass(c, want.lo);
    return other.at == out->at && other.n_equal == out->n_equal;
}

/* The greatest of weight `want`, and what else is asked; false: what they are hangs on where `want` lies. */
static bool keep_within(sampler *s, const float *x, float top, float at, bounds want,
                        const cairn_sampling *p)
{
    const bool by_count = p->top_k > 0 && p->top_k < s->vocab, by_mass = p->top_p < 1.0f;
    double mass = 0;
    if (!by_mass)
        keep_from(s, x, at);
    else if (!keep_mass(s, x, top, at, want, &mass))
        return false;
    const bool too_many = by_count && s->n > p->top_k, too_much = by_mass && mass >= want.hi;
    if (!too_many && !too_much) return true;
    cutter_begin(s->cutter, s->n, s->value, by_mass ? s->weight : NULL, top);
    cut c = {-FLT_MAX, s->n}, heavy;
    if (too_many) c = cut_both(c, cut_top_k(s->cutter, p->top_k));
    if (too_much) {
        if (!cut_mass(s->cutter, want, &heavy)) return false;
        c = cut_both(c, heavy);
    }
    keep_cut(s, s->value, c);
    return true;
}

void keep_likely(sampler *s, const float *x, float top, double sum, const cairn_sampling *p)
{
    const double q = (double)p->top_p;
    float at = p->min_p > 0.0f ? top + (float)fmath_log((double)p->min_p) : -FLT_MAX;
    if (p->top_k > 0 && p->top_k < s->vocab) {
        const float of_k = bound_of_k(s, p->top_k, top);
        at = of_k > at ? of_k : at;
    }
    if (p->top_p < 1.0f && sum == 0) { /* mostly it does not matter what the sum is exactly */
        const double about = q * weigh_roughly(s, x, top);
        const bounds want = {about * (1 - PASS_ESTIMATE), about * (1 + PASS_ESTIMATE)};
        if (keep_within(s, x, top, at, want, p)) return;
        sum = weigh(s, x, s->vocab, top, 1.0f);
    }
    (void)keep_within(s, x, top, at, (bounds){q * sum, q * sum}, p);
}

void keep_top_k(sampler *s, const float *x, float top, int32_t k)
{
    const cairn_sampling p = {.top_k = k, .top_p = 1.0f};
    keep_likely(s, x, top, 0, &p);
}
