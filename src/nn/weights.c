/* Finds tensors by the names of a table, checks type and shape, and makes `weight`s of them.

   Matrices stay as they lie in the file; the backend adopts them later.  Vectors (norm gains,
   biases) become f32 in the model's arena, since every op wants them so.  Multimodal wrappers put
   "model." names under other prefixes, and models saved without a head leave it out; those are tried in
   turn. */
#include "nn/weights_priv.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/fmath.h"
#include "base/str.h"

enum { AUDIT_BYTES = 160 }; /* of names in a message: its end must fit behind them */

cairn_status weights_init(weights *w, arena *a, const source *src, cairn_diag *dg)
{
    *w = (weights){.a = a, .src = src, .dim = {[DIM_ONE] = 1, [DIM_UNIT] = 1}};
    w->used = arena_calloc(a, src->n_tensor + 1, 1);
    return w->used ? CAIRN_OK : diag_set(dg, CAIRN_E_NOMEM, "tensor marks");
}

/* Replaces the first %d of a table's name by the layer, a second by the expert; names are ours, so they
   fit. */
static void spell(char out[WEIGHT_NAME_LEN], const char *prefix, const char *name, int32_t layer,
                  int32_t expert, const char *suffix)
{
    const int32_t number[2] = {layer, expert};
    size_t at = (size_t)snprintf(out, WEIGHT_NAME_LEN, "%s", prefix);
    for (int i = 0; i < 2; i++) {
        const char *mark = strstr(name, "%d");
        if (!mark) break;
        at += (size_t)snprintf(out + at, WEIGHT_NAME_LEN - at, "%.*s%d", (int)(mark - name), name,
                               (int)number[i]);
        name = mark + 2;
    }
    (void)snprintf(out + at, WEIGHT_NAME_LEN - at, "%s%s", name, suffix);
}

const tensor_desc *weights_find(const weights *w, const char *name, int32_t layer, int32_t expert,
                                const char *suffix, char spelled[WEIGHT_NAME_LEN])
{
    enum { PLACES = 4 };
    static const char *const stems[PLACES] = {"model.", "language_model.model.",
                                              "model.language_model.", ""};
    static const char *const fronts[PLACES] = {"", "language_model.", "model.language_model.", ""};
    const bool inner = w->src->format != SOURCE_GGUF && strncmp(name, "model.", 6) == 0;
    const char *const *front = !inner ? fronts : w->stem ? &w->stem : stems;
    const size_t n = w->src->format == SOURCE_GGUF || (inner && w->stem) ? 1 : PLACES;
    for (size_t i = 0; i < n; i++) {
        spell(spelled, front[i], inner ? name + 6 : name, layer, expert, suffix);
        const tensor_desc *t = source_find(w->src, spelled);
        if (t) return t;
    }
    if (n > 1 && strncmp(name, "backbone.", 9) == 0) {
        char other[WEIGHT_NAME_LEN]; /* newer files' word for it */
        (void)snprintf(other, sizeof other, "model.%s", name + 9);
        const tensor_desc *t = weights_find(w, other, layer, expert, suffix, spelled);
        if (t) return t;
    }
    spell(spelled, front[0], inner ? name + 6 : name, layer, expert, suffix);
    return NULL;
}

static const tensor_desc *find(const weights *w, const char *hf, const char *gguf, int32_t layer,
                               const char *suffix, char name[WEIGHT_NAME_LEN])
{
    return weights_find(w, w->src->format == SOURCE_GGUF ? gguf : hf, layer, 0, suffix, name);
}

cairn_status weights_misshapen(const tensor_desc *t, const char *expected, cairn_diag *dg)
{
    char found[96] = "[";
    size_t at = 1;
    for (int32_t i = 0; i < t->n_dim; i++)
        at += (size_t)snprintf(found + at, sizeof found - at, i ? ", %lld" : "%lld",
                               (long long)t->dim[i]);
    return diag_set(dg, CAIRN_E_CORRUPT, "%s: tensor %s: shape is %s]; expected %s", t->file,
                    t->name.ptr, found, expected);
}

static bool vector_fits(const tensor_desc *t, int32_t n, uint32_t flags)
{
    if (n == 1 && t->n_dim == 0) return true;
    if ((flags & W_FLAT) && t->n_dim == 2)
        return t->dim[0] > 0 && n % t->dim[0] == 0 && t->dim[1] == n / t->dim[0];
    return t->n_dim == 1 && t->dim[0] == n;
}

/* Any f32, infinities and NaN too. */
static float exp_f32(float x)
{
    return x != x ? x : x < -104.0f ? 0.0f : x > 89.0f ? INFINITY : (float)fmath_exp((double)x);
}

/* A vector of n elements as f32 in the arena. */
static cairn_status load_vector(weights *w, const tensor_desc *t, int32_t n, uint32_t flags,
                                const float **out, cairn_diag *dg)
{
    const bool hf = w->src->format == SOURCE_SAFETENSORS;
    if (!vector_fits(t, n, flags)) {
        char want[48];
        (void)snprintf(want, sizeof want, "[%d]", (int)n);
        return weights_misshapen(t, want, dg);
    }
    const bool bytes = t->type == DT_U8; /* whole numbers, which MLX adds as such */
    if (!bytes && (!dtype_can_dequant(t->type) || n % dtype_block(t->type)))
        return diag_set(dg, CAIRN_E_UNSUPPORTED, "%s: tensor %s: type is %s; expected a float type",
                        t->file, t->name.ptr, tensor_type_name(t));
    float *f = arena_alloc(w->a, (size_t)n * sizeof *f);
    if (!f) return diag_set(dg, CAIRN_E_NOMEM, "%d floats for %s", (int)n, t->name.ptr);
    if (!bytes) dtype_to_f32(t->type, t->data, f, (size_t)n);
    for (int32_t i = 0; bytes && i < n; i++) f[i] = t->data[i];
    for (int32_t i = 0; (flags & W_PLUS_ONE) && hf && i < n; i++) f[i] += 1.0f;
    for (int32_t i = 0; (flags & W_NEG_EXP) && hf && i < n; i++) f[i] = -exp_f32(f[i]);
    w->used[t - w->src->tensor] = 1;
    *out = f;
    return CAIRN_OK;
}

cairn_status weights_vector(weights *w, const char *name, int32_t n, const float **out,
                            cairn_diag *dg)
{
    const tensor_desc *t = source_find(w->src, name);
    *out = NULL;
    return t ? load_vector(w, t, n, 0, out, dg) : CAIRN_OK;
}

cairn_status weights_keep(weights *w, weight *item, cairn_diag *dg)
{
    if (w->n == w->cap) {
        const size_t cap = w->cap ? 2 * w->cap : 128;
        weight **more = arena_alloc(w->a, cap * sizeof(weight *));
        if (!more) return diag_set(dg, CAIRN_E_NOMEM, "weight list");
        if (w->n) memcpy(more, w->item, w->n * sizeof(weight *));
        w->item = more;
        w->cap = cap;
    }
    w->item[w->n++] = item;
    return CAIRN_OK;
}

static cairn_status check_matrix(const tensor_desc *t, int32_t rows, int32_t cols, cairn_diag *dg)
{
    const bool flat = rows == 1 && t->n_dim == 1 && t->dim[0] == cols;
    if (!flat && (t->n_dim != 2 || t->dim[0] != rows || t->dim[1] != cols)) {
        char want[48];
        (void)snprintf(want, sizeof want, "[%d, %d]", (int)rows, (int)cols);
        return weights_misshapen(t, want, dg);
    }
    if (t->packed) return CAIRN_OK;
    if (!dtype_can_dequant(t->type))
        return diag_set(dg, CAIRN_E_UNSUPPORTED,
                        "%s: tensor %s: type is %s; expected a float or a quantised type", t->file,
                        t->name.ptr, dtype_name(t->type));
    if (cols % dtype_block(t->type))
        return diag_set(dg, CAIRN_E_CORRUPT,
                        "%s: tensor %s: rows of %d elements; expected a multiple of %d for %s",
                        t->file, t->name.ptr, (int)cols, (int)dtype_block(t->type),
                        dtype_name(t->type));
    return CAIRN_OK;
}

weight_class weights_class(uint32_t flags)
{
    if (flags & W_HEAD) return WEIGHT_HEAD;
    if (flags & W_ROUTER) return WEIGHT_FLOAT;
    if (flags & W_FFN_DOWN) return WEIGHT_FFN_DOWN;
    if (flags & W_KV) return WEIGHT_KV;
    return flags & W_ATTN_OUT ? WEIGHT_ATTN_OUT : WEIGHT_PLAIN;
}

static uint32_t flags_of_rows(uint32_t flags, dim_name rows)
{
    return rows == DIM_KV || rows == DIM_KV_A ? flags | W_KV : flags;
}

/* The bias [rows] of the matrix of these names, or NULL where the class has none. */
static cairn_status find_bias(weights *w, const char *hf, const char *gguf, uint32_t flags,
                              int32_t layer, int32_t rows, const float **out, cairn_diag *dg)
{
    char name[WEIGHT_NAME_LEN];
    *out = NULL;
    if (!(flags & (w->may_bias | w->need_bias))) return CAIRN_OK;
    const tensor_desc *t = find(w, hf, gguf, layer, ".bias", name);
    if (t) return load_vector(w, t, rows, 0, out, dg);
    if (!(flags & w->need_bias)) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_CORRUPT, "%s: tensor %s is missing; expected in this family",
                    w->src->path, name);
}

/* Rows first … first + rows - 1 of a checked matrix. */
static cairn_status keep_rows(weights *w, const tensor_desc *t, int32_t first, int32_t rows,
                              uint32_t flags, const float *bias, const weight **out, cairn_diag *dg)
{
    const bool flat = t->n_dim == 1; /* of one row */
    const size_t row_bytes = flat ? t->size : t->size / (size_t)t->dim[0];
    weight *item = arena_calloc(w->a, 1, sizeof *item);
    if (!item) return diag_set(dg, CAIRN_E_NOMEM, "weight %s", t->name.ptr);
    *item = (weight){.name = t->name.ptr,
                     .type = t->type,
                     .rows = rows,
                     .cols = (int32_t)t->dim[flat ? 0 : 1],
                     .data = t->packed ? t->data : t->data + (size_t)first * row_bytes,
                     .size = (size_t)rows * row_bytes,
                     .packed = t->packed,
                     .packed_first = first,
                     .packed_step = 1,
                     .bias = bias ? bias + first : NULL,
                     .klass = weights_class(flags),
                     .gather = (flags & W_GATHER) != 0,
                     .matmul = !(flags & W_GATHER)};
    w->used[t - w->src->tensor] = 1;
    TRY(weights_keep(w, item, dg));
    *out = item;
    return CAIRN_OK;
}

static cairn_status keep_vector(weights *w, const tensor_desc *t, int32_t cols, uint32_t flags,
                                const weight **out, cairn_diag *dg)
{
    weight *item = arena_calloc(w->a, 1, sizeof *item);
    if (!item) return diag_set(dg, CAIRN_E_NOMEM, "weight %s", t->name.ptr);
    *item = (weight){.name = t->name.ptr,
                     .type = t->type,
                     .rows = 1,
                     .cols = cols,
                     .data = t->data,
                     .size = t->size};
    TRY(load_vector(w, t, cols, flags, &item->f32, dg));
    TRY(weights_keep(w, item, dg));
    *out = item;
    return CAIRN_OK;
}

static cairn_status check_conv(const tensor_desc *t, int32_t rows, int32_t cols, cairn_diag *dg)
{
    const bool three =
        t->n_dim == 3 && (t->dim[1] == 1 || t->dim[2] == 1) && t->dim[1] * t->dim[2] == rows;
    if (!(three || (t->n_dim == 2 && t->dim[1] == rows)) || t->dim[0] != cols) {
        char want[48];
        (void)snprintf(want, sizeof want, "[%d, 1, %d]", (int)cols, (int)rows);
        return weights_misshapen(t, want, dg);
    }
    if (t->packed || !dtype_can_dequant(t->type) || dtype_block(t->type) != 1)
        return diag_set(dg, CAIRN_E_UNSUPPORTED, "%s: tensor %s: type is %s; expected a float type",
                        t->file, t->name.ptr, tensor_type_name(t));
    return CAIRN_OK;
}

static cairn_status keep_conv(weights *w, const tensor_desc *t, int32_t rows, int32_t cols,
                              const float *bias, const weight **out, cairn_diag *dg)
{
    weight *item = arena_calloc(w->a, 1, sizeof *item);
    float *f = arena_alloc(w->a, (size_t)rows * (size_t)cols * sizeof *f);
    const size_t step = t->size / (size_t)cols;
    if (!item || !f) return diag_set(dg, CAIRN_E_NOMEM, "weight %s", t->name.ptr);
    for (int32_t i = 0; i < cols; i++) {
        float one[CONV_MAX_ROWS];
        dtype_to_f32(t->type, t->data + (size_t)i * step, one, (size_t)rows);
        for (int32_t k = 0; k < rows; k++) f[k * cols + i] = one[k];
    }
    *item = (weight){.name = t->name.ptr,
                     .type = t->type,
                     .rows = rows,
                     .cols = cols,
                     .data = t->data,
                     .size = t->size,
                     .bias = bias,
                     .f32 = f};
    w->used[t - w->src->tensor] = 1;
    TRY(weights_keep(w, item, dg));
    *out = item;
    return CAIRN_OK;
}

static cairn_status missing(const weights *w, const char *name, int32_t rows, int32_t cols,
                            cairn_diag *dg)
{
    return diag_set(dg, CAIRN_E_CORRUPT,
                    "%s: tensor %s is missing; expected in this family; expected [%d, %d]",
                    w->src->path, name, (int)rows, (int)cols);
}

static cairn_status bind_one(weights *w, const weight_row *r, int32_t layer, const weight **field,
                             cairn_diag *dg)
{
    char name[WEIGHT_NAME_LEN];
    const int32_t rows = w->dim[r->rows], cols = w->dim[r->cols];
    const float *bias;
    const tensor_desc *t = find(w, r->hf, r->gguf, layer, r->flags & W_BARE ? "" : ".weight", name);
    *field = NULL;
    if (!t && (r->flags & W_OPTIONAL)) return CAIRN_OK;
    if (!t) return missing(w, name, rows, cols, dg);
    if (r->rows == DIM_ONE) return keep_vector(w, t, cols, r->flags, field, dg);
    if (r->flags & W_CONV) {
        TRY(check_conv(t, rows, cols, dg));
        TRY(find_bias(w, r->hf, r->gguf, r->flags, layer, cols, &bias, dg));
        return keep_conv(w, t, rows, cols, bias, field, dg);
    }
    TRY(check_matrix(t, rows, cols, dg));
    TRY(find_bias(w, r->hf, r->gguf, r->flags, layer, rows, &bias, dg));
    return keep_rows(w, t, 0, rows, flags_of_rows(r->flags, r->rows), bias, field, dg);
}

const tensor_desc *weights_tensor(const weights *w, const char *hf, const char *gguf, int32_t layer)
{
    char name[WEIGHT_NAME_LEN];
    return find(w, hf, gguf, layer, ".weight", name);
}

bool weights_has(const weights *w, const char *hf, const char *gguf, int32_t layer)
{
    return weights_tensor(w, hf, gguf, layer) != NULL;
}

cairn_status weights_bind_split(weights *w, const weight_split *split, int32_t layer, void *into,
                                cairn_diag *dg)
{
    enum { MOST = sizeof split->part / sizeof split->part[0] };
    char name[WEIGHT_NAME_LEN];
    const int32_t cols = w->dim[split->cols];
    const float *bias;
    int64_t total = 0;
    const tensor_desc *t = find(w, split->hf, split->gguf, layer, ".weight", name);
    for (size_t i = 0; i < MOST && split->part[i].rows != DIM_ONE; i++)
        total += w->dim[split->part[i].rows];
    if (total > INT32_MAX)
        return diag_set(dg, CAIRN_E_LIMIT, "%s: %lld rows", name, (long long)total);
    if (!t) return missing(w, name, (int32_t)total, cols, dg);
    TRY(check_matrix(t, (int32_t)total, cols, dg));
    TRY(find_bias(w, split->hf, split->gguf, split->flags, layer, (int32_t)total, &bias, dg));
    for (size_t i = 0, first = 0; i < MOST && split->part[i].rows != DIM_ONE; i++) {
        const dim_name of = split->part[i].rows;
        const int32_t rows = w->dim[of];
        const uint32_t flags = flags_of_rows(split->flags, of);
        const weight *item;
        TRY(keep_rows(w, t, (int32_t)first, rows, flags, bias, &item, dg));
        memcpy((char *)into + split->part[i].field, &item, sizeof item);
        first += (size_t)rows;
    }
    return CAIRN_OK;
}

cairn_status weights_bind(weights *w, const weight_row *table, size_t n_rows, int32_t layer,
                          void *into, cairn_diag *dg)
{
    for (size_t i = 0; i < n_rows; i++) {
        const weight *item;
        TRY(bind_one(w, &table[i], layer, &item, dg));
        memcpy((char *)into + table[i].field, &item, sizeof item);
    }
    return CAIRN_OK;
}

void weights_skip(weights *w, const char *part)
{
    for (size_t i = 0; i < w->src->n_tensor; i++)
        if (str_find(w->src->tensor[i].name, str_of(part), 0) != SIZE_MAX) w->used[i] = 1;
}

void weights_tie(weights *w, const weight *embedding)
{
    size_t i = 0;
    while (i < w->n && w->item[i] != embedding) i++;
    assert(i < w->n); /* bound before it is tied */
    w->item[i]->matmul = true;
    w->item[i]->klass = WEIGHT_HEAD;
}

cairn_status weights_audit(const weights *w, const char *const *ignored, size_t n_ignored,
                           cairn_diag *dg)
{
    buf names = {0};
    size_t n = 0, n_shown = 0;
    buf_init(&names, MEM_MODEL);
    for (size_t i = 0; i < w->src->n_tensor; i++) {
        bool fine = w->used[i];
        for (size_t k = 0; !fine && k < n_ignored; k++)
            fine = str_find(w->src->tensor[i].name, str_of(ignored[k]), 0) != SIZE_MAX;
        if (fine) continue;
        const cairn_str name = w->src->tensor[i].name;
        if (n_shown == n && (n == 0 || names.len + name.len < AUDIT_BYTES)) {
            buf_printf(&names, "%s%.*s", n ? ", " : "", STR_ARG(name));
            n_shown++;
        }
        n++;
    }
    if (n > n_shown) buf_printf(&names, " and %zu more", n - n_shown);
    if (n)
        (void)diag_set(dg, CAIRN_E_UNSUPPORTED,
                       "%s: %zu tensors that this family does not use: %s; expected none",
                       w->src->path, n, names.ptr ? names.ptr : "");
    buf_deinit(&names);
    return n ? CAIRN_E_UNSUPPORTED : CAIRN_OK;
}
