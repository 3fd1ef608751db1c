/* Tiles of the formats with 32 weights a block but NVFP4, and affine ones, AMX.  A product of 32 weights, 16 rows and 16 vectors
   is one instruction; its sums then meet the block's own scales, which is most of the work: while the matrix unit is
   in use a core starts one vector multiplication a cycle, not two (docs/kernels.md).  So 16 blocks are unpacked into a
   panel, and along them the y of 16 vectors and 16 rows stay in registers.

   The sums of a block are added up beside the product of the second after it, so that nothing waits.

   Cycles of a core for 32 weights, 16 rows and 16 vectors, of 96: Q4_1 85, Q4_0 72; by vpdpbusd 123 and 108. */
#include "backend/cpu/kern/x86/linear_x86.h"
#include "backend/cpu/kern/x86/tiles_amx.h"
#include "backend/cpu/kern/x86/words_avx512.h"

#include "backend/cpu/kern/body/linear_tile32_form.h"

#include "backend/cpu/kern/x86/linear_tile32_avx512.h"

enum {
    PANEL_BLOCKS = 16,
    /* Fewer vectors cost less by vpdpbusd. */
    LEAST_NIBBLES = 24,
    LEAST_BYTES = 48,
};

/* Blocks, unpacked: unsigned where the form has a minimum, else signed, less their centre. */
typedef struct panel32 {
    uint8_t w[PANEL_BLOCKS][2][8][TILE_LINE]; /* [block][group][word] */
    float d[PANEL_BLOCKS][TILE_ROWS], m[PANEL_BLOCKS][TILE_ROWS];
} panel32;
_Static_assert(sizeof(panel32) <= TILE_PANEL, "panel");

/* What a call multiplies by the blocks of the panel. */
typedef struct chunk {
    const panel32 *u;
    const uint8_t *act; /* of the panel's first block */
    size_t stride;
    int32_t n_block, n_vec;
    float *y;
} chunk;

/* One product's sums c into those of its vectors a. */
INLINE void add_sums(form f, const panel32 *u, int32_t b, int32_t g, const a8_32 *a,
                     const int shift, const amx_sums *c, __m512 *sum)
{
    const __m512 d = _mm512_load_ps(u->d[b] + 16 * g);
    const __m512 m = f.min ? _mm512_load_ps(u->m[b] + 16 * g) : d;
#pragma GCC unroll 16
    for (int i = 0; i < AMX_VEC; i++) {
        __m512 *y = &sum[i >> shift];
        if (f.min) *y = _mm512_fmadd_ps(m, _mm512_set1_ps(a[i].s), *y);
        *y = _mm512_fmadd_ps(_mm512_mul_ps(d, _mm512_set1_ps(a[i].d)), amx_float(load(c->of[i])),
                             *y);
    }
}

/* Step b: the product of block b into C register c; that of the block before, in C register e, is stored; the sums
   of the block before that are added up. */
#define STEP(b, c, e)                                                                              \
    if ((b) < n) {                                                                                 \
        _tile_loadd(4, a, sizeof(a8_32));                                                          \
        _tile_loadd(6, w, TILE_LINE);                                                              \
    }                                                                                              \
    _tile_stored(e, buf[e].of, TILE_LINE);                                                         \
    if ((b) < n) {                                                                                 \
        _tile_zero(c);                                                                             \
        if (f.min)                                                                                 \
            _tile_dpbsud(c, 4, 6);                                                                 \
        else                                                                                       \
            _tile_dpbssd(c, 4, 6);                                                                 \
    }                                                                                              \
    if ((b) > 1 && (b) < n + 2)                                                                    \
        add_sums(f, h->u, (b)-2, g, (const a8_32 *)(const void *)(a - 2 * h->stride), shift,       \
                 &buf[c], sum);                                                                    \
    a += h->stride, w += sizeof h->u->w[0];

/* Group g of rows times AMX_VEC vectors from v on; those before v + from have had it. */
INLINE void vectors(form f, const chunk *h, int32_t g, int32_t v, int32_t from, const int shift)
{
    amx_sums buf[2];
    __m512 sum[AMX_VEC];
    float *y = h->y + (v >> shift) * TILE_ROWS + 16 * g;
    const uint8_t *a = h->act + (size_t)v * sizeof(a8_32), *w = h->u->w[0][g][0];
    const int32_t n = h->n_block;
    for (int i = 0; i < AMX_VEC >> shift; i++) sum[i] = _mm512_load_ps(y + TILE_ROWS * i);
    for (int32_t b = 0; b < n + 2; b += 2) {
        STEP(b, 0, 1)
        STEP(b + 1, 1, 0)
    }
    for (int i = 0; i < AMX_VEC >> shift; i++)
        if (i >= from >> shift) _mm512_store_ps(y + TILE_ROWS * i, sum[i]);
}

INLINE void panel_chunk(form f, const chunk *h, const int shift)
{
    for (int32_t v = 0; v < h->n_vec; v += AMX_VEC) {
        const int32_t first = v + AMX_VEC <= h->n_vec ? v : h->n_vec - AMX_VEC;
        for (int32_t g = 0; g < 2; g++) vectors(f, h, g, first, v - first, shift);
    }
}

/* Unpacks blocks from the walk on, the panel full or all that are left; answers how many. */
INLINE int32_t unpack_blocks(form f, walk *at, int32_t left, panel32 *u)
{
    const int32_t n_panel = (left + PANEL_BLOCKS - 1) / PANEL_BLOCKS,
                  most = (left + n_panel - 1) / n_panel;
    int32_t n = 0;
    for (; n < most; n++, at->codes += 2 * group_bytes(f)) {
        next_block(f, at);
        for (int i = 0; i < 2 * group_bytes(f); i += TILE_LINE) prefetch(at->codes + i);
        unpack_block(f, at, f.bits == BITS8 ? 0 : f.centre, u->w[n], u->d[n], u->m[n]);
    }
    amx_panel_ready();
    return n;
}

INLINE void tile32(form f, const uint8_t *tile, int32_t n_block, const void *act, size_t stride,
                   int32_t n_vec, int32_t terms, float *y, panel32 *u, int32_t per_head)
{
    walk at = {.head = tile, .codes = tile, .per_head = per_head, .left = 0};
    chunk h = {.u = u, .act = act, .stride = stride, .n_vec = n_vec, .y = y};
    memset(y, 0, (size_t)(n_vec / terms) * TILE_ROWS * sizeof *y);
    amx_begin(AMX_VEC, 32);
    for (int32_t b = 0; b < n_block; b += h.n_block) {
        h.act = (const uint8_t *)act + (size_t)b * stride;
        h.n_block = unpack_blocks(f, &at, n_block - b, u);
        if (terms == 1)
            panel_chunk(f, &h, 0);
        else
            panel_chunk(f, &h, 1);
    }
    _tile_release();
}

#define DEFINE_TILE(name, least, ...)                                                              \
    void amx_tile_##name(const uint8_t *tile, int32_t n_block, const void *act, size_t stride,     \
                         int32_t n_vec, int32_t terms, float *y, void *panel)                      \
    {                                                                                              \
        const form f = {__VA_ARGS__, 0};                                                           \
        if (n_vec < (least))                                                                       \
            vnni_tile_##name(tile, n_block, act, stride, n_vec, terms, y, panel);                  \
        else                                                                                       \
            tile32(f, tile, n_block, act, stride, n_vec, terms, y, panel,                          \
                   f.head == HEAD_E8M0 ? 2 : 1);                                                   \
    }
DEFINE_TILE(q4_0, LEAST_NIBBLES, BITS4, 8, 0, HEAD_F16)
DEFINE_TILE(q4_1, LEAST_NIBBLES, BITS4, 0, 1, HEAD_F16)
DEFINE_TILE(q5_0, LEAST_NIBBLES, BITS5, 16, 0, HEAD_F16)
DEFINE_TILE(q5_1, LEAST_NIBBLES, BITS5, 0, 1, HEAD_F16)
DEFINE_TILE(q8_0, LEAST_BYTES, BITS8, 128, 0, HEAD_F16)
DEFINE_TILE(iq4_nl, LEAST_NIBBLES, IQ4, 128, 0, HEAD_F16)
DEFINE_TILE(mxfp4, LEAST_NIBBLES, E2M1, 16, 0, HEAD_E8M0)

#define DEFINE_AFFINE(name, least, bits)                                                           \
    void amx_affine_##name(const affine_form *af, const uint8_t *tile, int32_t n_block,            \
                           const void *act, size_t stride, int32_t n_vec, int32_t terms, float *y, \
                           void *panel)                                                            \
    {                                                                                              \
        const form f = {bits, 0, 1, af->head, 0};                                                  \
        if (n_vec < (least))                                                                       \
            vnni_affine_##name(af, tile, n_block, act, stride, n_vec, terms, y, panel);            \
        else                                                                                       \
            tile32(f, tile, n_block, act, stride, n_vec, terms, y, panel, af->per_head);           \
    }
DEFINE_AFFINE(4, LEAST_NIBBLES, BITS4)
DEFINE_AFFINE(5, LEAST_NIBBLES, BITS5)
DEFINE_AFFINE(8, LEAST_BYTES, BITS8)
