/* AVX-512: attention.  A tile of mm holds up to 8 vectors × 32 columns in 16 registers of sums, enough
   chains to hide the latency of both FMA pipes; a strip's 16 columns are one register. */
#include <string.h>

#include "backend/cpu/kern/kern_vec.h"
#include "backend/cpu/kern/x86/math_avx512.h"

#define INLINE static inline __attribute__((always_inline))

enum { TILE_A = 8, TILE_T = 4, LINE = 64 };

INLINE __m512 load16(kv_codec c, const uint8_t *p)
{
    if (c == KV_F32) return _mm512_loadu_ps(p);
    __m256i h = _mm256_loadu_si256((const __m256i *)(const void *)p);
    if (c == KV_F16) return _mm512_cvtph_ps(h);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
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
    const size_t e = elem(codec), row = j->row * e, strip = j->strip * e;
    const uint8_t *b = (const uint8_t *)j->b + t * strip;
    const float *a = j->a + i * j->lda;
    const size_t n = (size_t)j->n;
    float *c = j->c + i * j->ldc + t * 16;
    __m512 acc[TILE_A][TILE_T];
#pragma GCC unroll 8
    for (int r = 0; r < n_a; r++)
#pragma GCC unroll 4
        for (int s = 0; s < n_t; s++)
            acc[r][s] =
                j->add ? _mm512_loadu_ps(c + (size_t)r * j->ldc + 16 * s) : _mm512_setzero_ps();
    for (size_t k = 0; k < n; k++, b += row) {
        __m512 v[TILE_T];
#pragma GCC unroll 4
        for (int s = 0; s < n_t; s++) v[s] = load16(codec, b + (size_t)s * strip);
#pragma GCC unroll 8
        for (int r = 0; r < n_a; r++) {
            __m512 x = _mm512_set1_ps(a[(size_t)r * j->lda + k]);
#pragma GCC unroll 4
            for (int s = 0; s < n_t; s++) acc[r][s] = _mm512_fmadd_ps(x, v[s], acc[r][s]);
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
#pragma GCC unroll 8
    for (int r = 0; r < n_a; r++)
#pragma GCC unroll 4
        for (int s = 0; s < n_t; s++) _mm512_storeu_ps(c + (size_t)r * j->ldc + 16 * s, acc[r][s]);
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
        strips(j, codec, 2, 4, i, t, end, f);
        break;
    case 3:
        strips(j, codec, 3, 4, i, t, end, f);
        break;
    case 4:
        strips(j, codec, 4, 4, i, t, end, f);
        break;
    case 5:
        strips(j, codec, 5, 2, i, t, end, f);
        break;
    case 6:
        strips(j, codec, 6, 2, i, t, end, f);
        break;
    case 7:
        strips(j, codec, 7, 2, i, t, end, f);
        break;
    default:
        strips(j, codec, 8, 2, i, t, end, f);
        break;
    }
}

INLINE void mm(const kern_mm *j, kv_codec codec)
{
    const size_t n_a = (size_t)j->n_a, groups = (n_a + TILE_A - 1) / TILE_A;
    const size_t step = n_a > 2 * TILE_A ? 2 : TILE_T, n_strip = (size_t)j->n_strip;
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
        for (size_t r = 0; r < rows; r++, dst += 16)
            _mm512_storeu_ps(dst, load16(codec, src + (r * cols + t) * e));
    for (size_t r = 0; t < cols && r < rows; r++, dst += 16) {
        uint8_t rest[LINE] = {0};
        memcpy(rest, src + (r * cols + t) * e, (cols - t) * e);
        _mm512_storeu_ps(dst, load16(codec, rest));
    }
}

#define DEFINE_CODEC(name, codec)                                                                  \
    static void mm_##name##_avx512(const kern_mm *j)                                               \
    {                                                                                              \
        mm(j, codec);                                                                              \
    }                                                                                              \
    static void widen_##name##_avx512(float *dst, const void *src, int32_t n_rows, int32_t n_cols) \
    {                                                                                              \
        widen(dst, src, n_rows, n_cols, codec);                                                    \
    }
DEFINE_CODEC(f16, KV_F16)
DEFINE_CODEC(bf16, KV_BF16)
DEFINE_CODEC(f32, KV_F32)

static void fill_outside(float *s, int32_t lo, int32_t hi, float x)
{
    for (int32_t j = lo / 16 * 16; j < lo; j++) s[j] = x;
    for (int32_t j = hi + 1; j % 16 != 0; j++) s[j] = x;
}

/* The largest lane; no lane is NaN. */
static inline float lane_max(__m512 v)
{
    __m256 m8 = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
    m4 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
    return _mm_cvtss_f32(_mm_max_ss(m4, _mm_movehdup_ps(m4)));
}

static void cap_scores(float *s, int32_t begin, int32_t end, float scale, float cap)
{
    const __m512 vs = _mm512_set1_ps(scale), vc = _mm512_set1_ps(cap);
    for (int32_t j = begin; j < end; j += 16) {
        __m512 x = _mm512_mul_ps(_mm512_loadu_ps(s + j), vs);
        if (cap > 0) x = _mm512_mul_ps(vc, tanh_avx512(_mm512_div_ps(x, vc)));
        _mm512_storeu_ps(s + j, x);
    }
}

/* A positive scale is applied on the way: rounding keeps order, so the maximum scaled is the maximum
   of the scaled. */
static float softmax_avx512(float *s, int32_t lo, int32_t hi, float scale, float cap, float *max)
{
    const int32_t begin = lo / 16 * 16, end = (hi / 16 + 1) * 16;
    if (cap > 0 || !(scale > 0)) {
        cap_scores(s, begin, end, scale, cap);
        scale = 1.0f;
    }
    fill_outside(s, lo, hi, -__builtin_inff());
    __m512 m = _mm512_set1_ps(-__builtin_inff());
    for (int32_t j = begin; j < end; j += 16) /* NaN never becomes the maximum */
        m = _mm512_max_ps(_mm512_loadu_ps(s + j), m);
    *max = lane_max(m) * scale;
    m = _mm512_set1_ps(*max);
    const __m512 vs = _mm512_set1_ps(scale);
    __m512 l = _mm512_setzero_ps();
    for (int32_t j = begin; j < end; j += 16) {
        __m512 p = exp_low_avx512(_mm512_sub_ps(_mm512_mul_ps(_mm512_loadu_ps(s + j), vs), m));
        _mm512_storeu_ps(s + j, p);
        l = _mm512_add_ps(l, p);
    }
    fill_outside(s, lo, hi, 0.0f); /* NaN there when all scores were -inf */
    return lane_tree_avx512(l);
}

/* Encoding stays AVX2's: a step has few new positions. */
void kern_attend_avx512(kern_vec *v)
{
    v->widen[KV_F16] = widen_f16_avx512;
    v->widen[KV_BF16] = widen_bf16_avx512;
    v->widen[KV_F32] = widen_f32_avx512;
    v->mm[KV_F16] = mm_f16_avx512;
    v->mm[KV_BF16] = mm_bf16_avx512;
    v->mm[KV_F32] = mm_f32_avx512;
    v->softmax = softmax_avx512;
}
