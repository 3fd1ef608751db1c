/* Activations to 8 bits, AVX2.  Eight values a step. */
#include <immintrin.h>
#include <string.h>

#include "backend/cpu/kern/x86/linear_x86.h"

#define INLINE static inline __attribute__((always_inline))

INLINE float max_bits(__m256i m)
{
    __m128i v = _mm_max_epu32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
    v = _mm_max_epu32(v, _mm_shuffle_epi32(v, 0x4e));
    v = _mm_max_epu32(v, _mm_shuffle_epi32(v, 0xb1));
    return _mm_cvtss_f32(_mm_castsi128_ps(v));
}

INLINE float abs_max(const float *x, size_t n)
{
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    __m256i m = _mm256_setzero_si256();
    for (size_t i = 0; i < n; i += 8) {
        const __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(x + i));
        m = _mm256_max_epu32(m, _mm256_and_si256(v, mask));
    }
    return max_bits(m);
}

INLINE void round32(const float *x, float inv, float d, int8_t *q, float *rest)
{
    const __m256 vi = _mm256_set1_ps(inv), vd = _mm256_set1_ps(d);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i r[4];
    for (size_t k = 0; k < 4; k++) {
        const __m256 v = _mm256_loadu_ps(x + 8 * k);
        r[k] = _mm256_cvtps_epi32(_mm256_mul_ps(v, vi));
        if (rest) _mm256_storeu_ps(rest + 8 * k, _mm256_fnmadd_ps(_mm256_cvtepi32_ps(r[k]), vd, v));
    }
    const __m256i lo = _mm256_packs_epi32(r[0], r[1]), hi = _mm256_packs_epi32(r[2], r[3]);
    const __m256i b = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(lo, hi), order);
    _mm256_storeu_si256((__m256i *)(void *)q, b);
}

/* Sums of each four bytes, as eight int32. */
INLINE __m256i sums4_of(const int8_t *q)
{
    const __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)q);
    return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), v), _mm256_set1_epi16(1));
}

INLINE void sums4(const int8_t *q, int32_t *out)
{
    _mm256_storeu_si256((__m256i *)(void *)out, sums4_of(q));
}

INLINE void sums16(const int8_t *q, int32_t *lo, int32_t *hi)
{
    const __m256i v = sums4_of(q);
    const __m256i pairs = _mm256_hadd_epi32(v, v); /* a half of the group in each 128 bits */
    const __m256i halves = _mm256_hadd_epi32(pairs, pairs);
    *lo = _mm256_extract_epi32(halves, 0), *hi = _mm256_extract_epi32(halves, 4);
}

#include "backend/cpu/kern/body/linear_quant_body.h"

DEFINE_QUANT(avx2_quant32, a8_32, 32, finish32)
DEFINE_QUANT(avx2_quant256, a8_256, 256, finish256)
