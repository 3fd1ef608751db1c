/* Codebook super-blocks: IQ1_S, IQ1_M, IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS, IQ3_S, IQ4_XS.
   A code names a point of a grid; signs come beside it.  The grids are facts of the format and live
   in iq_grid_table.c. */
#include "tensor/dequant.h"

static const float iq2_map[4] = {8.0f, 25.0f, 43.0f, 0.0f};
static const float iq3xxs_map[8] = {4.0f, 12.0f, 20.0f, 28.0f, 36.0f, 44.0f, 52.0f, 62.0f};

/* Eight values: scale · map[2-bit element] with signs (bit j for value j). */
static void put8(float *y, float scale, uint32_t point, uint32_t signs)
{
    for (int j = 0; j < 8; j++) {
        const float v = scale * iq2_map[point >> 2 * j & 3];
        y[j] = signs >> j & 1 ? -v : v;
    }
}

/* b: f16 d, 8 groups of 32 values: four grid bytes, u32 of 4×7 sign bits and a 4-bit scale. */
void dequant_iq2_xxs(const uint8_t *b, float *y)
{
    const float d = field_f16(b);
    for (int g = 0; g < 8; g++) {
        const uint8_t *q = b + 2 + 8 * g;
        const uint32_t s = field_u32(q + 4);
        const float scale = d * (0.5f + (float)(s >> 28)) * 0.25f;
        for (int k = 0; k < 4; k++, y += 8)
            put8(y, scale, iq2xxs_grid[q[k]], grid_signs(s >> 7 * k & 127));
    }
}

/* Scale of the i-th run of 16 values: nibbles, low first. */
static float nibble_scale(const uint8_t *s, int i, float d)
{
    return d * (0.5f + (float)(s[i / 2] >> (i % 2 * 4) & 15)) * 0.25f;
}

/* b: f16 d, 32 codes u16 (9 bits of grid, 7 of signs), 8 bytes of scales. */
void dequant_iq2_xs(const uint8_t *b, float *y)
{
    const float d = field_f16(b);
    for (int k = 0; k < 32; k++) {
        const uint32_t q = field_u16(b + 2 + 2 * k);
        put8(y + 8 * k, nibble_scale(b + 66, k / 2, d), iq2xs_grid[q & 511], grid_signs(q >> 9));
    }
}

/* b: f16 d, 32 low grid bytes, 32 sign bytes, 8 bytes with two more grid bits each, 8 of scales. */
void dequant_iq2_s(const uint8_t *b, float *y)
{
    const float d = field_f16(b);
    for (int k = 0; k < 32; k++) {
        const uint32_t high = b[66 + k / 4] >> (k % 4 * 2) & 3;
        put8(y + 8 * k, nibble_scale(b + 74, k / 2, d), iq2s_grid[b[2 + k] | high << 8], b[34 + k]);
    }
}

/* b: f16 d, 64 grid bytes (4 values each), 8 × u32 of 4×7 sign bits and a 4-bit scale. */
void dequant_iq3_xxs(const uint8_t *b, float *y)
{
    const float d = field_f16(b);
    for (int i = 0; i < 256; i++) {
        const uint32_t s = field_u32(b + 66 + i / 32 * 4);
        const float scale = d * (0.5f + (float)(s >> 28)) * 0.5f;
        const uint32_t point = iq3xxs_grid[b[2 + i / 4]];
        const uint32_t signs = grid_signs(s >> (i % 32 / 8 * 7) & 127);
        const float v = scale * iq3xxs_map[point >> 3 * (i % 4) & 7];
        y[i] = signs >> (i % 8) & 1 ? -v : v;
    }
}

/* b: f16 d, 64 low grid bytes, 8 bytes of ninth bits, 32 sign bytes, 4 bytes of scales.
   The grid's levels are the odd numbers 1 … 15. */
void dequant_iq3_s(const uint8_t *b, float *y)
{
    const float d = field_f16(b);
    for (int i = 0; i < 256; i++) {
        const int k = i / 4, g = i / 32;
        const uint32_t high = b[66 + k / 8] >> (k % 8) & 1;
        const uint32_t point = iq3s_grid[b[2 + k] | high << 8];
        const float scale = d * (float)(1 + 2 * (b[106 + g / 2] >> (g % 2 * 4) & 15));
        const float v = scale * (float)(2 * (point >> 3 * (i % 4) & 7) + 1);
        y[i] = b[74 + i / 8] >> (i % 8) & 1 ? -v : v;
    }
}

/* Eight values scale · (t + shift), t ∈ {−1, 0, 1}. */
static void put8_ternary(float *y, float scale, uint32_t point, float shift)
{
    for (int j = 0; j < 8; j++) y[j] = scale * ((float)(int)(point >> 2 * j & 3) - 1.0f + shift);
}

/* b: f16 d, 32 low grid bytes, 8 × u16: 4×3 grid bits, a 3-bit scale, the shift's sign. */
void dequant_iq1_s(const uint8_t *b, float *y)
{
    const float d = field_f16(b);
    for (int k = 0; k < 32; k++) {
        const uint32_t h = field_u16(b + 34 + k / 4 * 2);
        const float scale = d * (float)(2 * (h >> 12 & 7) + 1);
        const uint32_t high = h >> (k % 4 * 3) & 7;
        put8_ternary(y + 8 * k, scale, iq1s_grid[b[2 + k] | high << 8],
                     h & 0x8000 ? -0.125f : 0.125f);
    }
}

/* b: 32 low grid bytes, 16 bytes of nibbles (3 grid bits, the shift's sign), 4 × u16 with 4×3 bits
   of scale; their top nibbles together are the f16 d. */
void dequant_iq1_m(const uint8_t *b, float *y)
{
    const uint8_t *s = b + 48;
    uint32_t half = 0;
    for (int i = 0; i < 4; i++) half |= (uint32_t)(field_u16(s + 2 * i) >> 12) << 4 * i;
    const float d = f16_to_f32((uint16_t)half);
    for (int k = 0; k < 32; k++) {
        const uint32_t nib = b[32 + k / 2] >> (k % 2 * 4) & 15;
        const int run = k / 2; /* of 16 values */
        const uint32_t sc = field_u16(s + run / 4 * 2) >> (run % 4 * 3) & 7;
        put8_ternary(y + 8 * k, d * (float)(2 * sc + 1), iq1s_grid[b[k] | (nib & 7) << 8],
                     nib & 8 ? -0.125f : 0.125f);
    }
}

/* b: f16 d, u16 of two high scale bits a group, 4 bytes of low nibbles, 8 × 16 code bytes. */
void dequant_iq4_xs(const uint8_t *b, float *y)
{
    const float d = field_f16(b);
    const uint32_t high = field_u16(b + 2);
    for (int g = 0; g < 8; g++, y += 32) {
        const int low = b[4 + g / 2] >> (g % 2 * 4) & 15;
        const float scale = d * (float)((low | (int)(high >> 2 * g & 3) << 4) - 32);
        const uint8_t *q = b + 8 + 16 * g;
        for (int j = 0; j < 16; j++) {
            y[j] = scale * (float)iq4_level[q[j] & 15];
            y[j + 16] = scale * (float)iq4_level[q[j] >> 4];
        }
    }
}
