/* Blocks of the codebook and ternary types as integers, for kernels: each weight is a level's index, each
   16 have a whole odd scale. */
#ifndef TENSOR_GRID_H
#define TENSOR_GRID_H

#include "tensor/dtype.h"

/* w = d · (2·scale + 1) · level / a power of two, TQ without the scale.  Codes:
     IQ3_S, IQ3_XXS   the level's place, 0 … 7, and 8 where it is negative
     IQ2_*            0 … 2, and 4 where it is negative
     IQ1_*            0 … 2 for −1 … 1; `shift` says where an eighth is taken off, and not added
     TQ1_0, TQ2_0     0 … 3 for −1 … 2 */
typedef struct grid_block {
    uint8_t code[256];
    uint8_t scale[16]; /* a run of 16; 0 … 15 */
    uint32_t shift;    /* bit k: of weights 8k … 8k + 7 */
    uint16_t d;        /* f16 */
} grid_block;

/* False: the type is none of these. */
bool grid_type(dtype t);
/* b: one block as stored, at any alignment. */
void grid_read(dtype t, const uint8_t *b, grid_block *out);

#endif
