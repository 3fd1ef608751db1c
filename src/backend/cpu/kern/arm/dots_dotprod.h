/* Dots of words by sdot, four products a lane straight into 32 bits.  dots_neon.h has the list. */
#ifndef DOTS_DOTPROD_H
#define DOTS_DOTPROD_H

enum { QUADS = 4, PANEL_VEC = 4 };

typedef int32x4_t part;

INLINE part part_begin(int32x4_t start)
{
    return start;
}
/* A register holds four words of q, which sdot takes by place. */
INLINE part part_add(part x, words w, const int8_t *q, const int s)
{
    const int8x16_t v = load(q + s / 4 * 16);
    switch (s % 4) {
    case 0:
        return vdotq_laneq_s32(x, w, v, 0);
    case 1:
        return vdotq_laneq_s32(x, w, v, 1);
    case 2:
        return vdotq_laneq_s32(x, w, v, 2);
    default:
        return vdotq_laneq_s32(x, w, v, 3);
    }
}
INLINE int32x4_t part_end(part x, int32x4_t start)
{
    (void)start;
    return x;
}
INLINE int part_words(const int most)
{
    (void)most;
    return 8; /* as many as a sub-block has */
}

#ifndef DOTS_I8MM_H
#include "backend/cpu/kern/arm/panel_dots_body.h"
#endif

#endif
