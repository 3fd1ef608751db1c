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

/* Where the next lines to fetch are; a region that is not there stays at one address. */
typedef struct ahead {
    const char *p[2];
    size_t step[2];
} ahead;

/* n_a ≤ TILE_A vectors × n_t ≤ TILE_T strips, both known where it is inlined. */
INLINE void tile(const kern_mm *j, kv_codec codec, const int n_a, const int n_t, size_t i, size_t t,
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
        /* half a line of each region a strip: as much as was read of b */
        if (f && (n_t > 1 || k % 2 == 0)) {
#pragma GCC unroll 2
            for (int h = 0; h < (n_t + 1) / 2; h++)
#pragma GCC unroll 2
                for (int g = 0; g < 2; g++) {
                    _mm_prefetch(f->p[g], _MM_HINT_T0);
                    f->p[g] += f->step[g];
                }
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
                   size_t t, size_t end, ahead *f)
{
    for (; t + (size_t)n_t <= end; t += (size_t)n_t) tile(j, codec, n_a, n_t, i, t, f);
    for (; t < end; t++) tile(j, codec, n_a, 1, i, t, f);
}

INLINE void group(const kern_mm *j, kv_codec codec, size_t n, size_t i, size_t t, size_t end,
                  ahead *f)
{
    switch (n) {
    case 1:
        strips(j, codec, 1, 4, i, t, end, f);
        break;
    case 2:
        strips(j, codec, 2, 2, i, t, end, f);
        break;
    case 3:
        strips(j, codec, 3, 2, i, t, end, f);
        break;
    case 4:
        strips(j, codec, 4, 1, i, t, end, f);
        break;
    case 5:
        strips(j, codec, 5, 1, i, t, end, f);
        break;
    default:
        strips(j, codec, 6, 1, i, t, end, f);
        break;
    }
}

INLINE void mm(const kern_mm *j, kv_codec codec)
{
    const size_t n_a = (size_t)j->n_a, groups = (n_a + TILE_A - 1) / TILE_A;
    const size_t step = n_a > 2 * TILE_A ? 1 : TILE_T, n_strip = (size_t)j->n_strip;
    ahead f = {{j->ahead[0], j->ahead[1]}, {j->ahead[0] ? LINE : 0, j->ahead[1] ? LINE : 0}};
    const bool fetch = j->ahead[0] || j->ahead[1];
    for (size_t t = 0; t < n_strip; t += step) {
        const size_t end = t + step < n_strip ? t + step : n_strip;
        for (size_t g = 0; g < groups; g++) {
            size_t i = g * n_a / groups, n = (g + 1) * n_a / groups - i;
            if (fetch && g == 0)
                group(j, codec, n, i, t, end, &f);
            else
                group(j, codec, n, i, t, end, NULL);
        }
    }
}

/* Strip by strip: rows of one strip lie together, those of several would share cache sets. */
INLINE void widen(float *dst, const uint8_t *src, int32_t n_rows, int32_t n_cols, kv_codec codec)
{
    const size_t e = elem(codec), rows = (size_t)n_rows, cols = (size_t)n_cols;
    size_t t = 0;
    for (; t + 16 <= cols; t += 16)
        for (size_t r = 0; r < rows; r++, dst += 16) {
            const uint8_t *s = src + (r * cols + t) * e;
            _mm256_storeu_ps(dst, load8(codec, s));
            _mm256_storeu_ps(dst + 8, load8(codec, s + 8 * e));
        }
    for (size_t r = 0; t < cols && r < rows; r++, dst += 16) {
        uint8_t rest[LINE] = {0};
        memcpy(rest, src + (r * cols + t) * e, (cols - t) * e);
        _mm256_storeu_ps(dst, load8(codec, rest));
        _mm256_storeu_ps(dst + 8, load8(codec, rest + 8 * e));
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

/* The largest lane; no lane is NaN. */
static inline float lane_max(__m256 v)
{
    __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    m4 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
    return _mm_cvtss_f32(_mm_max_ss(m4, _mm_movehdup_ps(m4)));
}

static void cap_scores(float *s, int32_t begin, int32_t end, float scale, float cap)
{
    const __m256 vs = _mm256_set1_ps(scale), vc = _mm256_set1_ps(cap);
    for (int32_t j = begin; j < end; j += 8) {
        __m256 x = _mm256_mul_ps(_mm256_loadu_ps(s + j), vs);
        if (cap > 0) x = _mm256_mul_ps(vc, tanh_avx2(_mm256_div_ps(x, vc)));
        _mm256_storeu_ps(s + j, x);
    }
}

/* A positive scale is applied on the way: rounding keeps order, so the maximum scaled is the maximum
   of the scaled. */
static float softmax_avx2(float *s, int32_t lo, int32_t hi, float scale, float cap, float *max)
{
    const int32_t begin = lo / 16 * 16, end = (hi / 16 + 1) * 16;
    if (cap > 0 || !(scale > 0)) {
        cap_scores(s, begin, end, scale, cap);
        scale = 1.0f;
    }
    fill_outside(s, lo, hi, -__builtin_inff());
    __m256 m0 = _mm256_set1_ps(-__builtin_inff()), m1 = m0;
    for (int32_t j = begin; j < end; j += 16) { /* NaN never becomes the maximum */
        m0 = _mm256_max_ps(_mm256_loadu_ps(s + j), m0);
        m1 = _mm256_max_ps(_mm256_loadu_ps(s + j + 8), m1);
    }
    *max = lane_max(_mm256_max_ps(m0, m1)) * scale;
    const __m256 m = _mm256_set1_ps(*max), vs = _mm256_set1_ps(scale);
    __m256 l0 = _mm256_setzero_ps(), l1 = l0;
    for (int32_t j = begin; j < end; j += 16) {
        __m256 x0 = _mm256_mul_ps(_mm256_loadu_ps(s + j), vs);
        __m256 x1 = _mm256_mul_ps(_mm256_loadu_ps(s + j + 8), vs);
        __m256 p0 = exp_low_avx2(_mm256_sub_ps(x0, m)), p1 = exp_low_avx2(_mm256_sub_ps(x1, m));
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
