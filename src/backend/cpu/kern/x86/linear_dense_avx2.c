/* Dense weights by lane16, AVX2: the sixteen lanes are two registers.  A block of 2 weight rows and 3
   activation rows shares every load: 12 accumulators of 16 registers. */
#include <string.h>

#include "backend/cpu/kern/x86/lanes_avx2.h"
#include "backend/cpu/kern/x86/linear_x86.h"

enum { BLOCK_W = 2, BLOCK_X = 3 };

#include "backend/cpu/kern/body/linear_dense_body.h"

INLINE __m256 load8(const int type, const uint8_t *w)
{
    if (type == F32) {
        return _mm256_castsi256_ps(_mm256_loadu_si256((const __m256i *)(const void *)w));
    }
    const __m128i h = _mm_loadu_si128((const __m128i *)(const void *)w);
    if (type == F16) return _mm256_cvtph_ps(h);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

INLINE v16 load16(const int type, const uint8_t *w)
{
    return (v16){load8(type, w), load8(type, w + (type == F32 ? 32 : 16))};
}

#include "backend/cpu/kern/body/linear_dense_lanes_body.h"

DEFINE_DENSE(avx2_dense_f32, F32)
DEFINE_DENSE(avx2_dense_f16, F16)
DEFINE_DENSE(avx2_dense_bf16, BF16)
