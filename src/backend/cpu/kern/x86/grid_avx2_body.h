/* Tiles of the codebook and ternary types in AVX2's registers, once for the levels that dots_LEVEL.h is of: codes
   look their levels up in one register.

   Exactness, |q| ≤ 127: levels plus 16, 32 and 64 are at most 31, 63 and 107; |sum| ≤ 256·107·127·31 =
   107.9 M; the centring is undone at the end. */
#include "backend/cpu/kern/x86/tile256_avx2_body.h"

#include "backend/cpu/kern/body/linear_grid_body.h"
#include "backend/cpu/kern/x86/panel256_avx2_body.h"

/* 2s + 1 of nibbles s. */
INLINE __m256i odd(__m256i s)
{
    return _mm256_or_si256(_mm256_add_epi8(s, s), _mm256_set1_epi8(1));
}

/* 16 scales of 8 rows, 8 pairs of them. */
INLINE void scales(const int bits, const uint8_t *p, __m256i *sc, __m256i *pair)
{
    const int each = n_scale_line(bits) == 1 ? 2 : 1; /* runs of 16 */
    for (int j = 0; j < 16; j++) sc[j] = scale_one();
    for (int i = 0; i < n_scale_line(bits); i++) {
        const __m256i v = load(p + TILE_LINE * i);
        const __m256i lo = odd(low_nibbles(v)), hi = odd(high_nibbles(v));
        for (int j = 0; j < 8 * each; j++)
            sc[8 * i + j] = scale_of(j / each % 2 ? hi : lo, j / each / 2);
    }
    for (int j = 0; j < 8; j++) pair[j] = scale_pair(sc[2 * j], sc[2 * j + 1]);
}

INLINE __m256 grid_d(const int bits, const uint8_t *d16)
{
    return _mm256_mul_ps(halves(d16), _mm256_set1_ps(grid_unit(bits)));
}

/* Runs of 16 from word k on, eight words apart: those that four lines of codes hold. */
INLINE void add_runs(const int bits, const int half, const uint8_t *p, const int k,
                     const __m256i *sc, const a8_256 *a, const int n, __m256i *sum)
{
    __m256i dot[2][4];
    for (int t = 0; t < n; t++)
        for (int c = 0; c < n_word(bits); c++) dot[t][c] = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int s = 0; s < 4; s++) {
        const int line = k / (8 * n_word(bits)) * 8 + k % 8 + s;
        __m256i w[4];
        ahead(code_plane(bits, p) + TILE_LINE * line, half);
        unpack(bits, p, k + s, w);
        for (int t = 0; t < n; t++) {
            for (int c = 0; c < n_word(bits); c++) {
                const int at = k + 8 * c + s;
                dot[t][c] = part_add(dot[t][c], w[c], word(a[t].q + 4 * at));
                KEEP(dot[t][c]);
                if ((s + 1) % sum_lines(bits)) continue;
                sum[t] = add_part(bits, sum[t], dot[t][c], sc[at / 4]);
                KEEP(sum[t]);
                dot[t][c] = _mm256_setzero_si256();
            }
        }
    }
}

INLINE void direct_half(const int bits, const int half, const uint8_t *d16, const uint8_t *p,
                        const a8_256 *a, const int n, int32_t shift, float *y)
{
    __m256i sc[16], pair[8], sum[2];
    for (int i = 0; i < n_front_line(bits); i++) ahead(p + TILE_LINE * i, half);
    scales(bits, p, sc, pair);
    for (int t = 0; t < n; t++) sum[t] = _mm256_setzero_si256();
    const int n_run = 16 / n_word(bits);
#pragma GCC unroll 8
    for (int i = 0; i < n_run; i++)
        add_runs(bits, half, p, i / 2 * 8 * n_word(bits) + i % 2 * 4, sc, a, n, sum);
    for (int t = 0; t < n; t++)
        accumulate(bits, sum[t], pair, grid_d(bits, d16), _mm256_setzero_ps(), &a[t],
                   y + (t >> shift) * TILE_ROWS);
}

INLINE void unpack_half(const int bits, const uint8_t *d16, const uint8_t *p, const int half,
                        panel256 *u)
{
    __m256i(*w)[1] = (__m256i(*)[1])(void *)u->w[half];
    _mm256_store_ps(u->d + 8 * half, grid_d(bits, d16));
    scales(bits, p, (__m256i *)(void *)u->sc[half], (__m256i *)(void *)u->pair[half]);
    const int n_span = 8 / n_word(bits);
#pragma GCC unroll 4
    for (int span = 0; span < n_span; span++) {
#pragma GCC unroll 8
        for (int s = 0; s < 8; s++) {
            const int k = span * 8 * n_word(bits) + s;
            __m256i x[4];
            unpack(bits, p, k, x);
            for (int c = 0; c < n_word(bits); c++) w[k + 8 * c][0] = x[c];
        }
    }
}

DEFINE_TILE(LEVEL(tile_iq3_s), GRID_IQ3_S)
DEFINE_TILE(LEVEL(tile_iq3_xxs), GRID_IQ3_XXS)
DEFINE_TILE(LEVEL(tile_iq2_xxs), GRID_IQ2_XXS)
DEFINE_TILE(LEVEL(tile_iq2_s), GRID_IQ2_S)
DEFINE_TILE(LEVEL(tile_iq1_s), GRID_IQ1_S)
DEFINE_TILE(LEVEL(tile_iq1_m), GRID_IQ1_M)
DEFINE_TILE(LEVEL(tile_tq), GRID_TQ)
