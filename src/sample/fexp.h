/* exp and log for sampling.  The backend's own belong to tensors and live elsewhere; these need no fma
   and no vector unit, so that a sampled token does not depend on the backend or the machine. */
#ifndef SAMPLE_FEXP_H
#define SAMPLE_FEXP_H

#include <stdint.h>
#include <string.h>

/* e^x for x ≤ 0, within 1 ulp; 0 below -87.  Cephes' reduction and polynomial (Moshier, "Methods and
   Programs for Mathematical Functions"). */
static inline float fexp(float x)
{
    const float magic = 12582912.0f; /* 1.5 · 2^23: adding it rounds to an integer */
    const float in = x < -87.0f ? -87.0f : x;
    const float n = (in * 1.44269504f + magic) - magic;
    const float r = (in - n * 0.693359375f) - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    const int32_t bits = ((int32_t)n + 127) << 23;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return x < -87.0f ? 0.0f : p * scale;
}

/* Natural logarithm of a finite x > 0: 2 · atanh((m - 1)/(m + 1)) + e · ln 2, m in [√½, √2). */
static inline double flog(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int32_t e = (int32_t)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffffu) | 0x3ff0000000000000u;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        e++;
    }
    const double t = (m - 1.0) / (m + 1.0), t2 = t * t;
    double s = 0.0;
    for (int k = 21; k >= 1; k -= 2) s = s * t2 + 1.0 / k;
    return 2.0 * t * s + e * 0.6931471805599453;
}

#endif
