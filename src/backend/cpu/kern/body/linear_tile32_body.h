/* Tiles of the formats with 32 weights a block, affine ones and those of e2m1: what the levels share
   that multiply few vectors too.  Each includes it once, after DIRECT_CASES(X) — X(n) for each number of
   vectors that goes without a panel — and defines

     direct(…)       the products of n vectors, n known where it is inlined
     PANEL_BLOCKS    how many blocks are unpacked at a time, each into one of the level's panel32
     unpack_panel(…) one block
     panel_all(…)    n ≤ PANEL_BLOCKS unpacked blocks times all vectors

   Nothing here is seen outside the file that includes it. */
#include "backend/cpu/kern/body/linear_tile32_form.h"

INLINE void direct(form f, walk w, int32_t n_block, const uint8_t *act, size_t stride, const int n,
                   int32_t shift, float *y);
INLINE void unpack_panel(form f, const walk *w, panel32 *u);
INLINE void panel_all(form f, const panel32 *u, int32_t n, const uint8_t *act, size_t stride,
                      int32_t n_vec, int32_t shift, float *y);

INLINE void tile32(form f, const uint8_t *tile, int32_t n_block, const void *act, size_t stride,
                   int32_t n_vec, int32_t terms, float *y, panel32 *u, int32_t per_head)
{
    const int32_t shift = terms - 1;
    walk w = {.head = tile, .codes = tile, .per_head = per_head, .left = 0};
    memset(y, 0, (size_t)(n_vec >> shift) * TILE_ROWS * sizeof *y);
    switch (n_vec) {
#define DIRECT_CASE(n)                                                                             \
    case n:                                                                                        \
        direct(f, w, n_block, act, stride, n, shift, y);                                           \
        return;
        DIRECT_CASES(DIRECT_CASE)
#undef DIRECT_CASE
    default:
        break;
    }
    for (int32_t b = 0, n; b < n_block; b += n) {
        n = n_block - b < PANEL_BLOCKS ? n_block - b : PANEL_BLOCKS;
        for (int32_t i = 0; i < n; i++, w.codes += 2 * group_bytes(f)) {
            next_block(f, &w);
            for (int k = 0; k < 2 * group_bytes(f); k += TILE_LINE) prefetch(w.codes + k);
            unpack_panel(f, &w, u + i);
        }
        panel_all(f, u, n, (const uint8_t *)act + (size_t)b * stride, stride, n_vec, shift, y);
    }
}

#define DEFINE_TILE(name, ...)                                                                     \
    void name(const uint8_t *tile, int32_t n_block, const void *act, size_t stride, int32_t n_vec, \
              int32_t terms, float *y, void *panel)                                                \
    {                                                                                              \
        const form f = {__VA_ARGS__, HEAD_F16, 0};                                                 \
        tile32(f, tile, n_block, act, stride, n_vec, terms, y, panel, 1);                          \
    }

#define DEFINE_AFFINE(name, bits)                                                                  \
    void name(const affine_form *af, const uint8_t *tile, int32_t n_block, const void *act,        \
              size_t stride, int32_t n_vec, int32_t terms, float *y, void *panel)                  \
    {                                                                                              \
        const form f = {bits, 0, 1, af->head, 0};                                                  \
        tile32(f, tile, n_block, act, stride, n_vec, terms, y, panel, af->per_head);               \
    }

#define DEFINE_FP4(name, head, per_head)                                                           \
    void name(const uint8_t *tile, int32_t n_block, const void *act, size_t stride, int32_t n_vec, \
              int32_t terms, float *y, void *panel)                                                \
    {                                                                                              \
        const form f = {E2M1, 16, 0, head, head == HEAD_E4M3};                                     \
        tile32(f, tile, n_block, act, stride, n_vec, terms, y, panel, per_head);                   \
    }
