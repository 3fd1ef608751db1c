/* Tiles of 256 weights a block: what the levels share that multiply few vectors too.  Each file includes it
   once, after DIRECT_CASES(X, fn) — X(n, fn) for each number of vectors that goes without a panel — and
   defines, besides what linear_tile256_walk.h asks for,

     direct(…)       the products of n vectors, n known where it is inlined */
#include "backend/cpu/kern/body/linear_tile256_walk.h"

INLINE void direct(const int bits, const uint8_t *tile, int32_t n_block, const uint8_t *act,
                   size_t stride, const int n, int32_t shift, float *y);

/* Few vectors: their products by fn, and all is done. */
#define FEW_CASE(n, fn)                                                                            \
    case n:                                                                                        \
        fn(bits, tile, n_block, act, stride, n, shift, y);                                         \
        return;
#define FEW_VECTORS(fn)                                                                            \
    switch (n_vec) {                                                                               \
        DIRECT_CASES(FEW_CASE, fn)                                                                 \
    default:                                                                                       \
        break;                                                                                     \
    }

INLINE void tile256(const int bits, const uint8_t *tile, int32_t n_block, const void *act,
                    size_t stride, int32_t n_vec, int32_t terms, float *y, panel256 *u)
{
    const int32_t shift = terms - 1;
    memset(y, 0, (size_t)(n_vec >> shift) * TILE_ROWS * sizeof *y);
    FEW_VECTORS(direct)
    by_panel(bits, tile, n_block, act, stride, n_vec, shift, y, u);
}

#define DEFINE_TILE(name, bits)                                                                    \
    void name(const uint8_t *tile, int32_t n_block, const void *act, size_t stride, int32_t n_vec, \
              int32_t terms, float *y, void *panel)                                                \
    {                                                                                              \
        tile256(bits, tile, n_block, act, stride, n_vec, terms, y, panel);                         \
    }
