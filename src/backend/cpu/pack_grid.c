/* The codebook and ternary types into tiles (kern/kern_linear.h has the layout).  A tile keeps the levels
   that codes of the file look up, so that a kernel needs no table larger than a register: more bytes than
   the file has, in exchange for decoding at the speed of memory. */
#include <string.h>

#include "backend/cpu/tiles.h"
#include "tensor/grid.h"

enum { GROUP_ROWS = 16 };

/* What follows d[32] in each group. */
typedef struct grid_form {
    dtype type;
    uint8_t scale_lines; /* nibbles of 8 scales a line */
    uint8_t high_lines;  /* 8: signs; 1: shifts */
    bool nibbles;        /* codes of four bits; else of two */
} grid_form;

static const grid_form forms[TILE_COUNT] = {
    [TILE_IQ3_S] = {DT_IQ3_S, 1, 0, true},      [TILE_IQ3_XXS] = {DT_IQ3_XXS, 1, 0, true},
    [TILE_IQ2_XXS] = {DT_IQ2_XXS, 1, 8, false}, [TILE_IQ2_XS] = {DT_IQ2_XS, 2, 8, false},
    [TILE_IQ2_S] = {DT_IQ2_S, 2, 8, false},     [TILE_IQ1_S] = {DT_IQ1_S, 1, 1, false},
    [TILE_IQ1_M] = {DT_IQ1_M, 2, 1, false},     [TILE_TQ1_0] = {DT_TQ1_0, 0, 0, false},
    [TILE_TQ2_0] = {DT_TQ2_0, 0, 0, false},
};

/* Four bytes at `line` of row i of a group. */
static void put_word(uint8_t *line, size_t i, const uint8_t word[4])
{
    memcpy(line + 4 * i, word, 4);
}

static void put_scales(const grid_form *f, const grid_block *b, size_t i, uint8_t *line)
{
    const size_t next = f->scale_lines == 2 ? 1 : 2; /* one of 16, or of 32 weights */
    for (size_t l = 0; l < f->scale_lines; l++) {
        uint8_t word[4];
        for (size_t n = 0; n < 4; n++) {
            const uint8_t *s = b->scale + (8 * l + 2 * n) * next;
            word[n] = (uint8_t)(s[0] | s[next] << 4);
        }
        put_word(line + TILE_LINE * l, i, word);
    }
}

static void put_signs(const grid_block *b, size_t i, uint8_t *line)
{
    for (size_t s = 0; s < 8; s++) {
        uint8_t word[4] = {0};
        for (size_t n = 0; n < 4; n++)
            for (size_t k = 0; k < 8; k++)
                word[n] |= (uint8_t)((b->code[32 * k + 4 * s + n] >> 2 & 1) << k);
        put_word(line + TILE_LINE * s, i, word);
    }
}

/* Codes of 8 / `each` bits: those of a byte are 32 weights apart. */
static void put_codes(const grid_block *b, size_t each, size_t i, uint8_t *line)
{
    const size_t bits = 8 / each, mask = ((size_t)1 << bits) - 1;
    for (size_t l = 0; l < 64 / each; l++) {
        const uint8_t *code = b->code + l / 8 * 32 * each + 4 * (l % 8);
        uint8_t word[4] = {0};
        for (size_t n = 0; n < 4; n++)
            for (size_t c = 0; c < each; c++)
                word[n] |= (uint8_t)((code[32 * c + n] & mask) << bits * c);
        put_word(line + TILE_LINE * l, i, word);
    }
}

static void put_block(const grid_form *f, const grid_block *b, size_t r, uint8_t *block)
{
    const size_t codes = f->nibbles ? 32 : 16, i = r % GROUP_ROWS;
    const size_t group = (size_t)f->scale_lines + f->high_lines + codes;
    uint8_t *line = block + TILE_LINE * (1 + r / GROUP_ROWS * group);
    memcpy(block + 2 * r, &b->d, sizeof b->d);
    put_scales(f, b, i, line);
    line += TILE_LINE * f->scale_lines;
    if (f->high_lines == 8) put_signs(b, i, line);
    if (f->high_lines == 1) memcpy(line + 4 * i, &b->shift, sizeof b->shift);
    put_codes(b, f->nibbles ? 2 : 4, i, line + TILE_LINE * f->high_lines);
}

void grid_pack(tile_type t, const uint8_t *rows, size_t row_bytes, int32_t n_row, int32_t n_block,
               uint8_t *tile)
{
    const grid_form f = forms[t];
    const size_t size = (size_t)dtype_block_bytes(f.type), block = tile_block_bytes(t);
    for (size_t n = 0; n < (size_t)n_block; n++, tile += block) {
        if (n_row < TILE_ROWS) memset(tile, 0, block);
        for (size_t r = 0; r < (size_t)n_row; r++) {
            grid_block b;
            grid_read(f.type, rows + r * row_bytes + n * size, &b);
            put_block(&f, &b, r, tile);
        }
    }
}
