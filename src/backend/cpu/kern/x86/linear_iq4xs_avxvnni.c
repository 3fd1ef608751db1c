/* Tiles of IQ4_XS, AVX-VNNI: levels of 8 bits that nibbles stand for, made unsigned by adding 128, signed scales
   of 6 bits.  |sum| ≤ 256·241·127·32 = 250.8 M; the centring is undone at the end: −128·Σ sc·Σ q, at most
   133.2 M. */
#include <immintrin.h>

#include "backend/cpu/kern/x86/dots_avxvnni.h"
#include "backend/cpu/kern/x86/linear_x86.h"

#include "backend/cpu/kern/x86/iq4xs_avx2_body.h"

#include "backend/cpu/kern/body/linear_tile256_form.h"

#include "backend/cpu/kern/x86/panel256_avx2_body.h"

/* The pairs of scales that meet the sums of 32, in their order. */
INLINE void scale_pairs(const __m256i *sc, __m256i *pair)
{
    for (int i = 0; i < 4; i++) {
        const int j = i / 2 * 4 + i % 2;
        pair[i] = scale_pair(sc[j], sc[j + 2]);
    }
}

INLINE void direct_half(const int bits, const int half, const uint8_t *d16, const uint8_t *p,
                        const a8_256 *a, const int n, int32_t shift, float *y)
{
    __m256i sc[8], pair[4], sum[2];
    for (int i = 0; i < 2; i++) ahead(p + TILE_LINE * i, half);
    scales(d16 + 32, p, sc);
    scale_pairs(sc, pair);
    for (int t = 0; t < n; t++) sum[t] = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
        __m256i x[2];
        for (int t = 0; t < n; t++) x[t] = _mm256_setzero_si256();
#pragma GCC unroll 4
        for (int s = 0; s < 4; s++) {
            __m256i lo, hi;
            ahead(p + TILE_LINE * (2 + 4 * j + s), half);
            unpack(p, 4 * j + s, 128, &lo, &hi);
            for (int t = 0; t < n; t++) {
                const int8_t *q = a[t].q + 32 * j + 4 * s;
                x[t] = part_add(part_add(x[t], lo, word(q)), hi, word(q + 16));
            }
        }
        for (int t = 0; t < n; t++) sum[t] = add_part(bits, sum[t], x[t], sc[j]);
    }
    for (int t = 0; t < n; t++)
        accumulate(bits, sum[t], pair, halves(d16), halves(d16), &a[t],
                   y + (t >> shift) * TILE_ROWS);
}

INLINE void unpack_half(const int bits, const uint8_t *d16, const uint8_t *p, const int half,
                        panel256 *u)
{
    __m256i(*w)[1] = (__m256i(*)[1])(void *)u->w[half];
    __m256i *sc = (__m256i *)(void *)u->sc[half];
    (void)bits;
    _mm256_store_ps(u->d + 8 * half, halves(d16));
    scales(d16 + 32, p, sc);
    scale_pairs(sc, (__m256i *)(void *)u->pair[half]);
    for (int i = 0; i < 32; i++) { /* line s of sub-block i / 4, s = i % 4 */
        const int at = i / 4 * 8 + i % 4;
        unpack(p, i, 128, w[at], w[at + 4]);
    }
}

DEFINE_TILE(avxvnni_tile_iq4_xs, BITS_IQ4)
