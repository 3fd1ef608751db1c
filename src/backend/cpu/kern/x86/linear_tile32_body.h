/* Tiles of the formats with 32 weights a block: what the levels share.  Each includes it once
   and defines

     direct(…)       the products of n ≤ 4 vectors, n known where it is inlined
     unpack_panel(…) one block, unpacked into the level's panel32
     panel_all(…)    one unpacked block times all vectors

   Nothing here is seen outside the file that includes it. */
enum { BITS4, BITS5, BITS8 };

/* What the code is specialised by. */
typedef struct form {
    int bits;
    int centre; /* subtracted from stored weights: 0, 8, 16; 128 where bytes are made unsigned */
    int min;    /* a minimum follows d */
} form;
typedef struct panel32 panel32;

INLINE int head_bytes(form f)
{
    return f.min ? 2 * TILE_LINE : TILE_LINE;
}
INLINE int group_bytes(form f)
{
    return (f.bits == BITS8 ? 8 : f.bits == BITS5 ? 5 : 4) * TILE_LINE;
}

INLINE void prefetch(const uint8_t *p)
{
    _mm_prefetch((const char *)p + 1024, _MM_HINT_T0);
    _mm_prefetch((const char *)p + 6144, _MM_HINT_T1);
}

INLINE void direct(form f, const uint8_t *tile, int32_t n_block, const uint8_t *act, size_t stride,
                   const int n, int32_t shift, float *y);
INLINE void unpack_panel(form f, const uint8_t *tile, panel32 *u);
INLINE void panel_all(form f, const panel32 *u, const a8_32 *a, int32_t n_vec, int32_t shift,
                      float *y);

INLINE void tile32(form f, const uint8_t *tile, int32_t n_block, const void *act, size_t stride,
                   int32_t n_vec, int32_t terms, float *y, panel32 *u)
{
    const int32_t shift = terms - 1;
    const size_t block = (size_t)(head_bytes(f) + 2 * group_bytes(f));
    memset(y, 0, (size_t)(n_vec >> shift) * TILE_ROWS * sizeof *y);
    switch (n_vec) {
    case 1:
        direct(f, tile, n_block, act, stride, 1, shift, y);
        return;
    case 2:
        direct(f, tile, n_block, act, stride, 2, shift, y);
        return;
    case 3:
        direct(f, tile, n_block, act, stride, 3, shift, y);
        return;
    case 4:
        direct(f, tile, n_block, act, stride, 4, shift, y);
        return;
    default:
        break;
    }
    for (int32_t b = 0; b < n_block; b++, tile += block) {
        const a8_32 *a = (const a8_32 *)(const void *)((const uint8_t *)act + (size_t)b * stride);
        for (size_t i = 0; i < block; i += TILE_LINE) prefetch(tile + i);
        unpack_panel(f, tile, u);
        panel_all(f, u, a, n_vec, shift, y);
    }
}

#define DEFINE_TILE(name, ...)                                                                     \
    void name(const uint8_t *tile, int32_t n_block, const void *act, size_t stride, int32_t n_vec, \
              int32_t terms, float *y, void *panel)                                                \
    {                                                                                              \
        const form f = {__VA_ARGS__};                                                              \
        tile32(f, tile, n_block, act, stride, n_vec, terms, y, panel);                             \
    }
