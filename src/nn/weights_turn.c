/* Matrices whose rows are columns in the file: noted while names are bound, copied once the model is known
   to fit, so that a file which is refused, or only looked at, costs nothing.  Here too: the one tensor of
   latent attention that holds keys, to be turned, and values, used where they lie. */
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "nn/weights_priv.h"

cairn_status weights_turn(weights *w, const weight_turn *turn, cairn_diag *dg)
{
    weight_turn *t = arena_alloc(w->a, sizeof *t);
    if (!t) return diag_set(dg, CAIRN_E_NOMEM, "a copy of %s", turn->to->name);
    *t = *turn;
    t->next = w->turns;
    w->turns = t;
    w->turn_bytes += turn->to->size;
    return CAIRN_OK;
}

static void copy_plain(const weight_turn *t, uint8_t *to)
{
    const size_t rows = (size_t)t->to->rows, cols = (size_t)t->to->cols;
    const size_t item = (size_t)dtype_block_bytes(t->to->type);
    for (size_t c = 0; c < cols; c++)
        for (size_t r = 0; r < rows; r++)
            memcpy(to + (r * cols + c) * item,
                   t->from + (c * t->apart + r * t->step + t->first) * item, item);
}

/* The source's rows are the result's columns. */
static void copy_quantised(const weight_turn *t, float *row, float *to)
{
    const size_t rows = (size_t)t->to->rows, cols = (size_t)t->to->cols;
    const tensor_desc *from = t->rows_of;
    const size_t row_bytes = from->size / (size_t)from->dim[0];
    for (size_t c = 0; c < cols; c++) {
        if (from->packed)
            packed_row_f32(from->packed, t->row + c, row);
        else
            dtype_to_f32(from->type, from->data + (t->row + c) * row_bytes, row, rows);
        for (size_t r = 0; r < rows; r++) to[r * cols + c] = row[r];
    }
}

cairn_status weights_settle(weights *w, cairn_diag *dg)
{
    for (weight_turn *t = w->turns; t; t = t->next) {
        uint8_t *to = arena_alloc(w->a, t->to->size);
        float *row = t->from ? NULL : arena_alloc(w->a, (size_t)t->to->rows * sizeof *row);
        if (!to || (!t->from && !row))
            return diag_set(dg, CAIRN_E_NOMEM, "a copy of %s", t->to->name);
        if (t->from)
            copy_plain(t, to);
        else
            copy_quantised(t, row, (float *)(void *)to);
        t->to->data = to;
    }
    w->turns = NULL;
    return CAIRN_OK;
}

/* A stack of a matrix [rows, cols] a head, named after t; the caller says where they lie. */
static cairn_status new_stack(weights *w, const tensor_desc *t, dtype type, int32_t rows,
                              int32_t cols, const weight **out, weight **each, cairn_diag *dg)
{
    const int32_t n = w->dim[DIM_HEADS];
    const size_t row = t->packed && type == t->type
                           ? t->size / (size_t)t->dim[0]
                           : (size_t)(cols / dtype_block(type)) * (size_t)dtype_block_bytes(type);
    const size_t size = row * (size_t)rows;
    weight *item = arena_calloc(w->a, 1, sizeof *item);
    weight *head = arena_calloc(w->a, (size_t)n, sizeof *head);
    if (!item || !head) return diag_set(dg, CAIRN_E_NOMEM, "heads of %s", t->name.ptr);
    for (int32_t i = 0; i < n; i++)
        head[i] = (weight){.name = t->name.ptr,
                           .type = type,
                           .rows = rows,
                           .cols = cols,
                           .size = size,
                           .packed = type == t->type ? t->packed : NULL,
                           .klass = WEIGHT_FLOAT,
                           .matmul = true};
    *item = head[0];
    item->size = size * (size_t)n;
    item->packed = NULL;
    item->expert = head;
    item->n_expert = item->n_expert_used = n;
    *out = item;
    *each = head;
    return weights_keep(w, item, dg);
}

static cairn_status check_kv_b(const tensor_desc *t, int32_t tall, int32_t lora, cairn_diag *dg)
{
    char want[48];
    (void)snprintf(want, sizeof want, "[%d, %d]", (int)tall, (int)lora);
    if (t->n_dim != 2 || t->dim[0] != tall || t->dim[1] != lora)
        return weights_misshapen(t, want, dg);
    if (t->packed || (dtype_can_dequant(t->type) && lora % dtype_block(t->type) == 0))
        return CAIRN_OK;
    return diag_set(
        dg, CAIRN_E_UNSUPPORTED,
        "%s: tensor %s: rows of %d elements of type %s; expected a float or a quantised "
        "type whose blocks fill a row",
        t->file, t->name.ptr, (int)lora, dtype_name(t->type));
}

cairn_status weights_split_kv_b(weights *w, const char *hf, const char *gguf, int32_t layer,
                                const weight **k_b, const weight **v_b, cairn_diag *dg)
{
    char name[WEIGHT_NAME_LEN];
    const int32_t n = w->dim[DIM_HEADS], nope = w->dim[DIM_NOPE], v = w->dim[DIM_VALUE];
    const int32_t lora = w->dim[DIM_KV_LORA], tall = n * (nope + v);
    const tensor_desc *t =
        weights_find(w, w->src->format == SOURCE_GGUF ? gguf : hf, layer, 0, "", name);
    weight *key, *val;
    if (!t)
        return diag_set(dg, CAIRN_E_CORRUPT, "%s: tensor %s is missing; expected [%d, %d]",
                        w->src->path, name, (int)tall, (int)lora);
    TRY(check_kv_b(t, tall, lora, dg));
    const bool quantised = t->packed || dtype_block(t->type) != 1;
    TRY(new_stack(w, t, quantised ? DT_F32 : t->type, lora, nope, k_b, &key, dg));
    TRY(new_stack(w, t, t->type, v, lora, v_b, &val, dg));
    for (int32_t h = 0; h < n; h++) {
        const size_t row = (size_t)(h * (nope + v)), bytes = t->size / (size_t)tall;
        const weight_turn turn = {.to = &key[h],
                                  .from = quantised ? NULL : t->data + row * bytes,
                                  .rows_of = t,
                                  .apart = (size_t)lora,
                                  .step = 1,
                                  .row = row};
        val[h].data = t->packed ? t->data : t->data + (row + (size_t)nope) * bytes;
        val[h].packed_first = (int32_t)row + nope;
        val[h].packed_step = 1;
        TRY(weights_turn(w, &turn, dg));
    }
    w->used[t - w->src->tensor] = 1;
    return CAIRN_OK;
}
