/* Dense weights by lane16, AVX-512: the sixteen lanes are one register.  A block of 4 weight rows and 4
   activation rows shares every load.  The tail is masked: its missing lanes keep their sums. */
#include <immintrin.h>
#include <string.h>

#include "backend/cpu/kern/x86/linear_x86.h"

#define INLINE static inline __attribute__((always_inline))

enum { BLOCK_W = 4, BLOCK_X = 4 };

#include "backend/cpu/kern/body/linear_dense_body.h"

/* The lanes of mask m; nothing else is read. */
INLINE __m512 load16(const int type, const uint8_t *w, __mmask16 m)
{
    if (type == F32) return _mm512_maskz_loadu_ps(m, w);
    const __m256i h = _mm256_maskz_loadu_epi16(m, w);
    if (type == F16) return _mm512_cvtph_ps(h);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

/* The tree +8, +4, +2, +1. */
INLINE float tree16(__m512 v)
{
    const __m256 s8 = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_shuffle_ps(s2, s2, 1)));
}

INLINE void dense_step(const int type, const uint8_t *w, size_t w_stride, const int n_w,
                       const float *x, size_t x_stride, const int n_x, const __mmask16 m,
                       __m512 sum[BLOCK_W][BLOCK_X])
{
    __m512 in[BLOCK_X];
    for (int t = 0; t < n_x; t++) in[t] = _mm512_maskz_loadu_ps(m, x + (size_t)t * x_stride);
    for (int r = 0; r < n_w; r++) {
        const __m512 v = load16(type, w + (size_t)r * w_stride, m);
        if (n_x == 1) _mm_prefetch((const char *)w + (size_t)r * w_stride + 1024, _MM_HINT_T0);
        for (int t = 0; t < n_x; t++) sum[r][t] = _mm512_mask3_fmadd_ps(v, in[t], sum[r][t], m);
    }
}

INLINE void dense_block(const int type, const uint8_t *w, size_t w_stride, const int n_w,
                        const float *x, size_t x_stride, const int n_x, int32_t k, float *y,
                        size_t y_stride)
{
    const size_t whole = (size_t)k / 16 * 16, e = type == F32 ? 4 : 2;
    __m512 sum[BLOCK_W][BLOCK_X];
    for (int r = 0; r < n_w; r++) {
        for (int t = 0; t < n_x; t++) sum[r][t] = _mm512_setzero_ps();
    }
    for (size_t i = 0; i < whole; i += 16)
        dense_step(type, w + e * i, w_stride, n_w, x + i, x_stride, n_x, 0xffff, sum);
    if (whole < (size_t)k) {
        const __mmask16 tail = (__mmask16)((1u << ((size_t)k - whole)) - 1);
        dense_step(type, w + e * whole, w_stride, n_w, x + whole, x_stride, n_x, tail, sum);
    }
    for (int r = 0; r < n_w; r++) {
        for (int t = 0; t < n_x; t++) y[(size_t)t * y_stride + (size_t)r] = tree16(sum[r][t]);
    }
}

DEFINE_DENSE(avx512_dense_f32, F32)
DEFINE_DENSE(avx512_dense_f16, F16)
DEFINE_DENSE(avx512_dense_bf16, BF16)
