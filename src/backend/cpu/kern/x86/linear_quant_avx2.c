/* Activations to 8 bits, AVX2.  Eight values a step; the group's largest magnitude by integer maxima of
   the bits, as the reference does, so that NaN and infinity come out on top. */
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

/* Writes q and, if `rest` is given, what is left of x (it may be x). */
INLINE float quant_group(const float *x, size_t n, int8_t *q, float *rest)
{
    const float amax = abs_max(x, n);
    if (!(amax >= 0x1p-120f && amax < __builtin_inff())) {
        memset(q, 0, n);
        if (rest && rest != x) memcpy(rest, x, n * sizeof *x);
        if (amax < 0x1p-120f) return 0.0f;
        if (rest) memset(rest, 0, n * sizeof *x);
        return __builtin_nanf("");
    }
    const float d = amax / 127.0f, inv = 127.0f / amax;
    const __m256 vi = _mm256_set1_ps(inv), vd = _mm256_set1_ps(d);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (size_t i = 0; i < n; i += 32) {
        __m256i r[4];
        for (size_t k = 0; k < 4; k++) {
            const __m256 v = _mm256_loadu_ps(x + i + 8 * k);
            r[k] = _mm256_cvtps_epi32(_mm256_mul_ps(v, vi));
            /* |x·inv| ≤ 127·(1 + 2^-22): it never rounds past 127. */
            if (rest)
                _mm256_storeu_ps(rest + i + 8 * k,
                                 _mm256_fnmadd_ps(_mm256_cvtepi32_ps(r[k]), vd, v));
        }
        const __m256i lo = _mm256_packs_epi32(r[0], r[1]), hi = _mm256_packs_epi32(r[2], r[3]);
        const __m256i b = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(lo, hi), order);
        _mm256_storeu_si256((__m256i *)(void *)(q + i), b);
    }
    return d;
}

/* Sums of each four bytes, as eight int32. */
INLINE __m256i sums4(const int8_t *q)
{
    const __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)q);
    return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), v), _mm256_set1_epi16(1));
}

INLINE void finish32(a8_32 *a, float d)
{
    const __m256i v = sums4(a->q);
    const __m256i pairs = _mm256_hadd_epi32(v, v); /* a half of the group in each 128 bits */
    const __m256i halves = _mm256_hadd_epi32(pairs, pairs);
    const int32_t lo = _mm256_extract_epi32(halves, 0), hi = _mm256_extract_epi32(halves, 4);
    const int32_t sum = lo + hi;
    a->d = d;
    a->s = d * (float)sum;
    a->n8 = -8 * sum;
    a->n16 = -16 * sum;
    a->n128 = -128 * sum;
    a->n32_16[0] = -32 * lo, a->n32_16[1] = -32 * hi;
    a->s16[0] = (int16_t)lo, a->s16[1] = (int16_t)hi;
}

INLINE void finish256(a8_256 *a, float d)
{
    static const uint8_t order[8] = {0, 2, 1, 3, 4, 6, 5, 7};
    int32_t s8[32], s32[8];
    a->d = d;
    for (int i = 0; i < 8; i++) {
        int32_t s4[8];
        _mm256_storeu_si256((__m256i *)(void *)s4, sums4(a->q + 32 * i));
        for (int k = 0; k < 4; k++) s8[4 * i + k] = s4[2 * k] + s4[2 * k + 1];
    }
    for (int i = 0; i < 32; i++) a->n8[i] = -32 * s8[i];
    for (int i = 0; i < 16; i++) {
        const int32_t s = s8[2 * i] + s8[2 * i + 1];
        a->s16[i] = (int16_t)s;
        a->n16[i] = -16 * s;
    }
    for (int i = 0; i < 8; i++) {
        s32[i] = a->s16[2 * i] + a->s16[2 * i + 1];
        a->n32[i] = -8 * s32[i];
    }
    for (int i = 0; i < 8; i++) a->s32[i] = (int16_t)s32[order[i]];
    memset(a->pad, 0, sizeof a->pad);
}

void avx2_quant32(const float *x, int32_t n_block, int32_t terms, a8_32 *out, size_t stride)
{
    for (int32_t b = 0; b < n_block; b++, x += 32) {
        a8_32 *a = (a8_32 *)(void *)((uint8_t *)out + (size_t)b * stride);
        float rest[32];
        finish32(a, quant_group(x, 32, a->q, terms > 1 ? rest : NULL));
        for (int32_t i = 1; i < terms; i++)
            finish32(&a[i], quant_group(rest, 32, a[i].q, i + 1 < terms ? rest : NULL));
    }
}

void avx2_quant256(const float *x, int32_t n_block, int32_t terms, a8_256 *out, size_t stride)
{
    for (int32_t b = 0; b < n_block; b++, x += 256) {
        a8_256 *a = (a8_256 *)(void *)((uint8_t *)out + (size_t)b * stride);
        float rest[256];
        finish256(a, quant_group(x, 256, a->q, terms > 1 ? rest : NULL));
        for (int32_t i = 1; i < terms; i++)
            finish256(&a[i], quant_group(rest, 256, a[i].q, i + 1 < terms ? rest : NULL));
    }
}
