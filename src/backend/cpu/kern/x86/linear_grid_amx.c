/* Tiles of the codebook and ternary types, AMX: levels times odd scales take two planes, those of TQ, which has
   no scales, one. */
#include "backend/cpu/kern/x86/linear_x86.h"
#include "backend/cpu/kern/x86/words_avx512.h"

#include "backend/cpu/kern/body/linear_tile256_form.h"

#include "backend/cpu/kern/body/linear_grid_body.h"

#include "backend/cpu/kern/x86/tile256_amx_body.h"

#include "backend/cpu/kern/x86/scales256_avx512.h"

enum { LEAST_WIDE = 10, LEAST_TQ = 5 /* fewer vectors cost less by vpdpbusd */ };

INLINE void unpack_group(const int bits, const uint8_t *d16, const uint8_t *p, const int g,
                         const int part, panel256 *u, heads *to)
{
    const int n = n_word(bits), log = centre_log(bits);
    __m512i sc[16];
    if (part <= 0) _mm512_store_ps(to->d + 16 * g, halves_times(d16, grid_unit(bits)));
    scales_grid(n_scale_line(bits), p, sc);
    for (int i = 0; i < 16; i++) sc[i] = twice(sc[i]);
    const int n_span = 8 / n;
#pragma GCC unroll 4
    for (int span = 0; span < n_span; span++) {
#pragma GCC unroll 8
        for (int s = 0; s < 8; s++) {
            const int k = span * 8 * n + s;
            __m512i x[4];
            unpack(bits, p, k, x);
            for (int c = 0; c < n; c++) {
                const int line = k + 8 * c;
                if (!in_part(part, line)) continue;
                if (n_plane(bits) == 1)
                    _mm512_store_si512(u->w[line / 16][2 * g][line % 16], sub8(x[c], 1 << log));
                else
                    store_wide(&u->w[line / 16][2 * g], line % 16, x[c], sc[line / 4],
                               (unsigned)log);
            }
        }
    }
}

DEFINE_TILE(iq3_s, GRID_IQ3_S, LEAST_WIDE)
DEFINE_TILE(iq3_xxs, GRID_IQ3_XXS, LEAST_WIDE)
DEFINE_TILE(iq2_xxs, GRID_IQ2_XXS, LEAST_WIDE)
DEFINE_TILE(iq2_s, GRID_IQ2_S, LEAST_WIDE)
DEFINE_TILE(iq1_s, GRID_IQ1_S, LEAST_WIDE)
DEFINE_TILE(iq1_m, GRID_IQ1_M, LEAST_WIDE)
DEFINE_TILE(tq, GRID_TQ, LEAST_TQ)
