/* Weights repacked into tiles (kern/kern_linear.h has the layout). */
#ifndef CPU_TILES_H
#define CPU_TILES_H

#include "backend/cpu/kern/kern_linear.h"
#include "tensor/backend.h"
#include "tensor/dtype.h"

/* What weight.dev points to.  Immutable once made. */
typedef struct tiles {
    tile_type type;
    int32_t n_block; /* along a row */
    int32_t n_tile;
    size_t tile_bytes;
    size_t map_size;
    uint8_t *data; /* n_tile tiles, then TILE_SLACK bytes */
} tiles;

/* The format with tiles of a stored type; false: it has none. */
bool tiles_type(dtype t, tile_type *out);
/* The device keeps this weight in tiles, and 8-bit activations meet it. */
bool tiles_wanted(const dev *d, const weight *w, tile_type *out);
/* Packs rows (row_bytes apart, stored form), n_row ≤ TILE_ROWS of them, into one tile; the rest of
   the tile becomes zero. */
void tiles_pack(tile_type t, const uint8_t *rows, size_t row_bytes, int32_t n_row, int32_t n_block,
                uint8_t *tile);

#endif
