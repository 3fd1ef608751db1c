/* AVX-512: the passes of sampling. */
#include "backend/cpu/kern/x86/lanes_avx512.h"
#include "sample/pass.h"

typedef struct f64x16 {
    __m512d lo, hi;
} f64x16;

INLINE b16 not_less16(v16 a, v16 b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ);
}

INLINE b16 or_b16(b16 a, b16 b)
{
    return (b16)(a | b);
}

INLINE bool any16(b16 a)
{
    return a != 0;
}

INLINE v16 shift_up16(v16 p, v16 t)
{
    return raise16(p, _mm512_castps_si512(t));
}

INLINE f64x16 zero_f64(void)
{
    return (f64x16){_mm512_setzero_pd(), _mm512_setzero_pd()};
}

INLINE f64x16 add_f64(f64x16 s, v16 x)
{
    return (f64x16){_mm512_add_pd(s.lo, _mm512_cvtps_pd(_mm512_castps512_ps256(x))),
                    _mm512_add_pd(s.hi, _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)))};
}

INLINE void store_f64(double *p, f64x16 s)
{
    _mm512_storeu_pd(p, s.lo);
    _mm512_storeu_pd(p + 8, s.hi);
}

/* Whole registers are written; what lies past the count is overwritten or nobody's. */
INLINE int32_t put16(v16 x, const float *from, v16 least, int32_t first, int32_t *id, float *value)
{
    const __m512i at = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const b16 m = _mm512_cmp_ps_mask(x, least, _CMP_GE_OQ);
    (void)from;
    if (!m) return 0;
    _mm512_storeu_si512(
        id, _mm512_maskz_compress_epi32(m, _mm512_add_epi32(at, _mm512_set1_epi32(first))));
    _mm512_storeu_ps(value, _mm512_maskz_compress_ps(m, x));
    return __builtin_popcount(m);
}

#include "sample/pass_body.h"

const pass pass_avx512 = {pass_high, pass_weigh, pass_collect, pass_estimate};
