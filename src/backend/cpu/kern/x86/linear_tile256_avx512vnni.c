/* Tiles of Q4_K, Q5_K and Q6_K, AVX-512 VNNI.  A register holds one line: a word of each of 16 rows.

   The scale's multiplication costs one instruction where a dot fits 16 bits.  Centred weights (less 8,
   16, 32) make it fit over 32, 16 and 8 weights: 8·127·32 = 16·127·16 = 32·127·8 = 32,512.  So dots
   start at −centre·Σ q, and vpdpwssd multiplies their low halves by the scale, zero-extended to 32
   bits (the high half, a sign, meets the zero), and adds.  Q6_K wants just that.  For Q4_K and Q5_K
   the centring is undone by centre·Σ sc·Σ q: four vpdpwssd of pairs of scales and sums, |·| ≤ 2.1 M,
   and a shift.

   Few vectors: weights are unpacked in registers.  Many: a block is unpacked once into a panel in L1
   and met by all vectors, six at a time: 12 dots and 12 sums of 32 registers. */
#include <immintrin.h>
#include <string.h>

#include "backend/cpu/kern/x86/linear_x86.h"

#define INLINE static inline __attribute__((always_inline))

enum { DIRECT_VEC = 4, PANEL_VEC = 6, N_LINE = 64 };
#define DIRECT_CASES(X) X(1) X(2) X(3) X(4)

#include "backend/cpu/kern/x86/linear_tile256_body.h"

/* One block, unpacked, by groups of 16 rows. */
struct panel256 {
    uint8_t w[2][N_LINE][64];
    uint8_t sc[2][16][64];  /* scales as 32-bit numbers with a high half of 0 */
    uint8_t pair[2][8][64]; /* Q4_K, Q5_K: 4 of minima, 4 of scales, to meet sums of q */
    float d[TILE_ROWS], dmin[TILE_ROWS];
};
_Static_assert(sizeof(panel256) <= TILE_PANEL, "panel");

INLINE __m512i load(const void *p)
{
    return _mm512_loadu_si512(p);
}
INLINE __m512i word(const void *p)
{
    int32_t v;
    memcpy(&v, p, sizeof v);
    return _mm512_set1_epi32(v);
}
INLINE __m512 halves(const uint8_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
INLINE __m512i and8(__m512i v, int mask)
{
    return _mm512_and_si512(v, _mm512_set1_epi8((char)mask));
}
/* a | (b & mask) */
INLINE __m512i or_and8(__m512i a, __m512i b, int mask)
{
    return _mm512_ternarylogic_epi32(a, b, _mm512_set1_epi8((char)mask), 0xf8);
}
/* Byte n of each word, alone and unsigned. */
INLINE __m512i byte_of(__m512i v, const unsigned n)
{
    const __m512i x = n ? _mm512_srli_epi32(v, 8 * n) : v;
    return n == 3 ? x : _mm512_and_si512(x, _mm512_set1_epi32(0xff));
}
/* Likewise signed in the low half, the high half 0. */
INLINE __m512i signed_byte_of(__m512i v, const unsigned n)
{
    const __m512i top = n == 3 ? v : _mm512_slli_epi32(v, 24 - 8 * n);
    return _mm512_srli_epi32(_mm512_srai_epi32(top, 8), 16);
}

/* Q4_K, Q5_K: 8 scales; 4 pairs of minima, 4 of scales in the order 0 2, 1 3, 4 6, 5 7. */
INLINE void scales_k45(const uint8_t *p, __m512i *sc, __m512i *pair)
{
    const __m512i a = load(p), b = load(p + TILE_LINE), c = load(p + 2 * TILE_LINE);
    const __m512i even = _mm512_set1_epi16(0xff);
    const __m512i s0 = and8(a, 63), m0 = and8(b, 63);
    const __m512i s1 = or_and8(and8(c, 15), _mm512_srli_epi16(a, 2), 0x30);
    const __m512i m1 = or_and8(and8(_mm512_srli_epi16(c, 4), 15), _mm512_srli_epi16(b, 2), 0x30);
    sc[0] = byte_of(s0, 0), sc[1] = byte_of(s0, 1), sc[2] = byte_of(s0, 2), sc[3] = byte_of(s0, 3);
    sc[4] = byte_of(s1, 0), sc[5] = byte_of(s1, 1), sc[6] = byte_of(s1, 2), sc[7] = byte_of(s1, 3);
    pair[0] = _mm512_and_si512(m0, even), pair[1] = _mm512_srli_epi16(m0, 8);
    pair[2] = _mm512_and_si512(m1, even), pair[3] = _mm512_srli_epi16(m1, 8);
    pair[4] = _mm512_and_si512(s0, even), pair[5] = _mm512_srli_epi16(s0, 8);
    pair[6] = _mm512_and_si512(s1, even), pair[7] = _mm512_srli_epi16(s1, 8);
}

INLINE void scales_k6(const uint8_t *p, __m512i *sc)
{
    for (int i = 0; i < 4; i++) {
        const __m512i v = load(p + TILE_LINE * i);
        sc[4 * i] = signed_byte_of(v, 0), sc[4 * i + 1] = signed_byte_of(v, 1);
        sc[4 * i + 2] = signed_byte_of(v, 2), sc[4 * i + 3] = signed_byte_of(v, 3);
    }
}

/* Word 8p+s of 16 rows, from its line and the fifth bits of s: sub-blocks 2p and 2p+1. */
INLINE void unpack_k45(const int bits, __m512i v, __m512i fifth, const int p, __m512i *lo,
                       __m512i *hi)
{
    *lo = and8(v, 15);
    *hi = and8(_mm512_srli_epi16(v, 4), 15);
    if (bits == 5) {
        const int up = 4 - 2 * p; /* from bit 2p to bit 4 */
        const __m512i l = up >= 0 ? _mm512_slli_epi32(fifth, (unsigned)up)
                                  : _mm512_srli_epi32(fifth, (unsigned)-up);
        const __m512i h = up >= 1 ? _mm512_slli_epi32(fifth, (unsigned)(up - 1))
                                  : _mm512_srli_epi32(fifth, (unsigned)(1 - up));
        *lo = or_and8(*lo, l, 16);
        *hi = or_and8(*hi, h, 16);
    }
}

/* Triple s of a half block: words s of its four sub-blocks of 32.  (nibble or shifted high bits) by a
   mask that picks low or high four bits, then six bits. */
INLINE void unpack_k6(const uint8_t *p, __m512i *w)
{
    const __m512i a = load(p), b = load(p + TILE_LINE), c = load(p + 2 * TILE_LINE);
    w[0] = or_and8(and8(a, 15), _mm512_slli_epi16(c, 4), 0x30);
    w[1] = or_and8(and8(b, 15), _mm512_slli_epi16(c, 2), 0x30);
    w[2] = or_and8(and8(_mm512_srli_epi16(a, 4), 15), c, 0x30);
    w[3] = or_and8(and8(_mm512_srli_epi16(b, 4), 15), _mm512_srli_epi16(c, 2), 0x30);
}

/* start + Σ pair · sums, 4 pairs. */
INLINE __m512i pair_dot(const __m512i *pair, const int16_t *sums)
{
    __m512i s = _mm512_setzero_si512();
    for (int i = 0; i < 4; i++) s = _mm512_dpwssd_epi32(s, pair[i], word(sums + 2 * i));
    return s;
}

/* i: Σ scale · centred dots. */
INLINE void accumulate_k45(const int bits, __m512i i, const __m512i *pair, __m512 d, __m512 dmin,
                           const a8_256 *a, float *y)
{
    const __m512i mn = pair_dot(pair, a->s32), c = pair_dot(pair + 4, a->s32);
    const __m512i whole = _mm512_add_epi32(i, _mm512_slli_epi32(c, bits == 4 ? 3 : 4));
    __m512 t = _mm512_mul_ps(d, _mm512_cvtepi32_ps(whole));
    t = _mm512_fnmadd_ps(dmin, _mm512_cvtepi32_ps(mn), t);
    _mm512_store_ps(y, _mm512_fmadd_ps(t, _mm512_set1_ps(a->d), _mm512_load_ps(y)));
}
INLINE void accumulate_k6(__m512i i, __m512 d, const a8_256 *a, float *y)
{
    const __m512 t = _mm512_mul_ps(d, _mm512_cvtepi32_ps(i));
    _mm512_store_ps(y, _mm512_fmadd_ps(t, _mm512_set1_ps(a->d), _mm512_load_ps(y)));
}

/* Where the dot over `lines` lines from line s on starts: −centre·Σ q. */
INLINE __m512i start(const int bits, const a8_256 *a, int s)
{
    return word(bits == 4 ? &a->n32[s / 8] : bits == 5 ? &a->n16[s / 4] : &a->n8[s / 2]);
}

/* 16 rows of a Q4_K or Q5_K block times n vectors. */
INLINE void direct_k45(const int bits, const uint8_t *p, const a8_256 *a, const int n,
                       int32_t shift, float *y)
{
    const uint8_t *high = p + 4 * TILE_LINE, *low = high + (bits == 5 ? 8 * TILE_LINE : 0);
    __m512i sc[8], pair[8], sum[DIRECT_VEC];
    for (int i = 0; i < 4; i++) prefetch(p + TILE_LINE * i);
    scales_k45(p + TILE_LINE, sc, pair);
    for (int t = 0; t < n; t++) sum[t] = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (int pr = 0; pr < 4; pr++) {
        __m512i l[DIRECT_VEC], h[DIRECT_VEC];
        for (int t = 0; t < n; t++) {
            l[t] = start(bits, &a[t], 16 * pr);
            h[t] = start(bits, &a[t], 16 * pr + 8);
        }
#pragma GCC unroll 8
        for (int s = 0; s < 8; s++) {
            const uint8_t *line = low + TILE_LINE * (8 * pr + s);
            __m512i lo, hi, fifth = _mm512_setzero_si512();
            prefetch(line);
            if (bits == 5) {
                fifth = load(high + TILE_LINE * s);
                if (pr == 0) prefetch(high + TILE_LINE * s);
            }
            unpack_k45(bits, load(line), fifth, pr, &lo, &hi);
            for (int t = 0; t < n; t++) {
                const int8_t *q = a[t].q + 64 * pr + 4 * s;
                l[t] = _mm512_dpbusd_epi32(l[t], lo, word(q));
                h[t] = _mm512_dpbusd_epi32(h[t], hi, word(q + 32));
                if (bits == 5 && s == 3) {
                    sum[t] = _mm512_dpwssd_epi32(sum[t], sc[2 * pr], l[t]);
                    sum[t] = _mm512_dpwssd_epi32(sum[t], sc[2 * pr + 1], h[t]);
                    l[t] = start(bits, &a[t], 16 * pr + 4);
                    h[t] = start(bits, &a[t], 16 * pr + 12);
                }
            }
        }
        for (int t = 0; t < n; t++) {
            sum[t] = _mm512_dpwssd_epi32(sum[t], sc[2 * pr], l[t]);
            sum[t] = _mm512_dpwssd_epi32(sum[t], sc[2 * pr + 1], h[t]);
        }
    }
    for (int t = 0; t < n; t++)
        accumulate_k45(bits, sum[t], pair, halves(p), halves(p + 32), &a[t],
                       y + (t >> shift) * TILE_ROWS);
}

/* 16 rows of a Q6_K block times n vectors; d16: their d. */
INLINE void direct_k6(const uint8_t *d16, const uint8_t *p, const a8_256 *a, const int n,
                      int32_t shift, float *y)
{
    __m512i sc[16], sum[DIRECT_VEC];
    for (int i = 0; i < 4; i++) prefetch(p + TILE_LINE * i);
    scales_k6(p, sc);
    for (int t = 0; t < n; t++) sum[t] = _mm512_setzero_si512();
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
#pragma GCC unroll 4
        for (int s = 0; s < 8; s += 2) {
            __m512i w0[4], w1[4];
            const uint8_t *triple = p + TILE_LINE * (4 + 3 * (8 * h + s));
            for (int i = 0; i < 6; i++) prefetch(triple + TILE_LINE * i);
            unpack_k6(triple, w0);
            unpack_k6(triple + 3 * TILE_LINE, w1);
            for (int t = 0; t < n; t++) {
                for (int k = 0; k < 4; k++) {
                    const int line = 32 * h + 8 * k + s;
                    __m512i x = start(6, &a[t], line);
                    x = _mm512_dpbusd_epi32(x, w0[k], word(a[t].q + 4 * line));
                    x = _mm512_dpbusd_epi32(x, w1[k], word(a[t].q + 4 * line + 4));
                    sum[t] = _mm512_dpwssd_epi32(sum[t], sc[line / 4], x);
                }
            }
        }
    }
    for (int t = 0; t < n; t++)
        accumulate_k6(sum[t], halves(d16), &a[t], y + (t >> shift) * TILE_ROWS);
}

INLINE void direct(const int bits, const uint8_t *tile, int32_t n_block, const uint8_t *act,
                   size_t stride, const int n, int32_t shift, float *y)
{
    for (int32_t b = 0; b < n_block; b++) {
        const a8_256 *a = (const a8_256 *)(const void *)(act + (size_t)b * stride);
        const uint8_t *p = tile + TILE_LINE * head_lines(bits);
        if (bits == 6) prefetch(tile);
        for (int g = 0; g < 2; g++, p += TILE_LINE * group_lines(bits)) {
            if (bits == 6)
                direct_k6(tile + 32 * g, p, a, n, shift, y + 16 * g);
            else
                direct_k45(bits, p, a, n, shift, y + 16 * g);
        }
        tile = p;
    }
}

INLINE void unpack_group(const int bits, const uint8_t *d16, const uint8_t *p, const int g,
                         panel256 *u)
{
    __m512i sc[16], pair[8];
    _mm512_store_ps(u->d + 16 * g, halves(d16));
    if (bits == 6) {
        scales_k6(p, sc);
        for (int i = 0; i < 16; i++) _mm512_store_si512(u->sc[g][i], sc[i]);
        for (int h = 0; h < 2; h++) {
            for (int s = 0; s < 8; s++) {
                __m512i x[4];
                unpack_k6(p + TILE_LINE * (4 + 3 * (8 * h + s)), x);
                for (int k = 0; k < 4; k++) _mm512_store_si512(u->w[g][32 * h + 8 * k + s], x[k]);
            }
        }
        return;
    }
    const uint8_t *high = p + 4 * TILE_LINE, *low = high + (bits == 5 ? 8 * TILE_LINE : 0);
    scales_k45(p + TILE_LINE, sc, pair);
    for (int i = 0; i < 8; i++) {
        _mm512_store_si512(u->sc[g][i], sc[i]);
        _mm512_store_si512(u->pair[g][i], pair[i]);
    }
    _mm512_store_ps(u->dmin + 16 * g, halves(d16 + 32));
#pragma GCC unroll 4
    for (int pr = 0; pr < 4; pr++) {
        for (int s = 0; s < 8; s++) {
            __m512i lo, hi, fifth = _mm512_setzero_si512();
            if (bits == 5) fifth = load(high + TILE_LINE * s);
            unpack_k45(bits, load(low + TILE_LINE * (8 * pr + s)), fifth, pr, &lo, &hi);
            _mm512_store_si512(u->w[g][16 * pr + s], lo);
            _mm512_store_si512(u->w[g][16 * pr + 8 + s], hi);
        }
    }
}

INLINE void unpack_panel(const int bits, const uint8_t *tile, panel256 *u)
{
    const uint8_t *p = tile + TILE_LINE * head_lines(bits);
    for (int g = 0; g < 2; g++, p += TILE_LINE * group_lines(bits))
        unpack_group(bits, bits == 6 ? tile + 32 * g : p, p, g, u);
}

/* Both groups of the panel times vectors v … v+n-1. */
INLINE void panel_vecs(const int bits, const panel256 *u, const a8_256 *a, const int n, int32_t v,
                       int32_t shift, float *y)
{
    const int lines = bits == 4 ? 8 : bits == 5 ? 4 : 2; /* whose dot fits 16 bits */
    const int scale_lines = bits == 6 ? 4 : 8;
    __m512i i0[PANEL_VEC], i1[PANEL_VEC];
    for (int t = 0; t < n; t++) i0[t] = i1[t] = _mm512_setzero_si512();
    for (int s = 0; s < N_LINE; s += lines) {
        const __m512i c0 = load(u->sc[0][s / scale_lines]), c1 = load(u->sc[1][s / scale_lines]);
        __m512i s0[PANEL_VEC], s1[PANEL_VEC];
        for (int t = 0; t < n; t++) s0[t] = s1[t] = start(bits, &a[t], s);
#pragma GCC unroll 8
        for (int k = 0; k < lines; k++) {
            const __m512i w0 = load(u->w[0][s + k]), w1 = load(u->w[1][s + k]);
            for (int t = 0; t < n; t++) {
                const __m512i q = word(a[t].q + 4 * (s + k));
                s0[t] = _mm512_dpbusd_epi32(s0[t], w0, q);
                s1[t] = _mm512_dpbusd_epi32(s1[t], w1, q);
            }
        }
        for (int t = 0; t < n; t++) {
            i0[t] = _mm512_dpwssd_epi32(i0[t], c0, s0[t]);
            i1[t] = _mm512_dpwssd_epi32(i1[t], c1, s1[t]);
        }
    }
    for (int t = 0; t < n; t++) {
        float *out = y + ((v + t) >> shift) * TILE_ROWS;
        for (int g = 0; g < 2; g++) {
            const __m512i i = g ? i1[t] : i0[t];
            const __m512 d = _mm512_load_ps(u->d + 16 * g);
            if (bits == 6)
                accumulate_k6(i, d, &a[t], out + 16 * g);
            else
                accumulate_k45(bits, i, (const __m512i *)(const void *)u->pair[g], d,
                               _mm512_load_ps(u->dmin + 16 * g), &a[t], out + 16 * g);
        }
    }
}

INLINE void panel_all(const int bits, const uint8_t *tile, size_t block, const panel256 *u,
                      const a8_256 *a, int32_t n_vec, int32_t shift, float *y)
{
    int32_t v = 0;
    for (; v + PANEL_VEC <= n_vec; v += PANEL_VEC) {
        /* The next block comes in beside the products, a part for each step. */
        for (size_t i = 0; i < block * PANEL_VEC / (size_t)n_vec; i += TILE_LINE)
            _mm_prefetch((const char *)tile + block + block * (size_t)v / (size_t)n_vec + i,
                         _MM_HINT_T1);
        panel_vecs(bits, u, a + v, PANEL_VEC, v, shift, y);
    }
    for (; v + 3 <= n_vec; v += 3) panel_vecs(bits, u, a + v, 3, v, shift, y);
    for (; v < n_vec; v++) panel_vecs(bits, u, a + v, 1, v, shift, y);
}

DEFINE_TILE(vnni_tile_q4_k, 4)
DEFINE_TILE(vnni_tile_q5_k, 5)
DEFINE_TILE(vnni_tile_q6_k, 6)
