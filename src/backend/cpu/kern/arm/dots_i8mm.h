/* Dots of words by sdot, and of panels by smmla: two rows times two vectors, eight products each.  dots_neon.h
   has the list. */
#ifndef DOTS_I8MM_H
#define DOTS_I8MM_H

#include "backend/cpu/kern/arm/dots_dotprod.h"

/* Words of two lines side by side: eight weights of each of two rows in a register. */
INLINE void panel_order(int8_t (*w)[TILE_LINE], int n)
{
    for (int s = 0; s < n; s += 2)
        for (int i = 0; i < TILE_LINE; i += QUAD_BYTES) {
            const int32x4_t a = vreinterpretq_s32_s8(load(w[s] + i));
            const int32x4_t b = vreinterpretq_s32_s8(load(w[s + 1] + i));
            vst1q_s8(w[s] + i, vreinterpretq_s8_s32(vzip1q_s32(a, b)));
            vst1q_s8(w[s + 1] + i, vreinterpretq_s8_s32(vzip2q_s32(a, b)));
        }
}
/* Eight bytes of each of two vectors; a vector without a second is its own. */
INLINE int8x16_t pair_of(const int8_t *q, const size_t apart)
{
    return vcombine_s8(vld1_s8(q), vld1_s8(q + apart));
}
INLINE void panel_dots(const int8_t (*w)[TILE_LINE], const int n_line, const int at,
                       const int8_t *q, const size_t apart, const int n, const int most,
                       int32x4_t (*dot)[QUADS])
{
    enum { PAIRS = PANEL_VEC / 2 };
    int32x4_t x[PAIRS][QUADS][2]; /* rows 0 1, rows 2 3, each times two vectors */
    (void)most;
#pragma GCC unroll 4
    for (int t = 0; t < n; t += 2)
#pragma GCC unroll 4
        for (int i = 0; i < QUADS; i++) {
            const int32x4_t d0 = dot[t][i], d1 = t + 1 < n ? dot[t + 1][i] : d0;
            x[t / 2][i][0] = vzip1q_s32(d0, d1), x[t / 2][i][1] = vzip2q_s32(d0, d1);
        }
#pragma GCC unroll 4
    for (int s = 0; s < n_line; s += 2) {
        int8x16_t v[PAIRS];
#pragma GCC unroll 4
        for (int t = 0; t < n; t += 2)
            v[t / 2] = pair_of(q + apart * (size_t)t + 4 * s, t + 1 < n ? apart : 0);
#pragma GCC unroll 4
        for (int i = 0; i < QUADS; i++) {
            const words a = load(w[s] + QUAD_BYTES * (at + i));
            const words b = load(w[s + 1] + QUAD_BYTES * (at + i));
#pragma GCC unroll 4
            for (int t = 0; t < n; t += 2) {
                x[t / 2][i][0] = vmmlaq_s32(x[t / 2][i][0], a, v[t / 2]);
                x[t / 2][i][1] = vmmlaq_s32(x[t / 2][i][1], b, v[t / 2]);
            }
        }
    }
#pragma GCC unroll 4
    for (int t = 0; t < n; t++)
#pragma GCC unroll 4
        for (int i = 0; i < QUADS; i++) {
            const int32x4_t a = x[t / 2][i][0], b = x[t / 2][i][1];
            dot[t][i] = t % 2 ? vuzp2q_s32(a, b) : vuzp1q_s32(a, b);
        }
}

#endif
