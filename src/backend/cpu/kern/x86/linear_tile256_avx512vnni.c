/* Tiles of Q4_K, Q5_K and Q6_K, AVX-512 VNNI. */
#include <immintrin.h>

#include "backend/cpu/kern/x86/linear_x86.h"
#include "backend/cpu/kern/x86/tile256_avx512vnni_body.h"

/* Q4_K, Q5_K: 8 scales; 4 pairs of minima, 4 of scales in the order 0 2, 1 3, 4 6, 5 7. */
INLINE void scales_k45(const uint8_t *p, __m512i *sc, __m512i *pair)
{
    const __m512i a = load(p), b = load(p + TILE_LINE), c = load(p + 2 * TILE_LINE);
    const __m512i even = _mm512_set1_epi16(0xff);
    const __m512i s0 = and8(a, 63), m0 = and8(b, 63);
    const __m512i s1 = or_and8(low_nibbles(c), _mm512_srli_epi16(a, 2), 0x30);
    const __m512i m1 = or_and8(high_nibbles(c), _mm512_srli_epi16(b, 2), 0x30);
    sc[0] = byte_of(s0, 0), sc[1] = byte_of(s0, 1), sc[2] = byte_of(s0, 2), sc[3] = byte_of(s0, 3);
    sc[4] = byte_of(s1, 0), sc[5] = byte_of(s1, 1), sc[6] = byte_of(s1, 2), sc[7] = byte_of(s1, 3);
    pair[0] = _mm512_and_si512(m0, even), pair[1] = _mm512_srli_epi16(m0, 8);
    pair[2] = _mm512_and_si512(m1, even), pair[3] = _mm512_srli_epi16(m1, 8);
    pair[4] = _mm512_and_si512(s0, even), pair[5] = _mm512_srli_epi16(s0, 8);
    pair[6] = _mm512_and_si512(s1, even), pair[7] = _mm512_srli_epi16(s1, 8);
}

INLINE void scales_k6(const uint8_t *p, __m512i *sc)
{
    for (int i = 0; i < 4; i++) signed_scales(load(p + TILE_LINE * i), sc + 4 * i);
}

/* Word 8p+s of 16 rows, from its line and the fifth bits of s: sub-blocks 2p and 2p+1. */
INLINE void unpack_k45(const int bits, __m512i v, __m512i fifth, const int p, __m512i *lo,
                       __m512i *hi)
{
    *lo = low_nibbles(v);
    *hi = high_nibbles(v);
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
    w[0] = or_and8(low_nibbles(a), _mm512_slli_epi16(c, 4), 0x30);
    w[1] = or_and8(low_nibbles(b), _mm512_slli_epi16(c, 2), 0x30);
    w[2] = or_and8(high_nibbles(a), c, 0x30);
    w[3] = or_and8(high_nibbles(b), _mm512_srli_epi16(c, 2), 0x30);
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
        accumulate(bits, sum[t], pair, halves(p), halves(p + 32), &a[t],
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
        accumulate(6, sum[t], NULL, halves(d16), halves(d16), &a[t], y + (t >> shift) * TILE_ROWS);
}

INLINE void direct_group(const int bits, const uint8_t *d16, const uint8_t *p, const a8_256 *a,
                         const int n, int32_t shift, float *y)
{
    if (bits == 6)
        direct_k6(d16, p, a, n, shift, y);
    else
        direct_k45(bits, p, a, n, shift, y);
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

DEFINE_TILE(vnni_tile_q4_k, 4)
DEFINE_TILE(vnni_tile_q5_k, 5)
DEFINE_TILE(vnni_tile_q6_k, 6)
