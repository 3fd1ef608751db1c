/* Activations to 8 bits, NEON.  Four values a step. */
#include <arm_neon.h>
#include <string.h>

#include "backend/cpu/kern/arm/linear_arm.h"

#define INLINE static inline __attribute__((always_inline))

INLINE float abs_max(const float *x, size_t n)
{
    uint32x4_t m = vdupq_n_u32(0);
    for (size_t i = 0; i < n; i += 4)
        m = vmaxq_u32(m, vreinterpretq_u32_f32(vabsq_f32(vld1q_f32(x + i))));
    const uint32_t top = vmaxvq_u32(m);
    float f;
    memcpy(&f, &top, sizeof f);
    return f;
}

INLINE int16x4_t round4(const float *x, float inv, float d, float *rest)
{
    const float32x4_t v = vld1q_f32(x);
    const int32x4_t r = vcvtnq_s32_f32(vmulq_n_f32(v, inv));
    if (rest) vst1q_f32(rest, vfmsq_f32(v, vcvtq_f32_s32(r), vdupq_n_f32(d)));
    return vmovn_s32(r);
}

INLINE void round32(const float *x, float inv, float d, int8_t *q, float *rest)
{
    for (int i = 0; i < 32; i += 8) {
        const int16x4_t lo = round4(x + i, inv, d, rest ? rest + i : NULL);
        const int16x4_t hi = round4(x + i + 4, inv, d, rest ? rest + i + 4 : NULL);
        vst1_s8(q + i, vmovn_s16(vcombine_s16(lo, hi)));
    }
}

INLINE void sums4(const int8_t *q, int32_t *out)
{
    vst1q_s32(out, vpaddlq_s16(vpaddlq_s8(vld1q_s8(q))));
    vst1q_s32(out + 4, vpaddlq_s16(vpaddlq_s8(vld1q_s8(q + 16))));
}

INLINE void sums16(const int8_t *q, int32_t *lo, int32_t *hi)
{
    *lo = vaddlvq_s8(vld1q_s8(q));
    *hi = vaddlvq_s8(vld1q_s8(q + 16));
}

#include "backend/cpu/kern/body/linear_quant_body.h"

DEFINE_QUANT(neon_quant32, a8_32, 32, finish32)
DEFINE_QUANT(neon_quant256, a8_256, 256, finish256)
