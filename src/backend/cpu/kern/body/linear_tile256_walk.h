/* Tiles of 256 weights a block: the walk of many vectors along them.  Each file includes it once and defines

     unpack_panel(…) one block, unpacked into the level's panel256
     panel_all(…)    one unpacked block times all vectors */
#ifndef LINEAR_TILE256_WALK_H
#define LINEAR_TILE256_WALK_H

#include "backend/cpu/kern/body/linear_tile256_form.h"

INLINE void unpack_panel(const int bits, const uint8_t *tile, panel256 *u);
/* `tile`: the block; the next one follows it. */
INLINE void panel_all(const int bits, const uint8_t *tile, size_t block, const panel256 *u,
                      const a8_256 *a, int32_t n_vec, int32_t shift, float *y);

/* Adds the tile times n_vec vectors to y, block after block. */
INLINE void by_panel(const int bits, const uint8_t *tile, int32_t n_block, const void *act,
                     size_t stride, int32_t n_vec, int32_t shift, float *y, panel256 *u)
{
    const size_t block = (size_t)TILE_LINE * (size_t)(head_lines(bits) + 2 * group_lines(bits));
    for (int32_t b = 0; b < n_block; b++, tile += block) {
        const a8_256 *a = (const a8_256 *)(const void *)((const uint8_t *)act + (size_t)b * stride);
        unpack_panel(bits, tile, u);
        panel_all(bits, tile, block, u, a, n_vec, shift, y);
    }
}

#endif
