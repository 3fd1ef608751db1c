/* Kernels without the one-numerics contract, for AVX2: what it costs is the time of the contract's kernels
   over theirs.  Free means: sums in any order and in as many chains as pay, one activation scale a row
   of any length, softmax on the way through the positions, an exp of 1e-6.  Not free: the formats.  No part
   of the product; made and run by `make lab`. */
#ifndef LAB_FREE_H
#define LAB_FREE_H

#include <stddef.h>
#include <stdint.h>

#include "backend/cpu/kern/kern_linear.h"

/* x ≈ d · q of a whole row; s: the sums of 32, in the order of a8_256.  Of n_vec
   rows, block b of row v is number b · n_vec + v. */
typedef struct free_act {
    int8_t q[256];
    int16_t s[8];
    uint8_t pad[48];
} free_act;

/* y[v][32] = the Q4_K tile times n_vec vectors of n_block blocks; d: their scales. */
void free_gemm_q4_k(const uint8_t *tile, int32_t n_block, const free_act *act, const float *d,
                    int32_t n_vec, float *y, void *panel);
/* The same of one vector. */
void free_gemv_q4_k(const uint8_t *tile, int32_t n_block, const free_act *act, float d, float *y);

/* FREE_HEADS queries of FREE_DIM over n positions (a multiple of 128), keys f16 in tiles of 16 positions with
   the position fastest, values f16 by rows: out[h] = softmax(scale · q·K) · V. */
enum { FREE_HEADS = 6, FREE_DIM = 128 };
void free_attend(const float *q, const uint16_t *k, const uint16_t *v, int32_t n, float scale,
                 float *out);

#endif
