/* AVX2: the passes of sampling. */
#include "backend/cpu/kern/x86/lanes_avx2.h"
#include "sample/pass.h"

typedef struct f64x16 {
    __m256d a, b, c, d;
} f64x16;

INLINE b16 not_less16(v16 a, v16 b)
{
    return (b16){_mm256_cmp_ps(a.lo, b.lo, _CMP_NLT_UQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_NLT_UQ)};
}

INLINE b16 or_b16(b16 a, b16 b)
{
    return or16(a, b);
}

INLINE bool any16(b16 a)
{
    return _mm256_movemask_ps(_mm256_or_ps(a.lo, a.hi)) != 0;
}

INLINE v16 shift_up16(v16 p, v16 t)
{
    return raise16(p, (i16){_mm256_castps_si256(t.lo), _mm256_castps_si256(t.hi)});
}

INLINE f64x16 zero_f64(void)
{
    const __m256d z = _mm256_setzero_pd();
    return (f64x16){z, z, z, z};
}

INLINE f64x16 add_f64(f64x16 s, v16 x)
{
    return (f64x16){_mm256_add_pd(s.a, _mm256_cvtps_pd(_mm256_castps256_ps128(x.lo))),
                    _mm256_add_pd(s.b, _mm256_cvtps_pd(_mm256_extractf128_ps(x.lo, 1))),
                    _mm256_add_pd(s.c, _mm256_cvtps_pd(_mm256_castps256_ps128(x.hi))),
                    _mm256_add_pd(s.d, _mm256_cvtps_pd(_mm256_extractf128_ps(x.hi, 1)))};
}

INLINE void store_f64(double *p, f64x16 s)
{
    _mm256_storeu_pd(p, s.a);
    _mm256_storeu_pd(p + 4, s.b);
    _mm256_storeu_pd(p + 8, s.c);
    _mm256_storeu_pd(p + 12, s.d);
}

INLINE int32_t put16(v16 x, const float *from, v16 least, int32_t first, int32_t *id, float *value)
{
    const __m256 lo = _mm256_cmp_ps(x.lo, least.lo, _CMP_GE_OQ),
                 hi = _mm256_cmp_ps(x.hi, least.hi, _CMP_GE_OQ);
    uint32_t m = (uint32_t)_mm256_movemask_ps(lo) | (uint32_t)_mm256_movemask_ps(hi) << 8;
    int32_t k = 0;
    if (m == 0xffff) { /* where nothing is cut off */
        const __m256i at = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        const __m256i a = _mm256_add_epi32(at, _mm256_set1_epi32(first));
        _mm256_storeu_si256((__m256i *)(void *)id, a);
        _mm256_storeu_si256((__m256i *)(void *)(id + 8), _mm256_add_epi32(a, _mm256_set1_epi32(8)));
        store16(value, x);
        return PASS_LANES;
    }
    for (; m; m &= m - 1, k++) {
        const int32_t i = __builtin_ctz(m);
        id[k] = first + i;
        value[k] = from[i];
    }
    return k;
}

#include "sample/pass_body.h"

const pass pass_avx2 = {pass_high, pass_weigh, pass_collect, pass_estimate};
