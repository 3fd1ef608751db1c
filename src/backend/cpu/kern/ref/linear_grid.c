/* Tiles of the codebook and ternary types: the definition, made of that of 256 weights a block:
     I = Σ_j sc_j Σ w·q over 16 sub-blocks of 16;  t = RN(d·RN(I));  y = fma(t, dx, y)
   w are whole levels, sc odd numbers up to 31 (TQ: 1), d the file's times the power of two that the levels
   leave (1, 1/2 or 1/8), exact.  |I| ≤ 31·43·127·256 = 43.4 M. */
#include <string.h>

#include "backend/cpu/kern/grid_levels.h"
#include "backend/cpu/kern/ref/linear_tile256.h"
#include "base/half.h"

/* Where the parts of a group lie, by lines. */
typedef struct grid_shape {
    int32_t scale_lines, high_lines, code_lines;
    float unit; /* what d is multiplied by */
    int8_t level[16];
} grid_shape;

static uint8_t byte_of(const uint8_t *line, int32_t i_line, int32_t row, int32_t n)
{
    return line[TILE_LINE * i_line + 4 * row + n];
}

/* The level's place of weight k of row i, from the group's codes and high bits. */
static int32_t index_of(const grid_shape *g, const uint8_t *high, const uint8_t *codes, int32_t i,
                        int32_t k)
{
    const int32_t n = k % 4, s = k % 32 / 4;
    if (g->code_lines == 32) return byte_of(codes, k / 64 * 8 + s, i, n) >> (k % 64 / 32 * 4) & 15;
    const int32_t low = byte_of(codes, k / 128 * 8 + s, i, n) >> (k % 128 / 32 * 2) & 3;
    if (g->high_lines == 8) return low | (byte_of(high, s, i, n) >> k / 32 & 1) << 2;
    if (g->high_lines == 1) return low | (byte_of(high, 0, i, k / 64) >> (k / 8 % 8) & 1) << 2;
    return low;
}

static int32_t scale_of(const grid_shape *g, const uint8_t *line, int32_t i, int32_t run)
{
    if (g->scale_lines == 0) return 1;
    const int32_t j = g->scale_lines == 2 ? run : run / 2;
    return 2 * (byte_of(line, j / 8, i, j % 8 / 2) >> (j % 2 * 4) & 15) + 1;
}

static void unpack_grid(const grid_shape *g, const uint8_t *p, block256 *out)
{
    const int32_t lines = g->scale_lines + g->high_lines + g->code_lines;
    for (int32_t r = 0; r < TILE_ROWS; r++) {
        const uint8_t *group = p + TILE_LINE * (1 + r / 16 * lines);
        const uint8_t *high = group + TILE_LINE * g->scale_lines;
        const uint8_t *codes = high + TILE_LINE * g->high_lines;
        uint16_t d;
        memcpy(&d, p + 2 * r, sizeof d);
        out->d[r] = f16_to_f32(d) * g->unit;
        for (int32_t j = 0; j < 16; j++) out->sc[r][j] = (int8_t)scale_of(g, group, r % 16, j);
        for (int32_t k = 0; k < 256; k++)
            out->w[r][k] = g->level[index_of(g, high, codes, r % 16, k)];
    }
}

/* Lines of scales, of high bits, of codes. */
#define LINES_IQ3_S   1, 0, 32
#define LINES_IQ3_XXS 1, 0, 32
#define LINES_IQ2_XXS 1, 8, 16
#define LINES_IQ2_S   2, 8, 16
#define LINES_IQ1_S   1, 1, 16
#define LINES_IQ1_M   2, 1, 16
#define LINES_TQ      0, 0, 16

#define DEFINE_UNPACK(name, down, ...)                                                             \
    static void unpack_##name(const uint8_t *p, block256 *out)                                     \
    {                                                                                              \
        static const grid_shape g = {LINES_##name, 1.0f / (1 << (down)), {__VA_ARGS__}};           \
        unpack_grid(&g, p, out);                                                                   \
    }
GRID_LIST(DEFINE_UNPACK)

DEFINE_TILE256(ref_tile_iq3_s, TILE_IQ3_S, 16, false, unpack_IQ3_S)
DEFINE_TILE256(ref_tile_iq3_xxs, TILE_IQ3_XXS, 16, false, unpack_IQ3_XXS)
DEFINE_TILE256(ref_tile_iq2_xxs, TILE_IQ2_XXS, 16, false, unpack_IQ2_XXS)
DEFINE_TILE256(ref_tile_iq2_s, TILE_IQ2_S, 16, false, unpack_IQ2_S)
DEFINE_TILE256(ref_tile_iq1_s, TILE_IQ1_S, 16, false, unpack_IQ1_S)
DEFINE_TILE256(ref_tile_iq1_m, TILE_IQ1_M, 16, false, unpack_IQ1_M)
DEFINE_TILE256(ref_tile_tq, TILE_TQ2_0, 16, false, unpack_TQ)
