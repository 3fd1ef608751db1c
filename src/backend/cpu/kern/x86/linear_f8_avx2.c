/* Floats of 8 bits made f32, AVX2: sixteen a step, by way of f16, whose conversion takes denormals as they
   are.  An e4m3 moved to an f16's places is 2^−8 of its value, which goes into the scale: exact, as long as that stays
   finite. */
#include <math.h>

#include "backend/cpu/kern/ref/linear_ref.h"
#include "backend/cpu/kern/x86/linear_x86.h"
#include "backend/cpu/kern/x86/words_avx2.h"

enum { E4M3, E5M2 };

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

INLINE void put16(const int type, __m128i b, __m256 s, float *y)
{
    const __m256i h = to_f16(type, b);
    put8(_mm256_castsi256_si128(h), s, y);
    put8(_mm256_extracti128_si256(h, 1), s, y + 8);
}

INLINE void widen(const int type, const uint8_t *w, int32_t n, float s, float *y)
{
    const __m256 vs = _mm256_set1_ps(type == E4M3 ? s * 256.0f : s);
    int32_t i = 0;
    for (; i + 16 <= n; i += 16) {
        _mm_prefetch((const char *)w + i + 1024, _MM_HINT_T0);
        put16(type, _mm_loadu_si128((const __m128i *)(const void *)(w + i)), vs, y + i);
    }
    if (i == n) return;
    uint8_t last[16] = {0};
    float out[16];
    memcpy(last, w + i, (size_t)(n - i));
    put16(type, _mm_loadu_si128((const __m128i *)(const void *)last), vs, out);
    memcpy(y + i, out, (size_t)(n - i) * sizeof *y);
}

void avx2_widen_e4m3(const uint8_t *w, int32_t n, float s, float *y)
{
    if (fabsf(s) > 0x1p119f)
        ref_widen_e4m3(w, n, s, y);
    else
        widen(E4M3, w, n, s, y);
}

void avx2_widen_e5m2(const uint8_t *w, int32_t n, float s, float *y)
{
    widen(E5M2, w, n, s, y);
}
