/* kern_math.h in eight lanes, for the *_avx2.c files: the same steps as ref/math_ref.c. */
#ifndef MATH_AVX2_H
#define MATH_AVX2_H

#include <immintrin.h>

#include "backend/cpu/kern/kern_math.h"

/* For arguments that are not above EXP_HI. */
static inline __m256 exp_low_avx2(__m256 x)
{
    __m256i ni = _mm256_cvtps_epi32(_mm256_mul_ps(x, _mm256_set1_ps(EXP_LOG2)));
    __m256 n = _mm256_cvtepi32_ps(ni);
    __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-LN2_HI), x);
    r = _mm256_fmadd_ps(n, _mm256_set1_ps(-LN2_LO), r);
    __m256 q = _mm256_fmadd_ps(_mm256_set1_ps(EXP_C5), r, _mm256_set1_ps(EXP_C4));
    q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(EXP_C3));
    q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(EXP_C2));
    q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(EXP_C1));
    q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(EXP_C0));
    __m256 p = _mm256_fmadd_ps(q, _mm256_mul_ps(r, r), r);
    p = _mm256_add_ps(p, _mm256_set1_ps(1.0f));
    /* NaN: ni is 1 << 31, which the shift drops */
    p = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(ni, 23)));
    return _mm256_andnot_ps(_mm256_cmp_ps(x, _mm256_set1_ps(EXP_LO), _CMP_LT_OQ), p);
}

static inline __m256 exp_avx2(__m256 x)
{
    __m256 over = _mm256_cmp_ps(x, _mm256_set1_ps(EXP_HI), _CMP_GT_OQ);
    return _mm256_blendv_ps(exp_low_avx2(x), _mm256_set1_ps(__builtin_inff()), over);
}

static inline __m256 tanh_avx2(__m256 x)
{
    const __m256 sign = _mm256_set1_ps(-0.0f), one = _mm256_set1_ps(1.0f);
    __m256 a = _mm256_andnot_ps(sign, x), z = _mm256_mul_ps(a, a);
    __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(TANH_C4), z, _mm256_set1_ps(TANH_C3));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(TANH_C2));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(TANH_C1));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(TANH_C0));
    __m256 low = _mm256_fmadd_ps(_mm256_mul_ps(z, p), a, a);
    __m256 e = _mm256_add_ps(exp_avx2(_mm256_add_ps(a, a)), one);
    __m256 high = _mm256_sub_ps(one, _mm256_div_ps(_mm256_set1_ps(2.0f), e));
    __m256 small = _mm256_cmp_ps(a, _mm256_set1_ps(TANH_SMALL), _CMP_LT_OQ);
    __m256 y = _mm256_andnot_ps(sign, _mm256_blendv_ps(high, low, small));
    return _mm256_or_ps(y, _mm256_and_ps(sign, x));
}

static inline __m256 erfc_avx2(__m256 z)
{
    const __m256 one = _mm256_set1_ps(1.0f);
    __m256 t = _mm256_div_ps(one, _mm256_fmadd_ps(z, _mm256_set1_ps(0.5f), one));
    __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(ERFC_C8), t, _mm256_set1_ps(ERFC_C7));
    p = _mm256_fmadd_ps(p, t, _mm256_set1_ps(ERFC_C6));
    p = _mm256_fmadd_ps(p, t, _mm256_set1_ps(ERFC_C5));
    p = _mm256_fmadd_ps(p, t, _mm256_set1_ps(ERFC_C4));
    p = _mm256_fmadd_ps(p, t, _mm256_set1_ps(ERFC_C3));
    p = _mm256_fmadd_ps(p, t, _mm256_set1_ps(ERFC_C2));
    p = _mm256_fmadd_ps(p, t, _mm256_set1_ps(ERFC_C1));
    p = _mm256_fmadd_ps(p, t, _mm256_set1_ps(ERFC_C0));
    __m256 zz = _mm256_xor_ps(_mm256_mul_ps(z, z), _mm256_set1_ps(-0.0f));
    return _mm256_mul_ps(_mm256_mul_ps(t, p), exp_low_avx2(zz));
}

/* x / (1 + exp(-u)) */
static inline __m256 gate_avx2(__m256 x, __m256 u)
{
    __m256 e = exp_avx2(_mm256_xor_ps(u, _mm256_set1_ps(-0.0f)));
    return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0f), e));
}

static inline __m256 silu_avx2(__m256 x)
{
    return gate_avx2(x, x);
}

static inline __m256 relu_avx2(__m256 x)
{
    return _mm256_andnot_ps(_mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ), x);
}

static inline __m256 gelu_tanh_avx2(__m256 x)
{
    __m256 c =
        _mm256_fmadd_ps(_mm256_mul_ps(x, x), _mm256_set1_ps(GELU_C1), _mm256_set1_ps(GELU_C0));
    return gate_avx2(x, _mm256_mul_ps(x, c));
}

static inline __m256 gelu_erf_avx2(__m256 x)
{
    __m256 a = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
    __m256 e = erfc_avx2(_mm256_mul_ps(a, _mm256_set1_ps(SQRT_HALF)));
    e = _mm256_mul_ps(_mm256_mul_ps(x, _mm256_set1_ps(0.5f)), e);
    __m256 below = _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ);
    return _mm256_blendv_ps(_mm256_sub_ps(x, e), e, below);
}

/* exp(m) - 1 - m for m <= 0 */
static inline __m256 exp_rest_avx2(__m256 m)
{
    __m256 q = _mm256_fmadd_ps(_mm256_set1_ps(EXP_C5), m, _mm256_set1_ps(EXP_C4));
    q = _mm256_fmadd_ps(q, m, _mm256_set1_ps(EXP_C3));
    q = _mm256_fmadd_ps(q, m, _mm256_set1_ps(EXP_C2));
    q = _mm256_fmadd_ps(q, m, _mm256_set1_ps(EXP_C1));
    q = _mm256_fmadd_ps(q, m, _mm256_set1_ps(EXP_C0));
    __m256 near = _mm256_mul_ps(q, _mm256_mul_ps(m, m));
    __m256 far = _mm256_sub_ps(_mm256_sub_ps(exp_low_avx2(m), _mm256_set1_ps(1.0f)), m);
    return _mm256_blendv_ps(near, far, _mm256_cmp_ps(m, _mm256_set1_ps(REST_SMALL), _CMP_LT_OQ));
}

static inline __m256 xielu_avx2(__m256 x, const xielu_params *p)
{
    const __m256 eps = _mm256_set1_ps(p->eps);
    __m256 line = _mm256_mul_ps(_mm256_set1_ps(p->beta), x);
    __m256 up = _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(p->alpha_p), x), x);
    __m256 m = _mm256_blendv_ps(eps, x, _mm256_cmp_ps(x, eps, _CMP_LT_OQ));
    __m256 down = _mm256_add_ps(exp_rest_avx2(m), _mm256_sub_ps(m, x));
    down = _mm256_mul_ps(_mm256_set1_ps(p->alpha_n), down);
    __m256 above = _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_GT_OQ);
    return _mm256_add_ps(_mm256_blendv_ps(down, up, above), line);
}

/* Sixteen partial sums, added +8, +4, +2, +1. */
static inline float lane_tree_avx2(__m256 lo, __m256 hi)
{
    __m256 v8 = _mm256_add_ps(lo, hi);
    __m128 v4 = _mm_add_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
    __m128 v2 = _mm_add_ps(v4, _mm_movehl_ps(v4, v4));
    return _mm_cvtss_f32(_mm_add_ss(v2, _mm_movehdup_ps(v2)));
}

/* Lanes below n. */
static inline __m256i mask_avx2(size_t n)
{
    const __m256i at = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), at);
}

#endif
