/* Codebook and ternary blocks as integers.  Where the bits lie is said at the functions of dequant_iq.c and
   dequant_256.c, which make the same blocks floats. */
#include "tensor/grid.h"

#include <assert.h>
#include <string.h>

#include "tensor/dequant.h"

/* Eight codes from a point of 2-bit elements, `bit` set in those with a sign. */
static void put8(uint8_t *code, uint32_t point, uint32_t signs, unsigned bit)
{
    for (unsigned j = 0; j < 8; j++)
        code[j] = (uint8_t)((point >> 2 * j & 3) | (signs >> j & 1) << bit);
}

/* Four, of 3-bit elements. */
static void put4(uint8_t *code, uint32_t point, uint32_t signs)
{
    for (unsigned j = 0; j < 4; j++)
        code[j] = (uint8_t)((point >> 3 * j & 7) | (signs >> j & 1) << 3);
}

/* Scales of 32 weights: nibbles, low first. */
static void scales8(const uint8_t *p, grid_block *out)
{
    for (size_t i = 0; i < 16; i++) out->scale[i] = p[i / 4] >> (i / 2 % 2 * 4) & 15;
}
/* Scales of 16. */
static void scales16(const uint8_t *p, grid_block *out)
{
    for (size_t i = 0; i < 16; i++) out->scale[i] = p[i / 2] >> (i % 2 * 4) & 15;
}

static void iq2_xxs(const uint8_t *b, grid_block *out)
{
    for (size_t k = 0; k < 32; k++) {
        const uint8_t *q = b + 2 + k / 4 * 8;
        const uint32_t s = field_u32(q + 4);
        put8(out->code + 8 * k, iq2xxs_grid[q[k % 4]], grid_signs(s >> 7 * (k % 4) & 127), 2);
        out->scale[k / 2] = (uint8_t)(s >> 28);
    }
}

static void iq2_xs(const uint8_t *b, grid_block *out)
{
    for (size_t k = 0; k < 32; k++) {
        const uint32_t q = field_u16(b + 2 + 2 * k);
        put8(out->code + 8 * k, iq2xs_grid[q & 511], grid_signs(q >> 9), 2);
    }
    scales16(b + 66, out);
}

static void iq2_s(const uint8_t *b, grid_block *out)
{
    for (size_t k = 0; k < 32; k++) {
        const uint32_t high = b[66 + k / 4] >> (k % 4 * 2) & 3;
        put8(out->code + 8 * k, iq2s_grid[b[2 + k] | high << 8], b[34 + k], 2);
    }
    scales16(b + 74, out);
}

static void iq3_xxs(const uint8_t *b, grid_block *out)
{
    for (size_t k = 0; k < 64; k++) {
        const uint32_t s = field_u32(b + 66 + k / 8 * 4);
        const uint32_t signs = grid_signs(s >> (k % 8 / 2 * 7) & 127);
        put4(out->code + 4 * k, iq3xxs_grid[b[2 + k]], signs >> 4 * (k % 2));
        out->scale[k / 4] = (uint8_t)(s >> 28);
    }
}

static void iq3_s(const uint8_t *b, grid_block *out)
{
    for (size_t k = 0; k < 64; k++) {
        const uint32_t high = b[66 + k / 8] >> (k % 8) & 1;
        put4(out->code + 4 * k, iq3s_grid[b[2 + k] | high << 8],
             (uint32_t)b[74 + k / 2] >> 4 * (k % 2));
    }
    scales8(b + 106, out);
}

static void iq1_s(const uint8_t *b, grid_block *out)
{
    for (size_t k = 0; k < 32; k++) {
        const uint32_t h = field_u16(b + 34 + k / 4 * 2), high = h >> (k % 4 * 3) & 7;
        put8(out->code + 8 * k, iq1s_grid[b[2 + k] | high << 8], 0, 0);
        out->shift |= (h >> 15) << k;
        out->scale[k / 2] = h >> 12 & 7;
    }
}

static void iq1_m(const uint8_t *b, grid_block *out)
{
    const uint8_t *s = b + 48;
    out->d = 0;
    for (size_t i = 0; i < 4; i++) out->d |= (uint16_t)(field_u16(s + 2 * i) >> 12 << 4 * i);
    for (size_t k = 0; k < 32; k++) {
        const uint32_t nib = b[32 + k / 2] >> (k % 2 * 4) & 15;
        put8(out->code + 8 * k, iq1s_grid[b[k] | (nib & 7) << 8], 0, 0);
        out->shift |= (nib >> 3) << k;
        out->scale[k / 2] = field_u16(s + k / 8 * 2) >> (k / 2 % 4 * 3) & 7;
    }
}

static void tq1_0(const uint8_t *b, grid_block *out)
{
    static const uint8_t pow3[5] = {1, 3, 9, 27, 81};
    uint8_t *code = out->code;
    for (size_t at = 0; at < 52; at += at == 0 ? 32 : at == 32 ? 16 : 4) {
        const size_t bytes = at == 0 ? 32 : at == 32 ? 16 : 4, digits = at == 48 ? 4 : 5;
        for (size_t n = 0; n < digits; n++)
            for (size_t j = 0; j < bytes; j++)
                *code++ = (uint8_t)((uint8_t)(b[at + j] * pow3[n]) * 3 >> 8);
    }
}

static void tq2_0(const uint8_t *b, grid_block *out)
{
    for (size_t i = 0; i < 256; i++)
        out->code[i] = b[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}

static const struct {
    dtype type;
    uint8_t d_at;
    void (*read)(const uint8_t *b, grid_block *out);
} types[] = {{DT_IQ2_XXS, 0, iq2_xxs}, {DT_IQ2_XS, 0, iq2_xs}, {DT_IQ2_S, 0, iq2_s},
             {DT_IQ3_XXS, 0, iq3_xxs}, {DT_IQ3_S, 0, iq3_s},   {DT_IQ1_S, 0, iq1_s},
             {DT_IQ1_M, 0, iq1_m},     {DT_TQ1_0, 52, tq1_0},  {DT_TQ2_0, 64, tq2_0}};

static size_t place(dtype t)
{
    size_t i = 0;
    while (i < sizeof types / sizeof *types && types[i].type != t) i++;
    return i;
}

bool grid_type(dtype t)
{
    return place(t) < sizeof types / sizeof *types;
}

void grid_read(dtype t, const uint8_t *b, grid_block *out)
{
    const size_t i = place(t);
    assert(i < sizeof types / sizeof *types);
    memset(out->scale, 0, sizeof out->scale);
    out->shift = 0;
    out->d = field_u16(b + types[i].d_at);
    types[i].read(b, out);
}
