/* Codes of e2m1 into tiles (kern/kern_linear.h has the layout), from GGUF's blocks and from files that
   keep codes and scales apart: the same weights make the same tile, whichever file they come from.
   Only places change; scales stay bytes. */
#include <string.h>

#include "backend/cpu/tiles.h"
#include "tensor/packed.h"
#include "tensor/weight.h"

/* 32 codes of a row: byte i has w[i] low and w[16 + i] high.  MXFP4 has one scale. */
typedef struct fp4_block {
    uint8_t code[16];
    uint8_t scale[2];
} fp4_block;

static void gguf_mxfp4(const uint8_t *row, size_t b, fp4_block *out)
{
    const uint8_t *p = row + 17 * b;
    out->scale[0] = p[0];
    memcpy(out->code, p + 1, sizeof out->code);
}

/* The format's reference ignores the sign and takes 0x7f, which is no number, for 0. */
static uint8_t gguf_e4m3(uint8_t x)
{
    return x == 0x7f ? 0 : x & 0x7f;
}

/* Blocks of 64: four scales, then 8 bytes a group of 16: byte j has w[j] and w[8 + j]. */
static void gguf_nvfp4(const uint8_t *row, size_t b, fp4_block *out)
{
    const uint64_t low = UINT64_C(0x0f0f0f0f0f0f0f0f);
    const uint8_t *p = row + 36 * (b / 2);
    const size_t g = 2 * (b % 2);
    uint64_t first, second;
    memcpy(&first, p + 4 + 8 * g, sizeof first);
    memcpy(&second, p + 12 + 8 * g, sizeof second);
    const uint64_t w0 = (first & low) | (second & low) << 4;
    const uint64_t w8 = (first >> 4 & low) | (second & ~low);
    memcpy(out->code, &w0, sizeof w0);
    memcpy(out->code + 8, &w8, sizeof w8);
    for (size_t k = 0; k < 2; k++) out->scale[k] = gguf_e4m3(p[g + k]);
}

static void packed_block(const packed *s, size_t row, size_t b, fp4_block *out)
{
    const size_t cols = (size_t)s->cols, per = s->kind == PACKED_NVFP4 ? 2 : 1;
    tile_nibbles(s->code + row * (cols / 2) + 16 * b, out->code);
    memcpy(out->scale, s->scale + (row * (cols / 32) + b) * per, per);
}

/* Where block b of a tile is: its codes, its scales. */
static uint8_t *block_at(tile_type t, uint8_t *tile, size_t b, uint8_t **scale)
{
    enum { CODES = TILE_LINE * 8 };
    if (t == TILE_NVFP4) {
        *scale = tile + b * (CODES + TILE_LINE);
        return *scale + TILE_LINE;
    }
    uint8_t *pair = tile + b / 2 * (2 * CODES + TILE_LINE);
    *scale = pair + b % 2 * TILE_ROWS;
    return pair + TILE_LINE + b % 2 * CODES;
}

static void put_block(tile_type t, const fp4_block *f, size_t r, size_t b, uint8_t *tile)
{
    uint8_t *scale, *line = block_at(t, tile, b, &scale) + r / 16 * 4 * TILE_LINE + 4 * (r % 16);
    for (size_t s = 0; s < 4; s++) memcpy(line + TILE_LINE * s, f->code + 4 * s, 4);
    scale[r] = f->scale[0];
    if (t == TILE_NVFP4) scale[TILE_ROWS + r] = f->scale[1];
}

void fp4_pack(tile_type t, const uint8_t *rows, size_t row_bytes, int32_t n_row, int32_t n_block,
              uint8_t *tile)
{
    memset(tile, 0, tile_bytes(t, n_block));
    for (size_t b = 0; b < (size_t)n_block; b++)
        for (size_t r = 0; r < (size_t)n_row; r++) {
            fp4_block f = {0};
            (t == TILE_NVFP4 ? gguf_nvfp4 : gguf_mxfp4)(rows + r * row_bytes, b, &f);
            put_block(t, &f, r, b, tile);
        }
}

void fp4_pack_packed(tile_type t, const weight *w, int32_t row0, int32_t n_row, uint8_t *tile)
{
    const size_t n_block = (size_t)w->cols / 32;
    memset(tile, 0, tile_bytes(t, (int32_t)n_block));
    for (size_t b = 0; b < n_block; b++)
        for (size_t r = 0; r < (size_t)n_row; r++) {
            fp4_block f;
            packed_block(w->packed, weight_packed_row(w, (size_t)row0 + r), b, &f);
            put_block(t, &f, r, b, tile);
        }
}
