/* Tiles of IQ4_XS, AVX2: levels of 8 bits that nibbles stand for, signed scales of 6 bits.

   Exactness, |q| ≤ 127 and |level| ≤ 127: vpmaddubsw of |w| and q with w's sign gives pairs of at most
   2·127·127 = 32,258, which vpmaddwd takes to 32 bits with the scale at once.  In the panel a weight and
   its scale are one 16-bit number, |·| ≤ 127·32 = 4,064; |sum| ≤ 256·4,064·127 = 132.2 M. */
#include "backend/cpu/kern/x86/dots_avx2.h" /* IWYU pragma: keep */
#include "backend/cpu/kern/x86/linear_x86.h"
#include "backend/cpu/kern/x86/words_avx2.h"

#include "backend/cpu/kern/x86/iq4xs_avx2_body.h"

#include "backend/cpu/kern/body/linear_tile256_form.h"

/* One block, half by half of 8 rows: weights times scales, in lines of 2. */
struct panel256 {
    int16_t w[N_HALF][2 * N_LINE][16];
    float d[TILE_ROWS];
};
_Static_assert(sizeof(panel256) <= TILE_PANEL, "panel");

INLINE void accumulate_iq4(__m256i i, __m256 d, const a8_256 *a, float *y)
{
    const __m256 t = _mm256_mul_ps(d, _mm256_cvtepi32_ps(i));
    _mm256_store_ps(y, _mm256_fmadd_ps(t, _mm256_broadcast_ss(&a->d), _mm256_load_ps(y)));
}

INLINE void direct_half(const int bits, const int half, const uint8_t *d16, const uint8_t *p,
                        const a8_256 *a, const int n, int32_t shift, float *y)
{
    __m256i sc[8], sum[2];
    (void)bits;
    for (int i = 0; i < 2; i++) ahead(p + TILE_LINE * i, half);
    scales(d16 + 32, p, sc);
    for (int t = 0; t < n; t++) sum[t] = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
#pragma GCC unroll 4
        for (int s = 0; s < 4; s++) {
            __m256i lo, hi;
            ahead(p + TILE_LINE * (2 + 4 * j + s), half);
            unpack(p, 4 * j + s, 0, &lo, &hi);
            add_signed(lo, sc[j], a->q + 32 * j + 4 * s, sizeof *a, n, sum);
            add_signed(hi, sc[j], a->q + 32 * j + 16 + 4 * s, sizeof *a, n, sum);
        }
    }
    for (int t = 0; t < n; t++)
        accumulate_iq4(sum[t], halves(d16), &a[t], y + (t >> shift) * TILE_ROWS);
}

/* Words of weights times their scale, 16 bits each. */
INLINE void widen_scaled(__m256i v, __m256i sc, __m256i *w)
{
    widen_high(v, w);
    for (int i = 0; i < 2; i++) w[i] = _mm256_mullo_epi16(_mm256_srai_epi16(w[i], 8), sc);
}

INLINE void unpack_half(const int bits, const uint8_t *d16, const uint8_t *p, const int half,
                        panel256 *u)
{
    __m256i *w = (__m256i *)(void *)u->w[half], sc[8];
    (void)bits;
    _mm256_store_ps(u->d + 8 * half, halves(d16));
    scales(d16 + 32, p, sc);
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++, w += 16) {
        for (int s = 0; s < 4; s++) {
            __m256i lo, hi;
            unpack(p, 4 * j + s, 0, &lo, &hi);
            widen_scaled(lo, sc[j], w + 2 * s);
            widen_scaled(hi, sc[j], w + 8 + 2 * s);
        }
    }
}

INLINE int panel_step(const int bits)
{
    (void)bits;
    return MAX_STEP;
}

INLINE void panel_group(const int bits, const panel256 *u, const int g, const int16_t *q,
                        const a8_256 *a, const int n, int32_t v, int32_t shift, float *y)
{
    __m256i i0[MAX_STEP], i1[MAX_STEP];
    (void)bits;
    wide_dots(u->w[2 * g], u->w[2 * g + 1], 2 * N_LINE, q, 256, n, i0, i1);
    for (int t = 0; t < n; t++) {
        float *out = y + ((v + t) >> shift) * TILE_ROWS + 16 * g;
        accumulate_iq4(i0[t], _mm256_load_ps(u->d + 16 * g), &a[t], out);
        accumulate_iq4(i1[t], _mm256_load_ps(u->d + 16 * g + 8), &a[t], out + 8);
    }
}

INLINE void panel_vecs(const int bits, const panel256 *u, const a8_256 *a, const int n, int32_t v,
                       int32_t shift, float *y)
{
    int16_t q[MAX_STEP][256] __attribute__((aligned(32)));
    for (int t = 0; t < n; t++) widen_vec(a[t].q, 256, q[t]);
    panel_group(bits, u, 0, q[0], a, n, v, shift, y);
    panel_group(bits, u, 1, q[0], a, n, v, shift, y);
}

DEFINE_TILE(avx2_tile_iq4_xs, BITS_IQ4)
