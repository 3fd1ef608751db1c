/* Tiles of 256 weights a block times fine activations, groups of 32 with scales of their own: what the
   levels share.  Included after linear_tile256_body.h and

     fine_direct(…)  the products of n vectors, n known where it is inlined
     fine_panel(…)   turns what unpack_panel left into what fine_all wants
     fine_all(…)     one block of the panel times all vectors */
INLINE void fine256(const int bits, const uint8_t *tile, int32_t n_block, const uint8_t *act,
                    size_t stride, int32_t n_vec, int32_t terms, float *y, panel256 *u)
{
    const int32_t shift = terms - 1;
    const size_t block = (size_t)TILE_LINE * (size_t)(head_lines(bits) + 2 * group_lines(bits));
    memset(y, 0, (size_t)(n_vec >> shift) * TILE_ROWS * sizeof *y);
    FEW_VECTORS(fine_direct)
    for (int32_t b = 0; b < n_block; b++, tile += block, act += 8 * stride) {
        unpack_panel(bits, tile, u);
        fine_panel(bits, u);
        fine_all(bits, tile, block, u, act, stride, n_vec, shift, y);
    }
}

#define DEFINE_FINE(name, bits)                                                                    \
    void name(const uint8_t *tile, int32_t n_block, const void *act, size_t stride, int32_t n_vec, \
              int32_t terms, float *y, void *panel)                                                \
    {                                                                                              \
        fine256(bits, tile, n_block, act, stride, n_vec, terms, y, panel);                         \
    }
