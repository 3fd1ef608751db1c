/* The definition of the product of tiles of 256 weights a block: what the files that unpack them share. */
#ifndef REF_LINEAR_TILE256_H
#define REF_LINEAR_TILE256_H

#include "backend/cpu/kern/ref/linear_ref.h"

/* One block, unpacked. */
typedef struct block256 {
    int8_t w[TILE_ROWS][256];
    int8_t sc[TILE_ROWS][16], m[TILE_ROWS][16]; /* one a sub-block */
    float d[TILE_ROWS], dmin[TILE_ROWS];
} block256;

/* How a format differs. */
typedef struct format256 {
    tile_type type;
    int32_t sub; /* weights under one scale */
    bool min;
    void (*unpack)(const uint8_t *p, block256 *out);
} format256;

/* As kern_tile_fn. */
void ref_tile256(format256 f, const uint8_t *tile, int32_t n_block, const void *act, size_t stride,
                 int32_t n_vec, int32_t terms, float *y);

#define DEFINE_TILE256(name, ...)                                                                  \
    void name(const uint8_t *tile, int32_t n_block, const void *act, size_t stride, int32_t n_vec, \
              int32_t terms, float *y, void *panel)                                                \
    {                                                                                              \
        (void)panel;                                                                               \
        ref_tile256((format256){__VA_ARGS__}, tile, n_block, act, stride, n_vec, terms, y);        \
    }

#endif
