/* Plain C: what the vector kernels mean. */
#include <math.h>

#include "backend/cpu/kern/kern_math.h"
#include "backend/cpu/kern/kern_vec.h"

static float lane_tree(float l[16])
{
    for (int step = 8; step > 0; step /= 2)
        for (int i = 0; i < step; i++) l[i] += l[i + step];
    return l[0];
}

static float ref_sum_sq(const float *x, size_t n)
{
    float l[16] = {0};
    for (size_t i = 0; i < n; i++) l[i % 16] = fmaf(x[i], x[i], l[i % 16]);
    return lane_tree(l);
}

static float ref_add_sum_sq(float *y, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = a[i] + b[i];
    return ref_sum_sq(y, n);
}

static float ref_sum(const float *x, size_t n)
{
    float l[16] = {0};
    for (size_t i = 0; i < n; i++) l[i % 16] += x[i];
    return lane_tree(l);
}

static float ref_center(float *y, const float *x, float mean, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = x[i] - mean;
    return ref_sum_sq(y, n);
}

static void ref_norm(float *y, const float *x, float inv, const float *g, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = (x[i] * inv) * g[i];
}

static void ref_add(float *y, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

static void ref_scale(float *y, const float *x, float s, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = x[i] * s;
}

static void ref_softcap(float *y, const float *x, float cap, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = cap * kern_tanh(x[i] / cap);
}

static void ref_glu_silu(float *y, const float *g, const float *u, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = kern_silu(g[i]) * u[i];
}

static void ref_glu_clamped(float *y, const float *g, const float *u, size_t n, float alpha,
                            float limit)
{
    for (size_t i = 0; i < n; i++) {
        const float gate = g[i] > limit ? limit : g[i];
        const float up = u[i] > limit ? limit : u[i] < -limit ? -limit : u[i];
        y[i] = (up + 1.0f) * (gate * (1.0f / (1.0f + kern_exp(-(gate * alpha)))));
    }
}

static void ref_glu_gelu_tanh(float *y, const float *g, const float *u, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = kern_gelu_tanh(g[i]) * u[i];
}

static void ref_glu_gelu_erf(float *y, const float *g, const float *u, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = kern_gelu_erf(g[i]) * u[i];
}

static void ref_glu_bilinear(float *y, const float *g, const float *u, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = g[i] * u[i];
}

static void ref_glu_sigmoid(float *y, const float *g, const float *u, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = kern_sigmoid(g[i]) * u[i];
}

static void ref_glu_relu(float *y, const float *g, const float *u, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = (g[i] < 0.0f ? 0.0f : g[i]) * u[i];
}

static void ref_conv(float *y, const kern_conv *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float sum = c->bias ? c->bias[i] : 0.0f;
        for (size_t j = 0; j < c->k; j++)
            sum = fmaf(c->w[j * c->ld + i], kern_conv_row(c, j)[i], sum);
        y[i] = c->silu ? kern_silu(sum) : sum;
    }
}

static float ref_scan(float *h, float decay, float u, const float *b, const float *c, size_t n)
{
    float l[16] = {0};
    for (size_t i = 0; i < n; i++) {
        h[i] = fmaf(u, b[i], h[i] * decay);
        l[i % 16] = fmaf(h[i], c[i], l[i % 16]);
    }
    return lane_tree(l);
}

static void ref_xielu(float *y, const float *x, const xielu_params *p, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = kern_xielu(x[i], p);
}

static void ref_rope_halves(float *y, const float *x, const float *c, const float *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float x1 = x[i], x2 = x[n + i];
        y[i] = fmaf(x1, c[i], -(x2 * s[i]));
        y[n + i] = fmaf(x2, c[i], x1 * s[i]);
    }
}

static void ref_rope_pairs(float *y, const float *x, const float *c, const float *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float x1 = x[2 * i], x2 = x[2 * i + 1];
        y[2 * i] = fmaf(x1, c[i], -(x2 * s[i]));
        y[2 * i + 1] = fmaf(x2, c[i], x1 * s[i]);
    }
}

static void ref_axpy(float *y, float w, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = fmaf(w, x[i], y[i]);
}

static void ref_divide(float *y, const float *x, float d, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = x[i] / d;
}

void kern_vec_ref(kern_vec *v)
{
    v->sum_sq = ref_sum_sq;
    v->add_sum_sq = ref_add_sum_sq;
    v->sum = ref_sum;
    v->center = ref_center;
    v->norm = ref_norm;
    v->add = ref_add;
    v->scale = ref_scale;
    v->softcap = ref_softcap;
    v->glu[GLU_SILU] = ref_glu_silu;
    v->glu_clamped = ref_glu_clamped;
    v->glu[GLU_GELU_TANH] = ref_glu_gelu_tanh;
    v->glu[GLU_GELU_ERF] = ref_glu_gelu_erf;
    v->glu[GLU_BILINEAR] = ref_glu_bilinear;
    v->glu[GLU_SIGMOID] = ref_glu_sigmoid;
    v->glu[GLU_RELU] = ref_glu_relu;
    v->xielu = ref_xielu;
    v->conv = ref_conv;
    v->scan = ref_scan;
    v->rope_halves = ref_rope_halves;
    v->rope_pairs = ref_rope_pairs;
    v->axpy = ref_axpy;
    v->divide = ref_divide;
}
