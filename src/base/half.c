/* Small floats, in integer arithmetic only, so that the result depends on no mode of the machine. */
#include "base/half.h"

enum { F32_INF = 0x7f800000 };

uint16_t bf16_from_f32(float x)
{
    const uint32_t u = f32_bits(x);
    if ((u & 0x7fffffffu) > F32_INF) return (uint16_t)(u >> 16 | 0x40); /* quiet, never infinity */
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

float f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t e = h >> 10 & 31u, m = h & 0x3ffu;
    if (e == 31) return f32_from_bits(sign | F32_INF | m << 13);
    if (e != 0) return f32_from_bits(sign | (e + 112) << 23 | m << 13);
    /* m · 2^-24 is exact: ten bits, and far above f32's smallest */
    const float x = (float)m * 0x1p-24f;
    return f32_from_bits(sign | f32_bits(x));
}

/* v · 2^-shift to nearest, ties to even; 1 <= shift <= 31 */
static uint32_t shift_rne(uint32_t v, uint32_t shift)
{
    const uint32_t half = 1u << (shift - 1), rest = v & ((half << 1) - 1), q = v >> shift;
    return q + (rest > half || (rest == half && (q & 1)));
}

uint16_t f16_from_f32(float x)
{
    const uint32_t u = f32_bits(x), a = u & 0x7fffffffu;
    const uint32_t sign = u >> 16 & 0x8000u, e = a >> 23;
    if (a > F32_INF) return (uint16_t)(sign | 0x7e00u | (a >> 13 & 0x1ffu));
    if (a >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* 65520 and more */
    if (a >= 0x38800000u) return (uint16_t)(sign | shift_rne(a - (112u << 23), 13));
    if (e < 102) return (uint16_t)sign; /* below half of the smallest, 2^-25 */
    return (uint16_t)(sign | shift_rne((a & 0x7fffffu) | 0x800000u, 126 - e));
}

uint16_t f16_from_f32_sat(float x)
{
    const uint16_t h = f16_from_f32(x);
    return (h & 0x7fffu) == 0x7c00u ? (uint16_t)((h & 0x8000u) | 0x7bffu) : h;
}

float e4m3_to_f32(uint8_t b)
{
    const uint32_t sign = (uint32_t)(b & 0x80u) << 24;
    const uint32_t e = b >> 3 & 15u, m = b & 7u;
    if (e == 15 && m == 7) return f32_from_bits(sign | 0x7fc00000u);
    if (e != 0) return f32_from_bits(sign | (e + 120) << 23 | m << 20);
    const float x = (float)m * 0x1p-9f;
    return f32_from_bits(sign | f32_bits(x));
}

float e8m0_to_f32(uint8_t b)
{
    if (b == 255) return f32_from_bits(0x7fc00000u);
    return f32_from_bits(b == 0 ? 0x00400000u : (uint32_t)b << 23);
}

const int8_t e2m1_level[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

float e8m0_half(uint8_t b)
{
    return f32_from_bits(b < 2 ? UINT32_C(0x00200000) << b : (uint32_t)(b - 1) << 23);
}
