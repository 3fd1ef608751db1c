/* Sixteen f32 lanes as one AVX-512 register: the words of math_body.h, vec_body.h and attend_body.h. */
#ifndef LANES_AVX512_H
#define LANES_AVX512_H

#include <immintrin.h>
#include <stddef.h>

#define INLINE static inline __attribute__((always_inline))

typedef __m512 v16;
typedef __mmask16 b16;
typedef __m512i i16;

/* Lanes below n < 16. */
INLINE b16 mask16(size_t n)
{
    return (b16)((1u << n) - 1);
}

INLINE v16 loadf16(const float *p)
{
    return _mm512_loadu_ps(p);
}

INLINE void store16(float *p, v16 x)
{
    _mm512_storeu_ps(p, x);
}

INLINE v16 loadf16_first(const float *p, size_t n)
{
    return _mm512_maskz_loadu_ps(mask16(n), p);
}

INLINE void store16_first(float *p, v16 x, size_t n)
{
    _mm512_mask_storeu_ps(p, mask16(n), x);
}

INLINE v16 first16(v16 x, size_t n)
{
    return _mm512_mask_mov_ps(_mm512_setzero_ps(), mask16(n), x);
}

INLINE v16 set16(float x)
{
    return _mm512_set1_ps(x);
}

#define LANES_2(name, fn)                                                                          \
    INLINE v16 name(v16 a, v16 b)                                                                  \
    {                                                                                              \
        return fn(a, b);                                                                           \
    }
#define LANES_3(name, fn)                                                                          \
    INLINE v16 name(v16 a, v16 b, v16 c)                                                           \
    {                                                                                              \
        return fn(a, b, c);                                                                        \
    }
LANES_2(add16, _mm512_add_ps)
LANES_2(sub16, _mm512_sub_ps)
LANES_2(mul16, _mm512_mul_ps)
LANES_2(div16, _mm512_div_ps)
LANES_2(max16, _mm512_max_ps)
LANES_2(and16, _mm512_and_ps)
LANES_2(or16, _mm512_or_ps)
LANES_2(xor16, _mm512_xor_ps)
LANES_2(andnot16, _mm512_andnot_ps)
LANES_3(fma16, _mm512_fmadd_ps)
LANES_3(fms16, _mm512_fmsub_ps)
#undef LANES_2
#undef LANES_3

INLINE b16 less16(v16 a, v16 b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}

INLINE v16 pick16(b16 m, v16 yes, v16 no)
{
    return _mm512_mask_mov_ps(no, m, yes);
}

INLINE v16 clear16(b16 m, v16 x)
{
    return _mm512_mask_mov_ps(x, m, _mm512_setzero_ps());
}

INLINE i16 to_int16(v16 x)
{
    return _mm512_cvtps_epi32(x);
}

INLINE v16 of_int16(i16 n)
{
    return _mm512_cvtepi32_ps(n);
}

INLINE v16 raise16(v16 x, i16 n)
{
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(x), _mm512_slli_epi32(n, 23)));
}

INLINE float v16_max(v16 v)
{
    __m256 m8 = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
    m4 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
    return _mm_cvtss_f32(_mm_max_ss(m4, _mm_movehdup_ps(m4)));
}

INLINE float v16_tree(v16 v)
{
    const __m256 v8 = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 v4 = _mm_add_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
    const __m128 v2 = _mm_add_ps(v4, _mm_movehl_ps(v4, v4));
    return _mm_cvtss_f32(_mm_add_ss(v2, _mm_movehdup_ps(v2)));
}

#endif
