/* Dense weights by lane16, NEON: the sixteen lanes are four registers.  A block of 2 weight rows and 2
   activation rows shares every load: 16 accumulators of 32 registers. */
#include <string.h>

#include "backend/cpu/kern/arm/lanes_neon.h"
#include "backend/cpu/kern/arm/linear_arm.h"

enum { BLOCK_W = 2, BLOCK_X = 2 };

#include "backend/cpu/kern/body/linear_dense_body.h"

INLINE float32x4_t load4(const int type, const uint8_t *w)
{
    if (type == F32) return vreinterpretq_f32_u8(vld1q_u8(w));
    const uint8x8_t h = vld1_u8(w);
    if (type == F16) return vcvt_f32_f16(vreinterpret_f16_u8(h));
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(h), 16));
}

INLINE v16 load16(const int type, const uint8_t *w)
{
    const size_t step = type == F32 ? 16 : 8;
    return (v16){load4(type, w), load4(type, w + step), load4(type, w + 2 * step),
                 load4(type, w + 3 * step)};
}

#include "backend/cpu/kern/body/linear_dense_lanes_body.h"

DEFINE_DENSE(neon_dense_f32, F32)
DEFINE_DENSE(neon_dense_f16, F16)
DEFINE_DENSE(neon_dense_bf16, BF16)
