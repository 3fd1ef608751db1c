/* Weights repacked into tiles (kern/kern_linear.h has the layout). */
#ifndef CPU_TILES_H
#define CPU_TILES_H

#include "backend/cpu/kern/kern_linear.h"
#include "tensor/backend.h"
#include "tensor/dtype.h"
#include "tensor/packed.h"

/* What weight.dev points to.  Immutable once made. */
typedef struct tiles {
    bool affine; /* then `form` says how it lies, else `type` */
    affine_form form;
    tile_type type;
    int32_t n_block; /* along a row; affine: of 32 */
    int32_t n_tile;
    size_t tile_bytes;
    size_t size;
    uint8_t *data; /* of the device's slabs: n_tile tiles, then TILE_SLACK bytes */
} tiles;

/* The format with tiles of a stored type; false: it has none. */
bool tiles_type(dtype t, tile_type *out);
/* The device keeps this weight in tiles, and 8-bit activations in groups of so many meet it; 0: it
   does not. */
int32_t tiles_act_group(cairn_compute compute, const weight *w);
/* pack_affine.c: the tile form of a weight with affine codes; its rows row0 … row0+n_row-1 into one
   tile, the rest of it zero. */
affine_form affine_form_of(const packed *s);
void affine_pack(const affine_form *f, const weight *w, int32_t row0, int32_t n_row, uint8_t *tile);
/* 16 bytes of nibbles in rising order become one with w[i] low and w[16 + i] high in byte i. */
void tile_nibbles(const uint8_t *p, uint8_t out[16]);
/* pack_fp4.c: MXFP4 and NVFP4, as tiles_pack and as affine_pack. */
void fp4_pack(tile_type t, const uint8_t *rows, size_t row_bytes, int32_t n_row, int32_t n_block,
              uint8_t *tile);
void fp4_pack_packed(tile_type t, const weight *w, int32_t row0, int32_t n_row, uint8_t *tile);
/* pack_grid.c: the codebook and ternary types, as tiles_pack. */
void grid_pack(tile_type t, const uint8_t *rows, size_t row_bytes, int32_t n_row, int32_t n_block,
               uint8_t *tile);
/* Packs rows (row_bytes apart, stored form), n_row ≤ TILE_ROWS of them, into one tile; the rest of
   the tile becomes zero. */
void tiles_pack(tile_type t, const uint8_t *rows, size_t row_bytes, int32_t n_row, int32_t n_block,
                uint8_t *tile);

#endif
