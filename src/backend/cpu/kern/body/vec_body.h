/* Elementwise kernels over sixteen lanes, once for every width: what kern_vec.h says, whole registers
   first, then the rest of a row under a mask.  Included after lanes_LEVEL.h and math_body.h.

   Invariant: sums have sixteen partial sums, element i in number i % 16; lanes past the end add +0 to
   sums that are never -0. */
#include "backend/cpu/kern/kern_vec.h"

/* y[i] = expr over the operands x (and z); param is s in every lane. */
#define DEFINE_MAP1(name, param, expr)                                                             \
    static void name(float *y, const float *px, float param, size_t n)                             \
    {                                                                                              \
        const v16 s = set16(param);                                                                \
        size_t i = 0;                                                                              \
        for (; i + 16 <= n; i += 16) {                                                             \
            const v16 x = loadf16(px + i);                                                         \
            store16(y + i, expr);                                                                  \
        }                                                                                          \
        if (i < n) {                                                                               \
            const v16 x = loadf16_first(px + i, n - i);                                            \
            store16_first(y + i, expr, n - i);                                                     \
        }                                                                                          \
    }
#define DEFINE_MAP2(name, expr)                                                                    \
    static void name(float *y, const float *px, const float *pz, size_t n)                         \
    {                                                                                              \
        size_t i = 0;                                                                              \
        for (; i + 16 <= n; i += 16) {                                                             \
            const v16 x = loadf16(px + i), z = loadf16(pz + i);                                    \
            store16(y + i, expr);                                                                  \
        }                                                                                          \
        if (i < n) {                                                                               \
            const v16 x = loadf16_first(px + i, n - i), z = loadf16_first(pz + i, n - i);          \
            store16_first(y + i, expr, n - i);                                                     \
        }                                                                                          \
    }

DEFINE_MAP1(vec_scale, factor, mul16(x, s))
DEFINE_MAP1(vec_softcap, cap, mul16(s, tanh16(div16(x, s))))
DEFINE_MAP1(vec_divide, d, div16(x, s))
DEFINE_MAP2(vec_add, add16(x, z))
DEFINE_MAP2(vec_glu_silu, mul16(silu16(x), z))
DEFINE_MAP2(vec_glu_gelu_tanh, mul16(gelu_tanh16(x), z))
DEFINE_MAP2(vec_glu_gelu_erf, mul16(gelu_erf16(x), z))
DEFINE_MAP2(vec_glu_bilinear, mul16(x, z))
DEFINE_MAP2(vec_glu_sigmoid, mul16(gate16(set16(1.0f), x), z))
DEFINE_MAP2(vec_glu_relu, mul16(relu16(x), z))
/* NaN is neither above nor below a limit and stays. */
INLINE v16 glu_clamped16(v16 g, v16 u, v16 alpha, v16 limit)
{
    const v16 one = set16(1.0f), least = negate16(limit);
    g = pick16(less16(limit, g), limit, g);
    u = pick16(less16(limit, u), limit, pick16(less16(u, least), least, u));
    return mul16(add16(u, one), mul16(g, gate16(one, mul16(g, alpha))));
}

static void vec_glu_clamped(float *y, const float *pg, const float *pu, size_t n, float alpha,
                            float limit)
{
    const v16 a = set16(alpha), l = set16(limit);
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        store16(y + i, glu_clamped16(loadf16(pg + i), loadf16(pu + i), a, l));
    if (i == n) return;
    const v16 g = loadf16_first(pg + i, n - i), u = loadf16_first(pu + i, n - i);
    store16_first(y + i, glu_clamped16(g, u, a, l), n - i);
}
#undef DEFINE_MAP1
#undef DEFINE_MAP2

static float vec_sum_sq(const float *x, size_t n)
{
    v16 l = set16(0.0f);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const v16 v = loadf16(x + i);
        l = fma16(v, v, l);
    }
    if (i < n) {
        const v16 v = loadf16_first(x + i, n - i);
        l = fma16(v, v, l);
    }
    return v16_tree(l);
}

static float vec_add_sum_sq(float *y, const float *a, const float *b, size_t n)
{
    v16 l = set16(0.0f);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const v16 v = add16(loadf16(a + i), loadf16(b + i));
        store16(y + i, v);
        l = fma16(v, v, l);
    }
    if (i < n) {
        const v16 v = add16(loadf16_first(a + i, n - i), loadf16_first(b + i, n - i));
        store16_first(y + i, v, n - i);
        l = fma16(v, v, l);
    }
    return v16_tree(l);
}

static float vec_sum(const float *x, size_t n)
{
    v16 l = set16(0.0f);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) l = add16(l, loadf16(x + i));
    if (i < n) l = add16(l, loadf16_first(x + i, n - i));
    return v16_tree(l);
}

static float vec_center(float *y, const float *x, float mean, size_t n)
{
    const v16 s = set16(mean);
    v16 l = set16(0.0f);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const v16 v = sub16(loadf16(x + i), s);
        store16(y + i, v);
        l = fma16(v, v, l);
    }
    if (i < n) {
        const v16 v = first16(sub16(loadf16_first(x + i, n - i), s), n - i);
        store16_first(y + i, v, n - i);
        l = fma16(v, v, l);
    }
    return v16_tree(l);
}

static void vec_xielu(float *y, const float *x, const xielu_params *p, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) store16(y + i, xielu16(loadf16(x + i), p));
    if (i < n) store16_first(y + i, xielu16(loadf16_first(x + i, n - i), p), n - i);
}

INLINE v16 load_some(const float *p, size_t n)
{
    return n < 16 ? loadf16_first(p, n) : loadf16(p);
}

/* Columns i … i + n - 1, n <= 16. */
INLINE v16 conv16(const kern_conv *c, size_t i, size_t n)
{
    v16 sum = c->bias ? load_some(c->bias + i, n) : set16(0.0f);
    for (size_t j = 0; j < c->k; j++)
        sum = fma16(load_some(c->w + j * c->ld + i, n), load_some(kern_conv_row(c, j) + i, n), sum);
    return c->silu ? silu16(sum) : sum;
}

static void vec_conv(float *y, const kern_conv *c, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) store16(y + i, conv16(c, i, 16));
    if (i < n) store16_first(y + i, conv16(c, i, n - i), n - i);
}

static float vec_scan(float *h, float decay, float u, const float *b, const float *c, size_t n)
{
    static const float lane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const v16 vd = set16(decay), vu = set16(u);
    v16 l = set16(0.0f);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const v16 x = fma16(vu, loadf16(b + i), mul16(loadf16(h + i), vd));
        store16(h + i, x);
        l = fma16(x, loadf16(c + i), l);
    }
    if (i < n) { /* unlike sums of squares, these may be -0 */
        const size_t left = n - i;
        const v16 x = fma16(vu, loadf16_first(b + i, left), mul16(loadf16_first(h + i, left), vd));
        store16_first(h + i, x, left);
        const v16 more = fma16(x, loadf16_first(c + i, left), l);
        l = pick16(less16(loadf16(lane), set16((float)left)), more, l);
    }
    return v16_tree(l);
}

static void vec_norm(float *y, const float *x, float inv, const float *g, size_t n)
{
    const v16 s = set16(inv);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) store16(y + i, mul16(mul16(loadf16(x + i), s), loadf16(g + i)));
    if (i < n) {
        const v16 v = mul16(loadf16_first(x + i, n - i), s);
        store16_first(y + i, mul16(v, loadf16_first(g + i, n - i)), n - i);
    }
}

static void vec_axpy(float *y, float w, const float *x, size_t n)
{
    const v16 s = set16(w);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) store16(y + i, fma16(s, loadf16(x + i), loadf16(y + i)));
    if (i < n) {
        const v16 v = fma16(s, loadf16_first(x + i, n - i), loadf16_first(y + i, n - i));
        store16_first(y + i, v, n - i);
    }
}

static void vec_rope_halves(float *y, const float *x, const float *c, const float *s, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const v16 x1 = loadf16(x + i), x2 = loadf16(x + n + i);
        const v16 vc = loadf16(c + i), vs = loadf16(s + i);
        store16(y + i, fms16(x1, vc, mul16(x2, vs)));
        store16(y + n + i, fma16(x2, vc, mul16(x1, vs)));
    }
    if (i < n) {
        const size_t left = n - i;
        const v16 x1 = loadf16_first(x + i, left), x2 = loadf16_first(x + n + i, left);
        const v16 vc = loadf16_first(c + i, left), vs = loadf16_first(s + i, left);
        store16_first(y + i, fms16(x1, vc, mul16(x2, vs)), left);
        store16_first(y + n + i, fma16(x2, vc, mul16(x1, vs)), left);
    }
}

static void vec_install(kern_vec *v)
{
    v->sum_sq = vec_sum_sq;
    v->add_sum_sq = vec_add_sum_sq;
    v->sum = vec_sum;
    v->center = vec_center;
    v->norm = vec_norm;
    v->add = vec_add;
    v->scale = vec_scale;
    v->softcap = vec_softcap;
    v->glu[GLU_SILU] = vec_glu_silu;
    v->glu[GLU_GELU_TANH] = vec_glu_gelu_tanh;
    v->glu[GLU_GELU_ERF] = vec_glu_gelu_erf;
    v->glu[GLU_BILINEAR] = vec_glu_bilinear;
    v->glu[GLU_SIGMOID] = vec_glu_sigmoid;
    v->glu[GLU_RELU] = vec_glu_relu;
    v->glu_clamped = vec_glu_clamped;
    v->conv = vec_conv;
    v->scan = vec_scan;
    v->xielu = vec_xielu;
    v->rope_halves = vec_rope_halves;
    v->axpy = vec_axpy;
    v->divide = vec_divide;
}
