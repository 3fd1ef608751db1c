/* Tiles of 256 weights a block, AVX-512 VNNI: what the files of the formats share.

   The scale's multiplication costs one instruction where a dot fits 16 bits.  Centred weights (less 4, 8,
   16, 32) make it fit over 16, 32, 16 and 8 weights: 4·127·16 < 8·127·32 = 16·127·16 = 32·127·8 = 32,512;
   Q2_K's do as they are.  So dots start at −centre·Σ q, and vpdpwssd multiplies their low halves by the
   scale, zero-extended to 32 bits (the high half, a sign, meets the zero), and adds.  The dots of
   IQ4_XS (8 bits) and of IQ2 (centre 64) do not fit and pay a vpmulld.

   Few vectors: weights are unpacked in registers.  Many: a block is unpacked once into a panel in L1
   and met by all vectors, six at a time: 12 dots and 12 sums of 32 registers.  Each file includes this
   once and defines

     direct_group(…)  16 rows of one block times n vectors
     unpack_group(…)  16 rows of one block into the panel */
#include "backend/cpu/kern/x86/dots_avx512vnni.h"
#include "backend/cpu/kern/x86/words_avx512.h"

enum { DIRECT_VEC = 4, PANEL_VEC = 6, N_LINE = 64 };
#define DIRECT_CASES(X, fn) X(1, fn) X(2, fn) X(3, fn) X(4, fn)

#include "backend/cpu/kern/body/linear_tile256_body.h"

#include "backend/cpu/kern/x86/linear_tile256_avx512.h"

/* One block, unpacked, by groups of 16 rows. */
struct panel256 {
    uint8_t w[2][N_LINE][64];
    uint8_t sc[2][16][64]; /* scales as 32-bit numbers with a high half of 0; IQ4_XS: signed */
    /* what meets sums of q: Q4_K, Q5_K 4 of minima, 4 of centre · scales; Q2_K 8 of minima */
    uint8_t pair[2][8][64];
    float d[TILE_ROWS], dmin[TILE_ROWS];
};
_Static_assert(sizeof(panel256) <= TILE_PANEL, "panel");

/* i: Σ scale · centred dots.  Of Q4_K and Q5_K the centring is undone, for their minima go with stored
   weights: centre·Σ sc·Σ q by pairs of scales and sums, |·| ≤ 2.1 M, and a shift. */
INLINE void accumulate(const int bits, __m512i i, const __m512i *pair, __m512 d, __m512 dmin,
                       const a8_256 *a, float *y)
{
    if (bits == 4 || bits == 5) {
        const __m512i c = pair_dot(pair + 4, a->s32, 4);
        i = _mm512_add_epi32(i, _mm512_slli_epi32(c, bits == 4 ? 3 : 4));
    }
    add_block(bits, i, pair, d, dmin, a, y);
}

/* Lines of one dot: those under a scale, or as many as fit 16 bits. */
INLINE int dot_lines(const int bits)
{
    return bits == 5 ? 4 : bits == 6 || bits == GRID_IQ3_XXS ? 2 : scale_lines(bits);
}
/* Where the dot from line s on starts: −centre·Σ q. */
INLINE __m512i start(const int bits, const a8_256 *a, int s)
{
    switch (bits) {
    case 3:
        return _mm512_srai_epi32(word(&a->n16[s / 4]), 2);
    case 4:
        return own_word(&a->n32[s / 8]);
    case 5:
    case GRID_IQ3_S:
    case GRID_IQ1_S:
    case GRID_IQ1_M:
    case GRID_TQ:
        return own_word(&a->n16[s / 4]);
    case 6:
    case GRID_IQ3_XXS:
        return own_word(&a->n8[s / 2]);
    case GRID_IQ2_XXS:
    case GRID_IQ2_S:
        return _mm512_slli_epi32(word(&a->n16[s / 4]), 2);
    case BITS_IQ4:
        return _mm512_slli_epi32(word(&a->n32[s / 8]), 4);
    default:
        return _mm512_setzero_si512();
    }
}
/* sum + scale · x */
INLINE __m512i add_scaled(const int bits, __m512i sum, __m512i scale, __m512i x)
{
    if (bits == BITS_IQ4 || bits == GRID_IQ2_XXS || bits == GRID_IQ2_S)
        return _mm512_add_epi32(sum, _mm512_mullo_epi32(scale, x));
    return pairs(sum, scale, x);
}

/* p: the lines of the group, d16: its d, and its dmin 32 bytes further. */
INLINE void direct_group(const int bits, const uint8_t *d16, const uint8_t *p, const a8_256 *a,
                         const int n, int32_t shift, float *y);
INLINE void unpack_group(const int bits, const uint8_t *d16, const uint8_t *p, const int g,
                         panel256 *u);

INLINE void direct(const int bits, const uint8_t *tile, int32_t n_block, const uint8_t *act,
                   size_t stride, const int n, int32_t shift, float *y)
{
    for (int32_t b = 0; b < n_block; b++) {
        const a8_256 *a = (const a8_256 *)(const void *)(act + (size_t)b * stride);
        const uint8_t *p = tile + TILE_LINE * head_lines(bits);
        if (head_lines(bits)) prefetch(tile);
        for (int g = 0; g < 2; g++, p += TILE_LINE * group_lines(bits))
            direct_group(bits, head_lines(bits) ? tile + 32 * g : p, p, a, n, shift, y + 16 * g);
        tile = p;
    }
}

INLINE void unpack_panel(const int bits, const uint8_t *tile, panel256 *u)
{
    const uint8_t *p = tile + TILE_LINE * head_lines(bits);
    for (int g = 0; g < 2; g++, p += TILE_LINE * group_lines(bits))
        unpack_group(bits, head_lines(bits) ? tile + 32 * g : p, p, g, u);
}

/* Group g's sums of n vectors, whole, into what is at out. */
INLINE void panel_sums(const int bits, const panel256 *u, const int g, __m512i *i, const a8_256 *a,
                       const int n, float **out)
{
    const __m512 d = _mm512_load_ps(u->d + 16 * g), dmin = _mm512_load_ps(u->dmin + 16 * g);
    __m512i m[PANEL_VEC];
    for (int t = 0; t < n; t++) m[t] = _mm512_setzero_si512();
    for (int k = 0; k < (bits == 2 ? 8 : 4) && has_min(bits); k++) {
        const __m512i min = load(u->pair[g][k]), scale = load(u->pair[g][(4 + k) % 8]);
        for (int t = 0; t < n; t++) {
            m[t] = pairs_word(m[t], min, (bits == 2 ? a[t].s16 : a[t].s32) + 2 * k);
            if (bits != 2) i[t] = pairs_word(i[t], scale, a[t].s32 + 2 * k);
        }
    }
    for (int t = 0; t < n; t++)
        add_whole(bits, i[t], m[t], d, dmin, _mm512_set1_ps(a[t].d), out[t] + 16 * g);
}

/* Both groups of the panel times vectors v … v+n-1. */
INLINE void panel_vecs(const int bits, const panel256 *u, const a8_256 *a, const int n, int32_t v,
                       int32_t shift, float *y)
{
    const int lines = dot_lines(bits);
    __m512i i0[PANEL_VEC], i1[PANEL_VEC];
    float *out[PANEL_VEC];
    for (int t = 0; t < n; t++) {
        i0[t] = i1[t] = _mm512_setzero_si512();
        out[t] = y + ((v + t) >> shift) * TILE_ROWS;
    }
    for (int j = 0; j < N_LINE / scale_lines(bits); j++) {
        const __m512i c0 = load(u->sc[0][j]), c1 = load(u->sc[1][j]);
#pragma GCC unroll 4
        for (int s = j * scale_lines(bits), end = s + scale_lines(bits); s < end; s += lines) {
            __m512i s0[PANEL_VEC], s1[PANEL_VEC];
            for (int t = 0; t < n; t++) {
                s0[t] = start(bits, &a[t], s);
                s1[t] = start(bits, &a[t], s);
            }
#pragma GCC unroll 8
            for (int k = s; k < s + lines; k++)
                dot_lines2(load(u->w[0][k]), load(u->w[1][k]), a->q + 4 * k, sizeof *a, n, s0, s1);
            for (int t = 0; t < n; t++) {
                i0[t] = add_scaled(bits, i0[t], c0, s0[t]);
                i1[t] = add_scaled(bits, i1[t], c1, s1[t]);
            }
        }
    }
    panel_sums(bits, u, 0, i0, a, n, out);
    panel_sums(bits, u, 1, i1, a, n, out);
}

/* The block after `tile` comes in beside the products, a part for each step of vectors. */
INLINE void fetch_next(const uint8_t *tile, size_t block, int32_t v, int32_t step, int32_t n_vec)
{
    const uint8_t *from = tile + block + block * (size_t)v / (size_t)n_vec;
    for (size_t i = 0; i < block * (size_t)step / (size_t)n_vec; i += TILE_LINE)
        _mm_prefetch((const char *)from + i, _MM_HINT_T1);
}

INLINE void panel_all(const int bits, const uint8_t *tile, size_t block, const panel256 *u,
                      const a8_256 *a, int32_t n_vec, int32_t shift, float *y)
{
    int32_t v = 0;
    for (; n_vec - v >= PANEL_VEC && n_vec - v != 7 && n_vec - v != 8; v += PANEL_VEC) {
        fetch_next(tile, block, v, PANEL_VEC, n_vec);
        panel_vecs(bits, u, a + v, PANEL_VEC, v, shift, y);
    }
    for (; v + 4 <= n_vec; v += 4) {
        fetch_next(tile, block, v, 4, n_vec);
        panel_vecs(bits, u, a + v, 4, v, shift, y);
    }
    for (; v + 3 <= n_vec; v += 3) panel_vecs(bits, u, a + v, 3, v, shift, y);
    for (; v < n_vec; v++) panel_vecs(bits, u, a + v, 1, v, shift, y);
}
