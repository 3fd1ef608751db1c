/* AVX2, FMA and F16C: attention.  A tile of mm holds up to 6 vectors × 16 columns or 1 × 64 in 12
   registers of sums; 6 × 16 needs 8 loads for 12 multiply-adds, which both FMA pipes can sustain. */
#include <string.h>

#include "backend/cpu/kern/kern_vec.h"
#include "backend/cpu/kern/x86/lanes_avx2.h"

#include "backend/cpu/kern/body/math_body.h"

INLINE __m256 load8(kv_kind c, const uint8_t *p)
{
    if (c == KV_F32) return _mm256_loadu_ps((const float *)(const void *)p);
    __m128i h = _mm_loadu_si128((const __m128i *)(const void *)p);
    if (c == KV_F16) return _mm256_cvtph_ps(h);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

INLINE v16 load16(kv_kind c, const uint8_t *p)
{
    return (v16){load8(c, p), load8(c, p + (c == KV_F32 ? 32 : 16))};
}

enum { TILE_A = 6, TILE_FULL_T = 1, EXP_EACH = 2 };
/* Widening runs beside the multiply-adds: from L1, 42 vectors × 64 reach 97 % of their peak from f16 and 87 %
   from bf16; 97 % from floats, less 7 % for widening first. */
enum { MM_DIRECT = INT32_MAX };
#define TILE_SHAPES(X) X(1, 4) X(2, 2) X(3, 2) X(4, 1) X(5, 1) X(6, 1)

INLINE v16 over16(v16 x, v16 d, v16 inv)
{
    (void)inv;
    return div16(x, d);
}

#include "backend/cpu/kern/body/attend_body.h"

/* n_a ≤ TILE_A vectors × n_t ≤ TILE_T strips, both known where it is inlined. */
INLINE void tile(const kern_mm *j, kv_kind codec, const int n_a, const int n_t, size_t i, size_t t,
                 ahead *f)
{
    const size_t e = elem(codec), row = j->row * e, strip = j->strip * e, lda = j->lda;
    const uint8_t *b = (const uint8_t *)j->b + t * strip;
    const float *a = j->a + i * lda;
    const size_t n = (size_t)j->n;
    float *c = j->c + i * j->ldc + t * 16;
    __m256 acc[TILE_A][TILE_T][2];
#pragma GCC unroll 6
    for (int r = 0; r < n_a; r++)
#pragma GCC unroll 4
        for (int s = 0; s < n_t; s++)
#pragma GCC unroll 2
            for (int h = 0; h < 2; h++)
                acc[r][s][h] = j->add ? _mm256_loadu_ps(c + (size_t)r * j->ldc + 16 * s + 8 * h)
                                      : _mm256_setzero_ps();
    for (size_t k = 0; k < n; k++, b += row) {
#pragma GCC unroll 4
        for (int s = 0; s < n_t; s++) {
            __m256 lo = load8(codec, b + (size_t)s * strip);
            __m256 hi = load8(codec, b + (size_t)s * strip + 8 * e);
            const float *x = a + k;
            /* 3 × 2: keeping the broadcasts for the next strip would spill a sum */
            if (n_a > 2 && n_t > 1) __asm__ volatile("" : "+r"(x));
#pragma GCC unroll 6
            for (int r = 0; r < n_a; r++) {
                __m256 v = _mm256_broadcast_ss(x + (size_t)r * lda);
                acc[r][s][0] = _mm256_fmadd_ps(v, lo, acc[r][s][0]);
                acc[r][s][1] = _mm256_fmadd_ps(v, hi, acc[r][s][1]);
            }
        }
        fetch_ahead(f, n_t, k);
    }
#pragma GCC unroll 6
    for (int r = 0; r < n_a; r++)
#pragma GCC unroll 4
        for (int s = 0; s < n_t; s++)
#pragma GCC unroll 2
            for (int h = 0; h < 2; h++)
                _mm256_storeu_ps(c + (size_t)r * j->ldc + 16 * s + 8 * h, acc[r][s][h]);
}

static inline __m128i to_f16(__m256 x)
{
    /* NaN passes: both keep the second operand when either is NaN */
    x = _mm256_min_ps(_mm256_set1_ps(65504.0f), x);
    x = _mm256_max_ps(_mm256_set1_ps(-65504.0f), x);
    return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
}

static inline __m128i to_bf16(__m256 x)
{
    const __m256i u = _mm256_castps_si256(x), top = _mm256_srli_epi32(u, 16);
    __m256i odd = _mm256_and_si256(top, _mm256_set1_epi32(1));
    __m256i r = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i quiet = _mm256_or_si256(top, _mm256_set1_epi32(0x40));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    r = _mm256_blendv_epi8(_mm256_srli_epi32(r, 16), quiet, nan);
    r = _mm256_permute4x64_epi64(_mm256_packus_epi32(r, r), 0x08);
    return _mm256_castsi256_si128(r);
}

#define DEFINE_ENCODE(name)                                                                        \
    static void encode_##name##_avx2(void *dst, const float *src, size_t n)                        \
    {                                                                                              \
        uint16_t *d = dst;                                                                         \
        size_t i = 0;                                                                              \
        for (; i + 8 <= n; i += 8)                                                                 \
            _mm_storeu_si128((__m128i *)(void *)(d + i), to_##name(_mm256_loadu_ps(src + i)));     \
        if (i < n) {                                                                               \
            uint16_t rest[8];                                                                      \
            __m256 x = _mm256_maskload_ps(src + i, mask8(n - i));                                  \
            _mm_storeu_si128((__m128i *)(void *)rest, to_##name(x));                               \
            memcpy(d + i, rest, (n - i) * sizeof *d);                                              \
        }                                                                                          \
    }
DEFINE_ENCODE(f16)
DEFINE_ENCODE(bf16)

void kern_attend_avx2(kern_vec *v)
{
    attend_install(v);
    v->encode[KV_F16] = encode_f16_avx2;
    v->encode[KV_BF16] = encode_bf16_avx2;
}
