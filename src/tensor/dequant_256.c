/* Super-blocks of 256 values with scales of scales: Q2_K … Q6_K, and the ternary TQ1_0, TQ2_0.
   Each function's comment gives the byte layout. */
#include "tensor/dequant.h"

/* b: 16 bytes scale (low nibble) and min (high), 64 code bytes, f16 d, f16 dmin.
   Byte j of 32 holds values j, j + 32, j + 64, j + 96 of a half at bits 0, 2, 4, 6. */
void dequant_q2_k(const uint8_t *b, float *y)
{
    const float d = field_f16(b + 80), dmin = field_f16(b + 82);
    for (int i = 0; i < 256; i++) {
        const int half = i / 128, shift = i % 128 / 32 * 2;
        const float dl = d * (float)(b[i / 16] & 15), ml = dmin * (float)(b[i / 16] >> 4);
        const int q = b[16 + 32 * half + i % 32] >> shift & 3;
        y[i] = dl * (float)q - ml;
    }
}

/* Sixteen 6-bit scales in 12 bytes: low nibbles of s[0…7], then high ones; above them two bits each
   in s[8…11], byte i mod 4, lowest first. */
static int q3_scale(const uint8_t *s, int i)
{
    const int low = i < 8 ? s[i] & 15 : s[i - 8] >> 4;
    return (low | (s[8 + i % 4] >> (i / 4 * 2) & 3) << 4) - 32;
}

/* b: 32 bytes of third bits (one bit a run of 32 values), 64 code bytes as in Q2_K, 12 bytes of
   scales, f16 d.  A third bit of 0 subtracts 4. */
void dequant_q3_k(const uint8_t *b, float *y)
{
    const float d = field_f16(b + 108);
    for (int i = 0; i < 256; i++) {
        const int half = i / 128, shift = i % 128 / 32 * 2;
        const float dl = d * (float)q3_scale(b + 96, i / 16);
        const int q = b[32 + 32 * half + i % 32] >> shift & 3;
        const int high = b[i % 32] >> (i / 32) & 1;
        y[i] = dl * (float)(high ? q : q - 4);
    }
}

/* Eight 6-bit pairs (scale, min) in 12 bytes: the first four plain in s[0…3] and s[4…7]; the others
   as nibbles of s[8…11] with their two top bits above the plain ones. */
static void q4_scale_min(const uint8_t *s, int g, float *sc, float *m)
{
    if (g < 4) {
        *sc = (float)(s[g] & 63);
        *m = (float)(s[g + 4] & 63);
    } else {
        *sc = (float)((s[g + 4] & 15) | (s[g - 4] >> 2 & 48));
        *m = (float)(s[g + 4] >> 4 | (s[g] >> 2 & 48));
    }
}

/* b: f16 d, f16 dmin, 12 bytes of scales, 128 code bytes: 32 bytes hold two groups of 32. */
void dequant_q4_k(const uint8_t *b, float *y)
{
    const float d = field_f16(b), dmin = field_f16(b + 2);
    for (int g = 0; g < 8; g++, y += 32) {
        const uint8_t *q = b + 16 + g / 2 * 32;
        float sc, m;
        q4_scale_min(b + 4, g, &sc, &m);
        const float dl = d * sc, ml = dmin * m;
        for (int j = 0; j < 32; j++) y[j] = dl * (float)(q[j] >> (g % 2 * 4) & 15) - ml;
    }
}

/* b: as Q4_K, with 32 bytes of fifth bits (bit g for group g) before the codes. */
void dequant_q5_k(const uint8_t *b, float *y)
{
    const float d = field_f16(b), dmin = field_f16(b + 2);
    for (int g = 0; g < 8; g++, y += 32) {
        const uint8_t *high = b + 16, *q = b + 48 + g / 2 * 32;
        float sc, m;
        q4_scale_min(b + 4, g, &sc, &m);
        const float dl = d * sc, ml = dmin * m;
        for (int j = 0; j < 32; j++) {
            const int c = (q[j] >> (g % 2 * 4) & 15) | (high[j] >> g & 1) << 4;
            y[j] = dl * (float)c - ml;
        }
    }
}

/* b: 128 bytes of low nibbles (64 bytes hold 128 values), 64 bytes of two high bits as in Q2_K,
   16 signed scales, f16 d. */
void dequant_q6_k(const uint8_t *b, float *y)
{
    const float d = field_f16(b + 208);
    for (int i = 0; i < 256; i++) {
        const int half = i / 128, k = i % 128;
        const float dl = d * (float)(int8_t)b[192 + i / 16];
        const int low = b[64 * half + k % 64] >> (k / 64 * 4) & 15;
        const int high = b[128 + 32 * half + k % 32] >> (k / 32 * 2) & 3;
        y[i] = dl * (float)((low | high << 4) - 32);
    }
}

/* Digit n of a base-3 fraction stored in a byte: multiply up modulo 256, take the integer part. */
static float trit(uint8_t byte, int n)
{
    static const uint8_t pow3[5] = {1, 3, 9, 27, 81};
    const uint8_t up = (uint8_t)(byte * pow3[n]);
    return (float)((up * 3 >> 8) - 1);
}

/* b: 48 bytes of five digits (32 bytes, then 16), 4 bytes of four, f16 d.  Digit n of all bytes of
   a run comes before digit n + 1. */
void dequant_tq1_0(const uint8_t *b, float *y)
{
    static const struct {
        int at, bytes, digits;
    } run[3] = {{0, 32, 5}, {32, 16, 5}, {48, 4, 4}};
    const float d = field_f16(b + 52);
    for (int r = 0; r < 3; r++)
        for (int n = 0; n < run[r].digits; n++)
            for (int j = 0; j < run[r].bytes; j++) *y++ = d * trit(b[run[r].at + j], n);
}

/* b: 64 code bytes as in Q2_K, f16 d.  y = d·(q − 1) */
void dequant_tq2_0(const uint8_t *b, float *y)
{
    const float d = field_f16(b + 64);
    for (int i = 0; i < 256; i++) {
        const int half = i / 128, shift = i % 128 / 32 * 2;
        y[i] = d * (float)((b[32 * half + i % 32] >> shift & 3) - 1);
    }
}
