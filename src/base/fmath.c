/* exp: x = k·ln 2 + r with |r| <= ln 2 / 2, Taylor to r^17, then scaled by 2^k through the exponent
   bits.  erf⁻¹: Newton's steps from 0, which never pass the root, on erf(x) = 2 / √π · exp(-x²) ·
   Σ 2^n x^(2n+1) / (2n+1)!!, whose terms have one sign.  log: x = 2^k·m with m in [sqrt(1/2), sqrt(2)), s = (m-1)/(m+1), 2·atanh(s) by its odd
   series to s^25.  Both sums start with the smallest term. */
#include "base/fmath.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* ln 2 in two parts; the high one has 20 trailing zero bits, so that k times it is exact. */
static const double ln2_hi = 0x1.62e42feep-1, ln2_lo = 0x1.a39ef35793c76p-33;

double fmath_exp(double x)
{
    assert(x > -700.0 && x < 700.0);
    const double t = x * 1.44269504088896340736;
    const int64_t k = (int64_t)(t < 0 ? t - 0.5 : t + 0.5);
    const double r = x - (double)k * ln2_hi - (double)k * ln2_lo;
    double sum = 1.0;
    for (int i = 17; i >= 1; i--) sum = 1.0 + r / i * sum;
    const uint64_t bits = (uint64_t)(k + 1023) << 52;
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return sum * scale;
}

double fmath_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    assert(x > 0 && (bits >> 52) != 0 && (bits >> 52) != 0x7ff);
    int64_t k = (int64_t)(bits >> 52) - 1023;
    bits = (bits & 0x000fffffffffffffu) | 0x3ff0000000000000u;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.41421356237309504880) {
        m *= 0.5;
        k++;
    }
    const double s = (m - 1.0) / (m + 1.0), s2 = s * s;
    double sum = 0.0;
    for (int i = 25; i >= 1; i -= 2) sum = sum * s2 + 1.0 / i;
    return (double)k * ln2_hi + (2.0 * s * sum + (double)k * ln2_lo);
}

double fmath_erfinv(double y)
{
    const double slope = 1.12837916709551257390; /* 2 / √π */
    const double want = y < 0 ? -y : y;
    assert(want <= 1 - 0x1p-25);
    double x = 0;
    for (int step = 0; step < 64; step++) {
        const double density = slope * fmath_exp(-x * x);
        double term = x, sum = 0;
        for (int n = 1; sum + term != sum; n++) {
            sum += term;
            term *= 2 * x * x / (2 * n + 1);
        }
        const double more = (want - density * sum) / density;
        x += more;
        if (more <= 1e-15 * x) break;
    }
    return y < 0 ? -x : x;
}
