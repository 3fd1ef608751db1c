/* Sixteen f32 lanes as four NEON registers: the words of body/math_body.h, vec_body.h and attend_body.h. */
#ifndef LANES_NEON_H
#define LANES_NEON_H

#include <arm_neon.h>
#include <stddef.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

typedef struct v16 {
    float32x4_t a, b, c, d;
} v16;
typedef struct b16 {
    uint32x4_t a, b, c, d; /* a lane is all ones or all zeros */
} b16;
typedef struct i16 {
    int32x4_t a, b, c, d;
} i16;

INLINE v16 loadf16(const float *p)
{
    return (v16){vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}

INLINE void store16(float *p, v16 x)
{
    vst1q_f32(p, x.a);
    vst1q_f32(p + 4, x.b);
    vst1q_f32(p + 8, x.c);
    vst1q_f32(p + 12, x.d);
}

/* There are no masked loads: the rest of a row goes by way of memory. */
INLINE v16 loadf16_first(const float *p, size_t n)
{
    float lane[16] = {0};
    memcpy(lane, p, n * sizeof *p);
    return loadf16(lane);
}

INLINE void store16_first(float *p, v16 x, size_t n)
{
    float lane[16];
    store16(lane, x);
    memcpy(p, lane, n * sizeof *p);
}

INLINE v16 first16(v16 x, size_t n)
{
    float lane[16];
    store16(lane, x);
    return loadf16_first(lane, n);
}

INLINE v16 set16(float x)
{
    const float32x4_t v = vdupq_n_f32(x);
    return (v16){v, v, v, v};
}

#define BITS(v)   vreinterpretq_u32_f32(v)
#define FLOATS(v) vreinterpretq_f32_u32(v)
#define LANES_2(name, ...)                                                                         \
    INLINE float32x4_t name##_4(float32x4_t x, float32x4_t y)                                      \
    {                                                                                              \
        return __VA_ARGS__;                                                                        \
    }                                                                                              \
    INLINE v16 name(v16 x, v16 y)                                                                  \
    {                                                                                              \
        return (v16){name##_4(x.a, y.a), name##_4(x.b, y.b), name##_4(x.c, y.c),                   \
                     name##_4(x.d, y.d)};                                                          \
    }
LANES_2(add16, vaddq_f32(x, y))
LANES_2(sub16, vsubq_f32(x, y))
LANES_2(mul16, vmulq_f32(x, y))
LANES_2(div16, vdivq_f32(x, y))
LANES_2(max16, vbslq_f32(vcgtq_f32(x, y), x, y))
LANES_2(and16, FLOATS(vandq_u32(BITS(x), BITS(y))))
LANES_2(or16, FLOATS(vorrq_u32(BITS(x), BITS(y))))
LANES_2(xor16, FLOATS(veorq_u32(BITS(x), BITS(y))))
LANES_2(andnot16, FLOATS(vbicq_u32(BITS(y), BITS(x))))
#undef LANES_2

INLINE v16 fma16(v16 x, v16 y, v16 z)
{
    return (v16){vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c),
                 vfmaq_f32(z.d, x.d, y.d)};
}

INLINE v16 fms16(v16 x, v16 y, v16 z)
{
    return fma16(x, y, (v16){vnegq_f32(z.a), vnegq_f32(z.b), vnegq_f32(z.c), vnegq_f32(z.d)});
}

INLINE b16 less16(v16 x, v16 y)
{
    return (b16){vcltq_f32(x.a, y.a), vcltq_f32(x.b, y.b), vcltq_f32(x.c, y.c),
                 vcltq_f32(x.d, y.d)};
}

INLINE v16 pick16(b16 m, v16 yes, v16 no)
{
    return (v16){vbslq_f32(m.a, yes.a, no.a), vbslq_f32(m.b, yes.b, no.b),
                 vbslq_f32(m.c, yes.c, no.c), vbslq_f32(m.d, yes.d, no.d)};
}

INLINE v16 clear16(b16 m, v16 x)
{
    return (v16){FLOATS(vbicq_u32(BITS(x.a), m.a)), FLOATS(vbicq_u32(BITS(x.b), m.b)),
                 FLOATS(vbicq_u32(BITS(x.c), m.c)), FLOATS(vbicq_u32(BITS(x.d), m.d))};
}
#undef BITS
#undef FLOATS

INLINE i16 to_int16(v16 x)
{
    return (i16){vcvtnq_s32_f32(x.a), vcvtnq_s32_f32(x.b), vcvtnq_s32_f32(x.c),
                 vcvtnq_s32_f32(x.d)};
}

INLINE v16 of_int16(i16 n)
{
    return (v16){vcvtq_f32_s32(n.a), vcvtq_f32_s32(n.b), vcvtq_f32_s32(n.c), vcvtq_f32_s32(n.d)};
}

INLINE float32x4_t raise4(float32x4_t x, int32x4_t n)
{
    return vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(x), vshlq_n_s32(n, 23)));
}

INLINE v16 raise16(v16 x, i16 n)
{
    return (v16){raise4(x.a, n.a), raise4(x.b, n.b), raise4(x.c, n.c), raise4(x.d, n.d)};
}

INLINE float v16_max(v16 x)
{
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(x.a, x.b), vmaxq_f32(x.c, x.d)));
}

INLINE float v16_tree(v16 x)
{
    const float32x4_t v4 = vaddq_f32(vaddq_f32(x.a, x.c), vaddq_f32(x.b, x.d));
    return vaddv_f32(vadd_f32(vget_low_f32(v4), vget_high_f32(v4)));
}

#endif
