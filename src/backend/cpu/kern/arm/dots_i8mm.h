/* Dots of words by sdot, and of panels by smmla: two rows times two vectors, eight products each.  dots_neon.h
   has the list. */
#ifndef DOTS_I8MM_H
#define DOTS_I8MM_H

#include "backend/cpu/kern/arm/dots_dotprod.h"

/* Words of two lines side by side: eight weights of each of two rows in a register. */
INLINE void panel_order(int8_t *w, int n)
{
    for (int s = 0; s < n; s += 2, w += 2 * TILE_LINE)
        for (int i = 0; i < TILE_LINE; i += QUAD_BYTES) {
            const int32x4_t a = vreinterpretq_s32_s8(load(w + i));
            const int32x4_t b = vreinterpretq_s32_s8(load(w + TILE_LINE + i));
            vst1q_s8(w + i, vreinterpretq_s8_s32(vzip1q_s32(a, b)));
            vst1q_s8(w + TILE_LINE + i, vreinterpretq_s8_s32(vzip2q_s32(a, b)));
        }
}
/* Eight bytes of each of two vectors; a vector without a second is its own. */
INLINE int8x16_t pair_of(const int8_t *q, const size_t apart)
{
    return vcombine_s8(vld1_s8(q), vld1_s8(q + apart));
}
/* Rows 0 and 1 of a quad times vectors t and t + 1 lie in dot[t], rows 2 and 3 in dot[t + 1]. */
INLINE int panel_n(const int n)
{
    return n + n % 2;
}
INLINE int32x4_t panel_start(const int32x4_t *s, const int n, const int t)
{
    const int first = t / 2 * 2;
    return vzip1q_s32(s[first], s[first + 1 < n ? first + 1 : first]);
}
INLINE int32x4_t panel_scale(int32x4_t v, const int t)
{
    return t % 2 ? vzip2q_s32(v, v) : vzip1q_s32(v, v);
}
INLINE int32x4_t panel_out(const int32x4_t (*dot)[QUADS], const int t, const int i)
{
    const int32x4_t a = dot[t / 2 * 2][i], b = dot[t / 2 * 2 + 1][i];
    return t % 2 ? vuzp2q_s32(a, b) : vuzp1q_s32(a, b);
}
INLINE void panel_dots(const int8_t *w, const int n_line, const int n_quad, const int8_t *q,
                       const size_t apart, const int n, const int most, int32x4_t (*dot)[QUADS])
{
    (void)most;
#pragma GCC unroll 4
    for (int s = 0; s < n_line; s += 2) {
        int8x16_t v[PANEL_VEC];
#pragma GCC unroll 4
        for (int t = 0; t < n; t += 2)
            v[t] = pair_of(q + apart * (size_t)t + 4 * s, t + 1 < n ? apart : 0);
#pragma GCC unroll 4
        for (int i = 0; i < n_quad; i++) {
            const words a = load(w + TILE_LINE * s + QUAD_BYTES * i);
            const words b = load(w + TILE_LINE * (s + 1) + QUAD_BYTES * i);
#pragma GCC unroll 4
            for (int t = 0; t < n; t += 2) {
                dot[t][i] = vmmlaq_s32(dot[t][i], a, v[t]);
                dot[t + 1][i] = vmmlaq_s32(dot[t + 1][i], b, v[t]);
            }
        }
    }
}

#endif
