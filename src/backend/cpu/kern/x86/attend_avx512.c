/* AVX-512: attention.  A tile of mm holds up to 8 vectors × 32 columns in 16 registers of sums, enough
   chains to hide the latency of both FMA pipes; a strip's 16 columns are one register. */
#include <string.h>

#include "backend/cpu/kern/kern_vec.h"
#include "backend/cpu/kern/x86/math_avx512.h"

#define INLINE static inline __attribute__((always_inline))

typedef __m512 v16;

INLINE v16 load16(kv_codec c, const uint8_t *p)
{
    if (c == KV_F32) return _mm512_loadu_ps(p);
    __m256i h = _mm256_loadu_si256((const __m256i *)(const void *)p);
    if (c == KV_F16) return _mm512_cvtph_ps(h);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

INLINE void store16(float *p, v16 x)
{
    _mm512_storeu_ps(p, x);
}

INLINE v16 set16(float x)
{
    return _mm512_set1_ps(x);
}

#define LANES_1(name, fn)                                                                          \
    INLINE v16 name(v16 a)                                                                         \
    {                                                                                              \
        return fn(a);                                                                              \
    }
#define LANES_2(name, fn)                                                                          \
    INLINE v16 name(v16 a, v16 b)                                                                  \
    {                                                                                              \
        return fn(a, b);                                                                           \
    }
LANES_2(add16, _mm512_add_ps)
LANES_2(sub16, _mm512_sub_ps)
LANES_2(mul16, _mm512_mul_ps)
LANES_2(div16, _mm512_div_ps)
LANES_2(max16, _mm512_max_ps)
LANES_1(exp_low16, exp_low_avx512)
LANES_1(tanh16, tanh_avx512)

/* No lane is NaN. */
INLINE float v16_max(v16 v)
{
    __m256 m8 = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
    m4 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
    return _mm_cvtss_f32(_mm_max_ss(m4, _mm_movehdup_ps(m4)));
}

INLINE float v16_tree(v16 a)
{
    return lane_tree_avx512(a);
}

enum { TILE_A = 8, TILE_FULL_T = 2 };
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
