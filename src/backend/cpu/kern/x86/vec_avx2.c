/* AVX2 and FMA: elementwise kernels, eight lanes at a time, the rest under a mask. */
#include "backend/cpu/kern/kern_vec.h"
#include "backend/cpu/kern/x86/math_avx2.h"

/* y[i] = expr(x) or expr(x, z) over vectors named so; `z` runs along the second operand. */
#define DEFINE_MAP1(name, param, expr)                                                             \
    static void name(float *y, const float *px, float param, size_t n)                             \
    {                                                                                              \
        const __m256 s = _mm256_set1_ps(param);                                                    \
        size_t i = 0;                                                                              \
        for (; i + 8 <= n; i += 8) {                                                               \
            __m256 x = _mm256_loadu_ps(px + i);                                                    \
            _mm256_storeu_ps(y + i, expr);                                                         \
        }                                                                                          \
        if (i < n) {                                                                               \
            __m256i m = mask_avx2(n - i);                                                          \
            __m256 x = _mm256_maskload_ps(px + i, m);                                              \
            _mm256_maskstore_ps(y + i, m, expr);                                                   \
        }                                                                                          \
    }
#define DEFINE_MAP2(name, expr)                                                                    \
    static void name(float *y, const float *px, const float *pz, size_t n)                         \
    {                                                                                              \
        size_t i = 0;                                                                              \
        for (; i + 8 <= n; i += 8) {                                                               \
            __m256 x = _mm256_loadu_ps(px + i), z = _mm256_loadu_ps(pz + i);                       \
            _mm256_storeu_ps(y + i, expr);                                                         \
        }                                                                                          \
        if (i < n) {                                                                               \
            __m256i m = mask_avx2(n - i);                                                          \
            __m256 x = _mm256_maskload_ps(px + i, m), z = _mm256_maskload_ps(pz + i, m);           \
            _mm256_maskstore_ps(y + i, m, expr);                                                   \
        }                                                                                          \
    }

DEFINE_MAP1(scale_avx2, factor, _mm256_mul_ps(x, s))
DEFINE_MAP1(softcap_avx2, cap, _mm256_mul_ps(s, tanh_avx2(_mm256_div_ps(x, s))))
DEFINE_MAP1(divide_avx2, d, _mm256_div_ps(x, s))
DEFINE_MAP2(add_avx2, _mm256_add_ps(x, z))
DEFINE_MAP2(glu_silu_avx2, _mm256_mul_ps(silu_avx2(x), z))
DEFINE_MAP2(glu_gelu_tanh_avx2, _mm256_mul_ps(gelu_tanh_avx2(x), z))
DEFINE_MAP2(glu_gelu_erf_avx2, _mm256_mul_ps(gelu_erf_avx2(x), z))
DEFINE_MAP2(glu_bilinear_avx2, _mm256_mul_ps(x, z))
DEFINE_MAP2(glu_sigmoid_avx2, _mm256_mul_ps(gate_avx2(_mm256_set1_ps(1.0f), x), z))
DEFINE_MAP2(glu_relu_avx2, _mm256_mul_ps(relu_avx2(x), z))

static float sum_sq_avx2(const float *x, size_t n)
{
    __m256 lo = _mm256_setzero_ps(), hi = lo;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + i + 8);
        lo = _mm256_fmadd_ps(a, a, lo);
        hi = _mm256_fmadd_ps(b, b, hi);
    }
    if (i < n) { /* lanes past the end add +0 to a sum that is never -0 */
        size_t left = n - i;
        __m256 a = _mm256_maskload_ps(x + i, mask_avx2(left));
        lo = _mm256_fmadd_ps(a, a, lo);
        if (left > 8) {
            a = _mm256_maskload_ps(x + i + 8, mask_avx2(left - 8));
            hi = _mm256_fmadd_ps(a, a, hi);
        }
    }
    return lane_tree_avx2(lo, hi);
}

static float add_sum_sq_avx2(float *y, const float *a, const float *b, size_t n)
{
    __m256 lo = _mm256_setzero_ps(), hi = lo;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256 u = _mm256_add_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i));
        __m256 v = _mm256_add_ps(_mm256_loadu_ps(a + i + 8), _mm256_loadu_ps(b + i + 8));
        _mm256_storeu_ps(y + i, u);
        _mm256_storeu_ps(y + i + 8, v);
        lo = _mm256_fmadd_ps(u, u, lo);
        hi = _mm256_fmadd_ps(v, v, hi);
    }
    for (size_t at = 0; i < n; i += 8, at += 8) {
        __m256i m = mask_avx2(n - i);
        __m256 u = _mm256_add_ps(_mm256_maskload_ps(a + i, m), _mm256_maskload_ps(b + i, m));
        _mm256_maskstore_ps(y + i, m, u);
        if (at == 0)
            lo = _mm256_fmadd_ps(u, u, lo);
        else
            hi = _mm256_fmadd_ps(u, u, hi);
    }
    return lane_tree_avx2(lo, hi);
}

static float sum_avx2(const float *x, size_t n)
{
    __m256 lo = _mm256_setzero_ps(), hi = lo;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        lo = _mm256_add_ps(lo, _mm256_loadu_ps(x + i));
        hi = _mm256_add_ps(hi, _mm256_loadu_ps(x + i + 8));
    }
    if (i < n) {
        size_t left = n - i;
        lo = _mm256_add_ps(lo, _mm256_maskload_ps(x + i, mask_avx2(left)));
        if (left > 8) hi = _mm256_add_ps(hi, _mm256_maskload_ps(x + i + 8, mask_avx2(left - 8)));
    }
    return lane_tree_avx2(lo, hi);
}

static float center_avx2(float *y, const float *x, float mean, size_t n)
{
    const __m256 s = _mm256_set1_ps(mean);
    __m256 lo = _mm256_setzero_ps(), hi = lo;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256 u = _mm256_sub_ps(_mm256_loadu_ps(x + i), s);
        __m256 v = _mm256_sub_ps(_mm256_loadu_ps(x + i + 8), s);
        _mm256_storeu_ps(y + i, u);
        _mm256_storeu_ps(y + i + 8, v);
        lo = _mm256_fmadd_ps(u, u, lo);
        hi = _mm256_fmadd_ps(v, v, hi);
    }
    for (size_t at = 0; i < n; i += 8, at += 8) {
        __m256i m = mask_avx2(n - i);
        __m256 u = _mm256_sub_ps(_mm256_maskload_ps(x + i, m), s);
        u = _mm256_and_ps(u, _mm256_castsi256_ps(m));
        _mm256_maskstore_ps(y + i, m, u);
        if (at == 0)
            lo = _mm256_fmadd_ps(u, u, lo);
        else
            hi = _mm256_fmadd_ps(u, u, hi);
    }
    return lane_tree_avx2(lo, hi);
}

static void xielu_all_avx2(float *y, const float *x, const xielu_params *p, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, xielu_avx2(_mm256_loadu_ps(x + i), p));
    if (i < n) {
        __m256i m = mask_avx2(n - i);
        _mm256_maskstore_ps(y + i, m, xielu_avx2(_mm256_maskload_ps(x + i, m), p));
    }
}

static void conv_avx2(float *y, const kern_conv *c, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        __m256i m = mask_avx2(n - i);
        __m256 sum = c->bias ? _mm256_maskload_ps(c->bias + i, m) : _mm256_setzero_ps();
        for (size_t j = 0; j < c->k; j++)
            sum = _mm256_fmadd_ps(_mm256_maskload_ps(c->w + j * c->ld + i, m),
                                  _mm256_maskload_ps(kern_conv_row(c, j) + i, m), sum);
        _mm256_maskstore_ps(y + i, m, c->silu ? silu_avx2(sum) : sum);
    }
}

static void norm_avx2(float *y, const float *x, float inv, const float *g, size_t n)
{
    const __m256 s = _mm256_set1_ps(inv);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 v = _mm256_mul_ps(_mm256_loadu_ps(x + i), s);
        _mm256_storeu_ps(y + i, _mm256_mul_ps(v, _mm256_loadu_ps(g + i)));
    }
    if (i < n) {
        __m256i m = mask_avx2(n - i);
        __m256 v = _mm256_mul_ps(_mm256_maskload_ps(x + i, m), s);
        _mm256_maskstore_ps(y + i, m, _mm256_mul_ps(v, _mm256_maskload_ps(g + i, m)));
    }
}

static void axpy_avx2(float *y, float w, const float *x, size_t n)
{
    const __m256 s = _mm256_set1_ps(w);
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_fmadd_ps(s, _mm256_loadu_ps(x + i), _mm256_loadu_ps(y + i)));
    if (i < n) {
        __m256i m = mask_avx2(n - i);
        __m256 v = _mm256_fmadd_ps(s, _mm256_maskload_ps(x + i, m), _mm256_maskload_ps(y + i, m));
        _mm256_maskstore_ps(y + i, m, v);
    }
}

static void rope_halves_avx2(float *y, const float *x, const float *c, const float *s, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 x1 = _mm256_loadu_ps(x + i), x2 = _mm256_loadu_ps(x + n + i);
        __m256 vc = _mm256_loadu_ps(c + i), vs = _mm256_loadu_ps(s + i);
        _mm256_storeu_ps(y + i, _mm256_fmsub_ps(x1, vc, _mm256_mul_ps(x2, vs)));
        _mm256_storeu_ps(y + n + i, _mm256_fmadd_ps(x2, vc, _mm256_mul_ps(x1, vs)));
    }
    if (i < n) {
        __m256i m = mask_avx2(n - i);
        __m256 x1 = _mm256_maskload_ps(x + i, m), x2 = _mm256_maskload_ps(x + n + i, m);
        __m256 vc = _mm256_maskload_ps(c + i, m), vs = _mm256_maskload_ps(s + i, m);
        _mm256_maskstore_ps(y + i, m, _mm256_fmsub_ps(x1, vc, _mm256_mul_ps(x2, vs)));
        _mm256_maskstore_ps(y + n + i, m, _mm256_fmadd_ps(x2, vc, _mm256_mul_ps(x1, vs)));
    }
}

static void rope_pairs_avx2(float *y, const float *x, const float *c, const float *s, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 a = _mm256_loadu_ps(x + 2 * i), b = _mm256_loadu_ps(x + 2 * i + 8);
        /* pairs in the order 0 1 4 5 2 3 6 7, and so must be c and s */
        __m256 x1 = _mm256_shuffle_ps(a, b, 0x88), x2 = _mm256_shuffle_ps(a, b, 0xdd);
        __m256d pc = _mm256_castps_pd(_mm256_loadu_ps(c + i));
        __m256d ps = _mm256_castps_pd(_mm256_loadu_ps(s + i));
        __m256 vc = _mm256_castpd_ps(_mm256_permute4x64_pd(pc, 0xd8));
        __m256 vs = _mm256_castpd_ps(_mm256_permute4x64_pd(ps, 0xd8));
        __m256 y1 = _mm256_fmsub_ps(x1, vc, _mm256_mul_ps(x2, vs));
        __m256 y2 = _mm256_fmadd_ps(x2, vc, _mm256_mul_ps(x1, vs));
        _mm256_storeu_ps(y + 2 * i, _mm256_unpacklo_ps(y1, y2));
        _mm256_storeu_ps(y + 2 * i + 8, _mm256_unpackhi_ps(y1, y2));
    }
    for (; i < n; i++) {
        float x1 = x[2 * i], x2 = x[2 * i + 1];
        y[2 * i] = __builtin_fmaf(x1, c[i], -(x2 * s[i]));
        y[2 * i + 1] = __builtin_fmaf(x2, c[i], x1 * s[i]);
    }
}

void kern_vec_avx2(kern_vec *v)
{
    v->sum_sq = sum_sq_avx2;
    v->add_sum_sq = add_sum_sq_avx2;
    v->sum = sum_avx2;
    v->center = center_avx2;
    v->norm = norm_avx2;
    v->add = add_avx2;
    v->scale = scale_avx2;
    v->softcap = softcap_avx2;
    v->glu[GLU_SILU] = glu_silu_avx2;
    v->glu[GLU_GELU_TANH] = glu_gelu_tanh_avx2;
    v->glu[GLU_GELU_ERF] = glu_gelu_erf_avx2;
    v->glu[GLU_BILINEAR] = glu_bilinear_avx2;
    v->glu[GLU_SIGMOID] = glu_sigmoid_avx2;
    v->glu[GLU_RELU] = glu_relu_avx2;
    v->xielu = xielu_all_avx2;
    v->conv = conv_avx2;
    v->rope_halves = rope_halves_avx2;
    v->rope_pairs = rope_pairs_avx2;
    v->axpy = axpy_avx2;
    v->divide = divide_avx2;
}
