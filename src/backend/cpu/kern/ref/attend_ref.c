/* Plain C: attention's tiles and the cache's codecs. */
#include <math.h>

#include "backend/cpu/kern/kern_math.h"
#include "backend/cpu/kern/kern_vec.h"
#include "base/half.h"

static float load_f16(const void *p, size_t i)
{
    return f16_to_f32(((const uint16_t *)p)[i]);
}
static float load_bf16(const void *p, size_t i)
{
    return bf16_to_f32(((const uint16_t *)p)[i]);
}
static float load_f32(const void *p, size_t i)
{
    return ((const float *)p)[i];
}

static void encode_f16(void *dst, const float *src, size_t n)
{
    uint16_t *d = dst;
    for (size_t i = 0; i < n; i++) d[i] = f16_from_f32_sat(src[i]);
}
static void encode_bf16(void *dst, const float *src, size_t n)
{
    uint16_t *d = dst;
    for (size_t i = 0; i < n; i++) d[i] = bf16_from_f32(src[i]);
}
static void encode_f32(void *dst, const float *src, size_t n)
{
    memcpy(dst, src, n * sizeof *src);
}

/* The two kernels below, once a codec. */
#define DEFINE_CODEC(codec)                                                                        \
    static void widen_##codec(float *dst, const void *src, int32_t n_rows, int32_t n_cols)         \
    {                                                                                              \
        for (int32_t t = 0; t * 16 < n_cols; t++)                                                  \
            for (int32_t r = 0; r < n_rows; r++)                                                   \
                for (int32_t l = 0; l < 16; l++) {                                                 \
                    int32_t i = t * 16 + l;                                                        \
                    size_t at = (size_t)r * (size_t)n_cols + (size_t)i;                            \
                    *dst++ = i < n_cols ? load_##codec(src, at) : 0.0f;                            \
                }                                                                                  \
    }                                                                                              \
    static void mm_##codec(const kern_mm *j)                                                       \
    {                                                                                              \
        for (int32_t t = 0; t < j->n_strip; t++)                                                   \
            for (int32_t i = 0; i < j->n_a; i++)                                                   \
                for (int32_t l = 0; l < 16; l++) {                                                 \
                    float *c = j->c + (size_t)i * j->ldc + (size_t)(t * 16 + l);                   \
                    const float *a = j->a + (size_t)i * j->lda;                                    \
                    size_t b = (size_t)t * j->strip + (size_t)l;                                   \
                    float s = j->add ? *c : 0.0f;                                                  \
                    for (int32_t k = 0; k < j->n; k++)                                             \
                        s = fmaf(a[k], load_##codec(j->b, b + (size_t)k * j->row), s);             \
                    *c = s;                                                                        \
                }                                                                                  \
    }
DEFINE_CODEC(f16)
DEFINE_CODEC(bf16)
DEFINE_CODEC(f32)

static float softmax_row(float *s, int32_t lo, int32_t hi, float scale, float cap, float *max)
{
    float m = -INFINITY, l[16] = {0};
    for (int32_t j = lo; j <= hi; j++) {
        s[j] *= scale;
        if (cap > 0) s[j] = cap * kern_tanh(s[j] / cap);
        if (s[j] > m) m = s[j];
    }
    for (int32_t j = lo / 16 * 16; j < (hi / 16 + 1) * 16; j++) {
        if (j < lo || j > hi) {
            s[j] = 0;
            continue;
        }
        s[j] = kern_exp(s[j] - m);
        l[j % 16] += s[j];
    }
    for (int step = 8; step > 0; step /= 2)
        for (int i = 0; i < step; i++) l[i] += l[i + step];
    *max = m;
    return l[0];
}

static void ref_softmax(const kern_softmax *j)
{
    for (int32_t i = 0; i < j->n; i++)
        j->sum[(size_t)i * j->step] = softmax_row(j->s + (size_t)i * j->pitch, j->lo, j->hi,
                                                  j->scale, j->cap, &j->max[(size_t)i * j->step]);
}

static void ref_merge(const kern_merge *j)
{
    float sum = 0;
    for (size_t c = 0; c < j->n_x; c++) sum = fmaf(j->w[c], j->l[c], sum);
    sum += j->more;
    for (size_t i = 0; i < j->n; i++) {
        float y = 0;
        for (size_t c = 0; c < j->n_x; c++) y = fmaf(j->w[c], j->x[c * j->step + i], y);
        j->y[i] = y / sum;
    }
}

void kern_attend_ref(kern_vec *v)
{
    v->merge = ref_merge;
    v->encode[KV_F16] = encode_f16;
    v->encode[KV_BF16] = encode_bf16;
    v->encode[KV_F32] = encode_f32;
    v->widen[KV_F16] = widen_f16;
    v->widen[KV_BF16] = widen_bf16;
    v->widen[KV_F32] = widen_f32;
    v->mm[KV_F16] = mm_f16;
    v->mm[KV_BF16] = mm_bf16;
    v->mm[KV_F32] = mm_f32;
    v->mm_direct = 12; /* so that every machine's tests go both ways */
    v->softmax = ref_softmax;
}
