/* Floats of 8 bits made f32, AVX-512: sixteen a step, by way of f16 as in AVX2.  An e4m3 moved to an f16's places is
   2^−8 of its value, which goes into the scale: exact, as long as that stays finite. */
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "backend/cpu/kern/x86/linear_x86.h"

#define INLINE static inline __attribute__((always_inline))

enum { E4M3, E5M2 };

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

INLINE void put16(const int type, __m128i b, __m512 s, float *y)
{
    _mm512_storeu_ps(y, _mm512_mul_ps(_mm512_cvtph_ps(to_f16(type, b)), s));
}

INLINE void widen(const int type, const uint8_t *w, int32_t n, float s, float *y)
{
    const __m512 vs = _mm512_set1_ps(type == E4M3 ? s * 256.0f : s);
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

void avx512_widen_e4m3(const uint8_t *w, int32_t n, float s, float *y)
{
    if (fabsf(s) > 0x1p119f)
        avx2_widen_e4m3(w, n, s, y);
    else
        widen(E4M3, w, n, s, y);
}

void avx512_widen_e5m2(const uint8_t *w, int32_t n, float s, float *y)
{
    widen(E5M2, w, n, s, y);
}
