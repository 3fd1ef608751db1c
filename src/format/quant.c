/* Tensors that make one quantised matrix together, joined: which way a checkpoint stores them, the walk
   over its tensors, and the checks and words that all ways share.  Each way has a file (mlxquant.c,
   hfquant_*.c).

   Invariant: after quant_join, a tensor of type PACKED has parts whose sizes fit its shape, and its parts
   are no longer in the list. */
#include "format/quant.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/str.h"

static const quant_scheme schemes[] = {
    {NULL, ".scales", mlx_module},
    {NULL, ".weight", mlx_orphan},
    {"fp8", "", fp8_module},
    {"mxfp4", "_blocks", mxfp4_module},
    {"compressed-tensors", ".weight_packed", ct_packed_module},
    {"compressed-tensors", ".weight", ct_int_module},
    {"gptq", ".qweight", gptq_module},
    {"awq", ".qweight", awq_module},
};
enum { N_SCHEME = sizeof schemes / sizeof schemes[0] };

tensor_desc *quant_find(const quant_job *j, const tensor_desc *t, size_t stem, const char *suffix)
{
    char name[FORMAT_MAX_NAME + 32];
    uint32_t i;
    const int n = snprintf(name, sizeof name, "%.*s%s", (int)stem, t->name.ptr, suffix);
    if (n < 0 || (size_t)n >= sizeof name) return NULL;
    return map_get(&j->b->src.index, str_of(name), &i) ? &j->b->tensor[i] : NULL;
}

cairn_status quant_need(const quant_job *j, const tensor_desc *t, size_t stem, const char *suffix,
                        tensor_desc **out)
{
    *out = quant_find(j, t, stem, suffix);
    if (*out) return CAIRN_OK;
    return diag_set(j->dg, CAIRN_E_CORRUPT, "%s: tensor %.*s%s is missing; expected beside %s",
                    t->file, (int)stem, t->name.ptr, suffix, t->name.ptr);
}

void quant_drop(quant_job *j, const tensor_desc *t)
{
    if (t) j->gone[t - j->b->tensor] = 1;
}

cairn_status quant_bad(const quant_job *j, const tensor_desc *t, const char *field,
                       const char *found, const char *fmt, ...)
{
    char expected[128];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(expected, sizeof expected, fmt, ap);
    va_end(ap);
    return diag_set(j->dg, CAIRN_E_CORRUPT, "%s: tensor %s: %s is %s; expected %s", t->file,
                    t->name.ptr, field, found, expected);
}

static void shape_text(const int64_t *dim, int32_t n, char out[112])
{
    size_t at = (size_t)snprintf(out, 112, "[");
    for (int32_t i = 0; i < n; i++)
        at += (size_t)snprintf(out + at, 112 - at, i ? ", %lld" : "%lld", (long long)dim[i]);
    (void)snprintf(out + at, 112 - at, "]");
}

cairn_status quant_shape(const quant_job *j, const tensor_desc *t, const int64_t *dim, int32_t n)
{
    char found[112], expected[112];
    bool same = t->n_dim == n;
    for (int32_t i = 0; same && i < n; i++) same = t->dim[i] == dim[i];
    if (same) return CAIRN_OK;
    shape_text(t->dim, t->n_dim, found);
    shape_text(dim, n, expected);
    return quant_bad(j, t, "shape", found, "%s", expected);
}

static cairn_status check_size(const quant_job *j, const tensor_desc *t, const quant_matrix *m)
{
    char found[48];
    if (m->rows >= 1 && m->cols >= 1 && m->rows <= INT32_MAX && m->cols <= INT32_MAX &&
        m->n_stack >= 0 && (m->n_stack == 0 || m->rows <= INT32_MAX / m->n_stack))
        return CAIRN_OK;
    (void)snprintf(found, sizeof found, "%lld × %lld", (long long)m->rows, (long long)m->cols);
    return quant_bad(j, t, "matrix", found, "1 to 2^31 rows and columns");
}

cairn_status quant_put(quant_job *j, tensor_desc *t, const char *name, const quant_matrix *m)
{
    TRY(check_size(j, t, m));
    packed *p = arena_alloc(&j->b->mem, sizeof *p);
    if (!p) return diag_set(j->dg, CAIRN_E_NOMEM, "%s: %s", t->file, t->name.ptr);
    *p = m->p;
    if (!p->block_rows) p->block_rows = 1;
    j->n_joined++;
    p->rows = (int32_t)(m->n_stack ? m->n_stack * m->rows : m->rows);
    p->cols = (int32_t)m->cols;
    p->code = m->code->data;
    p->code_size = m->code->size;
    p->scale = m->scale->data;
    p->scale_size = m->scale->size;
    p->file = m->scale->file;
    if (m->offset) {
        p->offset = m->offset->data;
        p->offset_size = m->offset->size;
    }
    if (m->order) p->order = m->order->data;
    (void)snprintf(p->name, sizeof p->name, "%s", name);
    const size_t size = p->code_size + p->scale_size + p->offset_size;
    quant_drop(j, m->code);
    quant_drop(j, m->scale);
    quant_drop(j, m->offset);
    quant_drop(j, m->order);
    j->gone[t - j->b->tensor] = 0;
    *t = (tensor_desc){.name = t->name,
                       .file = t->file,
                       .type = DT_PACKED,
                       .n_dim = m->n_stack ? 3 : 2,
                       .data = p->code,
                       .size = size,
                       .packed = p};
    t->dim[0] = m->n_stack ? m->n_stack : m->rows;
    t->dim[1] = m->n_stack ? m->rows : m->cols;
    if (m->n_stack) t->dim[2] = m->cols;
    return CAIRN_OK;
}

cairn_status quant_rename(quant_job *j, tensor_desc *t, size_t stem, const char *suffix)
{
    const size_t n = strlen(suffix);
    char *name = arena_alloc(&j->b->mem, stem + n + 1);
    if (!name) return diag_set(j->dg, CAIRN_E_NOMEM, "%s: %s", t->file, t->name.ptr);
    memcpy(name, t->name.ptr, stem);
    memcpy(name + stem, suffix, n + 1);
    t->name = (cairn_str){name, stem + n};
    return CAIRN_OK;
}

/* The list without what was joined, and its index anew: joined tensors may have new names. */
static cairn_status compact(quant_job *j)
{
    source_build *b = j->b;
    size_t n = 0;
    map_deinit(&b->src.index);
    map_init(&b->src.index, MEM_MODEL);
    if (map_reserve(&b->src.index, b->src.n_tensor) != CAIRN_OK)
        return diag_set(j->dg, CAIRN_E_NOMEM, "%s: index of tensors", b->src.path);
    for (size_t i = 0; i < b->src.n_tensor; i++) {
        uint32_t seen;
        if (j->gone[i]) continue;
        const tensor_desc t = b->tensor[i];
        if (map_get(&b->src.index, t.name, &seen))
            return diag_set(j->dg, CAIRN_E_CORRUPT,
                            "%s: tensor %s: quantised and plain; expected one", t.file, t.name.ptr);
        if (map_put(&b->src.index, t.name, (uint32_t)n) != CAIRN_OK)
            return diag_set(j->dg, CAIRN_E_NOMEM, "%s: index of tensors", b->src.path);
        b->tensor[n++] = t;
    }
    b->src.n_tensor = n;
    return CAIRN_OK;
}

static cairn_status walk(quant_job *j, const quant_scheme *s)
{
    const cairn_str suffix = str_of(s->suffix);
    for (size_t i = 0; i < j->b->src.n_tensor; i++) {
        tensor_desc *t = &j->b->tensor[i];
        if (j->gone[i] || t->packed || !str_ends(t->name, suffix)) continue;
        TRY(s->module(j, t, t->name.len - suffix.len));
    }
    return CAIRN_OK;
}

static cairn_status find_method(quant_job *j, cairn_str *method)
{
    meta m;
    if (meta_get(j->meta, "quantization.bits", &m) || meta_get(j->meta, "quantization.mode", &m)) {
        j->root = "quantization";
        return CAIRN_OK;
    }
    if (!meta_get(j->meta, "quantization_config", &m) && !meta_get(j->meta, "quantization", &m))
        return CAIRN_OK;
    j->root = "quantization_config";
    if (!meta_get(j->meta, "quantization_config.quant_method", &m)) {
        if (meta_get(j->meta, "quantization_config.bits", &m)) return CAIRN_OK;
        return diag_set(j->dg, CAIRN_E_UNSUPPORTED,
                        "%s/config.json: quantization_config: found neither quant_method nor bits; "
                        "expected one of them",
                        j->b->src.path);
    }
    if (m.type == META_STR) *method = m.u.s;
    for (size_t i = 0; i < N_SCHEME; i++)
        if (method->ptr && schemes[i].method && str_is(*method, schemes[i].method)) return CAIRN_OK;
    return diag_set(
        j->dg, CAIRN_E_UNSUPPORTED,
        "%s/config.json: quantization_config.quant_method: found \"%.*s\"; expected fp8, "
        "mxfp4, compressed-tensors, gptq or awq",
        j->b->src.path, STR_ARG(*method));
}

/* compressed-tensors may speak of caches alone. */
static bool says_weights(const quant_job *j, cairn_str method)
{
    meta m;
    return !str_is(method, "compressed-tensors") ||
           meta_get(j->meta, "quantization_config.config_groups.group_0", &m);
}

static cairn_status check_joined(const quant_job *j, cairn_str method)
{
    if (j->n_joined || !says_weights(j, method)) return CAIRN_OK;
    return diag_set(j->dg, CAIRN_E_CORRUPT,
                    "%s/config.json: %s: says %.*s, but no tensor is quantised so; expected its "
                    "tensors, or a config without it",
                    j->b->src.path, j->root, STR_ARG(method.ptr ? method : STR_LIT("MLX")));
}

cairn_status quant_join(source_build *b, const meta_view *config, cairn_diag *dg)
{
    quant_job j = {.b = b, .meta = config, .dg = dg};
    cairn_str method = {NULL, 0};
    cairn_status st = CAIRN_OK;

    TRY(find_method(&j, &method));
    if (!j.root) return CAIRN_OK;
    if (!method.ptr) b->src.mlx = true;
    j.gone = mem_calloc(b->src.n_tensor + 1, 1, MEM_SCRATCH);
    if (!j.gone) return diag_set(dg, CAIRN_E_NOMEM, "%s: list of tensors", b->src.path);
    for (size_t i = 0; i < N_SCHEME; i++) {
        const char *m = schemes[i].method;
        if (m ? !method.ptr || !str_is(method, m) : method.ptr != NULL) continue;
        TRY_GOTO(walk(&j, &schemes[i]), out);
    }
    TRY_GOTO(check_joined(&j, method), out);
    st = compact(&j);
out:
    mem_free(j.gone);
    return st;
}
