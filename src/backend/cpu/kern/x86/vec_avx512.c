/* AVX-512: elementwise kernels, sixteen lanes at a time, the last ones under a mask. */
#include "backend/cpu/kern/kern_vec.h"
#include "backend/cpu/kern/x86/math_avx512.h"

#define DEFINE_MAP1(name, param, expr)                                                             \
    static void name(float *y, const float *px, float param, size_t n)                             \
    {                                                                                              \
        const __m512 s = _mm512_set1_ps(param);                                                    \
        for (size_t i = 0; i < n; i += 16) {                                                       \
            __mmask16 m = mask_avx512(n - i);                                                      \
            __m512 x = _mm512_maskz_loadu_ps(m, px + i);                                           \
            _mm512_mask_storeu_ps(y + i, m, expr);                                                 \
        }                                                                                          \
    }
#define DEFINE_MAP2(name, expr)                                                                    \
    static void name(float *y, const float *px, const float *pz, size_t n)                         \
    {                                                                                              \
        for (size_t i = 0; i < n; i += 16) {                                                       \
            __mmask16 m = mask_avx512(n - i);                                                      \
            __m512 x = _mm512_maskz_loadu_ps(m, px + i), z = _mm512_maskz_loadu_ps(m, pz + i);     \
            _mm512_mask_storeu_ps(y + i, m, expr);                                                 \
        }                                                                                          \
    }

DEFINE_MAP1(scale_avx512, factor, _mm512_mul_ps(x, s))
DEFINE_MAP1(softcap_avx512, cap, _mm512_mul_ps(s, tanh_avx512(_mm512_div_ps(x, s))))
DEFINE_MAP1(divide_avx512, d, _mm512_div_ps(x, s))
DEFINE_MAP2(add_avx512, _mm512_add_ps(x, z))
DEFINE_MAP2(glu_silu_avx512, _mm512_mul_ps(silu_avx512(x), z))
DEFINE_MAP2(glu_gelu_tanh_avx512, _mm512_mul_ps(gelu_tanh_avx512(x), z))
DEFINE_MAP2(glu_gelu_erf_avx512, _mm512_mul_ps(gelu_erf_avx512(x), z))
DEFINE_MAP2(glu_bilinear_avx512, _mm512_mul_ps(x, z))
DEFINE_MAP2(glu_sigmoid_avx512, _mm512_mul_ps(gate_avx512(_mm512_set1_ps(1.0f), x), z))
DEFINE_MAP2(glu_relu_avx512, _mm512_mul_ps(relu_avx512(x), z))

/* Lanes past the end are +0 and add +0 to sums that are never -0. */
static float sum_sq_avx512(const float *x, size_t n)
{
    __m512 l = _mm512_setzero_ps();
    for (size_t i = 0; i < n; i += 16) {
        __m512 v = _mm512_maskz_loadu_ps(mask_avx512(n - i), x + i);
        l = _mm512_fmadd_ps(v, v, l);
    }
    return lane_tree_avx512(l);
}

static float add_sum_sq_avx512(float *y, const float *a, const float *b, size_t n)
{
    __m512 l = _mm512_setzero_ps();
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = mask_avx512(n - i);
        __m512 v = _mm512_add_ps(_mm512_maskz_loadu_ps(m, a + i), _mm512_maskz_loadu_ps(m, b + i));
        _mm512_mask_storeu_ps(y + i, m, v);
        l = _mm512_fmadd_ps(v, v, l);
    }
    return lane_tree_avx512(l);
}

static float sum_avx512(const float *x, size_t n)
{
    __m512 l = _mm512_setzero_ps();
    for (size_t i = 0; i < n; i += 16)
        l = _mm512_add_ps(l, _mm512_maskz_loadu_ps(mask_avx512(n - i), x + i));
    return lane_tree_avx512(l);
}

static float center_avx512(float *y, const float *x, float mean, size_t n)
{
    const __m512 s = _mm512_set1_ps(mean);
    __m512 l = _mm512_setzero_ps();
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = mask_avx512(n - i);
        __m512 v = _mm512_maskz_sub_ps(m, _mm512_maskz_loadu_ps(m, x + i), s);
        _mm512_mask_storeu_ps(y + i, m, v);
        l = _mm512_fmadd_ps(v, v, l);
    }
    return lane_tree_avx512(l);
}

static void xielu_all_avx512(float *y, const float *x, const xielu_params *p, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = mask_avx512(n - i);
        _mm512_mask_storeu_ps(y + i, m, xielu_avx512(_mm512_maskz_loadu_ps(m, x + i), p));
    }
}

static void conv_avx512(float *y, const kern_conv *c, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = mask_avx512(n - i);
        __m512 sum = c->bias ? _mm512_maskz_loadu_ps(m, c->bias + i) : _mm512_setzero_ps();
        for (size_t j = 0; j < c->k; j++)
            sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(m, c->w + j * c->ld + i),
                                  _mm512_maskz_loadu_ps(m, kern_conv_row(c, j) + i), sum);
        _mm512_mask_storeu_ps(y + i, m, c->silu ? silu_avx512(sum) : sum);
    }
}

static void norm_avx512(float *y, const float *x, float inv, const float *g, size_t n)
{
    const __m512 s = _mm512_set1_ps(inv);
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = mask_avx512(n - i);
        __m512 v = _mm512_mul_ps(_mm512_maskz_loadu_ps(m, x + i), s);
        _mm512_mask_storeu_ps(y + i, m, _mm512_mul_ps(v, _mm512_maskz_loadu_ps(m, g + i)));
    }
}

static void axpy_avx512(float *y, float w, const float *x, size_t n)
{
    const __m512 s = _mm512_set1_ps(w);
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = mask_avx512(n - i);
        __m512 v = _mm512_maskz_loadu_ps(m, y + i);
        _mm512_mask_storeu_ps(y + i, m, _mm512_fmadd_ps(s, _mm512_maskz_loadu_ps(m, x + i), v));
    }
}

static void rope_halves_avx512(float *y, const float *x, const float *c, const float *s, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = mask_avx512(n - i);
        __m512 x1 = _mm512_maskz_loadu_ps(m, x + i), x2 = _mm512_maskz_loadu_ps(m, x + n + i);
        __m512 vc = _mm512_maskz_loadu_ps(m, c + i), vs = _mm512_maskz_loadu_ps(m, s + i);
        _mm512_mask_storeu_ps(y + i, m, _mm512_fmsub_ps(x1, vc, _mm512_mul_ps(x2, vs)));
        _mm512_mask_storeu_ps(y + n + i, m, _mm512_fmadd_ps(x2, vc, _mm512_mul_ps(x1, vs)));
    }
}

/* rope_pairs stays AVX2's: it is bound by its shuffles. */
void kern_vec_avx512(kern_vec *v)
{
    v->sum_sq = sum_sq_avx512;
    v->add_sum_sq = add_sum_sq_avx512;
    v->sum = sum_avx512;
    v->center = center_avx512;
    v->norm = norm_avx512;
    v->add = add_avx512;
    v->scale = scale_avx512;
    v->softcap = softcap_avx512;
    v->glu[GLU_SILU] = glu_silu_avx512;
    v->glu[GLU_GELU_TANH] = glu_gelu_tanh_avx512;
    v->glu[GLU_GELU_ERF] = glu_gelu_erf_avx512;
    v->glu[GLU_BILINEAR] = glu_bilinear_avx512;
    v->glu[GLU_SIGMOID] = glu_sigmoid_avx512;
    v->glu[GLU_RELU] = glu_relu_avx512;
    v->xielu = xielu_all_avx512;
    v->conv = conv_avx512;
    v->rope_halves = rope_halves_avx512;
    v->axpy = axpy_avx512;
    v->divide = divide_avx512;
}
