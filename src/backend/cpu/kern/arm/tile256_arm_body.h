/* Tiles of 256 weights a block, aarch64: once for all levels, in the words of words_neon.h and dots_LEVEL.h, which
   a level's file includes before, with LEVEL(name).

   A dot with a sub-block is exact in 32 bits, and so is the sum of all, times their scales
   (docs/numerics.md has the bounds).  One vector or two: weights are unpacked in registers.  More: a block is
   unpacked once into a panel in L1 and met by all vectors. */
#define DIRECT_CASES(X, fn) X(1, fn) X(2, fn)
enum { DIRECT_VEC = 2, PANEL_QUADS = 2 /* sums and dots of four vectors in registers */ };

struct panel256 {
    int8_t w[2][64][TILE_LINE]; /* [group][word] */
    int32_t sc[2][16][16];
    int16_t pair[2][8][32]; /* minima */
    float d[TILE_ROWS], dmin[TILE_ROWS];
};

#include "backend/cpu/kern/body/linear_tile256_body.h"

_Static_assert(sizeof(panel256) <= TILE_PANEL, "panel");

#include "backend/cpu/kern/arm/forms256_arm_body.h"

/* Quads that are worked on at once: a line of four words takes twice the parts of one of two. */
INLINE int n_quad(const int bits)
{
    return line_words(bits) == 4 ? QUADS / 2 : QUADS;
}
/* Lines whose words add up in parts. */
INLINE int run_lines(const int bits)
{
    const int sub = scale_lines(bits), step = line_step(bits), lines = sub < step ? sub : step;
    return part_words(most(bits)) < lines ? part_words(most(bits)) : lines;
}

/* dot[t][c][i] += words c of run_lines lines times vector t at q[t][c]. */
INLINE void run(const int bits, const uint8_t *p, const int line, const int8_t *q[DIRECT_VEC][4],
                const int n, int32x4_t dot[DIRECT_VEC][4][QUADS])
{
    const int n_w = line_words(bits), quads = n_quad(bits), lines = run_lines(bits);
    part x[DIRECT_VEC][4][QUADS];
#define EACH_PART                                                                                  \
    _Pragma("GCC unroll 2") for (int t = 0; t < n; t++)                                            \
        _Pragma("GCC unroll 4") for (int c = 0; c < n_w; c++)                                      \
            _Pragma("GCC unroll 4") for (int i = 0; i < quads; i++)
    EACH_PART x[t][c][i] = part_begin(dot[t][c][i]);
#pragma GCC unroll 8
    for (int s = 0; s < lines; s++)
#pragma GCC unroll 4
        for (int i = 0; i < quads; i++) {
            words w[4];
            unpack_any(bits, p + QUAD_BYTES * i, line + s, w);
#pragma GCC unroll 2
            for (int t = 0; t < n; t++)
#pragma GCC unroll 4
                for (int c = 0; c < n_w; c++) x[t][c][i] = part_add(x[t][c][i], w[c], q[t][c], s);
        }
    EACH_PART dot[t][c][i] = part_end(x[t][c][i], dot[t][c][i]);
}

/* Σ pair · sums. */
INLINE int32x4_t pair_dot(const int16x8_t *pair, const int16_t *sums, const int n)
{
    int32x4_t lo = vdupq_n_s32(0), hi = lo;
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
        const int16x8_t x = vreinterpretq_s16_s32(word(sums + 2 * i));
        lo = vmlal_s16(lo, vget_low_s16(pair[i]), vget_low_s16(x));
        hi = vmlal_high_s16(hi, pair[i], x);
    }
    return vpaddq_s32(lo, hi);
}
/* sum: Σ scale · dot of a quad's block. */
INLINE void accumulate(const int bits, int32x4_t sum, const int16x8_t *pair, float32x4_t d,
                       float32x4_t dmin, const a8_256 *a, float *y)
{
    float32x4_t t = vmulq_f32(d, vcvtq_f32_s32(sum));
    if (has_min(bits)) {
        const int32x4_t m = pair_dot(pair, bits == 2 ? a->s16 : a->s32, n_pair(bits));
        t = vfmsq_f32(t, dmin, vcvtq_f32_s32(m));
    }
    vst1q_f32(y, vfmaq_n_f32(vld1q_f32(y), t, a->d));
}

/* n_quad quads of one block times n vectors; d16: their d, p: their part of the group. */
INLINE void direct_quads(const int bits, const uint8_t *d16, const uint8_t *p, const a8_256 *a,
                         const int n, int32_t shift, float *y)
{
    const int n_w = line_words(bits), quads = n_quad(bits);
    int32x4_t sc[QUADS][16], sum[DIRECT_VEC][QUADS];
#pragma GCC unroll 4
    for (int i = 0; i < quads; i++) {
        scales(bits, d16 + 8 * i, p + QUAD_BYTES * i, sc[i]);
        for (int t = 0; t < n; t++) sum[t][i] = vdupq_n_s32(0);
    }
    const int lines = 64 / n_w;
    for (int line = 0; line < lines; line += run_lines(bits)) {
        const int8_t *q[DIRECT_VEC][4];
        int32x4_t dot[DIRECT_VEC][4][QUADS];
        EACH_PART
        {
            q[t][c] = a[t].q + 4 * word_at(bits, line, c);
            dot[t][c][i] = start(bits, &a[t], word_at(bits, line, c));
        }
        run(bits, p, line, q, n, dot);
        EACH_PART
        {
            const int sub = word_at(bits, line, c) / scale_lines(bits);
            sum[t][i] = vmlaq_s32(sum[t][i], dot[t][c][i], sc[i][sub]);
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < quads; i++) {
        int16x8_t pair[8];
        const float32x4_t d = quad_d(bits, d16 + 8 * i);
        const float32x4_t dmin = has_min(bits) ? halves(d16 + 32 + 8 * i) : d;
        minima(bits, p + QUAD_BYTES * i, pair);
#pragma GCC unroll 2
        for (int t = 0; t < n; t++)
            accumulate(bits, sum[t][i], pair, d, dmin, &a[t], y + (t >> shift) * TILE_ROWS + 4 * i);
    }
}

/* d of the 16 rows of group g of a block, whose lines are at p. */
INLINE const uint8_t *group_d(const int bits, const uint8_t *block, const uint8_t *p, const int g)
{
    return head_lines(bits) ? block + 32 * g : p;
}

INLINE void direct(const int bits, const uint8_t *tile, int32_t n_block, const uint8_t *act,
                   size_t stride, const int n, int32_t shift, float *y)
{
    for (int32_t b = 0; b < n_block; b++) {
        const a8_256 *a = (const a8_256 *)(const void *)(act + (size_t)b * stride);
        const uint8_t *p = tile + TILE_LINE * head_lines(bits);
        if (head_lines(bits)) prefetch(tile);
        for (int g = 0; g < 2; g++, p += TILE_LINE * group_lines(bits)) {
            for (int i = 0; i < group_lines(bits); i++) prefetch(p + TILE_LINE * i);
            for (int i = 0; i < 4; i += n_quad(bits))
                direct_quads(bits, group_d(bits, tile, p, g) + 8 * i, p + QUAD_BYTES * i, a, n,
                             shift, y + 16 * g + 4 * i);
        }
        tile = p;
    }
}

INLINE void unpack_quad(const int bits, const uint8_t *d16, const uint8_t *p, const int row,
                        panel256 *u)
{
    const int g = row / 16, at = row % 16, n_w = line_words(bits), lines = 64 / n_w;
    int32x4_t sc[16];
    int16x8_t pair[8];
    vst1q_f32(u->d + row, quad_d(bits, d16));
    scales(bits, d16, p, sc);
    for (int j = 0; j < 64 / scale_lines(bits); j++) vst1q_s32(u->sc[g][j] + at, sc[j]);
    if (has_min(bits)) {
        vst1q_f32(u->dmin + row, halves(d16 + 32));
        minima(bits, p, pair);
        for (int j = 0; j < n_pair(bits); j++) vst1q_s16(u->pair[g][j] + 2 * at, pair[j]);
    }
    for (int line = 0; line < lines; line++) {
        words w[4];
        unpack_any(bits, p, line, w);
        for (int c = 0; c < n_w; c++) vst1q_s8(u->w[g][word_at(bits, line, c)] + 4 * at, w[c]);
    }
}

INLINE void unpack_panel(const int bits, const uint8_t *tile, panel256 *u)
{
    const uint8_t *p = tile + TILE_LINE * head_lines(bits);
    if (head_lines(bits)) prefetch(tile);
    for (int g = 0; g < 2; g++, p += TILE_LINE * group_lines(bits)) {
        for (int i = 0; i < group_lines(bits); i++) prefetch(p + TILE_LINE * i);
        for (int i = 0; i < 4; i++)
            unpack_quad(bits, group_d(bits, tile, p, g) + 8 * i, p + QUAD_BYTES * i, 16 * g + 4 * i,
                        u);
        panel_order(u->w[g][0], 64);
    }
}

/* PANEL_QUADS quads of the panel from row on, times vectors v … v+n-1. */
INLINE void panel_quads(const int bits, const panel256 *u, const int row, const a8_256 *a,
                        const int n, int32_t v, int32_t shift, float *y)
{
    const int g = row / 16, at = row % 16, lines = scale_lines(bits);
    const int8_t *w = u->w[g][0] + 4 * at;
    int32x4_t sum[PANEL_VEC][QUADS];
#define EACH_DOT                                                                                   \
    _Pragma("GCC unroll 4") for (int t = 0; t < panel_n(n); t++)                                   \
        _Pragma("GCC unroll 2") for (int i = 0; i < PANEL_QUADS; i++)
#define EACH_SUM                                                                                   \
    _Pragma("GCC unroll 4") for (int t = 0; t < n; t++)                                            \
        _Pragma("GCC unroll 2") for (int i = 0; i < PANEL_QUADS; i++)
    EACH_DOT sum[t][i] = vdupq_n_s32(0);
    for (int k = 0; k < 64; k += lines) {
        const int32_t *sc = u->sc[g][k / lines] + at;
        int32x4_t s[PANEL_VEC], dot[PANEL_VEC][QUADS];
#pragma GCC unroll 4
        for (int t = 0; t < n; t++) s[t] = start(bits, &a[t], k);
        EACH_DOT dot[t][i] = panel_start(s, n, t);
        panel_dots(w + TILE_LINE * k, lines, PANEL_QUADS, a->q + 4 * k, sizeof *a, n, most(bits),
                   dot);
        EACH_DOT sum[t][i] = vmlaq_s32(sum[t][i], dot[t][i], panel_scale(vld1q_s32(sc + 4 * i), t));
    }
#pragma GCC unroll 2
    for (int i = 0; i < PANEL_QUADS; i++) {
        const int r = row + 4 * i;
        const float32x4_t d = vld1q_f32(u->d + r);
        const float32x4_t dmin = has_min(bits) ? vld1q_f32(u->dmin + r) : d;
        int16x8_t pair[8];
        for (int j = 0; j < n_pair(bits) && has_min(bits); j++)
            pair[j] = vld1q_s16(u->pair[g][j] + 2 * (r % 16));
#pragma GCC unroll 4
        for (int t = 0; t < n; t++)
            accumulate(bits, panel_out(DOTS(sum), t, i), pair, d, dmin, &a[t],
                       y + ((v + t) >> shift) * TILE_ROWS + r);
    }
}

INLINE void panel_vecs(const int bits, const panel256 *u, const a8_256 *a, const int n, int32_t v,
                       int32_t shift, float *y)
{
    for (int row = 0; row < TILE_ROWS; row += 4 * PANEL_QUADS)
        panel_quads(bits, u, row, a + v, n, v, shift, y);
}

INLINE void panel_all(const int bits, const uint8_t *tile, size_t block, const panel256 *u,
                      const a8_256 *a, int32_t n_vec, int32_t shift, float *y)
{
    int32_t v = 0;
    (void)tile, (void)block;
    for (; v + PANEL_VEC <= n_vec; v += PANEL_VEC) panel_vecs(bits, u, a, PANEL_VEC, v, shift, y);
    for (; v + 2 <= n_vec; v += 2) panel_vecs(bits, u, a, 2, v, shift, y);
    if (v < n_vec) panel_vecs(bits, u, a, 1, v, shift, y);
}

#define DEFINE_GRID_TILES                                                                          \
    DEFINE_TILE(LEVEL(tile_iq3_s), GRID_IQ3_S)                                                     \
    DEFINE_TILE(LEVEL(tile_iq3_xxs), GRID_IQ3_XXS)                                                 \
    DEFINE_TILE(LEVEL(tile_iq2_xxs), GRID_IQ2_XXS)                                                 \
    DEFINE_TILE(LEVEL(tile_iq2_s), GRID_IQ2_S)                                                     \
    DEFINE_TILE(LEVEL(tile_iq1_s), GRID_IQ1_S)                                                     \
    DEFINE_TILE(LEVEL(tile_iq1_m), GRID_IQ1_M)                                                     \
    DEFINE_TILE(LEVEL(tile_tq), GRID_TQ)
