/* Tiles of the formats with 32 weights a block: the definition of their product.
     with a minimum y = fma(mw, RN(dx·Σ q), y);  D = Σ w·q, exact;  y = fma(RN(dw·dx), D, y)
   blocks ascending from y = +0; with two terms, the first and then the second within each block.
   Q4_0 and Q5_0 hold w centred (w − 8, w − 16), Q8_0 signed, Q4_1 and Q5_1 from 0 up; IQ4_NL looks it
   up.  |D| ≤ 128·127·32 = 520,192. */
#include <math.h>
#include <string.h>

#include "backend/cpu/kern/ref/linear_ref.h"
#include "base/half.h"
#include "tensor/dtype.h"

/* One block, unpacked. */
typedef struct block32 {
    int8_t w[TILE_ROWS][32];
    float d[TILE_ROWS], m[TILE_ROWS];
} block32;

static void halves_to_f32(const uint8_t *p, float *out)
{
    for (int32_t r = 0; r < TILE_ROWS; r++) {
        uint16_t h;
        memcpy(&h, p + 2 * r, sizeof h);
        out[r] = f16_to_f32(h);
    }
}

/* A group's nibbles, with their fifth bits if `high` is given, less `centre`. */
static void unpack_nibbles(const uint8_t *line, const uint8_t *high, int32_t centre,
                           int8_t w[16][32])
{
    for (int32_t r = 0; r < 16; r++) {
        for (int32_t i = 0; i < 16; i++) {
            int32_t s = i / 4, n = i % 4;
            uint8_t v = line[TILE_LINE * s + 4 * r + n];
            int32_t lo = v & 15, hi = v >> 4;
            if (high) {
                lo |= (high[4 * r + n] >> s & 1) << 4;
                hi |= (high[4 * r + n] >> (4 + s) & 1) << 4;
            }
            w[r][i] = (int8_t)(lo - centre);
            w[r][16 + i] = (int8_t)(hi - centre);
        }
    }
}

/* Nibbles to the weights that they stand for. */
static void look_up(int8_t w[16][32])
{
    static const int8_t level[16] = {IQ4_LEVELS};
    for (int32_t r = 0; r < 16; r++) {
        for (int32_t i = 0; i < 32; i++) w[r][i] = level[w[r][i]];
    }
}

static void unpack_bytes(const uint8_t *line, int8_t w[16][32])
{
    for (int32_t r = 0; r < 16; r++) {
        for (int32_t i = 0; i < 32; i++)
            w[r][i] = (int8_t)line[TILE_LINE * (i / 4) + 4 * r + i % 4];
    }
}

static void unpack32(tile_type t, const uint8_t *p, block32 *out)
{
    bool five = t == TILE_Q5_0 || t == TILE_Q5_1, min = t == TILE_Q4_1 || t == TILE_Q5_1;
    int32_t centre = min || t == TILE_IQ4_NL ? 0 : five ? 16 : 8;
    halves_to_f32(p, out->d);
    p += TILE_LINE;
    if (min) {
        halves_to_f32(p, out->m);
        p += TILE_LINE;
    }
    for (int32_t g = 0; g < 2; g++) {
        if (t == TILE_Q8_0) {
            unpack_bytes(p, out->w + 16 * g);
            p += 8 * TILE_LINE;
        } else {
            const uint8_t *high = five ? p : NULL;
            if (five) p += TILE_LINE;
            unpack_nibbles(p, high, centre, out->w + 16 * g);
            if (t == TILE_IQ4_NL) look_up(out->w + 16 * g);
            p += 4 * TILE_LINE;
        }
    }
}

static int32_t dot32(const int8_t *w, const int8_t *q)
{
    int32_t s = 0;
    for (int32_t i = 0; i < 32; i++) s += w[i] * q[i];
    return s;
}

static void tile32(tile_type t, const uint8_t *tile, int32_t n_block, const void *act,
                   size_t stride, int32_t n_vec, int32_t terms, float *y)
{
    bool min = t == TILE_Q4_1 || t == TILE_Q5_1;
    block32 u;
    memset(y, 0, (size_t)(n_vec / terms) * TILE_ROWS * sizeof *y);
    for (int32_t b = 0; b < n_block; b++) {
        const a8_32 *a = (const void *)((const uint8_t *)act + (size_t)b * stride);
        unpack32(t, tile + (size_t)b * tile_block_bytes(t), &u);
        for (int32_t v = 0; v < n_vec; v++) {
            float *out = y + (size_t)(v / terms) * TILE_ROWS;
            for (int32_t r = 0; r < TILE_ROWS; r++) {
                float dot = (float)dot32(u.w[r], a[v].q);
                if (min) out[r] = fmaf(u.m[r], a[v].s, out[r]);
                out[r] = fmaf(u.d[r] * a[v].d, dot, out[r]);
            }
        }
    }
}

#define DEFINE_TILE32(name, type)                                                                  \
    void name(const uint8_t *tile, int32_t n_block, const void *act, size_t stride, int32_t n_vec, \
              int32_t terms, float *y, void *panel)                                                \
    {                                                                                              \
        (void)panel;                                                                               \
        tile32(type, tile, n_block, act, stride, n_vec, terms, y);                                 \
    }
DEFINE_TILE32(ref_tile_q4_0, TILE_Q4_0)
DEFINE_TILE32(ref_tile_q4_1, TILE_Q4_1)
DEFINE_TILE32(ref_tile_q5_0, TILE_Q5_0)
DEFINE_TILE32(ref_tile_q5_1, TILE_Q5_1)
DEFINE_TILE32(ref_tile_q8_0, TILE_Q8_0)
DEFINE_TILE32(ref_tile_iq4_nl, TILE_IQ4_NL)
