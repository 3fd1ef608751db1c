/* Floats of 8 bits made f32, NEON: eight a step, by way of f16, whose conversion takes denormals as they are.  An e4m3
   moved to an f16's places is 2^−8 of its value, which goes into the scale: exact, as long as that stays finite. */
#include <arm_neon.h>
#include <math.h>
#include <string.h>

#include "backend/cpu/kern/arm/linear_arm.h"
#include "backend/cpu/kern/ref/linear_ref.h"

#define INLINE static inline __attribute__((always_inline))

enum { E4M3, E5M2 };

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

INLINE void widen(const int type, const uint8_t *w, int32_t n, float s, float *y)
{
    const float up = type == E4M3 ? s * 256.0f : s;
    int32_t i = 0;
    for (; i + 8 <= n; i += 8) put8(type, vld1_u8(w + i), up, y + i);
    if (i == n) return;
    uint8_t last[8] = {0};
    float out[8];
    memcpy(last, w + i, (size_t)(n - i));
    put8(type, vld1_u8(last), up, out);
    memcpy(y + i, out, (size_t)(n - i) * sizeof *y);
}

void neon_widen_e4m3(const uint8_t *w, int32_t n, float s, float *y)
{
    if (fabsf(s) > 0x1p119f)
        ref_widen_e4m3(w, n, s, y);
    else
        widen(E4M3, w, n, s, y);
}

void neon_widen_e5m2(const uint8_t *w, int32_t n, float s, float *y)
{
    widen(E5M2, w, n, s, y);
}
