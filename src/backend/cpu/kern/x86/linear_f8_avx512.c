/* Floats of 8 bits made f32, AVX-512. */
#include <immintrin.h>

#include "backend/cpu/kern/x86/linear_x86.h"

#define INLINE static inline __attribute__((always_inline))

#include "backend/cpu/kern/body/widen_body.h"

INLINE __m256i to_f16(const int type, __m128i b)
{
    if (type == E5M2) return _mm256_slli_epi16(_mm256_cvtepu8_epi16(b), 8);
    /* Bits 15 and 14 are the sign.  f16's exponent wants bit 14 set for a NaN and else clear: adding one to the last
       place turns it for a NaN alone, whose other bits are all set. */
    const __m256i v = _mm256_slli_epi16(_mm256_cvtepi8_epi16(b), 7);
    const __m256i sum = _mm256_add_epi16(v, _mm256_set1_epi16(0x80));
    return _mm256_ternarylogic_epi32(v, sum, _mm256_set1_epi16(0x4000),
                                     0x78); /* v ^ sum there, else v */
}

INLINE void put16(const int type, const uint8_t *w, float s, float *y)
{
    const __m256i h = to_f16(type, _mm_loadu_si128((const __m128i *)(const void *)w));
    _mm512_storeu_ps(y, _mm512_mul_ps(_mm512_cvtph_ps(h), _mm512_set1_ps(s)));
}

DEFINE_WIDEN(avx512)
