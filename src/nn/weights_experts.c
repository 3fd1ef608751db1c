/* Binds stacks of experts.  Files keep them in three ways: a tensor an expert, one tensor of all, or one
   of all with gate and up one above the other; each becomes the same array of matrices, which are
   used where they lie.  Those that lie with inputs first are noted for weights_turn.c. */
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "nn/weights_priv.h"

static bool an_expert_each(const char *name)
{
    const char *first = strstr(name, "%d");
    return first && strstr(first + 2, "%d");
}

/* The shape that tensor t must have. */
static cairn_status check_shape(const weights *w, const expert_row *r, const expert_name *e,
                                const tensor_desc *t, int32_t count, cairn_diag *dg)
{
    const bool each = an_expert_each(e->name);
    const int64_t tall = (int64_t)w->dim[r->rows] * e->n_part, cols = w->dim[r->cols];
    const bool turned = e->input_major && !t->packed; /* quantised ones have rows of inputs */
    const int64_t first = turned ? cols : tall, second = turned ? tall : cols;
    const int64_t n = count, *dim = t->dim + (each ? 0 : 1);
    char want[64];
    if (t->n_dim == (each ? 2 : 3) && (each || t->dim[0] == n) && dim[0] == first &&
        dim[1] == second)
        return CAIRN_OK;
    if (each)
        (void)snprintf(want, sizeof want, "[%lld, %lld]", (long long)first, (long long)second);
    else
        (void)snprintf(want, sizeof want, "[%lld, %lld, %lld]", (long long)n, (long long)first,
                       (long long)second);
    return weights_misshapen(t, want, dg);
}

static cairn_status check_type(const tensor_desc *t, const expert_name *e, int32_t cols,
                               cairn_diag *dg)
{
    if (t->packed) return CAIRN_OK;
    const bool fits = dtype_can_dequant(t->type) && cols % dtype_block(t->type) == 0;
    if (fits && !(e->input_major && dtype_block(t->type) != 1)) return CAIRN_OK;
    return diag_set(
        dg, CAIRN_E_UNSUPPORTED, "%s: tensor %s: rows of %d elements of type %s; expected %s",
        t->file, t->name.ptr, (int)cols, dtype_name(t->type),
        e->input_major ? "a float type" : "a float or a quantised type whose blocks fill a row");
}

/* The expert's rows of a quantised tensor: parts interleave where the unquantised file's do. */
static void pick_rows(const expert_name *e, int32_t expert, bool each, weight *out)
{
    const int32_t tall = out->rows * e->n_part, first = each ? 0 : expert * tall;
    out->packed_first = first + e->part * (e->input_major ? 1 : out->rows);
    out->packed_step = e->input_major ? e->n_part : 1;
}

/* The matrix of one expert in tensor t. */
static cairn_status slice(weights *w, const expert_row *r, const expert_name *e,
                          const tensor_desc *t, int32_t expert, int32_t count, weight *out,
                          cairn_diag *dg)
{
    const bool each = an_expert_each(e->name);
    const size_t n_part = (size_t)e->n_part, n = each ? 1 : (size_t)count;
    const size_t size = t->size / n / n_part, first = each ? 0 : (size_t)expert * n_part;
    TRY(check_shape(w, r, e, t, count, dg));
    TRY(check_type(t, e, w->dim[r->cols], dg));
    *out = (weight){.name = t->name.ptr,
                    .type = t->type,
                    .rows = w->dim[r->rows],
                    .cols = w->dim[r->cols],
                    .data = t->packed ? t->data : t->data + (first + (size_t)e->part) * size,
                    .size = size,
                    .packed = t->packed,
                    .klass = weights_class(r->flags),
                    .matmul = true};
    if (t->packed) pick_rows(e, expert, each, out);
    w->used[t - w->src->tensor] = 1;
    if (!e->input_major || t->packed) return CAIRN_OK;
    out->data = NULL;
    return weights_turn(w,
                        &(weight_turn){.to = out,
                                       .from = t->data + first * size,
                                       .apart = (size_t)out->rows * n_part,
                                       .step = n_part,
                                       .first = (size_t)e->part},
                        dg);
}

/* Biases of all experts, if the file has them. */
static cairn_status bind_bias(weights *w, const expert_name *e, int32_t layer, int32_t n,
                              weight *expert, cairn_diag *dg)
{
    char name[WEIGHT_NAME_LEN], want[64];
    const size_t rows = (size_t)expert->rows, n_part = (size_t)e->n_part;
    const tensor_desc *t = e->bias ? weights_find(w, e->bias, layer, 0, "", name) : NULL;
    if (!t) return CAIRN_OK;
    (void)snprintf(want, sizeof want, "[%d, %zu]", (int)n, rows * n_part);
    if (t->n_dim != 2 || t->dim[0] != n || t->dim[1] != (int64_t)(rows * n_part))
        return weights_misshapen(t, want, dg);
    if (t->type != DT_U8) TRY(check_type(t, e, expert->rows, dg));
    float *all = arena_alloc(w->a, (size_t)n * rows * n_part * sizeof *all);
    float *own = arena_alloc(w->a, (size_t)n * rows * sizeof *own);
    if (!all || !own) return diag_set(dg, CAIRN_E_NOMEM, "biases %s", name);
    if (t->type != DT_U8) dtype_to_f32(t->type, t->data, all, (size_t)n * rows * n_part);
    for (size_t i = 0; t->type == DT_U8 && i < (size_t)n * rows * n_part; i++) all[i] = t->data[i];
    for (size_t i = 0; i < (size_t)n * rows; i++) {
        const size_t at = e->input_major ? i * n_part + (size_t)e->part
                                         : (i / rows * n_part + (size_t)e->part) * rows + i % rows;
        own[i] = all[at];
    }
    for (size_t i = 0; i < (size_t)n; i++) expert[i].bias = own + i * rows;
    w->used[t - w->src->tensor] = 1;
    return CAIRN_OK;
}

static cairn_status bind_one(weights *w, const expert_row *r, int32_t layer, int32_t n,
                             int32_t n_used, const weight **field, cairn_diag *dg)
{
    const expert_name *e = w->src->format == SOURCE_GGUF ? r->gguf : r->hf;
    char name[WEIGHT_NAME_LEN] = "";
    int32_t at = 0;
    while (at < EXPERT_NAMES && e[at].name && !weights_find(w, e[at].name, layer, 0, "", name))
        at++;
    if (at == EXPERT_NAMES || !e[at].name) {
        (void)weights_find(w, e[0].name, layer, 0, "", name);
        return diag_set(dg, CAIRN_E_CORRUPT, "%s: tensor %s is missing; expected %d matrices",
                        w->src->path, name, (int)n);
    }
    e += at;
    weight *item = arena_calloc(w->a, 1, sizeof *item);
    weight *expert = arena_calloc(w->a, (size_t)n, sizeof *expert);
    if (!item || !expert) return diag_set(dg, CAIRN_E_NOMEM, "experts of %s", name);
    for (int32_t i = 0; i < n; i++) {
        const tensor_desc *t = weights_find(w, e->name, layer, i, "", name);
        if (!t)
            return diag_set(dg, CAIRN_E_CORRUPT, "%s: tensor %s is missing; expected %d matrices",
                            w->src->path, name, (int)n);
        TRY(slice(w, r, e, t, i, n, &expert[i], dg));
        if (expert[i].type != expert[0].type)
            return diag_set(dg, CAIRN_E_UNSUPPORTED,
                            "%s: tensor %s: type is %s; expected %s as of the first", t->file,
                            t->name.ptr, dtype_name(t->type), dtype_name(expert[0].type));
    }
    TRY(bind_bias(w, e, layer, n, expert, dg));
    *item = expert[0];
    item->bias = NULL;
    item->data = NULL;
    item->expert = expert;
    item->n_expert = n;
    item->n_expert_used = n_used;
    item->size = expert[0].size * (size_t)n;
    TRY(weights_keep(w, item, dg));
    *field = item;
    return CAIRN_OK;
}

static cairn_status bind_all(weights *w, const expert_row *table, size_t n_rows, int32_t layer,
                             int32_t count, int32_t n_used, void *into, cairn_diag *dg)
{
    for (size_t i = 0; i < n_rows; i++) {
        const weight *item;
        TRY(bind_one(w, &table[i], layer, count, n_used, &item, dg));
        memcpy((char *)into + table[i].field, &item, sizeof item);
    }
    return CAIRN_OK;
}

cairn_status weights_bind_experts(weights *w, const expert_row *table, size_t n_rows, int32_t layer,
                                  void *into, cairn_diag *dg)
{
    return bind_all(w, table, n_rows, layer, w->dim[DIM_EXPERTS], w->n_expert_used, into, dg);
}

cairn_status weights_bind_heads(weights *w, const expert_row *table, size_t n_rows, int32_t layer,
                                void *into, cairn_diag *dg)
{
    return bind_all(w, table, n_rows, layer, w->dim[DIM_HEADS], w->dim[DIM_HEADS], into, dg);
}
