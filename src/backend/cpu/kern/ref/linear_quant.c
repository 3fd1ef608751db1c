/* Activations to 8 bits: the definition.  Owns the rounding of x to d · q; leaves products to
   linear_tile.c.  A group whose largest magnitude is below A8_TINY counts as zero (127 / amax would
   overflow); one with a value that is not finite gets d = NaN, which makes its whole row NaN. */
#include <math.h>
#include <string.h>

#include "backend/cpu/kern/ref/linear_ref.h"

static const float A8_TINY = 0x1p-120f;

/* To the nearest integer, ties to even, for |v| < 2^22: the sum's last bit is worth one. */
static float round_even(float v)
{
    return (v + 12582912.0f) - 12582912.0f;
}

static float abs_max(const float *x, size_t n)
{
    uint32_t top = 0;
    float f;
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &x[i], sizeof u);
        u &= 0x7fffffffu; /* bits of magnitudes order as the values do, NaN above all */
        if (u > top) top = u;
    }
    memcpy(&f, &top, sizeof f);
    return f;
}

/* Quantises x[n] and leaves in it what is left over. */
static float quant_group(float *x, size_t n, int8_t *q)
{
    float amax = abs_max(x, n);
    memset(q, 0, n);
    if (!(amax < INFINITY)) {
        memset(x, 0, n * sizeof *x);
        return NAN;
    }
    if (amax < A8_TINY) return 0.0f;
    float d = amax / 127.0f, inv = 127.0f / amax;
    for (size_t i = 0; i < n; i++) {
        float r = round_even(x[i] * inv);
        r = r > 127.0f ? 127.0f : r < -127.0f ? -127.0f : r;
        q[i] = (int8_t)r;
        x[i] = fmaf(-r, d, x[i]);
    }
    return d;
}

static int32_t sum_q(const int8_t *q, int32_t n)
{
    int32_t s = 0;
    for (int32_t i = 0; i < n; i++) s += q[i];
    return s;
}

static void finish32(a8_32 *a, float d)
{
    const int32_t lo = sum_q(a->q, 16), hi = sum_q(a->q + 16, 16), s = lo + hi;
    a->d = d;
    a->s = d * (float)s;
    a->n8 = -8 * s;
    a->n16 = -16 * s;
    a->n128 = -128 * s;
    a->n32_16[0] = -32 * lo, a->n32_16[1] = -32 * hi;
    a->s16[0] = (int16_t)lo, a->s16[1] = (int16_t)hi;
}

static void finish256(a8_256 *a, float d)
{
    static const uint8_t order[8] = {0, 2, 1, 3, 4, 6, 5, 7};
    a->d = d;
    for (int32_t i = 0; i < 32; i++) a->n8[i] = -32 * sum_q(a->q + 8 * i, 8);
    for (int32_t i = 0; i < 16; i++) {
        a->s16[i] = (int16_t)sum_q(a->q + 16 * i, 16);
        a->n16[i] = -16 * a->s16[i];
    }
    for (int32_t i = 0; i < 8; i++) {
        a->n32[i] = -8 * sum_q(a->q + 32 * i, 32);
        a->s32[i] = (int16_t)sum_q(a->q + 32 * order[i], 32);
    }
    memset(a->pad, 0, sizeof a->pad);
}

void ref_quant32(const float *x, int32_t n_block, int32_t terms, a8_32 *out, size_t stride)
{
    for (int32_t b = 0; b < n_block; b++) {
        a8_32 *a = (a8_32 *)(void *)((uint8_t *)out + (size_t)b * stride);
        float rest[32];
        memcpy(rest, x + (size_t)b * 32, sizeof rest);
        for (int32_t i = 0; i < terms; i++) finish32(&a[i], quant_group(rest, 32, a[i].q));
    }
}

void ref_quant256(const float *x, int32_t n_block, int32_t terms, a8_256 *out, size_t stride)
{
    for (int32_t b = 0; b < n_block; b++) {
        a8_256 *a = (a8_256 *)(void *)((uint8_t *)out + (size_t)b * stride);
        float rest[256];
        memcpy(rest, x + (size_t)b * 256, sizeof rest);
        for (int32_t i = 0; i < terms; i++) finish256(&a[i], quant_group(rest, 256, a[i].q));
    }
}
