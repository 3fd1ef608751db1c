/* Checkpoints of HF's layout with 8-bit and 4-bit floats.
     fp8     NAME (e4m3) and NAME_scale_inv or NAME_scale: one factor a block (weight_block_size), a row, or
             the matrix; what they say of activations is of no use here, which are not rounded to fp8
     mxfp4   NAME_blocks [.., rows, groups, 16] and NAME_scales [.., rows, groups], as gpt-oss has them */
#include "format/quant.h"

#include <stdio.h>

#include "base/diag.h"
#include "base/meta.h"
#include "base/str.h"
#include "tensor/dtype.h"
#include "tensor/packed.h"
#include "tensor/source.h"

static int64_t elements(const tensor_desc *t)
{
    int64_t n = 1;
    for (int32_t i = 0; i < t->n_dim; i++) n *= t->dim[i];
    return n;
}

/* Rows and columns of a block, where config.json says so. */
static cairn_status block_size(const quant_job *j, const tensor_desc *t, int32_t out[2])
{
    static const char *const keys[] = {
        "quantization_config.weight_block_size",
        "quantization_config.config_groups.group_0.weights.block_structure"};
    meta m, e;
    for (size_t k = 0; k < 2; k++) {
        if (!meta_get(j->meta, keys[k], &m)) continue;
        for (size_t i = 0; i < 2; i++) {
            if (m.type != META_ARR || m.u.n != 2 || !meta_at(j->meta, &m, i, &e) ||
                e.type != META_INT || e.u.i < 1 || e.u.i > 1 << 20)
                return quant_bad(j, t, keys[k], "another thing", "two whole numbers from 1 up");
            out[i] = (int32_t)e.u.i;
        }
        return CAIRN_OK;
    }
    return quant_bad(j, t, "weight_block_size", "missing", "two whole numbers");
}

static bool is_scale(dtype t)
{
    return t == DT_F32 || t == DT_BF16 || t == DT_F16;
}

cairn_status quant_blocks(quant_job *j, tensor_desc *t, const tensor_desc *scale, packed_kind kind,
                          const char *name)
{
    const int32_t n = t->n_dim;
    char found[16];
    (void)snprintf(found, sizeof found, "%d", (int)n);
    if (n != 2 && n != 3) return quant_bad(j, t, "number of dimensions", found, "2 or 3");
    if (!is_scale(scale->type))
        return quant_bad(j, scale, "type", dtype_name(scale->type), "F32, BF16 or F16");
    quant_matrix q = {.p = {.kind = kind,
                            .bits = 8,
                            .zero = kind == PACKED_INT8 ? 128 : 0,
                            .scale_type = scale->type},
                      .code = t,
                      .scale = scale,
                      .n_stack = n == 3 ? t->dim[0] : 0,
                      .rows = t->dim[n - 2],
                      .cols = t->dim[n - 1]};
    const int64_t stack = n == 3 ? t->dim[0] : 1, n_scale = elements(scale);
    if (q.rows < 1 || q.cols < 1 || q.rows > INT32_MAX || q.cols > INT32_MAX || stack < 1 ||
        stack > INT32_MAX / q.rows)
        return quant_bad(j, t, "shape", "empty or huge", "1 to 2^31 rows and columns");
    q.p.group = (int32_t)q.cols;
    if (n_scale == 1) {
        q.p.block_rows = (int32_t)(q.rows * stack);
    } else if (n_scale == stack && stack > 1) {
        q.p.block_rows = (int32_t)q.rows;
    } else if (n_scale == stack * q.rows) {
        q.p.block_rows = 1;
    } else {
        int32_t block[2] = {1, 1};
        TRY(block_size(j, scale, block));
        const int64_t down = (q.rows + block[0] - 1) / block[0];
        const int64_t along = (q.cols + block[1] - 1) / block[1];
        const int64_t flat[2] = {down, along}, stacked[3] = {stack, down, along};
        TRY(quant_shape(j, scale, n == 3 ? stacked : flat, n));
        if (n == 3 && q.rows % block[0])
            return quant_bad(j, t, "rows of an expert", "no whole blocks", "a multiple of %d",
                             (int)block[0]);
        q.p.block_rows = block[0];
        q.p.group = block[1];
    }
    return quant_put(j, t, name, &q);
}

void quant_drop_activations(quant_job *j, const tensor_desc *t, size_t stem)
{
    static const char *const of[] = {".input_scale", ".activation_scale", ".weight_shape",
                                     ".input_zero_point", ".input_global_scale"};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        quant_drop(j, quant_find(j, t, stem, of[i]));
}

cairn_status fp8_module(quant_job *j, tensor_desc *t, size_t stem)
{
    if (t->type != DT_F8_E4M3) return CAIRN_OK;
    const tensor_desc *scale = quant_find(j, t, stem, "_scale");
    tensor_desc *inv;
    const size_t module = str_ends(t->name, STR_LIT(".weight")) ? stem - 7 : stem;
    quant_drop_activations(j, t, module);
    if (!scale) {
        TRY(quant_need(j, t, stem, "_scale_inv", &inv));
        scale = inv;
    }
    return quant_blocks(j, t, scale, PACKED_F8, "fp8");
}

/* t: NAME_blocks. */
cairn_status mxfp4_module(quant_job *j, tensor_desc *t, size_t stem)
{
    tensor_desc *scales;
    const int32_t n = t->n_dim;
    TRY(quant_need(j, t, stem, "_scales", &scales));
    if (t->type != DT_U8) return quant_bad(j, t, "type", dtype_name(t->type), "U8");
    if (scales->type != DT_U8) return quant_bad(j, scales, "type", dtype_name(scales->type), "U8");
    if ((n != 3 && n != 4) || t->dim[n - 1] != 16 || t->dim[n - 2] > INT32_MAX / 32)
        return quant_bad(j, t, "shape", "another", "[.., rows, groups, 16]");
    TRY(quant_shape(j, scales, t->dim, n - 1));
    const quant_matrix q = {.p = {.kind = PACKED_MXFP4, .bits = 4, .group = 32},
                            .code = t,
                            .scale = scales,
                            .n_stack = n == 4 ? t->dim[0] : 0,
                            .rows = t->dim[n - 3],
                            .cols = 32 * t->dim[n - 2]};
    TRY(quant_put(j, t, "mxfp4", &q));
    return quant_rename(j, t, stem, "");
}
