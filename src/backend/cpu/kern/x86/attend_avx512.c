/* AVX-512: attention.  A tile of mm holds up to 8 vectors × 32 columns in 16 registers of sums, enough
   chains to hide the latency of both FMA pipes; a strip's 16 columns are one register. */
#include <string.h>

#include "backend/cpu/kern/kern_vec.h"
#include "backend/cpu/kern/x86/lanes_avx512.h"
#include "backend/cpu/kern/x86/math_body.h"

INLINE v16 load16(kv_codec c, const uint8_t *p)
{
    if (c == KV_F32) return _mm512_loadu_ps(p);
    __m256i h = _mm256_loadu_si256((const __m256i *)(const void *)p);
    if (c == KV_F16) return _mm512_cvtph_ps(h);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

enum { TILE_A = 8, TILE_FULL_T = 2, EXP_EACH = 4 };
/* Widening takes the ports of the multiply-adds: 4 of 20 operations of an 8 × 32 tile. */
enum { MM_DIRECT = 12 };
#define TILE_SHAPES(X) X(1, 4) X(2, 4) X(3, 4) X(4, 4) X(5, 2) X(6, 2) X(7, 2) X(8, 2)

#include "backend/cpu/kern/x86/attend_body.h"

/* n_a ≤ TILE_A vectors × n_t ≤ TILE_T strips, both known where it is inlined. */
INLINE void tile(const kern_mm *j, kv_codec codec, const int n_a, const int n_t, size_t i, size_t t,
                 ahead *f)
{
    const size_t e = elem(codec), row = j->row * e, strip = j->strip * e;
    const uint8_t *b = (const uint8_t *)j->b + t * strip;
    const float *a = j->a + i * j->lda;
    const size_t n = (size_t)j->n;
    float *c = j->c + i * j->ldc + t * 16;
    __m512 acc[TILE_A][TILE_T];
#pragma GCC unroll 8
    for (int r = 0; r < n_a; r++)
#pragma GCC unroll 4
        for (int s = 0; s < n_t; s++)
            acc[r][s] =
                j->add ? _mm512_loadu_ps(c + (size_t)r * j->ldc + 16 * s) : _mm512_setzero_ps();
    for (size_t k = 0; k < n; k++, b += row) {
        __m512 v[TILE_T];
#pragma GCC unroll 4
        for (int s = 0; s < n_t; s++) v[s] = load16(codec, b + (size_t)s * strip);
#pragma GCC unroll 8
        for (int r = 0; r < n_a; r++) {
            __m512 x = _mm512_set1_ps(a[(size_t)r * j->lda + k]);
#pragma GCC unroll 4
            for (int s = 0; s < n_t; s++) acc[r][s] = _mm512_fmadd_ps(x, v[s], acc[r][s]);
        }
        fetch_ahead(f, n_t, k);
    }
#pragma GCC unroll 8
    for (int r = 0; r < n_a; r++)
#pragma GCC unroll 4
        for (int s = 0; s < n_t; s++) _mm512_storeu_ps(c + (size_t)r * j->ldc + 16 * s, acc[r][s]);
}

/* Encoding stays AVX2's: a step has few new positions. */
void kern_attend_avx512(kern_vec *v)
{
    attend_install(v);
}
