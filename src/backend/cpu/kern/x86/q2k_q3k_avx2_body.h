/* Tiles of Q2_K and Q3_K in AVX2's registers, once for the levels that dots_LEVEL.h is of.  Q3_K's centring is
   undone at the end: −4·Σ sc·Σ q. */
#include "backend/cpu/kern/x86/tile256_avx2_body.h"

#include "backend/cpu/kern/body/q2k_q3k_body.h"
#include "backend/cpu/kern/x86/panel256_avx2_body.h"

/* Q2_K: 16 scales, 8 pairs of minima. */
INLINE void scales_k2(const uint8_t *p, __m256i *sc, __m256i *pair)
{
    for (int i = 0; i < 4; i++) {
        const __m256i v = load(p + TILE_LINE * (1 + i)), s = low_nibbles(v), m = high_nibbles(v);
        for (int n = 0; n < 4; n++) sc[4 * i + n] = scale_of(s, n);
        pair[2 * i] = spread(m, 0, 1), pair[2 * i + 1] = spread(m, 2, 3);
    }
}
/* Q3_K: 16 scales, 8 pairs of them. */
INLINE void scales_k3(const uint8_t *p, __m256i *sc, __m256i *pair)
{
    __m256i s[4];
    scale_bytes_k3(p, s);
    for (int i = 0; i < 4; i++) signed_scales(3, s[i], sc + 4 * i, pair + 2 * i);
}
INLINE void scales(const int bits, const uint8_t *p, __m256i *sc, __m256i *pair)
{
    if (bits == 2)
        scales_k2(p, sc, pair);
    else
        scales_k3(p, sc, pair);
}

/* Lines of w[k] of unpack_times4, of 3 and 5 bits, that add up before their scale. */
INLINE int times4_lines(const int k)
{
    return k % 2 && short_lines(5) < 4 ? short_lines(5) : 4;
}

INLINE void direct_half(const int bits, const int half, const uint8_t *d16, const uint8_t *p,
                        const a8_256 *a, const int n, int32_t shift, float *y)
{
    __m256i sc[16], pair[8], sum[2][2];
    for (int i = 0; i < code_line(bits); i++) ahead(p + TILE_LINE * i, half);
    scales(bits, p, sc, pair);
    for (int t = 0; t < n; t++) sum[t][0] = sum[t][1] = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) { /* sub-block 2k + i % 2 of half block i / 2 */
        __m256i dot[2][4];
        for (int t = 0; t < n; t++)
            for (int k = 0; k < 4; k++) dot[t][k] = _mm256_setzero_si256();
#pragma GCC unroll 4
        for (int s = 0; s < 4; s++) {
            __m256i w[4];
            ahead(p + TILE_LINE * (code_line(bits) + 4 * i + s), half);
            unpack_times4(bits, p, i / 2, 4 * (i % 2) + s, w);
            for (int t = 0; t < n; t++) {
                for (int k = 0; k < 4; k++) {
                    const int8_t *q = a[t].q + 128 * (i / 2) + 32 * k + 16 * (i % 2) + 4 * s;
                    dot[t][k] = part_add(dot[t][k], w[k], word(q));
                    KEEP(dot[t][k]);
                }
            }
            IN_ORDER();
            for (int t = 0; t < n; t++) {
                for (int k = 0; k < 4; k++) {
                    if ((s + 1) % times4_lines(k)) continue;
                    const __m256i scale = sc[8 * (i / 2) + 2 * k + i % 2];
                    sum[t][k % 2] = add_madd(sum[t][k % 2], dot[t][k], scale);
                    KEEP(sum[t][k % 2]);
                    dot[t][k] = _mm256_setzero_si256();
                }
            }
        }
    }
    for (int t = 0; t < n; t++)
        accumulate(bits, _mm256_add_epi32(sum[t][0], _mm256_srai_epi32(sum[t][1], 2)), pair,
                   halves(d16), halves(bits == 2 ? d16 + 32 : d16), &a[t],
                   y + (t >> shift) * TILE_ROWS);
}

INLINE void unpack_half(const int bits, const uint8_t *d16, const uint8_t *p, const int half,
                        panel256 *u)
{
    __m256i(*w)[1] = (__m256i(*)[1])(void *)u->w[half];
    _mm256_store_ps(u->d + 8 * half, halves(d16));
    if (bits == 2) _mm256_store_ps(u->dmin + 8 * half, halves(d16 + 32));
    scales(bits, p, (__m256i *)(void *)u->sc[half], (__m256i *)(void *)u->pair[half]);
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        for (int s = 0; s < 8; s++) {
            __m256i x[4];
            unpack_times4(bits, p, h, s, x);
            for (int k = 0; k < 4; k++)
                w[32 * h + 8 * k + s][0] = k % 2 ? _mm256_srli_epi16(x[k], 2) : x[k];
        }
    }
}

DEFINE_TILE(LEVEL(tile_q2_k), 2)
DEFINE_TILE(LEVEL(tile_q3_k), 3)
