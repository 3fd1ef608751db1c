/* Tiles of Q4_K, Q5_K and Q6_K, AMX.  Sums over a whole block of 256 come out of the tile registers, for the
   scales of sub-blocks are multiplied into the weights: exact integers that fit two planes of bytes,

     Q4_K, Q5_K   scale · w = 8 · (⌊scale / 8⌋ · w) + (scale mod 8) · w      both at most 7·31, unsigned
     Q6_K         scale · (w − 32) = 256 · high + low                        high −16 … 16, low 0 … 255

   |Σ over a plane| ≤ 255·127·256 = 8.3 M.  A block is unpacked once into a panel in L1 and met by 16 vectors
   at a time: 16 products (4 of 64 weights × 2 groups of rows × 2 planes), and beside each the sums of one of
   16 earlier vectors go into y, so that matrix and vector units work at once.

   Measured on 96 vectors, cycles of a core for 256 weights, 16 rows and 16 vectors: Q4_K 481, Q6_K 436; by
   vpdpbusd 853 and 899.  Steps of 32 vectors, which load the panel half as often, took 587 and 480. */
#include "backend/cpu/kern/x86/linear_x86.h"
#include "backend/cpu/kern/x86/tiles_amx.h"
#include "backend/cpu/kern/x86/words_avx512.h"

#include "backend/cpu/kern/body/linear_tile256_form.h"

#include "backend/cpu/kern/x86/linear_tile256_avx512.h"

enum {
    N_K = 4, /* products of 64 weights a block */
    /* Fewer vectors cost less by vpdpbusd: a register is multiplied whole, filled or not. */
    LEAST_K45 = 16,
    LEAST_K6 = 32, /* its planes take longest to make */
};

/* One block, unpacked: two planes of two groups of 16 rows, in the order of use. */
struct panel256 {
    uint8_t w[N_K][4][16][TILE_LINE]; /* [64 weights][2 · group + plane][word] */
    uint8_t pair[2][4][TILE_LINE];    /* Q4_K, Q5_K: minima, to meet sums of q */
    float d[TILE_ROWS], dmin[TILE_ROWS];
};
_Static_assert(sizeof(panel256) <= TILE_PANEL, "panel");

/* A scale, 32 bits wide with a high half of 0, as both 16-bit numbers of its word. */
INLINE __m512i twice(__m512i sc)
{
    return _mm512_or_si512(sc, _mm512_slli_epi32(sc, 16));
}

/* Word s of both planes of 64 weights: bytes times at most 7 stay bytes, so one multiplication of 16 bits
   makes two products. */
INLINE void store_k45(uint8_t (*w)[16][TILE_LINE], int s, __m512i v, __m512i sc)
{
    _mm512_store_si512(w[0][s], _mm512_mullo_epi16(v, _mm512_and_si512(sc, _mm512_set1_epi16(7))));
    _mm512_store_si512(w[1][s], _mm512_mullo_epi16(v, _mm512_srli_epi16(sc, 3)));
}

INLINE void unpack_group_k45(const int bits, const uint8_t *p, const int g, panel256 *u)
{
    const uint8_t *high = p + 4 * TILE_LINE, *low = high + (bits == 5 ? 8 * TILE_LINE : 0);
    __m512i sc[8], pair[8];
    scales_k45(p + TILE_LINE, sc, pair);
    for (int i = 0; i < 4; i++) _mm512_store_si512(u->pair[g][i], pair[i]);
    for (int i = 0; i < 8; i++) sc[i] = twice(sc[i]);
    _mm512_store_ps(u->d + 16 * g, halves(p));
    _mm512_store_ps(u->dmin + 16 * g, halves(p + 32));
#pragma GCC unroll 4
    for (int pr = 0; pr < N_K; pr++) {
        for (int s = 0; s < 8; s++) {
            __m512i lo, hi, fifth = _mm512_setzero_si512();
            if (bits == 5) fifth = load(high + TILE_LINE * s);
            unpack_k45(bits, load(low + TILE_LINE * (8 * pr + s)), fifth, pr, &lo, &hi);
            store_k45(&u->w[pr][2 * g], s, lo, sc[2 * pr]);
            store_k45(&u->w[pr][2 * g], 8 + s, hi, sc[2 * pr + 1]);
        }
    }
}

/* Word s of both planes: products of 16 bits of the even and the odd weights, whose bytes are then sorted.
   sc: the scale as both 16-bit numbers of its word. */
INLINE void store_k6(uint8_t (*w)[16][TILE_LINE], int s, __m512i v, __m512i sc)
{
    const __m512i byte = _mm512_set1_epi16(0xff), centre = _mm512_slli_epi16(sc, 5);
    const __m512i even =
        _mm512_sub_epi16(_mm512_maddubs_epi16(v, _mm512_and_si512(sc, byte)), centre);
    const __m512i odd = _mm512_sub_epi16(_mm512_maddubs_epi16(v, _mm512_slli_epi16(sc, 8)), centre);
    /* byte ? a : b */
    _mm512_store_si512(w[0][s],
                       _mm512_ternarylogic_epi32(byte, even, _mm512_slli_epi16(odd, 8), 0xca));
    _mm512_store_si512(w[1][s],
                       _mm512_ternarylogic_epi32(byte, _mm512_srli_epi16(even, 8), odd, 0xca));
}

/* d16: d of the group's rows. */
INLINE void unpack_group_k6(const uint8_t *d16, const uint8_t *p, const int g, panel256 *u)
{
    __m512i sc[16];
    scales_k6(p, sc);
    for (int i = 0; i < 16; i++) sc[i] = twice(sc[i]);
    _mm512_store_ps(u->d + 16 * g, halves(d16));
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
#pragma GCC unroll 8
        for (int s = 0; s < 8; s++) {
            __m512i x[4];
            unpack_k6(p + TILE_LINE * (4 + 3 * (8 * h + s)), x);
            for (int k = 0; k < 4; k++) {
                const int line = 32 * h + 8 * k + s;
                store_k6(&u->w[line / 16][2 * g], line % 16, x[k], sc[line / 4]);
            }
        }
    }
}

INLINE void unpack_panel(const int bits, const uint8_t *tile, panel256 *u)
{
    const uint8_t *p = tile + TILE_LINE * head_lines(bits);
    for (int g = 0; g < 2; g++, p += TILE_LINE * group_lines(bits)) {
        if (bits == 6)
            unpack_group_k6(tile + 32 * g, p, g, u);
        else
            unpack_group_k45(bits, p, g, u);
    }
    amx_panel_ready();
}

/* Sixteen vectors whose sums are in c; the first `from` of them are not to be added again. */
typedef struct waiting {
    const amx_sums *c; /* [2 · group + plane] */
    const panel256 *u;
    const a8_256 *a;
    float *y;
    int32_t v, from, shift;
} waiting;

INLINE void add_sums(const int bits, const waiting *w, int i)
{
    if (i < w->from) return;
    float *y = w->y + ((w->v + i) >> w->shift) * TILE_ROWS;
    for (int g = 0; g < 2; g++) {
        const __m512i high = load(w->c[2 * g + 1].of[i]), low = load(w->c[2 * g].of[i]);
        const __m512i whole = _mm512_add_epi32(_mm512_slli_epi32(high, bits == 6 ? 8 : 3), low);
        add_block(bits, whole, (const __m512i *)(const void *)w->u->pair[g],
                  _mm512_load_ps(w->u->d + 16 * g), _mm512_load_ps(w->u->dmin + 16 * g),
                  &w->a[w->v + i], y + 16 * g);
    }
}

/* Product k of C register c, by B register tb, then one vector of those that wait.  The second plane of
   Q6_K is signed. */
#define PRODUCT(c, ta, tb, k)                                                                      \
    if ((k) == 0) {                                                                                \
        _tile_stored(c, out[c].of, TILE_LINE);                                                     \
        _tile_zero(c);                                                                             \
    }                                                                                              \
    _tile_loadd(tb, w->u->w[k][c], TILE_LINE);                                                     \
    if (bits == 6 && (c) % 2)                                                                      \
        _tile_dpbssd(c, ta, tb);                                                                   \
    else                                                                                           \
        _tile_dpbsud(c, ta, tb);                                                                   \
    add_sums(bits, w, 4 * (k) + (c));
#define PRODUCTS(ta, k)                                                                            \
    _tile_loadd(ta, a->q + 64 * (k), sizeof *a);                                                   \
    PRODUCT(0, ta, 6, k)                                                                           \
    PRODUCT(1, ta, 7, k)                                                                           \
    PRODUCT(2, ta, 6, k)                                                                           \
    PRODUCT(3, ta, 7, k)

/* Stores the registers of C, then multiplies the block by the 16 vectors from a on into them. */
INLINE void multiply(const int bits, const a8_256 *a, amx_sums *out,
                     const waiting *w){PRODUCTS(4, 0) PRODUCTS(5, 1) PRODUCTS(4, 2) PRODUCTS(5, 3)}

INLINE void panel_all(const int bits, const uint8_t *tile, size_t block, const panel256 *u,
                      const a8_256 *a, int32_t n_vec, int32_t shift, float *y)
{
    amx_sums c[2][4];
    waiting held = {c[0], u, a, y, 0, AMX_VEC, shift}, due = held;
    int turn = 0;
    for (int32_t v = 0; v < n_vec; v += AMX_VEC, turn ^= 1) {
        const int32_t first = v + AMX_VEC <= n_vec ? v : n_vec - AMX_VEC;
        /* The next block comes in beside the products, a part for each step. */
        for (size_t i = 0; i < block * AMX_VEC / (size_t)n_vec; i += TILE_LINE)
            _mm_prefetch((const char *)tile + block + block * (size_t)v / (size_t)n_vec + i,
                         _MM_HINT_T1);
        /* what the registers hold goes to `held`; `due` is in memory since the step before */
        multiply(bits, a + first, c[turn], &due);
        held.c = c[turn];
        due = held;
        held.v = first, held.from = v - first;
    }
    amx_store(c[turn]);
    held.c = c[turn];
    for (int i = 0; i < AMX_VEC; i++) add_sums(bits, &due, i);
    for (int i = 0; i < AMX_VEC; i++) add_sums(bits, &held, i);
}

#define DEFINE_TILE(name, bits, least)                                                             \
    void amx_tile_##name(const uint8_t *tile, int32_t n_block, const void *act, size_t stride,     \
                         int32_t n_vec, int32_t terms, float *y, void *panel)                      \
    {                                                                                              \
        if (n_vec < (least)) {                                                                     \
            vnni_tile_##name(tile, n_block, act, stride, n_vec, terms, y, panel);                  \
            return;                                                                                \
        }                                                                                          \
        memset(y, 0, (size_t)(n_vec / terms) * TILE_ROWS * sizeof *y);                             \
        amx_begin(AMX_VEC, 64);                                                                    \
        by_panel(bits, tile, n_block, act, stride, n_vec, terms - 1, y, panel);                    \
        _tile_release();                                                                           \
    }
DEFINE_TILE(q4_k, 4, LEAST_K45)
DEFINE_TILE(q5_k, 5, LEAST_K45)
DEFINE_TILE(q6_k, 6, LEAST_K6)
