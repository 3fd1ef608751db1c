/* AVX-512: products with the coded kinds of a cache.  Making and opening codes stays AVX2's: a step has few new
   positions, and opening once serves many vectors. */
#include <immintrin.h>
#include <string.h>

#include "backend/cpu/kern/kern_vec.h"
#include "backend/cpu/kern/x86/lanes_avx512.h"

INLINE v16 codes16(__m128i c)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(c));
}

INLINE v16 numbers16(const uint8_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

#include "backend/cpu/kern/x86/code_body.h"

void kern_code_avx512(kern_vec *v)
{
    install_products(v);
}
