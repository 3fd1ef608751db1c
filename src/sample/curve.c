/* A curve through knots (x, y) of probabilities: a token whose probability is x is drawn with weight y.  Between
   the knots it is a cubic in ln x and ln y that rises where they do (Fritsch and Carlson 1980, "Monotone
   piecewise cubic interpolation"): slopes are the means of the secants beside a knot, made smaller where the
   cubic would turn back.  Below the first knot a straight line that falls by its slope, and by 1 at least, so
   that nothing unlikely becomes likely; above the last one that of its slope.  The curve y = x is a
   temperature of 1. */
#include <assert.h>

#include "base/fmath.h"
#include "sample/sample_priv.h"

typedef struct bend {
    int32_t n;
    double x[CAIRN_MAX_KNOTS], y[CAIRN_MAX_KNOTS], slope[CAIRN_MAX_KNOTS];
} bend;

static double ln_of_percent(float v)
{
    return fmath_log((double)(v > SAMPLE_CURVE_FLOOR ? v : SAMPLE_CURVE_FLOOR) / 100);
}

static double secant(const bend *b, int32_t i)
{
    return (b->y[i + 1] - b->y[i]) / (b->x[i + 1] - b->x[i]);
}

/* The cubic of interval i rises all the way if its slopes, in units of the secant, lie within a circle of 3. */
static void calm(bend *b, int32_t i)
{
    const double d = secant(b, i);
    if (d == 0) {
        b->slope[i] = b->slope[i + 1] = 0;
        return;
    }
    const double p = b->slope[i] / d, q = b->slope[i + 1] / d, r = p * p + q * q;
    if (r <= 9) return;
    const double t = 3 * fmath_exp(-0.5 * fmath_log(r));
    b->slope[i] = t * p * d;
    b->slope[i + 1] = t * q * d;
}

static void bend_make(bend *b, const cairn_sampling *p)
{
    const int32_t n = b->n = (int32_t)p->n_curve;
    assert(n >= 2 && n <= CAIRN_MAX_KNOTS); /* sample_check */
    for (int32_t i = 0; i < n; i++) {
        b->x[i] = ln_of_percent(p->curve[i].x);
        b->y[i] = ln_of_percent(p->curve[i].y);
    }
    b->slope[0] = secant(b, 0);
    b->slope[n - 1] = secant(b, n - 2);
    for (int32_t i = 1; i < n - 1; i++) b->slope[i] = (secant(b, i - 1) + secant(b, i)) / 2;
    for (int32_t i = 0; i < n - 1; i++) calm(b, i);
}

static double bend_at(const bend *b, double l)
{
    const int32_t last = b->n - 1;
    int32_t i = 0;
    if (l <= b->x[0]) return b->y[0] + (b->slope[0] > 1 ? b->slope[0] : 1) * (l - b->x[0]);
    if (l >= b->x[last]) return b->y[last] + b->slope[last] * (l - b->x[last]);
    while (i < last - 1 && l > b->x[i + 1]) i++;
    const double h = b->x[i + 1] - b->x[i], t = (l - b->x[i]) / h, u = 1 - t;
    return u * u * ((1 + 2 * t) * b->y[i] + t * h * b->slope[i]) +
           t * t * ((1 + 2 * u) * b->y[i + 1] - u * h * b->slope[i + 1]);
}

void curve_bend(sampler *s, const float *x, double lse, const cairn_sampling *p)
{
    const double low = -3e38; /* what f32 holds: weight 0, as that of -inf */
    bend b;
    bend_make(&b, p);
    for (int32_t i = 0; i < s->vocab; i++) {
        const double y = bend_at(&b, (double)x[i] - lse);
        s->value[i] = (float)(y > low ? y : low);
    }
}
