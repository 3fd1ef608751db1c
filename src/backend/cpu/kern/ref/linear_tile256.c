/* Tiles of the formats with 256 weights a block: the definition of their product.  All sums inside a
   block are exact int32 whatever their order; one short float chain a block is ordered:
     I = Σ_j sc_j Σ w·q,  t = RN(d·RN(I))           over 16 sub-blocks of 16: Q2_K, Q3_K, Q6_K;
                                                    over 8 of 32: Q4_K, Q5_K, IQ4_XS
     Mn = Σ_j m_j Σ q,  t = fma(−dmin, RN(Mn), t)   Q2_K, Q4_K, Q5_K
     y = fma(t, dx, y)
   w as stored where there are minima, else centred: Q3_K w − 4, Q6_K w − 32; IQ4_XS looks it up.
   Blocks ascend from y = +0; with two terms, the first and then the second within each block.
   Bounds of |I|: Q2_K 15·3·127·256 = 1.5 M, Q3_K 32·4·127·256 = 4.2 M, Q4_K 30.7 M, Q5_K 63·31·127·256 =
   63.5 M, IQ4_XS 32·127·127·256 = 132.2 M, Q6_K 128·32·127·256 = 133.2 M; |Mn| ≤ 2.05 M. */
#include <math.h>
#include <string.h>

#include "backend/cpu/kern/ref/linear_tile256.h"
#include "base/half.h"
#include "tensor/dtype.h"

static float half_at(const uint8_t *p, int32_t i)
{
    uint16_t h;
    memcpy(&h, p + 2 * i, sizeof h);
    return f16_to_f32(h);
}

static uint8_t byte_at(const uint8_t *line, int32_t i_line, int32_t row, int32_t n)
{
    return line[TILE_LINE * i_line + 4 * row + n];
}

/* Scale j and minimum j of the 12 packed bytes: six bits each, the last four of each with their two
   high bits on top of the first four. */
static void unpack_scales(const uint8_t *line, int32_t row, int8_t *sc, int8_t *m)
{
    for (int32_t j = 0; j < 4; j++) {
        uint8_t a = byte_at(line, 0, row, j), b = byte_at(line, 1, row, j);
        uint8_t c = byte_at(line, 2, row, j);
        sc[j] = (int8_t)(a & 63);
        m[j] = (int8_t)(b & 63);
        sc[4 + j] = (int8_t)((c & 15) | (a >> 6) << 4);
        m[4 + j] = (int8_t)((c >> 4) | (b >> 6) << 4);
    }
}

static void unpack_k45(bool five, const uint8_t *p, block256 *out)
{
    for (int32_t g = 0; g < 2; g++) {
        const uint8_t *scales = p + TILE_LINE, *high = p + 4 * TILE_LINE;
        const uint8_t *low = high + (five ? 8 * TILE_LINE : 0);
        for (int32_t i = 0; i < 16; i++) {
            int32_t r = 16 * g + i;
            out->d[r] = half_at(p, i);
            out->dmin[r] = half_at(p, 16 + i);
            unpack_scales(scales, i, out->sc[r], out->m[r]);
            for (int32_t k = 0; k < 128; k++) {
                int32_t pair = k / 32, s = k % 32 / 4, n = k % 4;
                uint8_t v = byte_at(low, 8 * pair + s, i, n);
                uint8_t h = five ? byte_at(high, s, i, n) : 0;
                out->w[r][64 * pair + 4 * s + n] = (int8_t)((v & 15) | (h >> (2 * pair) & 1) << 4);
                out->w[r][64 * pair + 32 + 4 * s + n] =
                    (int8_t)((v >> 4) | (h >> (2 * pair + 1) & 1) << 4);
            }
        }
        p = low + 32 * TILE_LINE;
    }
}

static void unpack_q4(const uint8_t *p, block256 *out)
{
    unpack_k45(false, p, out);
}
static void unpack_q5(const uint8_t *p, block256 *out)
{
    unpack_k45(true, p, out);
}

static void unpack_q6(const uint8_t *p, block256 *out)
{
    const uint8_t *d = p;
    p += TILE_LINE;
    for (int32_t g = 0; g < 2; g++) {
        const uint8_t *triple = p + 4 * TILE_LINE;
        for (int32_t i = 0; i < 16; i++) {
            int32_t r = 16 * g + i;
            out->d[r] = half_at(d, r);
            for (int32_t j = 0; j < 16; j++) out->sc[r][j] = (int8_t)byte_at(p, j / 4, i, j % 4);
            for (int32_t k = 0; k < 64; k++) {
                int32_t h = k / 32, s = k % 32 / 4, n = k % 4, at = 3 * (8 * h + s);
                uint8_t a = byte_at(triple, at, i, n), b = byte_at(triple, at + 1, i, n);
                uint8_t c = byte_at(triple, at + 2, i, n);
                int8_t *w = &out->w[r][128 * h + 4 * s + n];
                w[0] = (int8_t)(((a & 15) | (c & 3) << 4) - 32);
                w[32] = (int8_t)(((b & 15) | (c >> 2 & 3) << 4) - 32);
                w[64] = (int8_t)(((a >> 4) | (c >> 4 & 3) << 4) - 32);
                w[96] = (int8_t)(((b >> 4) | (c >> 6) << 4) - 32);
            }
        }
        p = triple + 48 * TILE_LINE;
    }
}

/* The two-bit codes of row i, from their 16 lines. */
static void unpack_pairs(const uint8_t *p, int32_t i, int8_t w[256])
{
    for (int32_t k = 0; k < 256; k++)
        w[k] = (int8_t)(byte_at(p, k / 128 * 8 + k % 32 / 4, i, k % 4) >> (k % 128 / 32 * 2) & 3);
}

static void unpack_q2(const uint8_t *p, block256 *out)
{
    for (int32_t r = 0; r < TILE_ROWS; r++) {
        const uint8_t *group = p + 21 * TILE_LINE * (r / 16), *scales = group + TILE_LINE;
        const int32_t i = r % 16;
        out->d[r] = half_at(group, i);
        out->dmin[r] = half_at(group, 16 + i);
        for (int32_t j = 0; j < 16; j++) {
            const uint8_t v = byte_at(scales, j / 4, i, j % 4);
            out->sc[r][j] = v & 15;
            out->m[r][j] = v >> 4;
        }
        unpack_pairs(group + 5 * TILE_LINE, i, out->w[r]);
    }
}

/* Sixteen scales of the 12 packed bytes: low nibbles of the first eight, then their high ones; two bits
   each on top, in the last four. */
static void unpack_scales_q3(const uint8_t *line, int32_t row, int8_t *sc)
{
    for (int32_t j = 0; j < 16; j++) {
        const int32_t low = byte_at(line, j % 8 / 4, row, j % 4) >> (j / 8 * 4) & 15;
        const int32_t high = byte_at(line, 2, row, j % 4) >> (j / 4 * 2) & 3;
        sc[j] = (int8_t)((low | high << 4) - 32);
    }
}

static void unpack_q3(const uint8_t *p, block256 *out)
{
    static const uint8_t bit[4] = {0, 2, 1, 3};
    for (int32_t r = 0; r < TILE_ROWS; r++) {
        const uint8_t *group = p + TILE_LINE * (1 + 27 * (r / 16)), *third = group + 3 * TILE_LINE;
        const int32_t i = r % 16;
        out->d[r] = half_at(p, r);
        unpack_scales_q3(group, i, out->sc[r]);
        unpack_pairs(group + 11 * TILE_LINE, i, out->w[r]);
        for (int32_t k = 0; k < 256; k++) {
            const int32_t at = k / 128 * 4 + bit[k % 128 / 32];
            const int32_t high = byte_at(third, k % 32 / 4, i, k % 4) >> at & 1;
            out->w[r][k] = (int8_t)(out->w[r][k] + 4 * high - 4);
        }
    }
}

static void unpack_iq4_xs(const uint8_t *p, block256 *out)
{
    static const int8_t level[16] = {IQ4_LEVELS};
    for (int32_t r = 0; r < TILE_ROWS; r++) {
        const uint8_t *group = p + 34 * TILE_LINE * (r / 16), *low = group + TILE_LINE;
        const int32_t i = r % 16;
        uint16_t high;
        out->d[r] = half_at(group, i);
        memcpy(&high, group + 32 + 2 * i, sizeof high);
        for (int32_t j = 0; j < 8; j++)
            out->sc[r][j] = (int8_t)(((byte_at(low, 0, i, j / 2) >> (j % 2 * 4) & 15) |
                                      (high >> 2 * j & 3) << 4) -
                                     32);
        for (int32_t k = 0; k < 256; k++) {
            const uint8_t v = byte_at(low, 1 + k / 32 * 4 + k % 16 / 4, i, k % 4);
            out->w[r][k] = level[v >> (k % 32 / 16 * 4) & 15];
        }
    }
}

static int32_t scaled_dot(const int8_t *w, const int8_t *q, const int8_t *sc, int32_t n,
                          int32_t sub)
{
    int32_t total = 0;
    for (int32_t j = 0; j < n / sub; j++) {
        int32_t s = 0;
        for (int32_t i = 0; i < sub; i++) s += w[j * sub + i] * q[j * sub + i];
        total += sc[j] * s;
    }
    return total;
}

static int32_t min_dot(const int8_t *m, const int16_t *s16, int32_t sub)
{
    int32_t total = 0;
    for (int32_t i = 0; i < 16; i++) total += m[16 * i / sub] * s16[i];
    return total;
}

void ref_tile256(format256 f, const uint8_t *tile, int32_t n_block, const void *act, size_t stride,
                 int32_t n_vec, int32_t terms, float *y)
{
    block256 u;
    memset(y, 0, (size_t)(n_vec / terms) * TILE_ROWS * sizeof *y);
    for (int32_t b = 0; b < n_block; b++) {
        const a8_256 *a = (const void *)((const uint8_t *)act + (size_t)b * stride);
        f.unpack(tile + (size_t)b * tile_block_bytes(f.type), &u);
        for (int32_t v = 0; v < n_vec; v++) {
            float *out = y + (size_t)(v / terms) * TILE_ROWS;
            for (int32_t r = 0; r < TILE_ROWS; r++) {
                float t = u.d[r] * (float)scaled_dot(u.w[r], a[v].q, u.sc[r], 256, f.sub);
                if (f.min) t = fmaf(-u.dmin[r], (float)min_dot(u.m[r], a[v].s16, f.sub), t);
                out[r] = fmaf(t, a[v].d, out[r]);
            }
        }
    }
}

/* Activations by groups of 32, each with a scale of its own: of group j, I_j = Σ sc Σ w·q over its one or
   two sub-blocks is exact, |I_j| ≤ 2·128·32·127·16 < 2^24; the rest is ordered:
     f = fma(I_j, dx_j, f),  g = fma(m_j, s_j, g)    j = 0 … 7 from +0; s_j = RN(dx_j·Σ q)
     y = fma(d, f, y);  with minima: y = fma(−dmin, g, y) */
static void fine256(format256 f, const uint8_t *tile, int32_t n_block, const uint8_t *act,
                    size_t stride, int32_t n_vec, int32_t terms, float *y)
{
    block256 u;
    memset(y, 0, (size_t)(n_vec / terms) * TILE_ROWS * sizeof *y);
    for (int32_t b = 0; b < n_block; b++, act += 8 * stride) {
        f.unpack(tile + (size_t)b * tile_block_bytes(f.type), &u);
        for (int32_t i = 0; i < n_vec * TILE_ROWS; i++) {
            const int32_t v = i / TILE_ROWS, r = i % TILE_ROWS;
            float *out = y + (size_t)(v / terms) * TILE_ROWS + r;
            float sum = 0, min = 0;
            for (int32_t j = 0; j < 8; j++) {
                const a8_32 *a = (const a8_32 *)(const void *)(act + (size_t)j * stride) + v;
                const int8_t *sc = &u.sc[r][32 / f.sub * j];
                sum = fmaf((float)scaled_dot(u.w[r] + 32 * j, a->q, sc, 32, f.sub), a->d, sum);
                if (f.min) min = fmaf((float)u.m[r][j], a->s, min);
            }
            *out = fmaf(u.d[r], sum, *out);
            if (f.min) *out = fmaf(-u.dmin[r], min, *out);
        }
    }
}

DEFINE_TILE256(ref_tile_q2_k, TILE_Q2_K, 16, true, unpack_q2)
DEFINE_TILE256(ref_tile_q3_k, TILE_Q3_K, 16, false, unpack_q3)
DEFINE_TILE256(ref_tile_iq4_xs, TILE_IQ4_XS, 32, false, unpack_iq4_xs)
DEFINE_TILE256(ref_tile_q4_k, TILE_Q4_K, 32, true, unpack_q4)
DEFINE_TILE256(ref_tile_q5_k, TILE_Q5_K, 32, true, unpack_q5)
DEFINE_TILE256(ref_tile_q6_k, TILE_Q6_K, 16, false, unpack_q6)

#define DEFINE_FINE256(name, ...)                                                                  \
    void name(const uint8_t *tile, int32_t n_block, const void *act, size_t stride, int32_t n_vec, \
              int32_t terms, float *y, void *panel)                                                \
    {                                                                                              \
        (void)panel;                                                                               \
        fine256((format256){__VA_ARGS__}, tile, n_block, act, stride, n_vec, terms, y);            \
    }
DEFINE_FINE256(ref_fine_q4_k, TILE_Q4_K, 32, true, unpack_q4)
DEFINE_FINE256(ref_fine_q5_k, TILE_Q5_K, 32, true, unpack_q5)
DEFINE_FINE256(ref_fine_q6_k, TILE_Q6_K, 16, false, unpack_q6)
