/* Weights and activations for the tests of LINEAR. */
#ifndef TESTS_LINEAR_DATA_H
#define TESTS_LINEAR_DATA_H

#include "backend/cpu/kern/kern_linear.h"
#include "tensor/dtype.h"

/* What the numbers look like. */
typedef enum fill {
    FILL_RANDOM,
    FILL_ONES,
    FILL_ZEROS,
    FILL_MIXED,
    FILL_COUNT,
    FILL_WILD = FILL_COUNT /* what no sane file and no sane step has */
} fill;

/* n blocks as a file stores them: every bit pattern of the integers, sane f16 scales.  FILL_ONES:
   all integer bits set, FILL_ZEROS: none (extremes of nibbles and scales), FILL_MIXED: a random
   choice of these by block; Q6_K's scales become −128.  FILL_WILD: scales and floats of every magnitude, denormal
   to infinite, and NaN. */
void fill_weights(dtype t, fill f, uint64_t seed, size_t n_block, uint8_t *out);
/* FILL_ONES: all at one magnitude, signs alternating by the seed's whim; FILL_MIXED: outliers; FILL_WILD:
   every magnitude, each run of 32 of its own, all finite. */
void fill_floats(fill f, uint64_t seed, size_t n, float *out);
dtype tile_dtype(tile_type t);
bool same_bits(const float *a, const float *b, size_t n); /* any NaN equals any NaN */

/* The kernels of level i (0: reference), named; false when this machine lacks it.  The last three
   are the AVX-VNNI, AVX-512 and AMX kernels with their instructions emulated over AVX2. */
enum { N_LEVEL = 12 };
const char *level_name(int i);
/* Fewer vectors than these meet the kernels of a level that is listed too. */
int level_least(int i);
bool level_kernels(int i, kern_linear *k);

#endif
