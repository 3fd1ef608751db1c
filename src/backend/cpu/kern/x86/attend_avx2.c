/* AVX2, FMA and F16C: attention.  A tile of mm holds up to 6 vectors × 16 columns or 1 × 64 in 12
   registers of sums; 6 × 16 needs 8 loads for 12 multiply-adds, which both FMA pipes can sustain. */
#include <string.h>

#include "backend/cpu/kern/kern_vec.h"
#include "backend/cpu/kern/x86/math_avx2.h"

#define INLINE static inline __attribute__((always_inline))

enum { TILE_A = 6, TILE_T = 4, LINE = 64 };

INLINE __m256 load8(kv_codec c, const uint8_t *p)
{
    if (c == KV_F32) return _mm256_loadu_ps((const float *)(const void *)p);
    __m128i h = _mm_loadu_si128((const __m128i *)(const void *)p);
    if (c == KV_F16) return _mm256_cvtph_ps(h);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

INLINE size_t elem(kv_codec c)
{
    return c == KV_F32 ? 4 : 2;
}

/* n_a ≤ TILE_A vectors × n_t ≤ TILE_T strips, both known where it is inlined. */
INLINE void tile(const kern_mm *j, kv_codec codec, const int n_a, const int n_t, size_t i, size_t t)
{
    const size_t e = elem(codec), row = j->row * e, strip = j->strip * e;
    const uint8_t *b = (const uint8_t *)j->b + t * strip;
    const float *a = j->a + i * j->lda;
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
    for (int32_t k = 0; k < j->n; k++, b += row)
#pragma GCC unroll 4
        for (int s = 0; s < n_t; s++) {
            __m256 lo = load8(codec, b + (size_t)s * strip);
            __m256 hi = load8(codec, b + (size_t)s * strip + 8 * e);
#pragma GCC unroll 6
            for (int r = 0; r < n_a; r++) {
                __m256 v = _mm256_broadcast_ss(a + (size_t)r * j->lda + k);
                acc[r][s][0] = _mm256_fmadd_ps(v, lo, acc[r][s][0]);
                acc[r][s][1] = _mm256_fmadd_ps(v, hi, acc[r][s][1]);
            }
        }
#pragma GCC unroll 6
    for (int r = 0; r < n_a; r++)
#pragma GCC unroll 4
        for (int s = 0; s < n_t; s++)
#pragma GCC unroll 2
            for (int h = 0; h < 2; h++)
                _mm256_storeu_ps(c + (size_t)r * j->ldc + 16 * s + 8 * h, acc[r][s][h]);
}

/* Strips [t, end) of n_a vectors, as many strips at once as the registers hold. */
INLINE void strips(const kern_mm *j, kv_codec codec, const int n_a, const int n_t, size_t i,
                   size_t t, size_t end)
{
    for (; t + (size_t)n_t <= end; t += (size_t)n_t) tile(j, codec, n_a, n_t, i, t);
    for (; t < end; t++) tile(j, codec, n_a, 1, i, t);
}

INLINE void mm(const kern_mm *j, kv_codec codec)
{
    const size_t n_a = (size_t)j->n_a, groups = (n_a + TILE_A - 1) / TILE_A;
    const size_t step = n_a > 2 * TILE_A ? 1 : TILE_T;
    for (size_t t = 0; t < (size_t)j->n_strip; t += step) {
        size_t end = t + step < (size_t)j->n_strip ? t + step : (size_t)j->n_strip;
        for (size_t g = 0; g < groups; g++) {
            size_t i = g * n_a / groups, n = (g + 1) * n_a / groups - i;
            switch (n) {
            case 1:
                strips(j, codec, 1, 4, i, t, end);
                break;
            case 2:
                strips(j, codec, 2, 2, i, t, end);
                break;
            case 3:
                strips(j, codec, 3, 2, i, t, end);
                break;
            case 4:
                strips(j, codec, 4, 1, i, t, end);
                break;
            case 5:
                strips(j, codec, 5, 1, i, t, end);
                break;
            default:
                strips(j, codec, 6, 1, i, t, end);
                break;
            }
        }
    }
}

INLINE void widen(float *dst, const uint8_t *src, int32_t n_rows, int32_t n_cols, kv_codec codec)
{
    const size_t e = elem(codec), cols = (size_t)n_cols, whole = cols / 16, left = cols % 16;
    for (int32_t r = 0; r < n_rows; r++, src += cols * e) {
        float *d = dst + (size_t)r * 16;
        const uint8_t *s = src;
        for (size_t t = 0; t < whole; t++, s += 16 * e, d += (size_t)n_rows * 16) {
            _mm256_storeu_ps(d, load8(codec, s));
            _mm256_storeu_ps(d + 8, load8(codec, s + 8 * e));
        }
        if (left > 0) {
            uint8_t rest[LINE] = {0};
            memcpy(rest, s, left * e);
            _mm256_storeu_ps(d, load8(codec, rest));
            _mm256_storeu_ps(d + 8, load8(codec, rest + 8 * e));
        }
    }
}

#define DEFINE_CODEC(name, codec)                                                                  \
    static void mm_##name##_avx2(const kern_mm *j)                                                 \
    {                                                                                              \
        mm(j, codec);                                                                              \
    }                                                                                              \
    static void widen_##name##_avx2(float *dst, const void *src, int32_t n_rows, int32_t n_cols)   \
    {                                                                                              \
        widen(dst, src, n_rows, n_cols, codec);                                                    \
    }
DEFINE_CODEC(f16, KV_F16)
DEFINE_CODEC(bf16, KV_BF16)
DEFINE_CODEC(f32, KV_F32)

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
            __m256 x = _mm256_maskload_ps(src + i, mask_avx2(n - i));                              \
            _mm_storeu_si128((__m128i *)(void *)rest, to_##name(x));                               \
            memcpy(d + i, rest, (n - i) * sizeof *d);                                              \
        }                                                                                          \
    }
DEFINE_ENCODE(f16)
DEFINE_ENCODE(bf16)

static void fill_outside(float *s, int32_t lo, int32_t hi, float x)
{
    for (int32_t j = lo / 16 * 16; j < lo; j++) s[j] = x;
    for (int32_t j = hi + 1; j % 16 != 0; j++) s[j] = x;
}

static float softmax_avx2(float *s, int32_t lo, int32_t hi, float scale, float cap, float *max)
{
    const int32_t begin = lo / 16 * 16, end = (hi / 16 + 1) * 16;
    const __m256 vs = _mm256_set1_ps(scale), vc = _mm256_set1_ps(cap);
    for (int32_t j = begin; j < end; j += 8) {
        __m256 x = _mm256_mul_ps(_mm256_loadu_ps(s + j), vs);
        if (cap > 0) x = _mm256_mul_ps(vc, tanh_avx2(_mm256_div_ps(x, vc)));
        _mm256_storeu_ps(s + j, x);
    }
    fill_outside(s, lo, hi, -__builtin_inff());
    __m256 m0 = _mm256_set1_ps(-__builtin_inff()), m1 = m0;
    for (int32_t j = begin; j < end; j += 16) { /* NaN never becomes the maximum */
        m0 = _mm256_max_ps(_mm256_loadu_ps(s + j), m0);
        m1 = _mm256_max_ps(_mm256_loadu_ps(s + j + 8), m1);
    }
    m0 = _mm256_max_ps(m0, m1);
    __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m0), _mm256_extractf128_ps(m0, 1));
    m4 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
    *max = _mm_cvtss_f32(_mm_max_ss(m4, _mm_movehdup_ps(m4)));
    const __m256 m = _mm256_set1_ps(*max);
    __m256 l0 = _mm256_setzero_ps(), l1 = l0;
    for (int32_t j = begin; j < end; j += 16) {
        __m256 p0 = exp_low_avx2(_mm256_sub_ps(_mm256_loadu_ps(s + j), m));
        __m256 p1 = exp_low_avx2(_mm256_sub_ps(_mm256_loadu_ps(s + j + 8), m));
        _mm256_storeu_ps(s + j, p0);
        _mm256_storeu_ps(s + j + 8, p1);
        l0 = _mm256_add_ps(l0, p0);
        l1 = _mm256_add_ps(l1, p1);
    }
    fill_outside(s, lo, hi, 0.0f); /* NaN there when all scores were -inf */
    return lane_tree_avx2(l0, l1);
}

void kern_attend_avx2(kern_vec *v)
{
    v->encode[KV_F16] = encode_f16_avx2;
    v->encode[KV_BF16] = encode_bf16_avx2;
    v->widen[KV_F16] = widen_f16_avx2;
    v->widen[KV_BF16] = widen_bf16_avx2;
    v->widen[KV_F32] = widen_f32_avx2;
    v->mm[KV_F16] = mm_f16_avx2;
    v->mm[KV_BF16] = mm_bf16_avx2;
    v->mm[KV_F32] = mm_f32_avx2;
    v->softmax = softmax_avx2;
}
