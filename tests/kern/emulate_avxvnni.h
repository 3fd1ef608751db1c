/* The instructions of AVX-VNNI in AVX2, so that machines without them test these kernels too, bit for bit.
   Include before the kernel's source. */
#ifndef TESTS_EMULATE_AVXVNNI_H
#define TESTS_EMULATE_AVXVNNI_H

#include <immintrin.h>

/* c += unsigned bytes of a times signed bytes of b, four a lane: the even ones, then the odd. */
static inline __attribute__((unused)) __m256i emu256_dpbusd(__m256i c, __m256i a, __m256i b)
{
    const __m256i a0 = _mm256_and_si256(a, _mm256_set1_epi16(0xff)), a1 = _mm256_srli_epi16(a, 8);
    const __m256i b0 = _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8), b1 = _mm256_srai_epi16(b, 8);
    c = _mm256_add_epi32(c, _mm256_madd_epi16(a0, b0));
    return _mm256_add_epi32(c, _mm256_madd_epi16(a1, b1));
}
/* Likewise signed numbers of 16 bits, two a lane. */
static inline __attribute__((unused)) __m256i emu256_dpwssd(__m256i c, __m256i a, __m256i b)
{
    return _mm256_add_epi32(c, _mm256_madd_epi16(a, b));
}

#undef _mm256_dpbusd_avx_epi32
#undef _mm256_dpwssd_avx_epi32

#define _mm256_dpbusd_avx_epi32 emu256_dpbusd
#define _mm256_dpwssd_avx_epi32 emu256_dpwssd

#endif
