/* Tiles of Q4_K, Q5_K and Q6_K, AVX2.  A lane is an output row; a register holds one word of 8 rows.

   Exactness, |q| ≤ 127 and stored weights from 0 up: vpmaddubsw's pairs are at most 2·15·127 = 3,810
   (4 bits), 7,874 (5) and 16,002 (6); so 8, 4 and 2 lines add up in 16 bits (30,480; 31,496; 32,004)
   before one vpmaddwd with the sub-block's scale in both places takes them to 32 bits:
   |sum| ≤ 256·63·127·128 = 262 M.  Q6_K's centring is undone at the end: −32·Σ sc·Σ q, at most 133 M. */
#include <immintrin.h>

#include "backend/cpu/kern/x86/linear_x86.h"
#include "backend/cpu/kern/x86/tile256_avx2_body.h"

#include "backend/cpu/kern/x86/panel256_avx2_body.h"

/* Q4_K, Q5_K: the 8 scales and the 4 pairs of minima of 8 rows. */
INLINE void scales_k45(const uint8_t *p, __m256i *sc, __m256i *pair)
{
    const __m256i a = load(p), b = load(p + TILE_LINE), c = load(p + 2 * TILE_LINE);
    const __m256i byte = _mm256_set1_epi16(0xff);
    const __m256i s0 = and8(a, 63), m0 = and8(b, 63);
    const __m256i s1 = _mm256_or_si256(low_nibbles(c), and8(_mm256_srli_epi16(a, 2), 0x30));
    const __m256i m1 = _mm256_or_si256(high_nibbles(c), and8(_mm256_srli_epi16(b, 2), 0x30));
    sc[0] = spread(s0, 0, 0), sc[1] = spread(s0, 1, 1), sc[2] = spread(s0, 2, 2),
    sc[3] = spread(s0, 3, 3);
    sc[4] = spread(s1, 0, 0), sc[5] = spread(s1, 1, 1), sc[6] = spread(s1, 2, 2),
    sc[7] = spread(s1, 3, 3);
    pair[0] = _mm256_and_si256(m0, byte), pair[1] = _mm256_srli_epi16(m0, 8);
    pair[2] = _mm256_and_si256(m1, byte), pair[3] = _mm256_srli_epi16(m1, 8);
}

/* Q6_K: 16 scales, 8 pairs of them. */
INLINE void scales_k6(const uint8_t *p, __m256i *sc, __m256i *pair)
{
    for (int i = 0; i < 4; i++) signed_scales(load(p + TILE_LINE * i), sc + 4 * i, pair + 2 * i);
}

/* Word 8p+s of 8 rows, from its line and the fifth bits of s: sub-blocks 2p and 2p+1. */
INLINE void unpack_k45(const int bits, __m256i v, __m256i fifth, const int p, __m256i *lo,
                       __m256i *hi)
{
    *lo = low_nibbles(v);
    *hi = high_nibbles(v);
    if (bits == 5) {
        const int up = 4 - 2 * p; /* from bit 2p to bit 4 */
        const __m256i l = up >= 0 ? _mm256_slli_epi32(fifth, up) : _mm256_srli_epi32(fifth, -up);
        const __m256i h =
            up >= 1 ? _mm256_slli_epi32(fifth, up - 1) : _mm256_srli_epi32(fifth, 1 - up);
        *lo = _mm256_or_si256(*lo, and8(l, 16));
        *hi = _mm256_or_si256(*hi, and8(h, 16));
    }
}

/* Triple s of a half block: words s of its four sub-blocks of 32. */
INLINE void unpack_k6(const uint8_t *p, __m256i *w)
{
    const __m256i a = load(p), b = load(p + TILE_LINE), c = load(p + 2 * TILE_LINE);
    w[0] = _mm256_or_si256(low_nibbles(a), and8(_mm256_slli_epi16(c, 4), 0x30));
    w[1] = _mm256_or_si256(low_nibbles(b), and8(_mm256_slli_epi16(c, 2), 0x30));
    w[2] = _mm256_or_si256(high_nibbles(a), and8(c, 0x30));
    w[3] = _mm256_or_si256(high_nibbles(b), and8(_mm256_srli_epi16(c, 2), 0x30));
}

/* 8 rows of a Q4_K or Q5_K block times n vectors; p: the half's place in its group, d16: its d. */
INLINE void direct_k45(const int bits, const int h, const uint8_t *d16, const uint8_t *p,
                       const a8_256 *a, const int n, int32_t shift, float *y)
{
    const uint8_t *high = p + 4 * TILE_LINE, *low = high + (bits == 5 ? 8 * TILE_LINE : 0);
    __m256i sc[8], pair[4], sum[2];
    for (int i = 0; i < 4; i++) ahead(p + TILE_LINE * i, h);
    scales_k45(p + TILE_LINE, sc, pair);
    for (int t = 0; t < n; t++) sum[t] = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int pr = 0; pr < 4; pr++) {
        __m256i lo16[2], hi16[2];
        for (int t = 0; t < n; t++) lo16[t] = hi16[t] = _mm256_setzero_si256();
#pragma GCC unroll 8
        for (int s = 0; s < 8; s++) {
            const uint8_t *line = low + TILE_LINE * (8 * pr + s);
            __m256i lo, hi, fifth = _mm256_setzero_si256();
            ahead(line, h);
            if (bits == 5 && pr == 0) ahead(high + TILE_LINE * s, h);
            if (bits == 5) fifth = load(high + TILE_LINE * s);
            unpack_k45(bits, load(line), fifth, pr, &lo, &hi);
            for (int t = 0; t < n; t++) {
                const int8_t *q = a[t].q + 64 * pr + 4 * s;
                const __m256i l = _mm256_maddubs_epi16(lo, word(q));
                const __m256i u = _mm256_maddubs_epi16(hi, word(q + 32));
                lo16[t] = _mm256_add_epi16(lo16[t], l);
                KEEP(lo16[t]);
                hi16[t] = _mm256_add_epi16(hi16[t], u);
                KEEP(hi16[t]);
                if (s != 7 && !(bits == 5 && s == 3)) continue;
                sum[t] = _mm256_add_epi32(sum[t], _mm256_madd_epi16(lo16[t], sc[2 * pr]));
                KEEP(sum[t]);
                sum[t] = _mm256_add_epi32(sum[t], _mm256_madd_epi16(hi16[t], sc[2 * pr + 1]));
                KEEP(sum[t]);
                lo16[t] = hi16[t] = _mm256_setzero_si256();
            }
        }
    }
    for (int t = 0; t < n; t++)
        accumulate(bits, sum[t], pair, halves(d16), halves(d16 + 32), &a[t],
                   y + (t >> shift) * TILE_ROWS);
}

/* 8 rows of a Q6_K block times n vectors; p: the half's place in its group, d16: its d. */
INLINE void direct_k6(const int which, const uint8_t *d16, const uint8_t *p, const a8_256 *a,
                      const int n, int32_t shift, float *y)
{
    __m256i sc[16], pair[8], sum[2];
    for (int i = 0; i < 4; i++) ahead(p + TILE_LINE * i, which);
    scales_k6(p, sc, pair);
    for (int t = 0; t < n; t++) sum[t] = _mm256_setzero_si256();
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
#pragma GCC unroll 4
        for (int s = 0; s < 8; s += 2) {
            __m256i w0[4], w1[4];
            const uint8_t *triple = p + TILE_LINE * (4 + 3 * (8 * h + s));
            for (int i = 0; i < 6; i++) ahead(triple + TILE_LINE * i, which);
            unpack_k6(triple, w0);
            unpack_k6(triple + 3 * TILE_LINE, w1);
            for (int t = 0; t < n; t++) {
                for (int k = 0; k < 4; k++) {
                    const int8_t *q = a[t].q + 128 * h + 32 * k + 4 * s;
                    const __m256i x = _mm256_add_epi16(_mm256_maddubs_epi16(w0[k], word(q)),
                                                       _mm256_maddubs_epi16(w1[k], word(q + 4)));
                    sum[t] =
                        _mm256_add_epi32(sum[t], _mm256_madd_epi16(x, sc[8 * h + 2 * k + s / 4]));
                }
            }
        }
    }
    for (int t = 0; t < n; t++)
        accumulate(6, sum[t], pair, halves(d16), halves(d16), &a[t], y + (t >> shift) * TILE_ROWS);
}

INLINE void direct_half(const int bits, const int half, const uint8_t *d16, const uint8_t *p,
                        const a8_256 *a, const int n, int32_t shift, float *y)
{
    if (bits == 6)
        direct_k6(half, d16, p, a, n, shift, y);
    else
        direct_k45(bits, half, d16, p, a, n, shift, y);
}

INLINE void unpack_half(const int bits, const uint8_t *d16, const uint8_t *p, const int half,
                        panel256 *u)
{
    __m256i(*w)[1] = (__m256i(*)[1])(void *)u->w[half];
    __m256i *sc = (__m256i *)(void *)u->sc[half], *pair = (__m256i *)(void *)u->pair[half];
    _mm256_store_ps(u->d + 8 * half, halves(d16));
    if (bits == 6) {
        scales_k6(p, sc, pair);
        for (int h = 0; h < 2; h++) {
            for (int s = 0; s < 8; s++) {
                __m256i x[4];
                unpack_k6(p + TILE_LINE * (4 + 3 * (8 * h + s)), x);
                for (int k = 0; k < 4; k++) w[32 * h + 8 * k + s][0] = x[k];
            }
        }
        return;
    }
    const uint8_t *high = p + 4 * TILE_LINE, *low = high + (bits == 5 ? 8 * TILE_LINE : 0);
    scales_k45(p + TILE_LINE, sc, pair);
    _mm256_store_ps(u->dmin + 8 * half, halves(d16 + 32));
#pragma GCC unroll 4
    for (int pr = 0; pr < 4; pr++) {
        for (int s = 0; s < 8; s++) {
            __m256i fifth = _mm256_setzero_si256();
            if (bits == 5) fifth = load(high + TILE_LINE * s);
            unpack_k45(bits, load(low + TILE_LINE * (8 * pr + s)), fifth, pr, w[16 * pr + s],
                       w[16 * pr + 8 + s]);
        }
    }
}

DEFINE_TILE(avx2_tile_q4_k, 4)
DEFINE_TILE(avx2_tile_q5_k, 5)
DEFINE_TILE(avx2_tile_q6_k, 6)
