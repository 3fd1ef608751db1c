/* NEON: attention.  A tile of mm holds up to 6 vectors × 16 columns or 1 × 64 in 24 registers of sums at
   most; 6 × 16 needs 4 registers of the cache and 6 numbers for 24 multiply-adds. */
#include <string.h>

#include "backend/cpu/kern/arm/lanes_neon.h"
#include "backend/cpu/kern/kern_vec.h"

#include "backend/cpu/kern/body/math_body.h"

INLINE float32x4_t load4(kv_kind c, const uint8_t *p)
{
    if (c == KV_F32) return vld1q_f32((const float *)(const void *)p);
    const uint16x4_t h = vld1_u16((const uint16_t *)(const void *)p);
    if (c == KV_F16) return vcvt_f32_f16(vreinterpret_f16_u16(h));
    return vreinterpretq_f32_u32(vshll_n_u16(h, 16));
}

INLINE v16 load16(kv_kind c, const uint8_t *p)
{
    const size_t step = c == KV_F32 ? 16 : 8;
    return (v16){load4(c, p), load4(c, p + step), load4(c, p + 2 * step), load4(c, p + 3 * step)};
}

enum { TILE_A = 6, TILE_FULL_T = 1, EXP_EACH = 1 };
/* Widening is one operation for four of a step of one vector, and beside six it hardly shows. */
enum { MM_DIRECT = INT32_MAX };
#define TILE_SHAPES(X) X(1, 4) X(2, 2) X(3, 1) X(4, 1) X(5, 1) X(6, 1)

INLINE v16 over16(v16 x, v16 d, v16 inv)
{
    (void)inv;
    return div16(x, d);
}

#include "backend/cpu/kern/body/attend_body.h"
#include "backend/cpu/kern/body/attend_tile_body.h"

INLINE uint16x4_t to_f16(float32x4_t x)
{
    /* NaN passes: it is neither above nor below. */
    const float32x4_t most = vdupq_n_f32(65504.0f), least = vdupq_n_f32(-65504.0f);
    x = vbslq_f32(vcgtq_f32(x, most), most, x);
    x = vbslq_f32(vcltq_f32(x, least), least, x);
    return vreinterpret_u16_f16(vcvt_f16_f32(x));
}

INLINE uint16x4_t to_bf16(float32x4_t x)
{
    const uint32x4_t u = vreinterpretq_u32_f32(x), top = vshrq_n_u32(u, 16);
    const uint32x4_t odd = vandq_u32(top, vdupq_n_u32(1));
    const uint32x4_t round = vaddq_u32(u, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    const uint32x4_t quiet = vorrq_u32(top, vdupq_n_u32(0x40));
    return vmovn_u32(vbslq_u32(vceqq_f32(x, x), vshrq_n_u32(round, 16), quiet));
}

#define DEFINE_ENCODE(name)                                                                        \
    static void encode_##name##_neon(void *dst, const float *src, size_t n)                        \
    {                                                                                              \
        uint16_t *d = dst;                                                                         \
        size_t i = 0;                                                                              \
        for (; i + 4 <= n; i += 4) vst1_u16(d + i, to_##name(vld1q_f32(src + i)));                 \
        for (; i < n; i++) d[i] = vget_lane_u16(to_##name(vdupq_n_f32(src[i])), 0);                \
    }
DEFINE_ENCODE(f16)
DEFINE_ENCODE(bf16)

void kern_attend_neon(kern_vec *v)
{
    attend_install(v);
    v->encode[KV_F16] = encode_f16_neon;
    v->encode[KV_BF16] = encode_bf16_neon;
}
