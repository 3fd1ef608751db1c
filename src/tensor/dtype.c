/* Element and block types: the one table of names, GGUF numbers and sizes, and dequantisation of
   rows by dispatch on the type.  The arithmetic of each block type lives in dequant_*.c.
   Invariant: integer types have no values as floats; asking for them is our mistake. */
#include "tensor/dtype.h"

#include <assert.h>
#include <string.h>

#include "base/num.h"
#include "tensor/dequant.h"

static const struct {
    const char *name;
    int32_t gguf, elems, bytes;
} info[DT_COUNT] = {
#define DTYPE_INFO(name, gguf, elems, bytes) {#name, gguf, elems, bytes},
    DTYPE_LIST(DTYPE_INFO)
#undef DTYPE_INFO
};

static dequant_block *const block_fn[DT_COUNT] = {
    [DT_Q4_0] = dequant_q4_0,     [DT_Q4_1] = dequant_q4_1,     [DT_Q5_0] = dequant_q5_0,
    [DT_Q5_1] = dequant_q5_1,     [DT_Q8_0] = dequant_q8_0,     [DT_Q2_K] = dequant_q2_k,
    [DT_Q3_K] = dequant_q3_k,     [DT_Q4_K] = dequant_q4_k,     [DT_Q5_K] = dequant_q5_k,
    [DT_Q6_K] = dequant_q6_k,     [DT_TQ1_0] = dequant_tq1_0,   [DT_TQ2_0] = dequant_tq2_0,
    [DT_IQ1_S] = dequant_iq1_s,   [DT_IQ1_M] = dequant_iq1_m,   [DT_IQ2_XXS] = dequant_iq2_xxs,
    [DT_IQ2_XS] = dequant_iq2_xs, [DT_IQ2_S] = dequant_iq2_s,   [DT_IQ3_XXS] = dequant_iq3_xxs,
    [DT_IQ3_S] = dequant_iq3_s,   [DT_IQ4_NL] = dequant_iq4_nl, [DT_IQ4_XS] = dequant_iq4_xs,
    [DT_MXFP4] = dequant_mxfp4,   [DT_NVFP4] = dequant_nvfp4,
};

static bool is_dtype(dtype t)
{
    return (unsigned)t < (unsigned)DT_COUNT;
}

const char *dtype_name(dtype t)
{
    assert(is_dtype(t));
    return info[t].name;
}

int32_t dtype_block(dtype t)
{
    assert(is_dtype(t));
    return info[t].elems;
}

int32_t dtype_block_bytes(dtype t)
{
    assert(is_dtype(t));
    return info[t].bytes;
}

bool dtype_from_gguf(uint32_t id, dtype *out)
{
    for (int t = 0; t < DT_COUNT; t++) {
        if (info[t].gguf >= 0 && (uint32_t)info[t].gguf == id) {
            *out = (dtype)t;
            return true;
        }
    }
    return false;
}

bool dtype_is_quant(dtype t)
{
    return dtype_block(t) > 1;
}

bool dtype_bytes(dtype t, uint64_t n, size_t *out)
{
    const uint64_t elems = (uint64_t)dtype_block(t);
    if (n % elems != 0) return false;
    return mul_size((size_t)(n / elems), (size_t)dtype_block_bytes(t), out);
}

static bool is_float(dtype t)
{
    return t == DT_F32 || t == DT_F16 || t == DT_BF16 || t == DT_F64 || t == DT_F8_E4M3 ||
           t == DT_F8_E5M2 || t == DT_F8_E8M0;
}

bool dtype_can_dequant(dtype t)
{
    assert(is_dtype(t));
    return block_fn[t] || is_float(t);
}

static float f64_at(const uint8_t *p)
{
    const uint64_t u = (uint64_t)field_u32(p) | (uint64_t)field_u32(p + 4) << 32;
    double x;
    memcpy(&x, &u, sizeof x);
    return (float)x;
}

/* One loop a type, so that the compiler sees what is in it. */
static void float_row(dtype t, const uint8_t *p, float *y, size_t n)
{
    if (t == DT_F32)
        for (size_t i = 0; i < n; i++) y[i] = f32_from_bits(field_u32(p + 4 * i));
    else if (t == DT_F16)
        for (size_t i = 0; i < n; i++) y[i] = field_f16(p + 2 * i);
    else if (t == DT_BF16)
        for (size_t i = 0; i < n; i++) y[i] = bf16_to_f32(field_u16(p + 2 * i));
    else if (t == DT_F64)
        for (size_t i = 0; i < n; i++) y[i] = f64_at(p + 8 * i);
    else if (t == DT_F8_E4M3)
        for (size_t i = 0; i < n; i++) y[i] = e4m3_to_f32(p[i]);
    else if (t == DT_F8_E5M2) /* the upper half of an f16 */
        for (size_t i = 0; i < n; i++) y[i] = f16_to_f32((uint16_t)(p[i] << 8));
    else
        for (size_t i = 0; i < n; i++) y[i] = e8m0_to_f32(p[i]);
}

void dtype_to_f32(dtype t, const void *src, float *dst, size_t n)
{
    const uint8_t *b = src;
    const size_t elems = (size_t)dtype_block(t), bytes = (size_t)dtype_block_bytes(t);

    assert(dtype_can_dequant(t) && n % elems == 0);
    if (!block_fn[t]) {
        float_row(t, b, dst, n);
        return;
    }
    for (size_t i = 0; i < n; i += elems, b += bytes) block_fn[t](b, dst + i);
}
