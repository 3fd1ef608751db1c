/* Blocks of 32 (64) values under one scale: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, IQ4_NL, MXFP4, NVFP4.
   4-bit codes lie as in all of GGUF: byte j holds value j low and value j + half a block high. */
#include "tensor/dequant.h"

const int8_t iq4_level[16] = {IQ4_LEVELS};

/* b: f16 d, 16 code bytes.  y = d·(q − 8) */
void dequant_q4_0(const uint8_t *b, float *y)
{
    const float d = field_f16(b);
    for (int j = 0; j < 16; j++) {
        y[j] = d * (float)((b[2 + j] & 15) - 8);
        y[j + 16] = d * (float)((b[2 + j] >> 4) - 8);
    }
}

/* b: f16 d, f16 m, 16 code bytes.  y = d·q + m */
void dequant_q4_1(const uint8_t *b, float *y)
{
    const float d = field_f16(b), m = field_f16(b + 2);
    for (int j = 0; j < 16; j++) {
        y[j] = d * (float)(b[4 + j] & 15) + m;
        y[j + 16] = d * (float)(b[4 + j] >> 4) + m;
    }
}

/* The fifth bit of value i is bit i of `high`. */
static int code5(int low, uint32_t high, int i)
{
    return low | (int)(high >> i & 1) << 4;
}

/* b: f16 d, u32 fifth bits, 16 code bytes.  y = d·(q − 16) */
void dequant_q5_0(const uint8_t *b, float *y)
{
    const float d = field_f16(b);
    const uint32_t high = field_u32(b + 2);
    for (int j = 0; j < 16; j++) {
        y[j] = d * (float)(code5(b[6 + j] & 15, high, j) - 16);
        y[j + 16] = d * (float)(code5(b[6 + j] >> 4, high, j + 16) - 16);
    }
}

/* b: f16 d, f16 m, u32 fifth bits, 16 code bytes.  y = d·q + m */
void dequant_q5_1(const uint8_t *b, float *y)
{
    const float d = field_f16(b), m = field_f16(b + 2);
    const uint32_t high = field_u32(b + 4);
    for (int j = 0; j < 16; j++) {
        y[j] = d * (float)code5(b[8 + j] & 15, high, j) + m;
        y[j + 16] = d * (float)code5(b[8 + j] >> 4, high, j + 16) + m;
    }
}

/* b: f16 d, 32 signed bytes.  y = q·d */
void dequant_q8_0(const uint8_t *b, float *y)
{
    const float d = field_f16(b);
    for (int j = 0; j < 32; j++) y[j] = (float)(int8_t)b[2 + j] * d;
}

/* b: f16 d, 16 code bytes.  y = d·level[q] */
void dequant_iq4_nl(const uint8_t *b, float *y)
{
    const float d = field_f16(b);
    for (int j = 0; j < 16; j++) {
        y[j] = d * (float)iq4_level[b[2 + j] & 15];
        y[j + 16] = d * (float)iq4_level[b[2 + j] >> 4];
    }
}

/* b: e8m0 scale, 16 code bytes */
void dequant_mxfp4(const uint8_t *b, float *y)
{
    const float d = e8m0_half(b[0]);
    for (int j = 0; j < 16; j++) {
        y[j] = d * (float)e2m1_level[b[1 + j] & 15];
        y[j + 16] = d * (float)e2m1_level[b[1 + j] >> 4];
    }
}

/* Half of an unsigned e4m3 value; the sign bit is ignored and 0x7f counts as zero. */
static float ue4m3_half(uint8_t x)
{
    const uint32_t e = x >> 3 & 15, m = x & 7;
    if (x == 0x7f) return 0.0f;
    if (e == 0) return (float)m * (1.0f / 1024.0f);
    return f32_from_bits((e + 119) << 23 | m << 20);
}

/* b: four e4m3 scales, one a group of 16; then 8 code bytes a group */
void dequant_nvfp4(const uint8_t *b, float *y)
{
    for (int g = 0; g < 4; g++, y += 16) {
        const float d = ue4m3_half(b[g]);
        const uint8_t *q = b + 4 + 8 * g;
        for (int j = 0; j < 8; j++) {
            y[j] = d * (float)e2m1_level[q[j] & 15];
            y[j + 8] = d * (float)e2m1_level[q[j] >> 4];
        }
    }
}
