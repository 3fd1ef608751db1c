/* Tiles of Q4_K, Q5_K and Q6_K times fine activations, aarch64: a group of 32 has a scale of its own, so its
   exact sum becomes a float.  Included after tile256_arm_body.h. */
INLINE const a8_32 *group_of(const uint8_t *act, size_t stride, int j, int32_t v)
{
    return (const a8_32 *)(const void *)(act + (size_t)j * stride) + v;
}
/* Minima 0 … 7 as floats, from their pairs. */
INLINE void float_minima(const int16x8_t *pair, float32x4_t *m)
{
    for (int i = 0; i < 4; i++) {
        const int j = i / 2 * 4 + i % 2;
        const uint32x4_t both = vreinterpretq_u32_s16(pair[i]);
        m[j] = vcvtq_f32_u32(vandq_u32(both, vdupq_n_u32(0xffff)));
        m[j + 2] = vcvtq_f32_u32(vshrq_n_u32(both, 16));
    }
}
/* Where the dot of sub-block `half` of a group starts. */
INLINE int32x4_t fine_start(const int bits, const a8_32 *a, const int half)
{
    return bits == 6 ? word(&a->n32_16[half]) : vdupq_n_s32(0);
}
INLINE void fine_store(const int bits, float32x4_t f, float32x4_t g, float32x4_t d,
                       float32x4_t dmin, float *y)
{
    float32x4_t sum = vfmaq_f32(vld1q_f32(y), d, f);
    if (has_min(bits)) sum = vfmsq_f32(sum, dmin, g);
    vst1q_f32(y, sum);
}

/* The groups from `first` on, 8 words apart, that lines 8·pass … 8·pass+7 hold, into f and g. */
INLINE void fine_pass(const int bits, const uint8_t *p, const int pass, const uint8_t *act,
                      size_t stride, const int n, int32x4_t sc[QUADS][16], float32x4_t m[QUADS][8],
                      float32x4_t f[DIRECT_VEC][QUADS], float32x4_t g[DIRECT_VEC][QUADS])
{
    const int n_w = line_words(bits), quads = n_quad(bits), first = pass * n_w;
    int32x4_t sum[DIRECT_VEC][4][QUADS];
    EACH_PART sum[t][c][i] = vdupq_n_s32(0);
#pragma GCC unroll 2
    for (int s = 0; s < 8; s += run_lines(bits)) {
        const int8_t *q[DIRECT_VEC][4];
        int32x4_t dot[DIRECT_VEC][4][QUADS];
        EACH_PART
        {
            const a8_32 *a = group_of(act, stride, first + c, t);
            q[t][c] = a->q + 4 * s;
            dot[t][c][i] = fine_start(bits, a, s / 4);
        }
        run(bits, p, 8 * pass + s, q, n, dot);
        EACH_PART sum[t][c][i] =
            vmlaq_s32(sum[t][c][i], dot[t][c][i], sc[i][(8 * (first + c) + s) / scale_lines(bits)]);
    }
    EACH_PART
    {
        const a8_32 *a = group_of(act, stride, first + c, t);
        f[t][i] = vfmaq_n_f32(f[t][i], vcvtq_f32_s32(sum[t][c][i]), a->d);
        if (has_min(bits)) g[t][i] = vfmaq_n_f32(g[t][i], m[i][first + c], a->s);
    }
}

INLINE void fine_quads(const int bits, const uint8_t *d16, const uint8_t *p, const uint8_t *act,
                       size_t stride, const int n, int32_t shift, float *y)
{
    const int quads = n_quad(bits);
    int32x4_t sc[QUADS][16];
    float32x4_t m[QUADS][8], f[DIRECT_VEC][QUADS], g[DIRECT_VEC][QUADS];
#pragma GCC unroll 4
    for (int i = 0; i < quads; i++) {
        int16x8_t pair[8];
        scales(bits, d16 + 8 * i, p + QUAD_BYTES * i, sc[i]);
        minima(bits, p + QUAD_BYTES * i, pair);
        if (has_min(bits)) float_minima(pair, m[i]);
        for (int t = 0; t < n; t++) f[t][i] = g[t][i] = vdupq_n_f32(0);
    }
    for (int pass = 0; pass < 8 / line_words(bits); pass++)
        fine_pass(bits, p, pass, act, stride, n, sc, m, f, g);
#pragma GCC unroll 4
    for (int i = 0; i < quads; i++) {
        const float32x4_t d = halves(d16 + 8 * i);
        const float32x4_t dmin = has_min(bits) ? halves(d16 + 32 + 8 * i) : d;
#pragma GCC unroll 2
        for (int t = 0; t < n; t++)
            fine_store(bits, f[t][i], g[t][i], d, dmin, y + (t >> shift) * TILE_ROWS + 4 * i);
    }
}

INLINE void fine_direct(const int bits, const uint8_t *tile, int32_t n_block, const uint8_t *act,
                        size_t stride, const int n, int32_t shift, float *y)
{
    for (int32_t b = 0; b < n_block; b++, act += 8 * stride) {
        const uint8_t *p = tile + TILE_LINE * head_lines(bits);
        if (head_lines(bits)) prefetch(tile);
        for (int g = 0; g < 2; g++, p += TILE_LINE * group_lines(bits)) {
            for (int i = 0; i < group_lines(bits); i++) prefetch(p + TILE_LINE * i);
            for (int i = 0; i < 4; i += n_quad(bits))
                fine_quads(bits, group_d(bits, tile, p, g) + 8 * i, p + QUAD_BYTES * i, act, stride,
                           n, shift, y + 16 * g + 4 * i);
        }
        tile = p;
    }
}

/* The panel's minima become floats, in place of their pairs: eight of 16 rows. */
INLINE void fine_panel(const int bits, panel256 *u)
{
    for (int row = 0; row < TILE_ROWS && has_min(bits); row += 16) {
        int16x8_t pair[4][4];
        for (int i = 0; i < 16; i++)
            pair[i / 4][i % 4] = vld1q_s16(u->pair[row / 16][i % 4] + 8 * (i / 4));
        for (int i = 0; i < 4; i++) {
            float32x4_t m[8];
            float_minima(pair[i], m);
            for (int j = 0; j < 8; j++)
                vst1q_s32((int32_t *)(void *)u->pair[row / 16][j] + 4 * i,
                          vreinterpretq_s32_f32(m[j]));
        }
    }
}

/* PANEL_QUADS quads of the panel from row on, times vectors v … v+n-1. */
INLINE void fine_panel_quads(const int bits, const panel256 *u, const int row, const uint8_t *act,
                             size_t stride, const int n, int32_t v, int32_t shift, float *y)
{
    const int grp = row / 16, at = row % 16, lines = scale_lines(bits);
    const int8_t *w = u->w[grp][0] + 4 * at;
    float32x4_t f[PANEL_VEC][PANEL_QUADS], g[PANEL_VEC][PANEL_QUADS];
    EACH_SUM f[t][i] = g[t][i] = vdupq_n_f32(0);
    for (int j = 0; j < 8; j++) {
        const a8_32 *a = group_of(act, stride, j, v);
        int32x4_t sum[PANEL_VEC][QUADS];
        EACH_DOT sum[t][i] = vdupq_n_s32(0);
#pragma GCC unroll 2
        for (int s = 0; s < 8; s += lines) {
            const int32_t *sc = u->sc[grp][(8 * j + s) / lines] + at;
            int32x4_t from[PANEL_VEC], dot[PANEL_VEC][QUADS];
#pragma GCC unroll 4
            for (int t = 0; t < n; t++) from[t] = fine_start(bits, &a[t], s / 4);
            EACH_DOT dot[t][i] = panel_start(from, n, t);
            panel_dots(w + TILE_LINE * (8 * j + s), lines, PANEL_QUADS, a->q + 4 * s, sizeof *a, n,
                       most(bits), dot);
            EACH_DOT sum[t][i] =
                vmlaq_s32(sum[t][i], dot[t][i], panel_scale(vld1q_s32(sc + 4 * i), t));
        }
        EACH_SUM
        {
            const int32_t *m = (const int32_t *)(const void *)u->pair[grp][j] + at + 4 * i;
            f[t][i] = vfmaq_n_f32(f[t][i], vcvtq_f32_s32(panel_out(DOTS(sum), t, i)), a[t].d);
            if (has_min(bits))
                g[t][i] = vfmaq_n_f32(g[t][i], vreinterpretq_f32_s32(vld1q_s32(m)), a[t].s);
        }
    }
    EACH_SUM
    {
        const int r = row + 4 * i;
        const float32x4_t d = vld1q_f32(u->d + r),
                          dmin = has_min(bits) ? vld1q_f32(u->dmin + r) : d;
        fine_store(bits, f[t][i], g[t][i], d, dmin, y + ((v + t) >> shift) * TILE_ROWS + r);
    }
}

INLINE void fine_vecs(const int bits, const panel256 *u, const uint8_t *act, size_t stride,
                      const int n, int32_t v, int32_t shift, float *y)
{
    for (int row = 0; row < TILE_ROWS; row += 4 * PANEL_QUADS)
        fine_panel_quads(bits, u, row, act, stride, n, v, shift, y);
}

INLINE void fine_all(const int bits, const uint8_t *tile, size_t block, const panel256 *u,
                     const uint8_t *act, size_t stride, int32_t n_vec, int32_t shift, float *y)
{
    int32_t v = 0;
    (void)tile, (void)block;
    for (; v + PANEL_VEC <= n_vec; v += PANEL_VEC)
        fine_vecs(bits, u, act, stride, PANEL_VEC, v, shift, y);
    for (; v + 2 <= n_vec; v += 2) fine_vecs(bits, u, act, stride, 2, v, shift, y);
    if (v < n_vec) fine_vecs(bits, u, act, stride, 1, v, shift, y);
}

#include "backend/cpu/kern/body/fine256_body.h"
