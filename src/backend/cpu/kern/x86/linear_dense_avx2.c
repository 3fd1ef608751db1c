/* Dense weights by lane16, AVX2: the sixteen lanes are two registers.  A block of 2 weight rows and 3
   activation rows shares every load: 12 accumulators of 16 registers. */
#include <immintrin.h>
#include <string.h>

#include "backend/cpu/kern/x86/linear_x86.h"

#define INLINE static inline __attribute__((always_inline))

enum { BLOCK_W = 2, BLOCK_X = 3 };

#include "backend/cpu/kern/x86/linear_dense_body.h"

INLINE size_t width(const int type)
{
    return type == F32 ? 4 : 2;
}

INLINE __m256 load8(const int type, const uint8_t *w)
{
    if (type == F32) {
        return _mm256_castsi256_ps(_mm256_loadu_si256((const __m256i *)(const void *)w));
    }
    const __m128i h = _mm_loadu_si128((const __m128i *)(const void *)w);
    if (type == F16) return _mm256_cvtph_ps(h);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

INLINE float load1(const int type, const uint8_t *w)
{
    uint32_t u = 0;
    float f;
    memcpy(&u, w, width(type));
    if (type == F16) return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128((int)u)));
    if (type == BF16) u <<= 16;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* The tree +8, +4, +2, +1 of lanes 0 … 7 in a, 8 … 15 in b. */
INLINE float tree16(__m256 a, __m256 b)
{
    const __m256 s8 = _mm256_add_ps(a, b);
    const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_shuffle_ps(s2, s2, 1)));
}

INLINE void dense_block(const int type, const uint8_t *w, size_t w_stride, const int n_w,
                        const float *x, size_t x_stride, const int n_x, int32_t k, float *y,
                        size_t y_stride)
{
    const size_t whole = (size_t)k / 16 * 16, e = width(type);
    __m256 a[BLOCK_W][BLOCK_X], b[BLOCK_W][BLOCK_X];
    for (int r = 0; r < n_w; r++) {
        for (int t = 0; t < n_x; t++) a[r][t] = b[r][t] = _mm256_setzero_ps();
    }
    for (size_t i = 0; i < whole; i += 16) {
        __m256 x0[BLOCK_X], x1[BLOCK_X];
        for (int t = 0; t < n_x; t++) {
            x0[t] = _mm256_loadu_ps(x + (size_t)t * x_stride + i);
            x1[t] = _mm256_loadu_ps(x + (size_t)t * x_stride + i + 8);
        }
        for (int r = 0; r < n_w; r++) {
            const uint8_t *p = w + (size_t)r * w_stride + e * i;
            const __m256 w0 = load8(type, p), w1 = load8(type, p + 8 * e);
            if (n_x == 1) _mm_prefetch((const char *)p + 1024, _MM_HINT_T0);
            for (int t = 0; t < n_x; t++) {
                a[r][t] = _mm256_fmadd_ps(w0, x0[t], a[r][t]);
                b[r][t] = _mm256_fmadd_ps(w1, x1[t], b[r][t]);
            }
        }
    }
    for (int r = 0; r < n_w; r++) {
        for (int t = 0; t < n_x; t++) {
            if (whole < (size_t)k) {
                float lane[16];
                _mm256_storeu_ps(lane, a[r][t]);
                _mm256_storeu_ps(lane + 8, b[r][t]);
                for (size_t i = whole; i < (size_t)k; i++)
                    lane[i - whole] = __builtin_fmaf(load1(type, w + (size_t)r * w_stride + e * i),
                                                     x[(size_t)t * x_stride + i], lane[i - whole]);
                a[r][t] = _mm256_loadu_ps(lane);
                b[r][t] = _mm256_loadu_ps(lane + 8);
            }
            y[(size_t)t * y_stride + (size_t)r] = tree16(a[r][t], b[r][t]);
        }
    }
}

DEFINE_DENSE(avx2_dense_f32, F32)
DEFINE_DENSE(avx2_dense_f16, F16)
DEFINE_DENSE(avx2_dense_bf16, BF16)
