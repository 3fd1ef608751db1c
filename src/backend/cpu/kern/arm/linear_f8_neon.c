/* Floats of 8 bits made f32, NEON. */
#include <arm_neon.h>

#include "backend/cpu/kern/arm/linear_arm.h"

#define INLINE static inline __attribute__((always_inline))

#include "backend/cpu/kern/body/widen_body.h"

INLINE uint16x8_t to_f16(const int type, uint8x8_t b)
{
    if (type == E5M2) return vshll_n_u8(b, 8);
    /* Bits 15 and 14 are the sign.  f16's exponent wants bit 14 set for a NaN and else clear: adding one to the last
       place turns it for a NaN alone, whose other bits are all set. */
    const uint16x8_t v = vreinterpretq_u16_s16(vshll_n_s8(vreinterpret_s8_u8(b), 7));
    const uint16x8_t sum = vaddq_u16(v, vdupq_n_u16(0x80));
    return vbslq_u16(vdupq_n_u16(0x4000), veorq_u16(v, sum), v);
}

INLINE void put8(const int type, uint8x8_t b, float s, float *y)
{
    const float16x8_t h = vreinterpretq_f16_u16(to_f16(type, b));
    vst1q_f32(y, vmulq_n_f32(vcvt_f32_f16(vget_low_f16(h)), s));
    vst1q_f32(y + 4, vmulq_n_f32(vcvt_high_f32_f16(h), s));
}

INLINE void put16(const int type, const uint8_t *w, float s, float *y)
{
    put8(type, vld1_u8(w), s, y);
    put8(type, vld1_u8(w + 8), s, y + 8);
}

DEFINE_WIDEN(neon)
