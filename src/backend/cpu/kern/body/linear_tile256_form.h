/* Tiles of 256 weights a block: how they lie.

   `bits` tells the format: 2 … 6 those with a K, BITS_IQ4 IQ4_XS, from GRID_IQ3_S on those of
   linear_grid_body.h.  Nothing here is seen outside the file that includes it. */
#ifndef LINEAR_TILE256_FORM_H
#define LINEAR_TILE256_FORM_H

#include "backend/cpu/kern/body/fetch.h"

typedef struct panel256 panel256;

enum {
    BITS_IQ4 = 7,
    GRID_IQ3_S,
    GRID_IQ3_XXS,
    GRID_IQ2_XXS,
    GRID_IQ2_S,
    GRID_IQ1_S,
    GRID_IQ1_M,
    GRID_TQ
};
enum { THIRD_LINE = 3 /* of a group of Q3_K, its third bits */ };

INLINE int group_lines(const int bits)
{
    static const uint8_t n[] = {[2] = 21,
                                [3] = 27,
                                [4] = 36,
                                [5] = 44,
                                [6] = 52,
                                [BITS_IQ4] = 34,
                                [GRID_IQ3_S] = 33,
                                [GRID_IQ3_XXS] = 33,
                                [GRID_IQ2_XXS] = 25,
                                [GRID_IQ2_S] = 26,
                                [GRID_IQ1_S] = 18,
                                [GRID_IQ1_M] = 19,
                                [GRID_TQ] = 16};
    return n[bits];
}
/* d of all rows, before the groups. */
INLINE int head_lines(const int bits)
{
    return bits == 3 || bits == 6 || bits >= GRID_IQ3_S;
}
/* The power of two that makes weights unsigned. */
INLINE int centre_log(const int bits)
{
    static const uint8_t log[] = {[3] = 2,
                                  [4] = 3,
                                  [5] = 4,
                                  [6] = 5,
                                  [BITS_IQ4] = 7,
                                  [GRID_IQ3_S] = 4,
                                  [GRID_IQ3_XXS] = 5,
                                  [GRID_IQ2_XXS] = 6,
                                  [GRID_IQ2_S] = 6,
                                  [GRID_IQ1_S] = 4,
                                  [GRID_IQ1_M] = 4,
                                  [GRID_TQ] = 4};
    return log[bits];
}
/* What meets the sums of q: minima, or what undoes the centring. */
INLINE int has_min(const int bits)
{
    return bits == 2 || bits == 4 || bits == 5;
}
/* Lines under one scale. */
INLINE int scale_lines(const int bits)
{
    return bits == 4 || bits == 5 || bits == BITS_IQ4 ? 8 : 4;
}

/* Q2_K, Q3_K: the line of a group from which on codes lie. */
INLINE int code_line(const int bits)
{
    return bits == 2 ? 5 : 11;
}

#endif
