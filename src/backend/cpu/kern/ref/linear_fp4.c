/* Tiles of e2m1: the definition of their product.  w is twice the value of a code, from −12 to 12, and
   the halves of scales are exact, so dots are exact integers.
     MXFP4   D = Σ w·q;  y = fma(RN(d·dx), D, y)                 d = 2^(e − 128)
     NVFP4   D0, D1 = Σ w·q over 16 weights each, s = e4m3 / 2
             t = s0·D0, exact;  t = fma(s1, D1, t);  y = fma(t, dx, y)
   blocks of 32 ascending from y = +0; with two terms, the first and then the second within each block. */
#include <math.h>
#include <string.h>

#include "backend/cpu/kern/ref/linear_ref.h"
#include "base/half.h"

/* Σ w·q over the 16 weights of the low (high) nibbles of row r. */
static float dot16(const uint8_t *codes, int32_t r, int32_t high, const int8_t *q)
{
    const uint8_t *line = codes + r / 16 * 4 * TILE_LINE + 4 * (r % 16);
    int32_t dot = 0;
    for (int32_t i = 0; i < 16; i++)
        dot += e2m1_level[line[TILE_LINE * (i / 4) + i % 4] >> 4 * high & 15] * q[16 * high + i];
    return (float)dot;
}

static void row_vec(bool nv, const uint8_t *scale, const uint8_t *codes, int32_t r, const a8_32 *a,
                    float *y)
{
    const float d0 = dot16(codes, r, 0, a->q), d1 = dot16(codes, r, 1, a->q);
    if (!nv) {
        *y = fmaf(e8m0_half(scale[r]) * a->d, d0 + d1, *y);
        return;
    }
    const float s0 = 0.5f * e4m3_to_f32(scale[r]), s1 = 0.5f * e4m3_to_f32(scale[TILE_ROWS + r]);
    *y = fmaf(fmaf(s1, d1, s0 * d0), a->d, *y);
}

static void fp4(bool nv, const uint8_t *p, int32_t n_block, const void *act, size_t stride,
                int32_t n_vec, int32_t terms, float *y)
{
    const uint8_t *scale = p;
    memset(y, 0, (size_t)(n_vec / terms) * TILE_ROWS * sizeof *y);
    for (int32_t b = 0; b < n_block; b++, p += 8 * TILE_LINE) {
        const a8_32 *a = (const void *)((const uint8_t *)act + (size_t)b * stride);
        scale += TILE_ROWS;
        if (nv || b % 2 == 0) {
            scale = p;
            p += TILE_LINE;
        }
        for (int32_t r = 0; r < TILE_ROWS; r++)
            for (int32_t v = 0; v < n_vec; v++)
                row_vec(nv, scale, p, r, &a[v], y + (size_t)(v / terms) * TILE_ROWS + r);
    }
}

#define DEFINE_FP4(name, nv)                                                                       \
    void name(const uint8_t *tile, int32_t n_block, const void *act, size_t stride, int32_t n_vec, \
              int32_t terms, float *y, void *panel)                                                \
    {                                                                                              \
        (void)panel;                                                                               \
        fp4(nv, tile, n_block, act, stride, n_vec, terms, y);                                      \
    }
DEFINE_FP4(ref_tile_mxfp4, false)
DEFINE_FP4(ref_tile_nvfp4, true)
