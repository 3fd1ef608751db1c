/* Checkpoints of HF's layout with whole-number codes.
     compressed-tensors   weight_packed (codes along a row, 32 bits a word), weight_scale, weight_shape,
                          perhaps weight_zero_point and weight_g_idx; or weight (I8) and weight_scale
     gptq                 qweight [cols/n, rows], qzeros, scales [groups, rows], g_idx
     awq                  qweight [cols, rows/8], qzeros, scales
   A matrix of any of them gets the name NAME.weight. */
#include "format/quant.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/meta.h"
#include "base/str.h"
#include "tensor/dtype.h"
#include "tensor/packed.h"
#include "tensor/source.h"

static int64_t word_of(const tensor_desc *t, size_t i)
{
    int64_t wide;
    int32_t v;
    if (t->type == DT_I64) {
        memcpy(&wide, t->data + 8 * i, sizeof wide);
        return wide;
    }
    memcpy(&v, t->data + 4 * i, sizeof v);
    return v;
}

static cairn_status need_type(const quant_job *j, const tensor_desc *t, dtype type)
{
    if (t->type == type) return CAIRN_OK;
    return quant_bad(j, t, "type", dtype_name(t->type), "%s", dtype_name(type));
}

static cairn_status need_scale(const quant_job *j, const tensor_desc *t)
{
    if (t->type == DT_F32 || t->type == DT_BF16 || t->type == DT_F16) return CAIRN_OK;
    return quant_bad(j, t, "type", dtype_name(t->type), "F32, BF16 or F16");
}

/* Groups of columns: in order (NULL), or as g_idx says. */
static cairn_status order_of(const quant_job *j, const tensor_desc *idx, quant_matrix *q)
{
    if (!idx) return CAIRN_OK;
    TRY(need_type(j, idx, DT_I32));
    TRY(quant_shape(j, idx, &q->cols, 1));
    assert(q->p.group > 0);
    for (int64_t c = 0; c < q->cols && !q->order; c++)
        if (word_of(idx, (size_t)c) != c / q->p.group) q->order = idx;
    return CAIRN_OK;
}

static cairn_status put(quant_job *j, tensor_desc *t, const char *method, quant_matrix *q)
{
    char name[24];
    if (q->p.group == q->cols)
        (void)snprintf(name, sizeof name, "%s%d", method, (int)q->p.bits);
    else
        (void)snprintf(name, sizeof name, "%s%d g%d", method, (int)q->p.bits, (int)q->p.group);
    return quant_put(j, t, name, q);
}

/* The columns that weight_shape tells, and the bits that so many words make of them. */
static cairn_status ct_shape(const quant_job *j, const tensor_desc *t, const tensor_desc *shape,
                             quant_matrix *q)
{
    static const int64_t two = 2;
    if (shape->type != DT_I32) TRY(need_type(j, shape, DT_I64));
    TRY(quant_shape(j, shape, &two, 1));
    if (t->n_dim != 2) return quant_bad(j, t, "shape", "another", "[rows, words]");
    q->rows = t->dim[0];
    q->cols = word_of(shape, 1);
    if (q->cols < 1 || q->cols > INT32_MAX || q->rows != word_of(shape, 0) ||
        t->dim[1] > INT32_MAX || t->dim[1] * 32 % q->cols)
        return quant_bad(j, shape, "value", "another", "%lld rows and columns that fill %lld words",
                         (long long)q->rows, (long long)t->dim[1]);
    const int64_t bits = t->dim[1] * 32 / q->cols;
    if (bits < 2 || bits > 8 || bits * q->cols != t->dim[1] * 32)
        return quant_bad(j, t, "bits", "others", "2 to 8 that fill the words of a row");
    q->p.bits = (int32_t)bits;
    return CAIRN_OK;
}

/* t: NAME.weight_packed. */
cairn_status ct_packed_module(quant_job *j, tensor_desc *t, size_t stem)
{
    tensor_desc *shape, *scale, *zero = quant_find(j, t, stem, ".weight_zero_point");
    const tensor_desc *idx = quant_find(j, t, stem, ".weight_g_idx");
    quant_matrix q = {.p = {.kind = PACKED_CENTRED}, .code = t, .offset = zero};

    TRY(need_type(j, t, DT_I32));
    TRY(quant_need(j, t, stem, ".weight_shape", &shape));
    TRY(quant_need(j, t, stem, ".weight_scale", &scale));
    TRY(need_scale(j, scale));
    TRY(ct_shape(j, t, shape, &q));
    const int64_t groups = scale->n_dim == 2 ? scale->dim[1] : 1;
    const int64_t want[2] = {q.rows, groups};
    TRY(quant_shape(j, scale, want, 2));
    if (groups < 1 || q.cols % groups)
        return quant_bad(j, scale, "shape", "another", "groups that divide %lld columns",
                         (long long)q.cols);
    q.scale = scale;
    q.p.scale_type = scale->type;
    q.p.group = (int32_t)(q.cols / groups);
    assert(q.p.bits >= 2); /* ct_shape's */
    q.p.zero = 1 << (q.p.bits - 1);
    if (zero) {
        const int64_t each = 32 / q.p.bits, zeros[2] = {(q.rows + each - 1) / each, groups};
        TRY(need_type(j, zero, DT_I32));
        if (32 % q.p.bits)
            return quant_bad(j, zero, "bits", "others", "2, 4 or 8 with zero points");
        TRY(quant_shape(j, zero, zeros, 2));
    }
    TRY(order_of(j, idx, &q));
    quant_drop(j, shape);
    quant_drop(j, idx);
    quant_drop_activations(j, t, stem);
    TRY(put(j, t, "int", &q));
    return quant_rename(j, t, stem, ".weight");
}

/* t: NAME.weight of bytes, if it is one. */
cairn_status ct_int_module(quant_job *j, tensor_desc *t, size_t stem)
{
    tensor_desc *scale;
    if (t->type != DT_I8 && t->type != DT_F8_E4M3) return CAIRN_OK;
    const tensor_desc *zero = quant_find(j, t, stem, ".weight_zero_point");
    TRY(quant_need(j, t, stem, ".weight_scale", &scale));
    quant_drop_activations(j, t, stem);
    if (t->type == DT_F8_E4M3) return quant_blocks(j, t, scale, PACKED_F8, "fp8");
    if (zero) return quant_bad(j, zero, "tensor", "there", "none: bytes are symmetric");
    if (t->n_dim == 2 && scale->n_dim == 2 && scale->dim[0] == t->dim[0] && scale->dim[1] > 1) {
        quant_matrix q = {.p = {.kind = PACKED_INT8, .bits = 8, .zero = 128},
                          .code = t,
                          .scale = scale,
                          .rows = t->dim[0],
                          .cols = t->dim[1]};
        TRY(need_scale(j, scale));
        if (q.cols > INT32_MAX || q.cols % scale->dim[1])
            return quant_bad(j, scale, "shape", "another", "groups that divide %lld columns",
                             (long long)q.cols);
        q.p.scale_type = scale->type;
        q.p.group = (int32_t)(q.cols / scale->dim[1]);
        return put(j, t, "int", &q);
    }
    return quant_blocks(j, t, scale, PACKED_INT8, "int8");
}

static int64_t config_number(const quant_job *j, const char *key, int64_t otherwise)
{
    char path[64];
    (void)snprintf(path, sizeof path, "%s.%s", j->root, key);
    return meta_int(j->meta, path, otherwise);
}

/* What GPTQ and AWQ share: scales and zeros [groups, rows], groups as config.json says. */
static cairn_status by_columns(quant_job *j, tensor_desc *t, size_t stem, quant_matrix *q)
{
    tensor_desc *scales, *zeros;
    const int64_t each = 32 / q->p.bits;
    int64_t group = config_number(j, "group_size", 128);
    char found[32];

    TRY(need_type(j, t, DT_I32));
    TRY(quant_need(j, t, stem, ".scales", &scales));
    TRY(quant_need(j, t, stem, ".qzeros", &zeros));
    TRY(need_scale(j, scales));
    TRY(need_type(j, zeros, DT_I32));
    if (group == -1) group = q->cols;
    (void)snprintf(found, sizeof found, "%lld", (long long)group);
    if (group < 1 || group > INT32_MAX || q->cols < 1 || q->cols > INT32_MAX || q->cols % group)
        return quant_bad(j, t, "group_size", found, "a divisor of %lld columns",
                         (long long)q->cols);
    if (q->rows % each)
        return quant_bad(j, t, "rows", "another number", "a multiple of %d", (int)each);
    const int64_t s[2] = {q->cols / group, q->rows}, z[2] = {q->cols / group, q->rows / each};
    TRY(quant_shape(j, scales, s, 2));
    TRY(quant_shape(j, zeros, z, 2));
    q->scale = scales;
    q->offset = zeros;
    q->p.scale_type = scales->type;
    q->p.group = (int32_t)group;
    return CAIRN_OK;
}

/* t: NAME.qweight. */
cairn_status gptq_module(quant_job *j, tensor_desc *t, size_t stem)
{
    const int64_t bits = config_number(j, "bits", 4);
    const tensor_desc *idx = quant_find(j, t, stem, ".g_idx");
    char found[32], key[64];
    (void)snprintf(found, sizeof found, "%lld", (long long)bits);
    if (bits != 2 && bits != 4 && bits != 8) return quant_bad(j, t, "bits", found, "2, 4 or 8");
    if (t->n_dim != 2 || t->dim[0] > INT32_MAX / 16)
        return quant_bad(j, t, "shape", "another", "[words, rows]");
    (void)snprintf(key, sizeof key, "%s.checkpoint_format", j->root);
    /* The first version stores zeros less one. */
    const bool second = str_is(meta_str(j->meta, key, STR_LIT("gptq")), "gptq_v2");
    quant_matrix q = {.p = {.kind = PACKED_GPTQ, .bits = (int32_t)bits, .zero = second ? 0 : 1},
                      .code = t,
                      .rows = t->dim[1],
                      .cols = t->dim[0] * (32 / bits)};
    TRY(by_columns(j, t, stem, &q));
    TRY(order_of(j, idx, &q));
    quant_drop(j, idx);
    TRY(put(j, t, "gptq", &q));
    return quant_rename(j, t, stem, ".weight");
}

cairn_status awq_module(quant_job *j, tensor_desc *t, size_t stem)
{
    const int64_t bits = config_number(j, "bits", 4);
    char found[32], key[64];
    (void)snprintf(found, sizeof found, "%lld", (long long)bits);
    if (bits != 4) return quant_bad(j, t, "bits", found, "4");
    (void)snprintf(key, sizeof key, "%s.version", j->root);
    const cairn_str version = meta_str(j->meta, key, STR_LIT("gemm"));
    if (!str_is(version, "gemm") && !str_is(version, "GEMM"))
        return quant_bad(j, t, "version", "another", "gemm");
    if (t->n_dim != 2 || t->dim[1] > INT32_MAX / 8)
        return quant_bad(j, t, "shape", "another", "[columns, words]");
    quant_matrix q = {
        .p = {.kind = PACKED_AWQ, .bits = 4}, .code = t, .rows = t->dim[1] * 8, .cols = t->dim[0]};
    TRY(by_columns(j, t, stem, &q));
    TRY(put(j, t, "awq", &q));
    return quant_rename(j, t, stem, ".weight");
}
