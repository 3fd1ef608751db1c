/* The numbers of a group in a coded cache, from its least and greatest element: one scalar statement for
   every level.  docs/numerics.md has the formulas.  Elements are clamped to ±65504 first, so that the numbers
   fit f16; a NaN makes both numbers NaN and all codes 0. */
#ifndef KERN_CODE_H
#define KERN_CODE_H

#include <math.h>
#include <stdbool.h>

#include "base/half.h"

#define KV_MOST      65504.0f
#define KV_LEAST     1e-7f            /* of scales: f16 holds it */
#define KV_ZERO_PART (1.0f / 2048.0f) /* keeps zeros within what f16 holds exactly */
#define KV_NAN       0x7e00

/* What makes codes: affine rint((x - b) / a), of turbo keys rint(x / a - b), clamped to [lo, hi] and then
   raised by `off`. */
typedef struct kv_law {
    float a, b, lo, hi, off;
} kv_law;

/* To nearest, ties to even. */
static inline float kv_rint(float v)
{
    const float whole = 8388608.0f; /* 2^23: no fractions from there on */
    if (!(fabsf(v) < whole)) return v;
    return v < 0.0f ? (v - whole) + whole : (v + whole) - whole;
}

static inline float kv_clamp(float x)
{
    return x > KV_MOST ? KV_MOST : x < -KV_MOST ? -KV_MOST : x;
}

static inline kv_law kv_affine_law(float lo, float hi, float top, uint16_t num[2])
{
    float scale = (hi - lo) / top, bias = 0.0f;
    if (scale < KV_LEAST) scale = KV_LEAST;
    const bool low = fabsf(lo) > fabsf(hi);
    const float edge = low ? lo : hi;
    if (!low) scale = -scale;
    const float q0 = kv_rint(edge / scale);
    if (q0 != 0.0f) {
        scale = edge / q0;
        bias = edge;
    }
    num[0] = f16_from_f32_sat(scale);
    num[1] = f16_from_f32_sat(bias);
    return (kv_law){scale, bias, 0.0f, top, 0.0f};
}

/* Eight bits are signed and symmetric, four are not. */
static inline kv_law kv_turbo_key_law(float lo, float hi, bool wide, uint16_t num[2])
{
    const float amax = fabsf(lo) > fabsf(hi) ? fabsf(lo) : fabsf(hi);
    float scale = (hi - lo) / (wide ? 254.0f : 15.0f);
    if (scale < amax * KV_ZERO_PART) scale = amax * KV_ZERO_PART;
    if (scale < KV_LEAST) scale = KV_LEAST;
    num[0] = f16_from_f32_sat(scale);
    scale = f16_to_f32(num[0]);
    const float zero = kv_rint(wide ? (hi + lo) / (2.0f * scale) : lo / scale);
    num[1] = f16_from_f32_sat(zero);
    const float kept = f16_to_f32(num[1]);
    return wide ? (kv_law){scale, kept, -127.0f, 127.0f, 127.0f}
                : (kv_law){scale, kept, 0.0f, 15.0f, 0.0f};
}

#endif
