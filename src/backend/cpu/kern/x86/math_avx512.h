/* kern_math.h in sixteen lanes, for the *_avx512.c files: the same steps as ref/math_ref.c. */
#ifndef MATH_AVX512_H
#define MATH_AVX512_H

#include <immintrin.h>

#include "backend/cpu/kern/kern_math.h"

/* For arguments that are not above EXP_HI. */
static inline __m512 exp_low_avx512(__m512 x)
{
    __m512i ni = _mm512_cvtps_epi32(_mm512_mul_ps(x, _mm512_set1_ps(EXP_LOG2)));
    __m512 n = _mm512_cvtepi32_ps(ni);
    __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-LN2_HI), x);
    r = _mm512_fmadd_ps(n, _mm512_set1_ps(-LN2_LO), r);
    __m512 q = _mm512_fmadd_ps(_mm512_set1_ps(EXP_C5), r, _mm512_set1_ps(EXP_C4));
    q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(EXP_C3));
    q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(EXP_C2));
    q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(EXP_C1));
    q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(EXP_C0));
    __m512 p = _mm512_fmadd_ps(q, _mm512_mul_ps(r, r), r);
    p = _mm512_add_ps(p, _mm512_set1_ps(1.0f));
    /* NaN: ni is 1 << 31, which the shift drops */
    p = _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), _mm512_slli_epi32(ni, 23)));
    __mmask16 below = _mm512_cmp_ps_mask(x, _mm512_set1_ps(EXP_LO), _CMP_LT_OQ);
    return _mm512_mask_mov_ps(p, below, _mm512_setzero_ps());
}

static inline __m512 exp_avx512(__m512 x)
{
    __mmask16 over = _mm512_cmp_ps_mask(x, _mm512_set1_ps(EXP_HI), _CMP_GT_OQ);
    return _mm512_mask_mov_ps(exp_low_avx512(x), over, _mm512_set1_ps(__builtin_inff()));
}

static inline __m512 negate_avx512(__m512 x)
{
    return _mm512_xor_ps(x, _mm512_set1_ps(-0.0f));
}

static inline __m512 tanh_avx512(__m512 x)
{
    const __m512 sign = _mm512_set1_ps(-0.0f), one = _mm512_set1_ps(1.0f);
    __m512 a = _mm512_andnot_ps(sign, x), z = _mm512_mul_ps(a, a);
    __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(TANH_C4), z, _mm512_set1_ps(TANH_C3));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(TANH_C2));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(TANH_C1));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(TANH_C0));
    __m512 low = _mm512_fmadd_ps(_mm512_mul_ps(z, p), a, a);
    __m512 e = _mm512_add_ps(exp_avx512(_mm512_add_ps(a, a)), one);
    __m512 high = _mm512_sub_ps(one, _mm512_div_ps(_mm512_set1_ps(2.0f), e));
    __mmask16 small = _mm512_cmp_ps_mask(a, _mm512_set1_ps(TANH_SMALL), _CMP_LT_OQ);
    __m512 y = _mm512_andnot_ps(sign, _mm512_mask_mov_ps(high, small, low));
    return _mm512_or_ps(y, _mm512_and_ps(sign, x));
}

static inline __m512 erfc_avx512(__m512 z)
{
    const __m512 one = _mm512_set1_ps(1.0f);
    __m512 t = _mm512_div_ps(one, _mm512_fmadd_ps(z, _mm512_set1_ps(0.5f), one));
    __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(ERFC_C8), t, _mm512_set1_ps(ERFC_C7));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(ERFC_C6));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(ERFC_C5));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(ERFC_C4));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(ERFC_C3));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(ERFC_C2));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(ERFC_C1));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(ERFC_C0));
    __m512 e = exp_low_avx512(negate_avx512(_mm512_mul_ps(z, z)));
    return _mm512_mul_ps(_mm512_mul_ps(t, p), e);
}

/* x / (1 + exp(-u)) */
static inline __m512 gate_avx512(__m512 x, __m512 u)
{
    __m512 e = exp_avx512(negate_avx512(u));
    return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0f), e));
}

static inline __m512 silu_avx512(__m512 x)
{
    return gate_avx512(x, x);
}

static inline __m512 relu_avx512(__m512 x)
{
    return _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ),
                              _mm512_setzero_ps());
}

static inline __m512 gelu_tanh_avx512(__m512 x)
{
    __m512 c =
        _mm512_fmadd_ps(_mm512_mul_ps(x, x), _mm512_set1_ps(GELU_C1), _mm512_set1_ps(GELU_C0));
    return gate_avx512(x, _mm512_mul_ps(x, c));
}

static inline __m512 gelu_erf_avx512(__m512 x)
{
    __m512 a = _mm512_andnot_ps(_mm512_set1_ps(-0.0f), x);
    __m512 e = erfc_avx512(_mm512_mul_ps(a, _mm512_set1_ps(SQRT_HALF)));
    e = _mm512_mul_ps(_mm512_mul_ps(x, _mm512_set1_ps(0.5f)), e);
    __mmask16 below = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
    return _mm512_mask_mov_ps(_mm512_sub_ps(x, e), below, e);
}

/* exp(m) - 1 - m for m <= 0 */
static inline __m512 exp_rest_avx512(__m512 m)
{
    __m512 q = _mm512_fmadd_ps(_mm512_set1_ps(EXP_C5), m, _mm512_set1_ps(EXP_C4));
    q = _mm512_fmadd_ps(q, m, _mm512_set1_ps(EXP_C3));
    q = _mm512_fmadd_ps(q, m, _mm512_set1_ps(EXP_C2));
    q = _mm512_fmadd_ps(q, m, _mm512_set1_ps(EXP_C1));
    q = _mm512_fmadd_ps(q, m, _mm512_set1_ps(EXP_C0));
    __m512 near = _mm512_mul_ps(q, _mm512_mul_ps(m, m));
    __m512 far = _mm512_sub_ps(_mm512_sub_ps(exp_low_avx512(m), _mm512_set1_ps(1.0f)), m);
    return _mm512_mask_mov_ps(near, _mm512_cmp_ps_mask(m, _mm512_set1_ps(REST_SMALL), _CMP_LT_OQ),
                              far);
}

static inline __m512 xielu_avx512(__m512 x, const xielu_params *p)
{
    const __m512 eps = _mm512_set1_ps(p->eps);
    __m512 line = _mm512_mul_ps(_mm512_set1_ps(p->beta), x);
    __m512 up = _mm512_mul_ps(_mm512_mul_ps(_mm512_set1_ps(p->alpha_p), x), x);
    __m512 m = _mm512_mask_mov_ps(eps, _mm512_cmp_ps_mask(x, eps, _CMP_LT_OQ), x);
    __m512 down = _mm512_add_ps(exp_rest_avx512(m), _mm512_sub_ps(m, x));
    down = _mm512_mul_ps(_mm512_set1_ps(p->alpha_n), down);
    __mmask16 above = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ);
    return _mm512_add_ps(_mm512_mask_mov_ps(down, above, up), line);
}

/* Sixteen partial sums, added +8, +4, +2, +1. */
static inline float lane_tree_avx512(__m512 v)
{
    __m256 v8 = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 v4 = _mm_add_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
    __m128 v2 = _mm_add_ps(v4, _mm_movehl_ps(v4, v4));
    return _mm_cvtss_f32(_mm_add_ss(v2, _mm_movehdup_ps(v2)));
}

/* Lanes below n. */
static inline __mmask16 mask_avx512(size_t n)
{
    return n >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << n) - 1);
}

#endif
