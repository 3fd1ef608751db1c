/* exp for sampling, in f32: it weighs a whole vocabulary a token, so it must be plain sums and products
   that the compiler turns into vectors, which base/fmath.h's double series are not.  It needs no fma
   and no vector unit: a sampled token does not depend on the backend or the machine. */
#ifndef SAMPLE_FEXP_H
#define SAMPLE_FEXP_H

#include <stdint.h>
#include <string.h>

/* e^x for x ≤ 0, within 1 ulp; 0 below -87.  Cephes' reduction and polynomial (Moshier, "Methods and
   Programs for Mathematical Functions"). */
static inline float fexp(float x)
{
    const float magic = 12582912.0f; /* 1.5 · 2^23: adding it rounds to an integer */
    /* The bits of |x| are compared, not x: a choice between floats is a branch to the compiler, and keeps it
       from vectors. */
    const int32_t limit = 0x42ae0000; /* 87.0f */
    int32_t size;
    memcpy(&size, &x, sizeof size);
    size &= 0x7fffffff;
    const int32_t in_size = (size < limit ? size : limit);
    float in;
    memcpy(&in, &in_size, sizeof in);
    in = -in;
    const float n = (in * 1.44269504f + magic) - magic;
    const float r = (in - n * 0.693359375f) - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    const int32_t bits = -(size <= limit) & (((int32_t)n + 127) << 23); /* a scale of 0 beyond */
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

#endif
