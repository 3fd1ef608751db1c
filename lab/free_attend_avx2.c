/* Decode attention in one pass: of 128 positions at a time the scores, then their weights under the maximum so
   far, then their values; sums are rescaled when the maximum rises. */
#include <immintrin.h>
#include <math.h>

#include "free.h"

#define INLINE static inline __attribute__((always_inline))
enum { STEP = 128, TILE = 16, LANES = 8, AHEAD = 4096 };

INLINE __m256 load_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
/* 2^x of x ≤ 0, to 2e-7 of 1. */
INLINE __m256 exp2_low(__m256 x)
{
    x = _mm256_max_ps(x, _mm256_set1_ps(-126.0f));
    const __m256 n = _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m256 r = _mm256_sub_ps(x, n);
    __m256 p = _mm256_set1_ps(1.33335581e-3f);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(9.61812911e-3f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(5.55041087e-2f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(2.40226507e-1f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(6.93147181e-1f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
    const __m256i e = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), e));
}
INLINE float lane_max(__m256 v)
{
    float x[LANES], m;
    _mm256_storeu_ps(x, v);
    m = x[0];
    for (int i = 1; i < LANES; i++) m = x[i] > m ? x[i] : m;
    return m;
}

/* Scores of all heads and one tile of 16 positions. */
INLINE void scores(const float *q, const uint16_t *k, float *s)
{
    __m256 acc[FREE_HEADS][2];
    for (int h = 0; h < FREE_HEADS; h++) acc[h][0] = acc[h][1] = _mm256_setzero_ps();
    for (int d = 0; d < FREE_DIM; d++) {
        const __m256 lo = load_f16(k + TILE * d), hi = load_f16(k + TILE * d + LANES);
        if (d % 2 == 0) _mm_prefetch((const char *)(k + TILE * d) + AHEAD, _MM_HINT_T0);
#pragma GCC unroll 6
        for (int h = 0; h < FREE_HEADS; h++) {
            const __m256 x = _mm256_broadcast_ss(q + h * FREE_DIM + d);
            acc[h][0] = _mm256_fmadd_ps(x, lo, acc[h][0]);
            acc[h][1] = _mm256_fmadd_ps(x, hi, acc[h][1]);
        }
    }
#pragma GCC unroll 6
    for (int h = 0; h < FREE_HEADS; h++) {
        _mm256_storeu_ps(s + h * STEP, acc[h][0]);
        _mm256_storeu_ps(s + h * STEP + LANES, acc[h][1]);
    }
}

/* o of all heads, 16 columns, over STEP positions. */
INLINE void values(const float *p, const uint16_t *v, float *o)
{
    __m256 acc[FREE_HEADS][2];
#pragma GCC unroll 6
    for (int h = 0; h < FREE_HEADS; h++) {
        acc[h][0] = _mm256_loadu_ps(o + h * FREE_DIM);
        acc[h][1] = _mm256_loadu_ps(o + h * FREE_DIM + LANES);
    }
    for (int j = 0; j < STEP; j++) {
        const __m256 lo = load_f16(v + FREE_DIM * j), hi = load_f16(v + FREE_DIM * j + LANES);
#pragma GCC unroll 6
        for (int h = 0; h < FREE_HEADS; h++) {
            const __m256 x = _mm256_broadcast_ss(p + h * STEP + j);
            acc[h][0] = _mm256_fmadd_ps(x, lo, acc[h][0]);
            acc[h][1] = _mm256_fmadd_ps(x, hi, acc[h][1]);
        }
    }
#pragma GCC unroll 6
    for (int h = 0; h < FREE_HEADS; h++) {
        _mm256_storeu_ps(o + h * FREE_DIM, acc[h][0]);
        _mm256_storeu_ps(o + h * FREE_DIM + LANES, acc[h][1]);
    }
}

/* One head's STEP scores become weights; answers their sum, and rescales what is there already. */
INLINE void weigh(float *s, float to_log2, float *max, __m256 *l, float *o)
{
    __m256 x[STEP / LANES], m;
    for (int i = 0; i < STEP / LANES; i++)
        x[i] = _mm256_mul_ps(_mm256_loadu_ps(s + LANES * i), _mm256_set1_ps(to_log2));
    m = x[0];
    for (int i = 1; i < STEP / LANES; i++) m = _mm256_max_ps(m, x[i]);
    const float top = lane_max(m);
    if (top > *max) {
        const __m256 w = exp2_low(_mm256_set1_ps(*max - top));
        *l = _mm256_mul_ps(*l, w);
        for (int d = 0; d < FREE_DIM; d += LANES)
            _mm256_storeu_ps(o + d, _mm256_mul_ps(_mm256_loadu_ps(o + d), w));
        *max = top;
    }
    for (int i = 0; i < STEP / LANES; i++) {
        const __m256 p = exp2_low(_mm256_sub_ps(x[i], _mm256_set1_ps(*max)));
        _mm256_storeu_ps(s + LANES * i, p);
        *l = _mm256_add_ps(*l, p);
    }
}

void free_attend(const float *q, const uint16_t *k, const uint16_t *v, int32_t n, float scale,
                 float *out)
{
    float s[FREE_HEADS * STEP], max[FREE_HEADS];
    __m256 l[FREE_HEADS];
    for (int h = 0; h < FREE_HEADS; h++) max[h] = -1e30f, l[h] = _mm256_setzero_ps();
    for (int i = 0; i < FREE_HEADS * FREE_DIM; i++) out[i] = 0.0f;
    for (int32_t p = 0; p < n; p += STEP, k += STEP * FREE_DIM, v += STEP * FREE_DIM) {
        for (int t = 0; t < STEP; t += TILE) {
            scores(q, k + t * FREE_DIM, s + t);
        }
        for (int h = 0; h < FREE_HEADS; h++)
            weigh(s + h * STEP, scale * 1.44269504f, &max[h], &l[h], out + h * FREE_DIM);
        for (int d = 0; d < FREE_DIM; d += TILE) values(s, v + d, out + d);
        for (int i = 0; i < STEP * FREE_DIM; i += 32)
            _mm_prefetch((const char *)(v + i) + STEP * FREE_DIM * 2, _MM_HINT_T0);
    }
    for (int h = 0; h < FREE_HEADS; h++) {
        float x[LANES], sum = 0.0f;
        _mm256_storeu_ps(x, l[h]);
        for (int i = 0; i < LANES; i++) sum += x[i];
        for (int d = 0; d < FREE_DIM; d++) out[h * FREE_DIM + d] /= sum;
    }
}
