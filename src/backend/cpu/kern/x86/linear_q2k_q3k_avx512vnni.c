/* Tiles of Q2_K and Q3_K, AVX-512 VNNI.  Dots of words times 4 fit 16 bits too: Q2_K 4·3·127·16 = 24,384,
   Q3_K, centred, 4·4·127·16 = 32,512. */
#include <immintrin.h>

#include "backend/cpu/kern/x86/linear_x86.h"
#include "backend/cpu/kern/x86/tile256_avx512vnni_body.h"

#include "backend/cpu/kern/body/q2k_q3k_body.h"

#include "backend/cpu/kern/x86/scales256_avx512.h"

/* Q3_K: 16 scales. */
INLINE void scales_k3(const uint8_t *p, __m512i *sc)
{
    __m512i s[4];
    scale_bytes_k3(p, s);
    for (int i = 0; i < 4; i++) signed_scales(s[i], sc + 4 * i);
}
INLINE void scales(const int bits, const uint8_t *p, __m512i *sc, __m512i *pair)
{
    if (bits == 2)
        scales_k2(p, sc, pair);
    else
        scales_k3(p, sc);
}

INLINE void direct_group(const int bits, const uint8_t *d16, const uint8_t *p, const a8_256 *a,
                         const int n, int32_t shift, float *y)
{
    __m512i sc[16], pair[8], sum[DIRECT_VEC][2];
    for (int i = 0; i < code_line(bits); i++) prefetch(p + TILE_LINE * i);
    scales(bits, p, sc, pair);
    for (int t = 0; t < n; t++) sum[t][0] = sum[t][1] = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) { /* sub-block 2k + i % 2 of half block i / 2 */
        const int first = 32 * (i / 2) + 4 * (i % 2);
        __m512i dot[DIRECT_VEC][4];
        for (int t = 0; t < n; t++) {
            for (int k = 0; k < 4; k++) {
                const __m512i from = start(bits, &a[t], first + 8 * k);
                dot[t][k] = bits == 3 && k % 2 ? start(5, &a[t], first + 8 * k) : from;
            }
        }
#pragma GCC unroll 4
        for (int s = 0; s < 4; s++) {
            __m512i w[4];
            prefetch(p + TILE_LINE * (code_line(bits) + 4 * i + s));
            unpack_times4(bits, p, i / 2, 4 * (i % 2) + s, w);
            for (int t = 0; t < n; t++) {
                for (int k = 0; k < 4; k++) {
                    const int8_t *q = a[t].q + 4 * (first + 8 * k + s);
                    dot[t][k] = _mm512_dpbusd_epi32(dot[t][k], w[k], word(q));
                }
            }
        }
        for (int t = 0; t < n; t++) {
            for (int k = 0; k < 4; k++)
                sum[t][k % 2] =
                    _mm512_dpwssd_epi32(sum[t][k % 2], sc[first / 4 + 2 * k], dot[t][k]);
        }
    }
    for (int t = 0; t < n; t++)
        accumulate(bits, _mm512_add_epi32(sum[t][0], _mm512_srai_epi32(sum[t][1], 2)), pair,
                   halves(d16), halves(bits == 2 ? d16 + 32 : d16), &a[t],
                   y + (t >> shift) * TILE_ROWS);
}

INLINE void unpack_group(const int bits, const uint8_t *d16, const uint8_t *p, const int g,
                         panel256 *u)
{
    __m512i sc[16], pair[8];
    _mm512_store_ps(u->d + 16 * g, halves(d16));
    scales(bits, p, sc, pair);
    for (int i = 0; i < 16; i++) _mm512_store_si512(u->sc[g][i], sc[i]);
    if (bits == 2) {
        _mm512_store_ps(u->dmin + 16 * g, halves(d16 + 32));
        for (int i = 0; i < 8; i++) _mm512_store_si512(u->pair[g][i], pair[i]);
    }
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        for (int s = 0; s < 8; s++) {
            __m512i x[4];
            unpack_times4(bits, p, h, s, x);
            for (int k = 0; k < 4; k++)
                _mm512_store_si512(u->w[g][32 * h + 8 * k + s],
                                   k % 2 ? _mm512_srli_epi16(x[k], 2) : x[k]);
        }
    }
}

DEFINE_TILE(vnni_tile_q2_k, 2)
DEFINE_TILE(vnni_tile_q3_k, 3)
