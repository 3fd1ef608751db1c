/* Dense weights: the definition of lane16.  Sixteen partial sums from +0 by k mod 16, each a chain of
   fmaf in rising k, then added by the tree +8, +4, +2, +1.  Weights are read where they lie, of any
   alignment.  Also fills the reference table. */
#include <math.h>
#include <string.h>

#include "backend/cpu/kern/ref/linear_ref.h"
#include "base/half.h"

static float weight_f32(const uint8_t *w, int32_t k)
{
    float f;
    memcpy(&f, w + 4 * (size_t)k, sizeof f);
    return f;
}
static float weight_f16(const uint8_t *w, int32_t k)
{
    uint16_t h;
    memcpy(&h, w + 2 * (size_t)k, sizeof h);
    return f16_to_f32(h);
}
static float weight_bf16(const uint8_t *w, int32_t k)
{
    uint16_t h;
    memcpy(&h, w + 2 * (size_t)k, sizeof h);
    return bf16_to_f32(h);
}

static float tree16(float lane[16])
{
    for (int32_t half = 8; half > 0; half /= 2) {
        for (int32_t i = 0; i < half; i++) lane[i] += lane[i + half];
    }
    return lane[0];
}

#define DEFINE_DENSE(name, weight)                                                                 \
    void name(const uint8_t *w, size_t w_stride, int32_t n_w, const float *x, size_t x_stride,     \
              int32_t n_x, int32_t k, float *y, size_t y_stride)                                   \
    {                                                                                              \
        for (int32_t t = 0; t < n_x; t++) {                                                        \
            for (int32_t r = 0; r < n_w; r++) {                                                    \
                const uint8_t *row = w + (size_t)r * w_stride;                                     \
                const float *in = x + (size_t)t * x_stride;                                        \
                float lane[16] = {0};                                                              \
                for (int32_t i = 0; i < k; i++)                                                    \
                    lane[i % 16] = fmaf(weight(row, i), in[i], lane[i % 16]);                      \
                y[(size_t)t * y_stride + (size_t)r] = tree16(lane);                                \
            }                                                                                      \
        }                                                                                          \
    }
DEFINE_DENSE(ref_dense_f32, weight_f32)
DEFINE_DENSE(ref_dense_f16, weight_f16)
DEFINE_DENSE(ref_dense_bf16, weight_bf16)

static uint64_t read_sum(const void *p, size_t n)
{
    const uint8_t *at = p;
    uint64_t sum[4] = {0}, word[4];
    for (size_t i = 0; i + sizeof word <= n; i += sizeof word) {
        memcpy(word, at + i, sizeof word);
        for (int32_t j = 0; j < 4; j++) sum[j] += word[j];
    }
    return sum[0] + sum[1] + sum[2] + sum[3];
}

static uint64_t peak_dot(uint64_t rounds)
{
    enum { N = 4096 };
    static int8_t a[N], b[N];
    static volatile int32_t sink; /* so that the loop is not removed */
    int32_t s = 0;
    for (uint64_t r = 0; r < rounds; r++) {
        for (int32_t i = 0; i < N; i++) s += a[i] * b[i];
        sink = s;
        (void)sink;
    }
    return rounds * N * 2;
}

static uint64_t peak_fma(uint64_t rounds)
{
    enum { N = 16 };
    static volatile float sink;
    float s[N] = {0};
    for (uint64_t r = 0; r < rounds; r++)
        for (int32_t i = 0; i < N; i++) s[i] = fmaf(s[i], 0.5F, 1);
    for (int32_t i = 0; i < N; i++) sink = s[i];
    (void)sink;
    return rounds * N * 2;
}

void kern_linear_ref(kern_linear *k)
{
    *k = (kern_linear){
        .quant32 = ref_quant32,
        .quant256 = ref_quant256,
        .tile = {[TILE_Q4_0] = ref_tile_q4_0,       [TILE_Q4_1] = ref_tile_q4_1,
                 [TILE_Q5_0] = ref_tile_q5_0,       [TILE_Q5_1] = ref_tile_q5_1,
                 [TILE_Q8_0] = ref_tile_q8_0,       [TILE_IQ4_NL] = ref_tile_iq4_nl,
                 [TILE_Q2_K] = ref_tile_q2_k,       [TILE_Q3_K] = ref_tile_q3_k,
                 [TILE_IQ4_XS] = ref_tile_iq4_xs,   [TILE_Q4_K] = ref_tile_q4_k,
                 [TILE_Q5_K] = ref_tile_q5_k,       [TILE_Q6_K] = ref_tile_q6_k,
                 [TILE_MXFP4] = ref_tile_mxfp4,     [TILE_NVFP4] = ref_tile_nvfp4,
                 [TILE_IQ3_S] = ref_tile_iq3_s,     [TILE_IQ3_XXS] = ref_tile_iq3_xxs,
                 [TILE_IQ2_XXS] = ref_tile_iq2_xxs, [TILE_IQ2_XS] = ref_tile_iq2_s,
                 [TILE_IQ2_S] = ref_tile_iq2_s,     [TILE_IQ1_S] = ref_tile_iq1_s,
                 [TILE_IQ1_M] = ref_tile_iq1_m,     [TILE_TQ1_0] = ref_tile_tq,
                 [TILE_TQ2_0] = ref_tile_tq},
        .fine =
            {[TILE_Q4_K] = ref_fine_q4_k, [TILE_Q5_K] = ref_fine_q5_k, [TILE_Q6_K] = ref_fine_q6_k},
        .affine = {[AFFINE_4] = ref_affine_4, [AFFINE_5] = ref_affine_5, [AFFINE_8] = ref_affine_8},
        .dense_f32 = ref_dense_f32,
        .dense_f16 = ref_dense_f16,
        .dense_bf16 = ref_dense_bf16,
        .widen_e4m3 = ref_widen_e4m3,
        .widen_e5m2 = ref_widen_e5m2,
        .read_sum = read_sum,
        .peak_dot = peak_dot,
        .peak_fma = peak_fma,
    };
}
