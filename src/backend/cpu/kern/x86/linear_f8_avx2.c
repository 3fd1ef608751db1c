/* Floats of 8 bits made f32, AVX2. */
#include "backend/cpu/kern/x86/linear_x86.h"
#include "backend/cpu/kern/x86/words_avx2.h"

#include "backend/cpu/kern/body/widen_body.h"

INLINE __m256i to_f16(const int type, __m128i b)
{
    if (type == E5M2) return _mm256_slli_epi16(_mm256_cvtepu8_epi16(b), 8);
    const __m256i v = _mm256_slli_epi16(_mm256_cvtepi8_epi16(b), 7);
    const __m256i nan = _mm256_cmpeq_epi16(_mm256_and_si256(v, _mm256_set1_epi16(0x3f80)),
                                           _mm256_set1_epi16(0x3f80));
    const __m256i h = _mm256_and_si256(v, _mm256_set1_epi16((short)0xbfff));
    return _mm256_or_si256(h, _mm256_and_si256(nan, _mm256_set1_epi16(0x7e00)));
}

INLINE void put8(__m128i h, __m256 s, float *y)
{
    _mm256_storeu_ps(y, _mm256_mul_ps(_mm256_cvtph_ps(h), s));
}

INLINE void put16(const int type, const uint8_t *w, float s, float *y)
{
    const __m256i h = to_f16(type, _mm_loadu_si128((const __m128i *)(const void *)w));
    put8(_mm256_castsi256_si128(h), _mm256_set1_ps(s), y);
    put8(_mm256_extracti128_si256(h, 1), _mm256_set1_ps(s), y + 8);
}

DEFINE_WIDEN(avx2)
