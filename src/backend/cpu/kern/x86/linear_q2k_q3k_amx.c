/* Tiles of Q2_K and Q3_K, AMX: their weights times their scales fit one plane. */
#include "backend/cpu/kern/x86/linear_x86.h"
#include "backend/cpu/kern/x86/words_avx512.h"

#include "backend/cpu/kern/body/linear_tile256_form.h"

#include "backend/cpu/kern/body/q2k_q3k_body.h"

#include "backend/cpu/kern/x86/tile256_amx_body.h"

#include "backend/cpu/kern/x86/scales256_avx512.h"

enum { LEAST_K2 = 5, LEAST_K3 = 8 /* fewer vectors cost less by vpdpbusd */ };

/* Weights from 0 up, of one line: −scale · (x − 4) of Q3_K, as bytes. */
INLINE __m512i negative_k3(__m512i x, __m512i sc)
{
    const __m512i byte = _mm512_set1_epi16(0xff), zero = _mm512_setzero_si512();
    __m512i even, odd;
    products16(x, sc, 2, &even, &odd);
    even = _mm512_sub_epi16(zero, even), odd = _mm512_sub_epi16(zero, odd);
    return _mm512_ternarylogic_epi32(byte, even, _mm512_slli_epi16(odd, 8), 0xca);
}

INLINE void unpack_group(const int bits, const uint8_t *d16, const uint8_t *p, const int g,
                         const int part, panel256 *u, heads *to)
{
    __m512i sc[16], pair[8];
    if (part <= 0) _mm512_store_ps(to->d + 16 * g, halves(d16));
    if (bits == 2) {
        if (part <= 0) _mm512_store_ps(to->dmin + 16 * g, halves(d16 + 32));
        scales_k2(p, sc, pair);
        for (int i = 0; i < 8 && part <= 0; i++) _mm512_store_si512(to->pair[g][i], pair[i]);
    } else {
        __m512i s[4];
        scale_bytes_k3(p, s);
        for (int i = 0; i < 4; i++) signed_scales(s[i], sc + 4 * i);
    }
    for (int i = 0; i < 16; i++) sc[i] = twice(sc[i]);
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
#pragma GCC unroll 8
        for (int s = 0; s < 8; s++) {
            __m512i x[4];
            unpack_times4(bits, p, h, s, x);
            for (int k = 0; k < 4; k++) {
                const int line = 32 * h + 8 * k + s;
                if (!in_part(part, line)) continue;
                const __m512i v = k % 2 ? _mm512_srli_epi16(x[k], 2) : x[k], c = sc[line / 4];
                _mm512_store_si512(u->w[line / 16][2 * g][line % 16],
                                   bits == 2 ? _mm512_mullo_epi16(v, c) : negative_k3(v, c));
            }
        }
    }
}

DEFINE_TILE(q2_k, 2, LEAST_K2)
DEFINE_TILE(q3_k, 3, LEAST_K3)
