/* Tiles of the codebook and ternary types, AVX-512 VNNI: codes look their levels up in one register.  Dots
   of 16 weights, less their centre, fit 16 bits where levels are at most 15 (15·127·16 = 30,480), dots of 8
   where they are at most 31 (31,496); IQ2's, of 43, pay a vpmulld. */
#include "backend/cpu/kern/x86/linear_x86.h"
#include "backend/cpu/kern/x86/tile256_avx512vnni_body.h"

#include "backend/cpu/kern/body/linear_grid_body.h"

#include "backend/cpu/kern/x86/scales256_avx512.h"

/* Runs of 16 from word k on, eight words apart: those that four lines of codes hold. */
INLINE void add_runs(const int bits, const uint8_t *p, const int k, const __m512i *sc,
                     const a8_256 *a, const int n, __m512i *sum)
{
    __m512i dot[DIRECT_VEC][4];
#pragma GCC unroll 4
    for (int s = 0; s < 4; s++) {
        const int line = k / (8 * n_word(bits)) * 8 + k % 8 + s;
        __m512i w[4];
        prefetch(code_plane(bits, p) + TILE_LINE * line);
        unpack(bits, p, k + s, w);
        for (int t = 0; t < n; t++) {
            for (int c = 0; c < n_word(bits); c++) {
                const int at = k + 8 * c + s;
                if (s % dot_lines(bits) == 0) dot[t][c] = start(bits, &a[t], at);
                dot[t][c] = _mm512_dpbusd_epi32(dot[t][c], w[c], word(a[t].q + 4 * at));
                if ((s + 1) % dot_lines(bits)) continue;
                sum[t] = add_scaled(bits, sum[t], sc[at / 4], dot[t][c]);
            }
        }
    }
}

INLINE void direct_group(const int bits, const uint8_t *d16, const uint8_t *p, const a8_256 *a,
                         const int n, int32_t shift, float *y)
{
    __m512i sc[16], sum[DIRECT_VEC];
    for (int i = 0; i < n_front_line(bits); i++) prefetch(p + TILE_LINE * i);
    scales_grid(n_scale_line(bits), p, sc);
    for (int t = 0; t < n; t++) sum[t] = _mm512_setzero_si512();
    const int n_run = 16 / n_word(bits);
#pragma GCC unroll 8
    for (int i = 0; i < n_run; i++)
        add_runs(bits, p, i / 2 * 8 * n_word(bits) + i % 2 * 4, sc, a, n, sum);
    for (int t = 0; t < n; t++)
        accumulate(bits, sum[t], sc, halves_times(d16, grid_unit(bits)), _mm512_setzero_ps(), &a[t],
                   y + (t >> shift) * TILE_ROWS);
}

INLINE void unpack_group(const int bits, const uint8_t *d16, const uint8_t *p, const int g,
                         panel256 *u)
{
    __m512i sc[16];
    _mm512_store_ps(u->d + 16 * g, halves_times(d16, grid_unit(bits)));
    scales_grid(n_scale_line(bits), p, sc);
    for (int i = 0; i < 16; i++) _mm512_store_si512(u->sc[g][i], sc[i]);
    const int n_span = 8 / n_word(bits);
#pragma GCC unroll 4
    for (int span = 0; span < n_span; span++) {
#pragma GCC unroll 8
        for (int s = 0; s < 8; s++) {
            const int k = span * 8 * n_word(bits) + s;
            __m512i x[4];
            unpack(bits, p, k, x);
            for (int c = 0; c < n_word(bits); c++) _mm512_store_si512(u->w[g][k + 8 * c], x[c]);
        }
    }
}

DEFINE_TILE(vnni_tile_iq3_s, GRID_IQ3_S)
DEFINE_TILE(vnni_tile_iq3_xxs, GRID_IQ3_XXS)
DEFINE_TILE(vnni_tile_iq2_xxs, GRID_IQ2_XXS)
DEFINE_TILE(vnni_tile_iq2_s, GRID_IQ2_S)
DEFINE_TILE(vnni_tile_iq1_s, GRID_IQ1_S)
DEFINE_TILE(vnni_tile_iq1_m, GRID_IQ1_M)
DEFINE_TILE(vnni_tile_tq, GRID_TQ)
