/* The scalar statement of our functions (kern_math.h); the levels repeat these steps in lanes. */
#include <math.h>

#include "backend/cpu/kern/kern_math.h"
#include "base/half.h"

float kern_exp(float x)
{
    const float magic = 12582912.0f; /* 1.5·2^23: adding it rounds to an integer */
    if (x != x) return x;
    if (x < EXP_LO) return 0.0f;
    if (x > EXP_HI) return INFINITY;
    float n = (x * EXP_LOG2 + magic) - magic;
    float r = fmaf(n, -LN2_HI, x);
    r = fmaf(n, -LN2_LO, r);
    float q = fmaf(EXP_C5, r, EXP_C4);
    q = fmaf(q, r, EXP_C3);
    q = fmaf(q, r, EXP_C2);
    q = fmaf(q, r, EXP_C1);
    q = fmaf(q, r, EXP_C0);
    float p = fmaf(q, r * r, r) + 1.0f;
    return f32_from_bits(f32_bits(p) + ((uint32_t)(int32_t)n << 23));
}

float kern_tanh(float x)
{
    float a = fabsf(x), y;
    if (a < TANH_SMALL) {
        float z = a * a;
        float p = fmaf(TANH_C4, z, TANH_C3);
        p = fmaf(p, z, TANH_C2);
        p = fmaf(p, z, TANH_C1);
        p = fmaf(p, z, TANH_C0);
        y = fmaf(z * p, a, a);
    } else {
        y = 1.0f - 2.0f / (kern_exp(a + a) + 1.0f);
    }
    return f32_from_bits((f32_bits(y) & 0x7fffffff) | (f32_bits(x) & 0x80000000));
}

float kern_erfc(float z)
{
    float t = 1.0f / fmaf(z, 0.5f, 1.0f);
    float p = fmaf(ERFC_C8, t, ERFC_C7);
    p = fmaf(p, t, ERFC_C6);
    p = fmaf(p, t, ERFC_C5);
    p = fmaf(p, t, ERFC_C4);
    p = fmaf(p, t, ERFC_C3);
    p = fmaf(p, t, ERFC_C2);
    p = fmaf(p, t, ERFC_C1);
    p = fmaf(p, t, ERFC_C0);
    return (t * p) * kern_exp(-(z * z));
}

float kern_silu(float x)
{
    return x / (1.0f + kern_exp(-x));
}

float kern_sigmoid(float x)
{
    return 1.0f / (1.0f + kern_exp(-x));
}

/* With z = exp(-|x|) and s = z / (2 + z), at most 1/3: log(1 + z) = 2·atanh(s). */
float kern_softplus(float x)
{
    float z = kern_exp(-fabsf(x));
    float s = z / (z + 2.0f), ss = s * s;
    float p = fmaf(1.0f / 15.0f, ss, 1.0f / 13.0f);
    p = fmaf(p, ss, 1.0f / 11.0f);
    p = fmaf(p, ss, 1.0f / 9.0f);
    p = fmaf(p, ss, 1.0f / 7.0f);
    p = fmaf(p, ss, 1.0f / 5.0f);
    p = fmaf(p, ss, 1.0f / 3.0f);
    float log1p = 2.0f * fmaf(s * ss, p, s);
    return x > 0.0f ? x + log1p : log1p;
}

float kern_gelu_tanh(float x)
{
    float u = x * fmaf(x * x, GELU_C1, GELU_C0);
    return x / (1.0f + kern_exp(-u));
}

float kern_gelu_erf(float x)
{
    float e = (x * 0.5f) * kern_erfc(fabsf(x) * SQRT_HALF);
    return x < 0.0f ? e : x - e;
}

/* exp(m) - 1 - m for m <= 0, without the cancellation near 0. */
static float exp_rest(float m)
{
    if (m < REST_SMALL) return (kern_exp(m) - 1.0f) - m;
    float q = fmaf(EXP_C5, m, EXP_C4);
    q = fmaf(q, m, EXP_C3);
    q = fmaf(q, m, EXP_C2);
    q = fmaf(q, m, EXP_C1);
    q = fmaf(q, m, EXP_C0);
    return q * (m * m);
}

float kern_xielu(float x, const xielu_params *p)
{
    if (x > 0.0f) return (p->alpha_p * x) * x + p->beta * x;
    float m = x < p->eps ? x : p->eps;
    return p->alpha_n * (exp_rest(m) + (m - x)) + p->beta * x;
}

/* Taylor: the first term left out is below 3e-14 for |r| <= π/4. */
static double sin_poly(double r)
{
    double z = r * r;
    double p = 1.0 / 6227020800.0;
    p = fma(p, z, -1.0 / 39916800.0);
    p = fma(p, z, 1.0 / 362880.0);
    p = fma(p, z, -1.0 / 5040.0);
    p = fma(p, z, 1.0 / 120.0);
    p = fma(p, z, -1.0 / 6.0);
    return fma(p * z, r, r);
}

static double cos_poly(double r)
{
    double z = r * r;
    double p = -1.0 / 87178291200.0;
    p = fma(p, z, 1.0 / 479001600.0);
    p = fma(p, z, -1.0 / 3628800.0);
    p = fma(p, z, 1.0 / 40320.0);
    p = fma(p, z, -1.0 / 720.0);
    p = fma(p, z, 1.0 / 24.0);
    p = fma(p, z, -0.5);
    return fma(p, z, 1.0);
}

void kern_sincos(float angle, float *sine, float *cosine)
{
    const double magic = 6755399441055744.0; /* 1.5·2^52 */
    const double two_over_pi = 0.63661977236758134308;
    const double pi_2_hi = 1.57079632679489655800, pi_2_lo = 6.12323399573676603587e-17;
    double x = (double)angle;
    double n = (x * two_over_pi + magic) - magic;
    double r = fma(-n, pi_2_lo, fma(-n, pi_2_hi, x));
    double s = sin_poly(r), c = cos_poly(r);
    double quarter = n - 4.0 * ((n * 0.25 + magic) - magic); /* -2, -1, 0, 1 or 2 */
    if (quarter == 1.0 || quarter == -1.0) {
        double t = s;
        s = quarter * c;
        c = -quarter * t;
    } else if (quarter != 0.0) {
        s = -s;
        c = -c;
    }
    *sine = (float)s;
    *cosine = (float)c;
}
