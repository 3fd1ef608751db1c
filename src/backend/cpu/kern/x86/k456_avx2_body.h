/* Tiles of Q4_K, Q5_K and Q6_K in AVX2's registers: once for the levels that dots_LEVEL.h is of, which a level's
   file includes before, with LEVEL(name).  A lane is an output row; a register holds one word of 8 rows.

   Exactness, |q| ≤ 127 and stored weights from 0 up: |sum| ≤ 256·63·127·128 = 262 M.  Q6_K's centring is undone at
   the end: −32·Σ sc·Σ q, at most 133 M. */
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
    for (int m = 0; m < 4; m++) sc[m] = scale_of(s0, m), sc[4 + m] = scale_of(s1, m);
    pair[0] = _mm256_and_si256(m0, byte), pair[1] = _mm256_srli_epi16(m0, 8);
    pair[2] = _mm256_and_si256(m1, byte), pair[3] = _mm256_srli_epi16(m1, 8);
}

/* Q6_K: 16 scales, 8 pairs of them. */
INLINE void scales_k6(const uint8_t *p, __m256i *sc, __m256i *pair)
{
    for (int i = 0; i < 4; i++) signed_scales(6, load(p + TILE_LINE * i), sc + 4 * i, pair + 2 * i);
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

/* Word 8p+s of 8 rows, from memory that is walked. */
INLINE void line_k45(const int bits, const int half, const uint8_t *group, const int p, const int s,
                     __m256i *lo, __m256i *hi)
{
    const uint8_t *high = group + TILE_LINE * (4 + s);
    const uint8_t *line = group + TILE_LINE * ((bits == 5 ? 12 : 4) + 8 * p + s);
    __m256i fifth = _mm256_setzero_si256();
    ahead(line, half);
    if (bits == 5) {
        fifth = load(high);
        if (p == 0) ahead(high, half);
    }
    unpack_k45(bits, load(line), fifth, p, lo, hi);
}

/* 8 rows of a Q4_K or Q5_K block times n vectors; p: the half's place in its group, d16: its d. */
INLINE void direct_k45(const int bits, const int h, const uint8_t *d16, const uint8_t *p,
                       const a8_256 *a, const int n, int32_t shift, float *y)
{
    const int lines = sum_lines(bits);
    __m256i sc[8], pair[4], sum[2];
    for (int i = 0; i < 4; i++) ahead(p + TILE_LINE * i, h);
    scales_k45(p + TILE_LINE, sc, pair);
    for (int t = 0; t < n; t++) sum[t] = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int pr = 0; pr < 4; pr++) {
        __m256i x[2][2];
        for (int t = 0; t < n; t++) x[0][t] = x[1][t] = _mm256_setzero_si256();
#pragma GCC unroll 8
        for (int s = 0; s < 8; s++) {
            __m256i w[2];
            line_k45(bits, h, p, pr, s, &w[0], &w[1]);
            for (int t = 0; t < n; t++) {
                const int8_t *q = a[t].q + 64 * pr + 4 * s;
                x[0][t] = part_add(x[0][t], w[0], word(q));
                x[1][t] = part_add(x[1][t], w[1], word(q + 32));
                KEEP(x[0][t]);
                KEEP(x[1][t]);
                for (int k = 0; k < 2 && (s + 1) % lines == 0; k++) {
                    sum[t] = add_part(bits, sum[t], x[k][t], sc[2 * pr + k]);
                    KEEP(sum[t]);
                    x[k][t] = _mm256_setzero_si256();
                }
            }
            IN_ORDER();
        }
    }
    for (int t = 0; t < n; t++)
        accumulate(bits, sum[t], pair, halves(d16), halves(d16 + 32), &a[t],
                   y + (t >> shift) * TILE_ROWS);
}

/* Triples s and s + 1 of half block h, from memory that is walked. */
INLINE void triples_k6(const int which, const uint8_t *group, const int h, const int s, __m256i *w0,
                       __m256i *w1)
{
    const uint8_t *triple = group + TILE_LINE * (4 + 3 * (8 * h + s));
    for (int i = 0; i < 6; i++) ahead(triple + TILE_LINE * i, which);
    unpack_k6(triple, w0);
    unpack_k6(triple + 3 * TILE_LINE, w1);
}

/* Words s and s + 1 of a sub-block with theirs of a vector into its part, and with the last ones that a part
   takes this into the sum. */
INLINE void dots_k6(__m256i w0, __m256i w1, const int8_t *q, const int s, __m256i scale, __m256i *x,
                    __m256i *sum)
{
    *x = part_add(part_add(*x, w0, word(q)), w1, word(q + 4));
    if ((s + 2) % sum_lines(6)) return;
    *sum = add_part(6, *sum, *x, scale);
    *x = _mm256_setzero_si256();
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
        __m256i x[4][2];
        for (int t = 0; t < n; t++)
            for (int k = 0; k < 4; k++) x[k][t] = _mm256_setzero_si256();
#pragma GCC unroll 4
        for (int s = 0; s < 8; s += 2) {
            __m256i w0[4], w1[4];
            triples_k6(which, p, h, s, w0, w1);
            for (int t = 0; t < n; t++) {
                for (int k = 0; k < 4; k++) {
                    const int8_t *q = a[t].q + 128 * h + 32 * k + 4 * s;
                    dots_k6(w0[k], w1[k], q, s, sc[8 * h + 2 * k + s / 4], &x[k][t], &sum[t]);
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

DEFINE_TILE(LEVEL(tile_q4_k), 4)
DEFINE_TILE(LEVEL(tile_q5_k), 5)
DEFINE_TILE(LEVEL(tile_q6_k), 6)
