/* Tiles of Q4_0, Q5_0, Q8_0, IQ4_NL and MXFP4, AMX.  A product of 32 weights, 16 rows and 8 vectors is one instruction; every
   block's sums then meet its own scales, which is most of the work.  So 16 blocks are unpacked into a panel,
   and along them the 8 vectors' y of 32 rows stay in registers.

   Steps of two blocks: the products of one step are started among the sums of an earlier one, so that
   matrix and vector units work at once.

   Measured on 96 vectors, cycles of a core for 32 weights, 16 rows and 16 vectors: Q4_0 78, Q8_0 91; by vpdpbusd
   111 and 110.  Q4_1, Q5_1 and affine codes stay with that: 100 against 103, and slower where another thread
   shares the core. */
#include "backend/cpu/kern/x86/linear_x86.h"
#include "backend/cpu/kern/x86/tiles_amx.h"
#include "backend/cpu/kern/x86/words_avx512.h"

#include "backend/cpu/kern/body/linear_tile32_form.h"

#include "backend/cpu/kern/x86/linear_tile32_avx512.h"

enum {
    PANEL_BLOCKS = 16,
    VECS = 8,
    STEP = 2,
    /* Fewer vectors cost less by vpdpbusd. */
    LEAST_NIBBLES = 24,
    LEAST_BYTES = 48,
};

/* Blocks, unpacked: weights less their centre, signed. */
typedef struct panel32 {
    uint8_t w[PANEL_BLOCKS][2][8][TILE_LINE]; /* [block][group][word] */
    float d[PANEL_BLOCKS][TILE_ROWS];
} panel32;
_Static_assert(sizeof(panel32) <= TILE_PANEL, "panel");

/* One C in memory. */
typedef struct step_sums {
    _Alignas(64) int32_t of[VECS][16];
} step_sums;

/* What a call multiplies by the blocks of the panel. */
typedef struct chunk {
    const panel32 *u;
    const uint8_t *act; /* of the panel's first block */
    size_t stride;
    int32_t n_block, n_vec;
    float *y;
} chunk;

/* Blocks b and b+1, both groups of rows, VECS vectors from v on. */
typedef struct spot {
    int32_t v, b;
} spot;

/* The last vectors where fewer are left. */
INLINE int32_t first_vec(const chunk *h, spot s)
{
    return s.v + VECS <= h->n_vec ? s.v : h->n_vec - VECS;
}
INLINE const a8_32 *act_at(const chunk *h, spot s, int32_t b)
{
    return (const a8_32 *)(const void *)(h->act + (size_t)b * h->stride) + first_vec(h, s);
}
INLINE spot next_spot(const chunk *h, spot s)
{
    s.b += STEP;
    if (s.b < h->n_block) return s;
    return (spot){s.v + VECS, 0};
}

/* sum[2 · row of y + group] */
INLINE void load_y(const chunk *h, spot s, const int shift, __m512 *sum)
{
    const float *y = h->y + (first_vec(h, s) >> shift) * TILE_ROWS;
    for (int i = 0; i < 2 * VECS >> shift; i++) sum[i] = _mm512_load_ps(y + 16 * i);
}
/* Vectors that an earlier step had are left alone. */
INLINE void store_y(const chunk *h, spot s, const int shift, const __m512 *sum)
{
    float *y = h->y + (first_vec(h, s) >> shift) * TILE_ROWS;
    const int32_t from = 2 * ((s.v - first_vec(h, s)) >> shift);
    for (int i = 0; i < 2 * VECS >> shift; i++)
        if (i >= from) _mm512_store_ps(y + 16 * i, sum[i]);
}

/* Block b's sums c, by groups, into those of half the vectors. */
INLINE void add_sums(const chunk *h, spot s, int32_t b, const int half, const int shift,
                     const step_sums *c, __m512 *sum)
{
    if (b >= h->n_block) return;
    const a8_32 *a = act_at(h, s, b);
#pragma GCC unroll 4
    for (int i = VECS / 2 * half; i < VECS / 2 * (half + 1); i++) {
        const __m512 dx = _mm512_set1_ps(a[i].d);
#pragma GCC unroll 2
        for (int g = 0; g < 2; g++) {
            __m512 *y = &sum[2 * (i >> shift) + g];
            const __m512 d = _mm512_load_ps(h->u->d[b] + 16 * g);
            *y = _mm512_fmadd_ps(_mm512_mul_ps(d, dx), _mm512_cvtepi32_ps(load(c[g].of[i])), *y);
        }
    }
}

/* C register c: what it holds is stored, then group c mod 2 of block b + c / 2 multiplied into it; then
   half a block's sums of the spot that is due. */
#define PRODUCT(c, ta, tb)                                                                         \
    _tile_stored(c, out[c].of, TILE_LINE);                                                         \
    if (s.b + (c) / 2 < h->n_block) {                                                              \
        _tile_zero(c);                                                                             \
        if ((c) % 2 == 0) _tile_loadd(ta, act_at(h, s, s.b + (c) / 2)->q, sizeof(a8_32));          \
        _tile_loadd(tb, h->u->w[s.b + (c) / 2][(c) % 2], TILE_LINE);                               \
        _tile_dpbssd(c, ta, tb);                                                                   \
    }                                                                                              \
    if (i > 1) add_sums(h, due, due.b + (c) / 2, (c) % 2, shift, &in[(c) / 2 * 2], sum);

INLINE void panel_chunk(const chunk *h, const int shift)
{
    step_sums buf[2][2 * STEP];
    __m512 sum[2 * VECS];
    spot s = {0, 0}, held = s, due = s;
    const int32_t n = (h->n_vec + VECS - 1) / VECS * ((h->n_block + STEP - 1) / STEP);
    for (int32_t i = 0; i < n + 2; i++) {
        step_sums *out = buf[(i + 1) % 2];
        const step_sums *in = buf[i % 2];
        if (i > 1 && due.b == 0) load_y(h, due, shift, sum);
        PRODUCT(0, 4, 6)
        PRODUCT(1, 4, 7)
        PRODUCT(2, 5, 6)
        PRODUCT(3, 5, 7)
        if (i > 1 && due.b + STEP >= h->n_block) store_y(h, due, shift, sum);
        due = held, held = s;
        if (i + 1 < n) s = next_spot(h, s);
    }
}

/* Unpacks blocks from the walk on, the panel full or all that are left; answers how many. */
INLINE int32_t unpack_blocks(form f, walk *at, int32_t left, panel32 *u)
{
    int32_t n = 0;
    for (; n < left && n < PANEL_BLOCKS; n++, at->codes += 2 * group_bytes(f)) {
        next_block(f, at);
        for (int i = 0; i < 2 * group_bytes(f); i += TILE_LINE) prefetch(at->codes + i);
        unpack_block(f, at, f.bits == BITS8 ? 0 : f.centre, u->w[n], u->d[n], NULL);
    }
    amx_panel_ready();
    return n;
}

INLINE void tile32(form f, const uint8_t *tile, int32_t n_block, const void *act, size_t stride,
                   int32_t n_vec, int32_t terms, float *y, panel32 *u)
{
    walk at = {.head = tile, .codes = tile, .per_head = f.head == HEAD_E8M0 ? 2 : 1, .left = 0};
    chunk h = {.u = u, .act = act, .stride = stride, .n_vec = n_vec, .y = y};
    memset(y, 0, (size_t)(n_vec / terms) * TILE_ROWS * sizeof *y);
    amx_begin(VECS, 32);
    for (int32_t b = 0; b < n_block; b += h.n_block) {
        h.act = (const uint8_t *)act + (size_t)b * stride;
        h.n_block = unpack_blocks(f, &at, n_block - b, u);
        if (terms == 1)
            panel_chunk(&h, 0);
        else
            panel_chunk(&h, 1);
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
            tile32(f, tile, n_block, act, stride, n_vec, terms, y, panel);                         \
    }
DEFINE_TILE(q4_0, LEAST_NIBBLES, BITS4, 8, 0, HEAD_F16)
DEFINE_TILE(q5_0, LEAST_NIBBLES, BITS5, 16, 0, HEAD_F16)
DEFINE_TILE(q8_0, LEAST_BYTES, BITS8, 128, 0, HEAD_F16)
DEFINE_TILE(iq4_nl, LEAST_NIBBLES, IQ4, 128, 0, HEAD_F16)
DEFINE_TILE(mxfp4, LEAST_NIBBLES, E2M1, 16, 0, HEAD_E8M0)
