/* Tiles of Q4_K, Q5_K and Q6_K, AMX. */
#include "backend/cpu/kern/x86/linear_x86.h"
#include "backend/cpu/kern/x86/words_avx512.h"

#include "backend/cpu/kern/body/linear_tile256_form.h"

#include "backend/cpu/kern/x86/tile256_amx_body.h"

enum {
    /* Fewer vectors cost less by vpdpbusd. */
    LEAST_K45 = 8,
    LEAST_K6 = 14, /* its planes take longest to make */
};

/* Word s of both planes of 64 weights: bytes times at most 7 stay bytes, so one multiplication of 16 bits
   makes two products. */
INLINE void store_k45(uint8_t (*w)[16][TILE_LINE], int s, __m512i v, __m512i sc)
{
    _mm512_store_si512(w[0][s], _mm512_mullo_epi16(v, _mm512_and_si512(sc, _mm512_set1_epi16(7))));
    _mm512_store_si512(w[1][s], _mm512_mullo_epi16(v, _mm512_srli_epi16(sc, 3)));
}

INLINE void unpack_group_k45(const int bits, const uint8_t *p, const int g, const int part,
                             panel256 *u, heads *to)
{
    const uint8_t *high = p + 4 * TILE_LINE, *low = high + (bits == 5 ? 8 * TILE_LINE : 0);
    __m512i sc[8], pair[8];
    scales_k45(p + TILE_LINE, sc, pair);
    for (int i = 0; i < 8; i++) sc[i] = twice(sc[i]);
    if (part <= 0) {
        for (int i = 0; i < 4; i++) _mm512_store_si512(to->pair[g][i], pair[i]);
        _mm512_store_ps(to->d + 16 * g, halves(p));
        _mm512_store_ps(to->dmin + 16 * g, halves(p + 32));
    }
#pragma GCC unroll 4
    for (int pr = 0; pr < N_K; pr++) {
        if (!in_part(part, 16 * pr)) continue;
        for (int s = 0; s < 8; s++) {
            __m512i lo, hi, fifth = _mm512_setzero_si512();
            if (bits == 5) fifth = load(high + TILE_LINE * s);
            unpack_k45(bits, load(low + TILE_LINE * (8 * pr + s)), fifth, pr, &lo, &hi);
            store_k45(&u->w[pr][2 * g], s, lo, sc[2 * pr]);
            store_k45(&u->w[pr][2 * g], 8 + s, hi, sc[2 * pr + 1]);
        }
    }
}

/* d16: d of the group's rows. */
INLINE void unpack_group_k6(const uint8_t *d16, const uint8_t *p, const int g, const int part,
                            panel256 *u, heads *to)
{
    __m512i sc[16];
    scales_k6(p, sc);
    for (int i = 0; i < 16; i++) sc[i] = twice(sc[i]);
    if (part <= 0) _mm512_store_ps(to->d + 16 * g, halves(d16));
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        if (!in_part(part, 32 * h) && !in_part(part, 32 * h + 16)) continue;
#pragma GCC unroll 8
        for (int s = 0; s < 8; s++) {
            __m512i x[4];
            unpack_k6(p + TILE_LINE * (4 + 3 * (8 * h + s)), x);
            for (int k = 0; k < 4; k++) {
                const int line = 32 * h + 8 * k + s;
                if (!in_part(part, line)) continue;
                store_wide(&u->w[line / 16][2 * g], line % 16, x[k], sc[line / 4], 5);
            }
        }
    }
}

INLINE void unpack_group(const int bits, const uint8_t *d16, const uint8_t *p, const int g,
                         const int part, panel256 *u, heads *to)
{
    if (bits == 6)
        unpack_group_k6(d16, p, g, part, u, to);
    else
        unpack_group_k45(bits, p, g, part, u, to);
}

DEFINE_TILE(q4_k, 4, LEAST_K45)
DEFINE_TILE(q5_k, 5, LEAST_K45)
DEFINE_TILE(q6_k, 6, LEAST_K6)
