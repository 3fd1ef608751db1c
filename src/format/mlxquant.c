/* MLX's quantised checkpoints: NAME.weight (u32 words), NAME.scales and, for affine codes, NAME.biases
   make one matrix.  config.json's `quantization` gives bits, group_size and mode for all and, by the
   module's path, for one; `false` there means that a module is not quantised.

   A module that leaves its mode out is affine if it has biases: that is what the reference takes it for. */
#include "format/quant.h"

#include <stdio.h>

#include "base/diag.h"
#include "base/meta.h"
#include "base/str.h"
#include "tensor/dtype.h"
#include "tensor/packed.h"
#include "tensor/source.h"

typedef struct mode {
    const char *name;
    packed_kind kind;
    int32_t group, bits; /* what the reference assumes where config.json is silent */
} mode;
static const mode modes[] = {
    {"affine", PACKED_AFFINE, 64, 4},
    {"mxfp4", PACKED_MXFP4, 32, 4},
    {"mxfp8", PACKED_MXFP8, 32, 8},
    {"nvfp4", PACKED_NVFP4, 16, 4},
};
enum { N_MODE = sizeof modes / sizeof modes[0] };

/* A field of the module's own entry, else of all. */
static bool field_of(const quant_job *j, const tensor_desc *t, size_t stem, const char *field,
                     meta *out)
{
    char key[FORMAT_MAX_NAME + 48];
    (void)snprintf(key, sizeof key, "%s.%.*s.%s", j->root, (int)stem, t->name.ptr, field);
    if (meta_get(j->meta, key, out)) return true;
    (void)snprintf(key, sizeof key, "%s.%s", j->root, field);
    return meta_get(j->meta, key, out);
}

static cairn_status int_of(const quant_job *j, const tensor_desc *t, size_t stem, const char *field,
                           int32_t *v)
{
    char found[32] = "no whole number";
    meta m;
    if (!field_of(j, t, stem, field, &m)) return CAIRN_OK;
    if (m.type == META_INT && m.u.i >= 1 && m.u.i <= 1 << 20) {
        *v = (int32_t)m.u.i;
        return CAIRN_OK;
    }
    if (m.type == META_INT) (void)snprintf(found, sizeof found, "%lld", (long long)m.u.i);
    return quant_bad(j, t, field, found, "1 or more");
}

/* The module's own entry: *has; one that says false contradicts the scales that are there. */
static cairn_status own_entry(const quant_job *j, const tensor_desc *t, size_t stem, bool *own_mode,
                              bool *has)
{
    char key[FORMAT_MAX_NAME + 48];
    meta m;
    (void)snprintf(key, sizeof key, "%s.%.*s", j->root, (int)stem, t->name.ptr);
    *has = meta_get(j->meta, key, &m) && m.type == META_OBJ;
    if (!*has && m.type == META_BOOL && !m.u.b)
        return quant_bad(j, t, key, "false", "its bits, since scales are there");
    (void)snprintf(key, sizeof key, "%s.%.*s.mode", j->root, (int)stem, t->name.ptr);
    *own_mode = *has && meta_get(j->meta, key, &m);
    return CAIRN_OK;
}

static cairn_status mode_of(const quant_job *j, const tensor_desc *t, size_t stem, bool biased,
                            const mode **out)
{
    char found[32] = "no text";
    bool own_mode, has;
    meta m;
    *out = &modes[0];
    TRY(own_entry(j, t, stem, &own_mode, &has));
    if ((has && !own_mode && biased) || !field_of(j, t, stem, "mode", &m)) return CAIRN_OK;
    for (size_t i = 0; i < N_MODE; i++)
        if (m.type == META_STR && str_is(m.u.s, modes[i].name)) {
            *out = &modes[i];
            return CAIRN_OK;
        }
    if (m.type == META_STR)
        (void)snprintf(found, sizeof found, "\"%.*s\"", (int)(m.u.s.len > 24 ? 24 : m.u.s.len),
                       m.u.s.ptr);
    return quant_bad(j, t, "mode", found, "affine, mxfp4, mxfp8 or nvfp4");
}

static cairn_status check_numbers(const quant_job *j, const tensor_desc *t, const mode *m,
                                  int32_t bits, int32_t group)
{
    char found[48];
    const bool affine = m->kind == PACKED_AFFINE;
    const bool fine =
        affine ? bits >= 2 && bits <= 8 && bits != 7 && (group == 32 || group == 64 || group == 128)
               : bits == m->bits && group == m->group;
    if (fine) return CAIRN_OK;
    (void)snprintf(found, sizeof found, "%d bits in groups of %d", (int)bits, (int)group);
    if (affine)
        return quant_bad(j, t, "quantization", found,
                         "2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or 128");
    return quant_bad(j, t, "quantization", found, "%d bits in groups of %d for %s", (int)m->bits,
                     (int)m->group, m->name);
}

static cairn_status check_types(const quant_job *j, const tensor_desc *weight,
                                const tensor_desc *scales, const tensor_desc *biases, const mode *m)
{
    const dtype s = scales->type;
    if (weight->type != DT_U32)
        return quant_bad(j, weight, "type", dtype_name(weight->type),
                         "U32, since scales are there");
    if (m->kind != PACKED_AFFINE) {
        if (s != DT_U8) return quant_bad(j, scales, "type", dtype_name(s), "U8 for %s", m->name);
        if (biases) return quant_bad(j, biases, "tensor", "there", "none for %s", m->name);
        return CAIRN_OK;
    }
    if (s != DT_BF16 && s != DT_F16 && s != DT_F32)
        return quant_bad(j, scales, "type", dtype_name(s), "BF16, F16 or F32 for affine");
    if (biases->type != s)
        return quant_bad(j, biases, "type", dtype_name(biases->type), "%s, as the scales have",
                         dtype_name(s));
    return CAIRN_OK;
}

/* Shapes: weight [.., rows, cols·bits/32], scales and biases [.., rows, cols/group]. */
static cairn_status check_shapes(const quant_job *j, const tensor_desc *weight, int32_t bits,
                                 int32_t group, quant_matrix *q)
{
    const int32_t n = weight->n_dim;
    char found[32];
    (void)snprintf(found, sizeof found, "%d", (int)n);
    if (n != 2 && n != 3) return quant_bad(j, weight, "number of dimensions", found, "2 or 3");
    const int64_t words = weight->dim[n - 1];
    (void)snprintf(found, sizeof found, "%lld words", (long long)words);
    if (words < 1 || words > INT32_MAX / 32 || words * 32 % bits || words * 32 / bits % group)
        return quant_bad(j, weight, "row", found, "groups of %d codes of %d bits", (int)group,
                         (int)bits);
    q->cols = words * 32 / bits;
    q->rows = weight->dim[n - 2];
    q->n_stack = n == 3 ? weight->dim[0] : 0;
    int64_t dim[3] = {weight->dim[0], weight->dim[1], 0};
    dim[n - 1] = q->cols / group;
    TRY(quant_shape(j, q->scale, dim, n));
    return q->offset ? quant_shape(j, q->offset, dim, n) : CAIRN_OK;
}

cairn_status mlx_module(quant_job *j, tensor_desc *scales, size_t stem)
{
    tensor_desc *weight, *biases = quant_find(j, scales, stem, ".biases");
    const mode *m;
    char name[24];

    TRY(quant_need(j, scales, stem, ".weight", &weight));
    TRY(mode_of(j, scales, stem, biases != NULL, &m));
    int32_t bits = m->bits, group = m->group;
    TRY(int_of(j, scales, stem, "bits", &bits));
    TRY(int_of(j, scales, stem, "group_size", &group));
    TRY(check_numbers(j, scales, m, bits, group));
    if (m->kind == PACKED_AFFINE && !biases) TRY(quant_need(j, scales, stem, ".biases", &biases));
    TRY(check_types(j, weight, scales, biases, m));
    quant_matrix q = {
        .p = {.kind = m->kind, .bits = bits, .group = group, .scale_type = scales->type},
        .code = weight,
        .scale = scales,
        .offset = biases};
    TRY(check_shapes(j, weight, bits, group, &q));
    if (m->kind == PACKED_AFFINE)
        (void)snprintf(name, sizeof name, "affine%d g%d", (int)bits, (int)group);
    else
        (void)snprintf(name, sizeof name, "%s", m->name);
    return quant_put(j, weight, name, &q);
}

/* Words without scales are no matrix. */
cairn_status mlx_orphan(quant_job *j, tensor_desc *t, size_t stem)
{
    tensor_desc *scales;
    return t->type == DT_U32 ? quant_need(j, t, stem, ".scales", &scales) : CAIRN_OK;
}
