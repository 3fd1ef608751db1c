/* Tiles of IQ4_XS, AVX-512 VNNI: levels of 8 bits that nibbles stand for, made unsigned by adding 128,
   signed scales of 6 bits.  Dots of 32 start at −128·Σ q: |dot| ≤ 128·127·32 = 520,192, times a scale 16.6 M,
   |sum| ≤ 32·127·127·256 = 132.2 M. */
#include <immintrin.h>

#include "backend/cpu/kern/x86/linear_x86.h"
#include "backend/cpu/kern/x86/tile256_avx512vnni_body.h"

#include "backend/cpu/kern/body/linear_iq4xs_body.h"

#include "backend/cpu/kern/body/linear_tile256_form.h"

#include "backend/cpu/kern/x86/scales256_avx512.h"

INLINE void direct_group(const int bits, const uint8_t *d16, const uint8_t *p, const a8_256 *a,
                         const int n, int32_t shift, float *y)
{
    __m512i sc[8], sum[DIRECT_VEC];
    for (int i = 0; i < 2; i++) prefetch(p + TILE_LINE * i);
    scales_iq4xs(p, sc);
    for (int t = 0; t < n; t++) sum[t] = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
        __m512i dot[DIRECT_VEC];
        for (int t = 0; t < n; t++) dot[t] = start(bits, &a[t], 8 * j);
#pragma GCC unroll 4
        for (int s = 0; s < 4; s++) {
            __m512i lo, hi;
            prefetch(p + TILE_LINE * (2 + 4 * j + s));
            unpack(p, 4 * j + s, 128, &lo, &hi);
            for (int t = 0; t < n; t++) {
                const int8_t *q = a[t].q + 32 * j + 4 * s;
                dot[t] = _mm512_dpbusd_epi32(dot[t], lo, word(q));
                dot[t] = _mm512_dpbusd_epi32(dot[t], hi, word(q + 16));
            }
        }
        for (int t = 0; t < n; t++) sum[t] = add_scaled(bits, sum[t], sc[j], dot[t]);
    }
    for (int t = 0; t < n; t++)
        accumulate(bits, sum[t], sc, halves(d16), halves(d16), &a[t], y + (t >> shift) * TILE_ROWS);
}

INLINE void unpack_group(const int bits, const uint8_t *d16, const uint8_t *p, const int g,
                         panel256 *u)
{
    __m512i sc[8];
    (void)bits;
    _mm512_store_ps(u->d + 16 * g, halves(d16));
    scales_iq4xs(p, sc);
    for (int i = 0; i < 8; i++) _mm512_store_si512(u->sc[g][i], sc[i]);
    for (int i = 0; i < 32; i++) { /* line s of sub-block i / 4, s = i % 4 */
        const int at = i / 4 * 8 + i % 4;
        __m512i lo, hi;
        unpack(p, i, 128, &lo, &hi);
        _mm512_store_si512(u->w[g][at], lo);
        _mm512_store_si512(u->w[g][at + 4], hi);
    }
}

DEFINE_TILE(vnni_tile_iq4_xs, BITS_IQ4)
