/* Tiles of the formats with 32 weights a block but NVFP4, and affine ones, AMX.  A product of 32 weights, 16 rows and 16 vectors
   is one instruction; its sums then meet the block's own scales, which is most of the work: while the matrix unit is
   in use a core starts one vector multiplication a cycle, not two (docs/kernels.md).  So 8 blocks are unpacked into a
   panel, and along them the y of 16 vectors and 16 rows stay in registers.

   The sums of a block are added up beside the product of the second after it, from one 16 vectors or rows into the
   next, so that nothing waits.

   Cycles of a core for 32 weights, 16 rows and 16 vectors, of 96: Q4_1 76, Q4_0 65, Q8_0 67; by
   vpdpbusd 123 and 108 (Q4_1, Q4_0). */
#include "backend/cpu/kern/x86/linear_x86.h"
#include "backend/cpu/kern/x86/tiles_amx.h"
#include "backend/cpu/kern/x86/words_avx512.h"

#include "backend/cpu/kern/body/linear_tile32_form.h"

#include "backend/cpu/kern/x86/linear_tile32_avx512.h"

enum {
    /* 10 KB beside 8 of activations: of 16 blocks, which left less of L1 to the rest, steps took 3 to 5 % more. */
    PANEL_BLOCKS = 8,
    /* Fewer vectors cost less by vpdpbusd, but for AMX_VEC, which fill a register. */
    LEAST = 22,
    LEAST_8 = 24, /* of eight bits */
};

/* Blocks, unpacked: unsigned where the form has a minimum, else signed, less their centre. */
typedef struct panel32 {
    uint8_t w[PANEL_BLOCKS][2][8][TILE_LINE]; /* [block][group][word] */
    float head[PANEL_BLOCKS][2][TILE_ROWS];   /* d, minima */
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

/* One product's sums c into those of its vectors a; head: scales of the block and group, minima a line of the panel
   further. */
INLINE void add_sums(form f, const float *head, const a8_32 *a, const int shift, const amx_sums *c,
                     __m512 *sum)
{
    const __m512 d = _mm512_load_ps(head);
    const __m512 m = f.min ? _mm512_load_ps(head + TILE_ROWS) : d;
#pragma GCC unroll 16
    for (int i = 0; i < AMX_VEC; i++) {
        __m512 *y = &sum[i >> shift];
        if (f.min) *y = _mm512_fmadd_ps(m, _mm512_set1_ps(a[i].s), *y);
        *y = _mm512_fmadd_ps(_mm512_mul_ps(d, _mm512_set1_ps(a[i].d)), amx_float(load(c->of[i])),
                             *y);
    }
}

/* A group of 16 rows times AMX_VEC vectors: where their activations, weights, scales and y lie. */
typedef struct item {
    const uint8_t *a, *w;
    const float *d;
    float *y;
    int32_t from; /* the first `from` vectors have had it */
} item;

INLINE item item_of(const chunk *h, int32_t i, const int shift)
{
    const int32_t g = i % 2, v = i / 2 * AMX_VEC;
    const int32_t first = v + AMX_VEC <= h->n_vec ? v : h->n_vec - AMX_VEC;
    return (item){.a = h->act + (size_t)first * sizeof(a8_32),
                  .w = h->u->w[0][g][0],
                  .d = h->u->head[0][0] + 16 * g,
                  .y = h->y + (first >> shift) * TILE_ROWS + 16 * g,
                  .from = v - first};
}

/* A step: the product of a block into C register c, if there is one; that of the block before, in C register e, is
   stored; the sums of the block before that, whose activations and scales are at sa and sd, are added up. */
#define STEP(c, e, product, sums)                                                                  \
    if (product) {                                                                                 \
        _tile_loadd(4, a, sizeof(a8_32));                                                          \
        _tile_loadd(6, w, TILE_LINE);                                                              \
    }                                                                                              \
    _tile_stored(e, buf[e].of, TILE_LINE);                                                         \
    if (product) {                                                                                 \
        _tile_zero(c);                                                                             \
        if (f.min)                                                                                 \
            _tile_dpbsud(c, 4, 6);                                                                 \
        else                                                                                       \
            _tile_dpbssd(c, 4, 6);                                                                 \
    }                                                                                              \
    if (sums) add_sums(f, sd, (const a8_32 *)(const void *)sa, shift, &buf[c], sum);               \
    a += h->stride, w += sizeof h->u->w[0], sa += h->stride, sd += 2 * TILE_ROWS;

/* The panel times all vectors.  Products run two blocks ahead of their sums, from one item into the next; of an odd
   number of blocks the last step of an item has none. */
INLINE void panel_chunk(form f, const chunk *h, const int shift)
{
    amx_sums buf[2];
    __m512 sum[AMX_VEC];
    const int32_t n = h->n_block, n_item = 2 * ((h->n_vec + AMX_VEC - 1) / AMX_VEC);
    const size_t before_last = (size_t)(n - 1) / 2 * 2; /* the first block of the last two steps */
    item last = item_of(h, 0, shift);
    last.from = AMX_VEC;
    memset(buf, 0, sizeof buf);
    for (int i = 0; i < AMX_VEC; i++) sum[i] = _mm512_setzero_ps();
    for (int32_t i = 0;; i++) {
        const item now = i < n_item ? item_of(h, i, shift) : last;
        const uint8_t *a = now.a, *w = now.w, *sa = last.a + before_last * h->stride;
        const float *sd = last.d + before_last * 2 * TILE_ROWS;
        STEP(0, 1, i < n_item, true)
        STEP(1, 0, i < n_item && n > 1, n % 2 == 0)
        for (int k = 0; k < AMX_VEC >> shift; k++)
            if (k >= last.from >> shift) _mm512_store_ps(last.y + TILE_ROWS * k, sum[k]);
        if (i == n_item) return;
        for (int k = 0; k < AMX_VEC >> shift; k++) sum[k] = _mm512_load_ps(now.y + TILE_ROWS * k);
        sa = now.a, sd = now.d;
#pragma GCC unroll 1
        for (int32_t b = 2; b < n; b += 2) {
            STEP(0, 1, true, true)
            STEP(1, 0, b + 1 < n, true)
        }
        last = now;
    }
}

/* Unpacks blocks from the walk on, the panel full or all that are left in even parts; answers how many. */
INLINE int32_t unpack_blocks(form f, walk *at, int32_t left, panel32 *u)
{
    const int32_t n_panel = (left + PANEL_BLOCKS - 1) / PANEL_BLOCKS;
    const int32_t part = (left + n_panel - 1) / n_panel;
    const int32_t most = part < left ? part + part % 2 : left; /* steps come in pairs */
    int32_t n = 0;
    for (; n < most; n++, at->codes += 2 * group_bytes(f)) {
        next_block(f, at);
        for (int i = 0; i < 2 * group_bytes(f); i += TILE_LINE) prefetch(at->codes + i);
        unpack_block(f, at, f.bits == BITS8 ? 0 : f.centre, u->w[n], u->head[n][0], u->head[n][1]);
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

INLINE bool pays(form f, int32_t n_vec)
{
    return n_vec >= (f.bits == BITS8 ? LEAST_8 : LEAST) || n_vec == AMX_VEC;
}

#define DEFINE_TILE(name, ...)                                                                     \
    void amx_tile_##name(const uint8_t *tile, int32_t n_block, const void *act, size_t stride,     \
                         int32_t n_vec, int32_t terms, float *y, void *panel)                      \
    {                                                                                              \
        const form f = {__VA_ARGS__, 0};                                                           \
        if (!pays(f, n_vec))                                                                       \
            vnni_tile_##name(tile, n_block, act, stride, n_vec, terms, y, panel);                  \
        else                                                                                       \
            tile32(f, tile, n_block, act, stride, n_vec, terms, y, panel,                          \
                   f.head == HEAD_E8M0 ? 2 : 1);                                                   \
    }
DEFINE_TILE(q4_0, BITS4, 8, 0, HEAD_F16)
DEFINE_TILE(q4_1, BITS4, 0, 1, HEAD_F16)
DEFINE_TILE(q5_0, BITS5, 16, 0, HEAD_F16)
DEFINE_TILE(q5_1, BITS5, 0, 1, HEAD_F16)
DEFINE_TILE(q8_0, BITS8, 128, 0, HEAD_F16)
DEFINE_TILE(iq4_nl, IQ4, 128, 0, HEAD_F16)
DEFINE_TILE(mxfp4, E2M1, 16, 0, HEAD_E8M0)

#define DEFINE_AFFINE(name, bits)                                                                  \
    void amx_affine_##name(const affine_form *af, const uint8_t *tile, int32_t n_block,            \
                           const void *act, size_t stride, int32_t n_vec, int32_t terms, float *y, \
                           void *panel)                                                            \
    {                                                                                              \
        const form f = {bits, 0, 1, af->head, 0};                                                  \
        if (!pays(f, n_vec))                                                                       \
            vnni_affine_##name(af, tile, n_block, act, stride, n_vec, terms, y, panel);            \
        else                                                                                       \
            tile32(f, tile, n_block, act, stride, n_vec, terms, y, panel, af->per_head);           \
    }
DEFINE_AFFINE(4, BITS4)
DEFINE_AFFINE(5, BITS5)
DEFINE_AFFINE(8, BITS8)
