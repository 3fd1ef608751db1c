/* Tiles of 256 weights a block, AMX: what the files of the formats share.  Sums over a whole block come out of
   the tile registers, for the scales of sub-blocks are multiplied into the weights: exact integers that fit
   one plane of bytes or two,

     Q2_K         scale · w                                                  at most 45, unsigned
     Q3_K         −scale · (w − 4)                                           −128 … 124
     Q4_K, Q5_K   scale · w = 8 · (⌊scale / 8⌋ · w) + (scale mod 8) · w      both at most 7·31, unsigned
     TQ           w                                                          −1 … 2
     all others   scale · w = 256 · high + low                               high −32 … 31, low 0 … 255

   |Σ over a plane| ≤ 255·127·256 = 8.3 M.  A block is unpacked once into a panel in L1 and met by 16 vectors
   at a time: 16 products (4 of 64 weights × 2 groups of rows × 2 planes; 8 of one plane), and beside them the
   sums of 16 earlier vectors go into y, so that matrix and vector units work at once.  Up to 16 vectors meet a
   block beside the unpacking of the next.  Each file includes this once after words_avx512.h and
   linear_tile256_form.h and defines

     unpack_group(…)  16 rows of one block into the panel */
#include "backend/cpu/kern/body/linear_tile256_walk.h"

#include "backend/cpu/kern/x86/tiles_amx.h"

#include "backend/cpu/kern/x86/linear_tile256_avx512.h"

enum { N_K = 4 /* products of 64 weights a block */ };

/* What meets a block's sums. */
typedef struct heads {
    uint8_t pair[2][8][TILE_LINE]; /* minima, to meet sums of q: 4 of Q4_K and Q5_K, 8 of Q2_K */
    float d[TILE_ROWS], dmin[TILE_ROWS];
} heads;

/* One block, unpacked: planes of two groups of 16 rows, in the order of use. */
struct panel256 {
    uint8_t w[N_K][4][16][TILE_LINE]; /* [64 weights][2 · group + plane][word] */
    heads of[2];                      /* that of the block before stays, where blocks overlap */
};
_Static_assert(sizeof(panel256) <= TILE_PANEL, "panel");

INLINE int n_plane(const int bits)
{
    return bits == 2 || bits == 3 || bits == GRID_TQ ? 1 : 2;
}
/* Whether a plane's bytes have signs. */
INLINE int plane_signed(const int bits, const int plane)
{
    if (n_plane(bits) == 1) return bits != 2;
    return plane && bits != 4 && bits != 5;
}

/* Word s of both planes of a group. */
INLINE void store_wide(uint8_t (*w)[16][TILE_LINE], int s, __m512i v, __m512i sc,
                       const unsigned log)
{
    store_planes(w[0][s], w[1][s], v, sc, log);
}

enum { ALL_PARTS = -1 };
/* Whether a line, of 64 to a group's plane, is of the part: a product's 64 weights, or all. */
INLINE int in_part(const int part, const int line)
{
    return part == ALL_PARTS || line / 16 == part;
}

/* The part of a block, the first with what meets its sums.  d16: d of the group's rows, and their dmin 32 bytes
   further; p: its lines. */
INLINE void unpack_group(const int bits, const uint8_t *d16, const uint8_t *p, const int g,
                         const int part, panel256 *u, heads *to);

INLINE void unpack_part(const int bits, const uint8_t *tile, const int part, panel256 *u, heads *to)
{
    const uint8_t *p = tile + TILE_LINE * head_lines(bits);
    for (int g = 0; g < 2; g++, p += TILE_LINE * group_lines(bits))
        unpack_group(bits, head_lines(bits) ? tile + 32 * g : p, p, g, part, u, to);
    amx_panel_ready();
}

INLINE void unpack_panel(const int bits, const uint8_t *tile, panel256 *u)
{
    unpack_part(bits, tile, ALL_PARTS, u, u->of);
}

/* Sixteen vectors whose sums are in c; the first `from` of them are not to be added again. */
typedef struct waiting {
    const amx_sums *c; /* [2 · group + plane] */
    const a8_256 *a;
    float *y;
    int32_t v, from, shift;
} waiting;

INLINE __m512i whole_sum(const int bits, const amx_sums *c, int i)
{
    const __m512i low = load(c[0].of[i]);
    if (bits == 3) return _mm512_sub_epi32(_mm512_setzero_si512(), low);
    if (n_plane(bits) == 1) return low;
    const unsigned up = bits == 4 || bits == 5 ? 3 : 8;
    return _mm512_add_epi32(_mm512_slli_epi32(load(c[1].of[i]), up), low);
}

/* What meets the sums of both groups: in registers, for out of memory it would be half of a step's loads. */
typedef struct meeting {
    __m512i pair[2][8];
    __m512 d[2], dmin[2];
} meeting;

INLINE int n_pair(const int bits)
{
    return !has_min(bits) ? 0 : bits == 2 ? 8 : 4;
}

INLINE void meet(const int bits, const heads *from, meeting *m)
{
#pragma GCC unroll 2
    for (int g = 0; g < 2; g++) {
        m->d[g] = _mm512_load_ps(from->d + 16 * g);
        m->dmin[g] = has_min(bits) ? _mm512_load_ps(from->dmin + 16 * g) : m->d[g];
#pragma GCC unroll 8
        for (int i = 0; i < n_pair(bits); i++) m->pair[g][i] = load(from->pair[g][i]);
    }
}

/* Sums of 16 bits, both at p, for all lanes: one register for both groups, where the compiler would read memory
   for each. */
INLINE __m512i two_sums(const int16_t *p)
{
    int32_t two;
    memcpy(&two, p, sizeof two);
    __m512i all = _mm512_set1_epi32(two);
#ifdef __AVX512F__ /* tests emulate it */
    __asm__("" : "+v"(all));
#endif
    return all;
}

INLINE void add_sums(const int bits, const waiting *w, const meeting *m, int i)
{
    if (i < w->from) return;
    float *y = w->y + ((w->v + i) >> w->shift) * TILE_ROWS;
    const a8_256 *a = &w->a[w->v + i];
    const int16_t *sums = bits == 2 ? a->s16 : a->s32;
    const __m512 dx = _mm512_set1_ps(a->d);
    __m512i min[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
#pragma GCC unroll 8
    for (int k = 0; k < n_pair(bits); k++) {
        const __m512i s = two_sums(sums + 2 * k);
        min[0] = _mm512_dpwssd_epi32(min[0], m->pair[0][k], s);
        min[1] = _mm512_dpwssd_epi32(min[1], m->pair[1][k], s);
    }
#pragma GCC unroll 2
    for (int g = 0; g < 2; g++)
        add_whole(bits, whole_sum(bits, w->c + 2 * g, i), min[g], m->d[g], m->dmin[g], dx,
                  y + 16 * g);
}

/* Product k of C register c, by B register tb. */
#define MULTIPLY(c, ta, tb, k)                                                                     \
    if ((c) % 2 < n_plane(bits)) {                                                                 \
        if ((k) == 0) {                                                                            \
            _tile_stored(c, out[c].of, TILE_LINE);                                                 \
            _tile_zero(c);                                                                         \
        }                                                                                          \
        _tile_loadd(tb, u->w[k][c], TILE_LINE);                                                    \
        if (plane_signed(bits, (c) % 2))                                                           \
            _tile_dpbssd(c, ta, tb);                                                               \
        else                                                                                       \
            _tile_dpbsud(c, ta, tb);                                                               \
    }

/* Likewise, then one vector of those that wait. */
#define PRODUCT(c, ta, tb, k)                                                                      \
    MULTIPLY(c, ta, tb, k)                                                                         \
    add_sums(bits, w, m, 4 * (k) + (c));
#define PRODUCTS(ta, k)                                                                            \
    _tile_loadd(ta, a->q + 64 * (k), sizeof *a);                                                   \
    PRODUCT(0, ta, 6, k)                                                                           \
    PRODUCT(1, ta, 7, k)                                                                           \
    PRODUCT(2, ta, 6, k)                                                                           \
    PRODUCT(3, ta, 7, k)

/* Stores the registers of C, then multiplies the block by the 16 vectors from a on into them. */
INLINE void multiply(const int bits, const panel256 *u, const a8_256 *a, amx_sums *out,
                     const waiting *w,
                     const meeting *m){PRODUCTS(4, 0) PRODUCTS(5, 1) PRODUCTS(4, 2) PRODUCTS(5, 3)}

INLINE void panel_all(const int bits, const uint8_t *tile, size_t block, const panel256 *u,
                      const a8_256 *a, int32_t n_vec, int32_t shift, float *y)
{
    amx_sums c[2][4];
    meeting m;
    meet(bits, u->of, &m);
    waiting held = {.c = c[0], .a = a, .from = AMX_VEC, .shift = shift};
    held.y = y;
    waiting due = held;
    int turn = 0;
    for (int32_t v = 0; v < n_vec; v += AMX_VEC, turn ^= 1) {
        const int32_t first = v + AMX_VEC <= n_vec ? v : n_vec - AMX_VEC;
        /* The next block comes in beside the products, a part for each step. */
        for (size_t i = 0; i < block * AMX_VEC / (size_t)n_vec; i += TILE_LINE)
            _mm_prefetch((const char *)tile + block + block * (size_t)v / (size_t)n_vec + i,
                         _MM_HINT_T1);
        /* what the registers hold goes to `held`; `due` is in memory since the step before */
        multiply(bits, u, a + first, c[turn], &due, &m);
        held.c = c[turn];
        due = held;
        held.v = first, held.from = v - first;
    }
    amx_store(c[turn]);
    held.c = c[turn];
    for (int i = 0; i < AMX_VEC; i++) add_sums(bits, &due, &m, i);
    for (int i = 0; i < AMX_VEC; i++) add_sums(bits, &held, &m, i);
}

/* Part k of the block times all vectors; sums of the block before, stored in part 0; part k of the next block takes
   this one's place.  The block after the next comes into the first cache meanwhile. */
#define FEW_PRODUCT(c, ta, tb, k)                                                                  \
    MULTIPLY(c, ta, tb, k)                                                                         \
    for (size_t i = block / 16 * (4 * (k) + (c)); i < block / 16 * (4 * (k) + (c) + 1);            \
         i += TILE_LINE)                                                                           \
        prefetch(tile + 2 * block - FETCH_NEAR + i);
#define FEW_PRODUCTS(ta, k)                                                                        \
    _tile_loadd(ta, a->q + 64 * (k), sizeof *a);                                                   \
    FEW_PRODUCT(0, ta, 6, k)                                                                       \
    FEW_PRODUCT(1, ta, 7, k)                                                                       \
    FEW_PRODUCT(2, ta, 6, k)                                                                       \
    FEW_PRODUCT(3, ta, 7, k)                                                                       \
    for (int i = 5 * (k)-5 + ((k) > 2); i < (k)*5 + ((k) > 1) && i < n; i++)                       \
        add_sums(bits, &w, &m, i);                                                                 \
    if (next) unpack_part(bits, next, k, u, &u->of[(b + 1) % 2]);

/* Up to AMX_VEC vectors: unpacking takes most of the time, so that beside the products of a block the next one is
   unpacked. */
INLINE void few(const int bits, const uint8_t *tile, int32_t n_block, const uint8_t *act,
                size_t stride, int32_t n_vec, int32_t shift, float *y, panel256 *u)
{
    const size_t block = (size_t)TILE_LINE * (size_t)(head_lines(bits) + 2 * group_lines(bits));
    amx_sums out[4];
    meeting m;
    waiting w = {.c = out, .a = (const a8_256 *)(const void *)act, .shift = shift};
    w.y = y;
    unpack_part(bits, tile, ALL_PARTS, u, &u->of[0]);
    for (int32_t b = 0; b < n_block; b++, tile += block, act += stride) {
        const a8_256 *a = (const a8_256 *)(const void *)act;
        const uint8_t *next = b + 1 < n_block ? tile + block : NULL;
        const int32_t n = b > 0 ? n_vec : 0;
        meet(bits, &u->of[(b + 1) % 2], &m);
        FEW_PRODUCTS(4, 0)
        FEW_PRODUCTS(5, 1)
        FEW_PRODUCTS(4, 2)
        FEW_PRODUCTS(5, 3)
        w.a = a;
    }
    amx_store(out);
    meet(bits, &u->of[(n_block + 1) % 2], &m);
    for (int32_t i = 0; i < n_vec; i++) add_sums(bits, &w, &m, i);
}

/* least: fewer vectors cost less by vpdpbusd. */
#define DEFINE_TILE(name, bits, least)                                                             \
    void amx_tile_##name(const uint8_t *tile, int32_t n_block, const void *act, size_t stride,     \
                         int32_t n_vec, int32_t terms, float *y, void *panel)                      \
    {                                                                                              \
        if (n_vec < (least)) {                                                                     \
            vnni_tile_##name(tile, n_block, act, stride, n_vec, terms, y, panel);                  \
            return;                                                                                \
        }                                                                                          \
        memset(y, 0, (size_t)(n_vec / terms) * TILE_ROWS * sizeof *y);                             \
        amx_begin(n_vec < AMX_VEC ? n_vec : AMX_VEC, 64);                                          \
        if (n_vec <= AMX_VEC)                                                                      \
            few(bits, tile, n_block, act, stride, n_vec, terms - 1, y, panel);                     \
        else                                                                                       \
            by_panel(bits, tile, n_block, act, stride, n_vec, terms - 1, y, panel);                \
        _tile_release();                                                                           \
    }
