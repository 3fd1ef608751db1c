/* The passes over sixteen lanes, once for every level, in the words of lanes_LEVEL.h and these of pass_LEVEL.c:

     not_less16(a, b)    b16, where a < b does not hold; or_b16, any16: of such
     shift_up16(p, t)    p · 2^n, t being 1.5 · 2^23 + n: n is t's lowest bits
     f64x16, zero_f64, add_f64(s, v16), store_f64(p, s)    sixteen sums
     put16(x, at, first, id, value)    collect, of sixteen values

   Each lane has pass_ref.c's operations.  Two are joined where nothing is rounded: n · 0.693359375 is exact, n
   having 7 bits and the constant 9, and so is a product by a power of two whose result is no denormal (e^-87 is
   none). */
#include <math.h>

#include "sample/pass.h"

INLINE v16 fexp16(v16 y)
{
    const v16 magic = set16(12582912.0f), least = set16(-87.0f);
    const v16 in = max16(y, least);
    const v16 t = add16(mul16(in, set16(1.44269504f)), magic);
    const v16 n = sub16(t, magic);
    const v16 r = sub16(fma16(n, set16(-0.693359375f), in), mul16(n, set16(-2.12194440e-4f)));
    v16 p = set16(1.9875691500e-4f);
    p = add16(mul16(p, r), set16(1.3981999507e-3f));
    p = add16(mul16(p, r), set16(8.3334519073e-3f));
    p = add16(mul16(p, r), set16(4.1665795894e-2f));
    p = add16(mul16(p, r), set16(1.6666665459e-1f));
    p = add16(mul16(p, r), set16(5.0000001201e-1f));
    p = add16(add16(mul16(p, mul16(r, r)), r), set16(1.0f));
    return clear16(less16(y, least), shift_up16(p, t));
}

static bool pass_high(const float *x, int32_t n_runs, float *high)
{
    const v16 inf = set16(INFINITY);
    b16 bad = not_less16(set16(0), inf);
    for (int32_t r = 0; r < n_runs; r++, x += PASS_RUN) {
        v16 a = set16(-INFINITY), b = a; /* max16 answers its second operand beside NaN */
        for (int32_t i = 0; i < PASS_RUN; i += 2 * PASS_LANES) {
            const v16 p = loadf16(x + i), q = loadf16(x + i + PASS_LANES);
            a = max16(p, a);
            b = max16(q, b);
            bad = or_b16(bad, or_b16(not_less16(p, inf), not_less16(q, inf)));
        }
        high[r] = v16_max(max16(a, b)) + 0.0f;
    }
    return !any16(bad);
}

INLINE double weigh_runs(const float *x, int32_t n_runs, v16 top, v16 scale, bool scaled, float *w,
                         double *run)
{
    double sum = 0;
    for (int32_t r = 0; r < n_runs; r++, x += PASS_RUN, w += PASS_RUN) {
        double lane[PASS_LANES], all = 0;
        f64x16 s = zero_f64();
        for (int32_t i = 0; i < PASS_RUN; i += PASS_LANES) {
            v16 y = sub16(loadf16(x + i), top);
            if (scaled) y = mul16(y, scale);
            const v16 e = fexp16(y);
            store16(w + i, e);
            s = add_f64(s, e);
        }
        store_f64(lane, s);
        for (int32_t k = 0; k < PASS_LANES; k++) all += lane[k];
        run[r] = all;
        sum += all;
    }
    return sum;
}

static double pass_weigh(const float *x, int32_t n_runs, float top, float scale, float *w,
                         double *run)
{
    if (scale == 1.0f) return weigh_runs(x, n_runs, set16(top), set16(scale), false, w, run);
    return weigh_runs(x, n_runs, set16(top), set16(scale), true, w, run);
}

static int32_t pass_collect(const float *x, int32_t n, float at, int32_t first, int32_t *id,
                            float *value)
{
    const v16 least = set16(at);
    int32_t k = 0, i = 0;
    for (; i + PASS_LANES <= n; i += PASS_LANES)
        k += put16(loadf16(x + i), x + i, least, first + i, id + k, value + k);
    return k + pass_ref.collect(x + i, n - i, at, first + i, id + k, value + k);
}

/* e^y for y ≤ 0, within 6e-6 where it is above 2^-30; less is at most 2^-124 off. */
INLINE v16 rough_exp16(v16 y)
{
    const v16 magic = set16(12582912.0f);
    const v16 x = max16(mul16(y, set16(1.44269504f)), set16(-125.0f));
    const v16 t = add16(x, magic);
    const v16 f = sub16(x, sub16(t, magic));
    v16 p = set16(0.009570101f); /* 2^f, |f| ≤ 1/2: least relative error, by Lawson's iteration */
    p = fma16(p, f, set16(0.05591786f));
    p = fma16(p, f, set16(0.24024744f));
    p = fma16(p, f, set16(0.6931218f));
    p = fma16(p, f, set16(0.9999993f));
    return shift_up16(p, t);
}

static double pass_estimate(const float *x, int32_t n_runs, float top)
{
    const v16 high = set16(top);
    double lane[PASS_LANES], sum = 0;
    f64x16 s = zero_f64();
    for (int32_t r = 0; r < n_runs; r++, x += PASS_RUN) {
        v16 a = set16(0), b = a;
        for (int32_t i = 0; i < PASS_RUN; i += 2 * PASS_LANES) {
            a = add16(a, rough_exp16(sub16(loadf16(x + i), high)));
            b = add16(b, rough_exp16(sub16(loadf16(x + i + PASS_LANES), high)));
        }
        s = add_f64(s, add16(a, b));
    }
    store_f64(lane, s);
    for (int32_t k = 0; k < PASS_LANES; k++) sum += lane[k];
    return sum;
}
