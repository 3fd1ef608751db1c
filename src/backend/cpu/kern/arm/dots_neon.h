/* Dots of words in NEON alone: products add up in 16 bits, then in 32.  Included after words_neon.h, or one of
   dots_dotprod.h and dots_i8mm.h in its place:

     part                   the dots of a quad with one vector, on the way
     part_begin(start)      they start at `start`
     part_add(x, w, q, s)   plus word w times the bytes 4s … 4s+3 of q
     part_end(x, start)     the dots; `start` as for part_begin
     part_words(most)       how many words of |w| ≤ most add up before part_end, even, at most
     QUADS                  quads to work on at once, so that the registers suffice

     panel_order(w, n)      rearranges n lines of a group that lies in a panel, as panel_dots wants them
     panel_dots(…)          dot[t][i] += n_quad quads of n_line lines of a panel from w on, TILE_LINE apart,
                            times vector t at q + t·apart, t < n ≤ PANEL_VEC; |w| ≤ most
   and for the order in which dot's lanes lie, its rows t < panel_n(n):
     panel_start(s, n, t)   of s[t], a number of vector t in every lane
     panel_scale(v, t)      of v, numbers of a quad's rows
     panel_out(dot, t, i)   back: the rows of quad i times vector t */
#ifndef DOTS_NEON_H
#define DOTS_NEON_H

enum { QUADS = 2, PANEL_VEC = 2 };

typedef struct part {
    int16x8_t lo, hi; /* four products of each of two rows */
} part;

INLINE part part_begin(int32x4_t start)
{
    (void)start;
    return (part){vdupq_n_s16(0), vdupq_n_s16(0)};
}
INLINE part part_add(part x, words w, const int8_t *q, const int s)
{
    const int8x16_t v = vreinterpretq_s8_s32(word(q + 4 * s));
    return (part){vmlal_s8(x.lo, vget_low_s8(w), vget_low_s8(v)), vmlal_high_s8(x.hi, w, v)};
}
INLINE int32x4_t part_end(part x, int32x4_t start)
{
    return vaddq_s32(start, vpaddq_s32(vpaddlq_s16(x.lo), vpaddlq_s16(x.hi)));
}
/* A lane of 16 bits takes one product of each word. */
INLINE int part_words(const int most)
{
    return most <= 31 ? 8 : most <= 63 ? 4 : 2;
}

#include "backend/cpu/kern/arm/panel_dots_body.h"

#endif
