/* Sixteen f32 lanes as two AVX2 registers: the words of math_body.h, vec_body.h and attend_body.h. */
#ifndef LANES_AVX2_H
#define LANES_AVX2_H

#include <immintrin.h>
#include <stddef.h>

#define INLINE static inline __attribute__((always_inline))

typedef struct v16 {
    __m256 lo, hi;
} v16;
typedef v16 b16; /* a lane is all ones or all zeros */
typedef struct i16 {
    __m256i lo, hi;
} i16;

/* Lanes below n of eight. */
INLINE __m256i mask8(size_t n)
{
    const __m256i at = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), at);
}

INLINE __m256i mask_hi(size_t n)
{
    return mask8(n > 8 ? n - 8 : 0);
}

INLINE v16 loadf16(const float *p)
{
    return (v16){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}

INLINE void store16(float *p, v16 x)
{
    _mm256_storeu_ps(p, x.lo);
    _mm256_storeu_ps(p + 8, x.hi);
}

INLINE v16 loadf16_first(const float *p, size_t n)
{
    return (v16){_mm256_maskload_ps(p, mask8(n)), _mm256_maskload_ps(p + 8, mask_hi(n))};
}

INLINE void store16_first(float *p, v16 x, size_t n)
{
    _mm256_maskstore_ps(p, mask8(n), x.lo);
    _mm256_maskstore_ps(p + 8, mask_hi(n), x.hi);
}

INLINE v16 first16(v16 x, size_t n)
{
    return (v16){_mm256_and_ps(x.lo, _mm256_castsi256_ps(mask8(n))),
                 _mm256_and_ps(x.hi, _mm256_castsi256_ps(mask_hi(n)))};
}

INLINE v16 set16(float x)
{
    return (v16){_mm256_set1_ps(x), _mm256_set1_ps(x)};
}

#define LANES_2(name, fn)                                                                          \
    INLINE v16 name(v16 a, v16 b)                                                                  \
    {                                                                                              \
        return (v16){fn(a.lo, b.lo), fn(a.hi, b.hi)};                                              \
    }
#define LANES_3(name, fn)                                                                          \
    INLINE v16 name(v16 a, v16 b, v16 c)                                                           \
    {                                                                                              \
        return (v16){fn(a.lo, b.lo, c.lo), fn(a.hi, b.hi, c.hi)};                                  \
    }
LANES_2(add16, _mm256_add_ps)
LANES_2(sub16, _mm256_sub_ps)
LANES_2(mul16, _mm256_mul_ps)
LANES_2(div16, _mm256_div_ps)
LANES_2(max16, _mm256_max_ps)
LANES_2(and16, _mm256_and_ps)
LANES_2(or16, _mm256_or_ps)
LANES_2(xor16, _mm256_xor_ps)
LANES_2(andnot16, _mm256_andnot_ps)
LANES_3(fma16, _mm256_fmadd_ps)
LANES_3(fms16, _mm256_fmsub_ps)
#undef LANES_2
#undef LANES_3

INLINE b16 less16(v16 a, v16 b)
{
    return (b16){_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}

INLINE v16 pick16(b16 m, v16 yes, v16 no)
{
    return (v16){_mm256_blendv_ps(no.lo, yes.lo, m.lo), _mm256_blendv_ps(no.hi, yes.hi, m.hi)};
}

INLINE v16 clear16(b16 m, v16 x)
{
    return andnot16(m, x);
}

INLINE i16 to_int16(v16 x)
{
    return (i16){_mm256_cvtps_epi32(x.lo), _mm256_cvtps_epi32(x.hi)};
}

INLINE v16 of_int16(i16 n)
{
    return (v16){_mm256_cvtepi32_ps(n.lo), _mm256_cvtepi32_ps(n.hi)};
}

INLINE __m256 raise8(__m256 x, __m256i n)
{
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x), _mm256_slli_epi32(n, 23)));
}

INLINE v16 raise16(v16 x, i16 n)
{
    return (v16){raise8(x.lo, n.lo), raise8(x.hi, n.hi)};
}

INLINE float v16_max(v16 a)
{
    const __m256 v = _mm256_max_ps(a.lo, a.hi);
    __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    m4 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
    return _mm_cvtss_f32(_mm_max_ss(m4, _mm_movehdup_ps(m4)));
}

INLINE float v16_tree(v16 a)
{
    const __m256 v8 = _mm256_add_ps(a.lo, a.hi);
    const __m128 v4 = _mm_add_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
    const __m128 v2 = _mm_add_ps(v4, _mm_movehl_ps(v4, v4));
    return _mm_cvtss_f32(_mm_add_ss(v2, _mm_movehdup_ps(v2)));
}

#endif
