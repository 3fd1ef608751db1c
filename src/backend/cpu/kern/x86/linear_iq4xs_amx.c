/* Tiles of IQ4_XS, AMX: levels of 8 bits times signed scales of 6 bits take two planes. */
#include "backend/cpu/kern/x86/linear_x86.h"
#include "backend/cpu/kern/x86/words_avx512.h"

#include "backend/cpu/kern/body/linear_iq4xs_body.h"

#include "backend/cpu/kern/body/linear_tile256_form.h"

#include "backend/cpu/kern/x86/tile256_amx_body.h"

#include "backend/cpu/kern/x86/scales256_avx512.h"

enum { LEAST = 14 /* fewer vectors cost less by vpdpbusd */ };

INLINE void unpack_group(const int bits, const uint8_t *d16, const uint8_t *p, const int g,
                         const int part, panel256 *u, heads *to)
{
    __m512i sc[8];
    if (part <= 0) _mm512_store_ps(to->d + 16 * g, halves(d16));
    scales_iq4xs(p, sc);
    for (int i = 0; i < 8; i++) sc[i] = twice(_mm512_and_si512(sc[i], _mm512_set1_epi32(0xffff)));
#pragma GCC unroll 8
    for (int i = 0; i < 32; i++) { /* line s of sub-block i / 4, s = i % 4 */
        const int at = i / 4 * 8 + i % 4;
        __m512i lo, hi;
        if (!in_part(part, at)) continue;
        unpack(p, i, 1 << centre_log(bits), &lo, &hi);
        store_wide(&u->w[at / 16][2 * g], at % 16, lo, sc[i / 4], (unsigned)centre_log(bits));
        store_wide(&u->w[at / 16][2 * g], at % 16 + 4, hi, sc[i / 4], (unsigned)centre_log(bits));
    }
}

DEFINE_TILE(iq4_xs, BITS_IQ4, LEAST)
