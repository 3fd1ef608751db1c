/* The public face of models: checks arguments, converts, nothing clever. */
#include "api/api_model.h"

#include <assert.h>
#include <string.h>

#include "base/diag.h"
#include "base/str.h"
#include "base/workers.h"
#include "engine/step.h"
#include "hub/hub_registry.h"

_Static_assert((int)CAIRN_MAX_THREADS == (int)WORKERS_MAX,
               "the limit that is promised is the pool's");

void cairn_model_opts_init(cairn_model_opts *o)
{
    *o = (cairn_model_opts){.struct_size = sizeof *o};
}

void cairn_model_info_init(cairn_model_info *info)
{
    *info = (cairn_model_info){.struct_size = sizeof *info};
}

static cairn_status open_text(const char *path, cairn_text **out, cairn_diag *dg)
{
    cairn_diag d = {0};
    const cairn_status st = cairn_text_open(path, out, &d);
    if (st == CAIRN_E_NOTFOUND) return CAIRN_OK; /* weights alone are a model too */
    return st == CAIRN_OK ? st : diag_set(dg, st, "%s", d.message);
}

cairn_status cairn_model_open(const char *path, const cairn_model_opts *o, cairn_model **out,
                              cairn_diag *dg)
{
    cairn_model_opts opts, headers;
    cairn_status st;
    cairn_model_opts_init(&opts);
    if (!path || !out) return diag_set(dg, CAIRN_E_ARG, "cairn_model_open: path or out is NULL");
    if (o && o->struct_size != sizeof *o)
        return diag_set(dg, CAIRN_E_ARG, "cairn_model_open: options not initialised");
    if (o) opts = *o;
    if (opts.n_threads < 0 || opts.n_threads > CAIRN_MAX_THREADS)
        return diag_set(dg, CAIRN_E_ARG, "%d threads; expected 0 to %d", opts.n_threads,
                        CAIRN_MAX_THREADS);
    cairn_model *m = mem_calloc(1, sizeof *m, MEM_MODEL);
    if (!m) return diag_set(dg, CAIRN_E_NOMEM, "model");
    /* What costs most comes last: a file that is wrong is refused before its weights are touched. */
    headers = opts;
    headers.no_weights = true;
    TRY_GOTO(model_open(path, &headers, &m->m, dg), out);
    if (m->m->headless) opts.kv_codec = NULL; /* vectors are computed beside plain caches */
    TRY_GOTO(scheme_read(opts.kv_codec, &m->m->cache, stepper_codec(m->m).all.k.kind, &m->kv, dg),
             out);
    m->m->kv = &m->kv.kv;
    m->m->kv_text = m->kv.text.ptr;
    if (!opts.no_text) TRY_GOTO(open_text(path, &m->text, dg), out);
    if (m->text && m->m->pool.lowered) TRY_GOTO(embed_tells_case(m->text, &m->tells_case, dg), out);
    if (!opts.no_weights) TRY_GOTO(model_load(m->m, &opts, dg), out);
    *out = m;
    m = NULL;
out:
    cairn_model_close(m);
    return st;
}

void cairn_model_close(cairn_model *m)
{
    if (!m) return;
    model_close(m->m);
    scheme_free(&m->kv);
    cairn_text_close(m->text);
    mem_free(m);
}

/* The matrix type that holds most bytes, of the first MOST that there are. */
static const char *dominant_type(const source *s)
{
    enum { MOST = 32 };
    const char *name[MOST] = {dtype_name(DT_F32)};
    uint64_t bytes[MOST] = {0};
    size_t n = 1, best = 0;
    for (size_t i = 0; i < s->n_tensor; i++) {
        const char *type = tensor_type_name(&s->tensor[i]);
        size_t k = 0;
        if (s->tensor[i].n_dim < 2) continue;
        while (k < n && strcmp(name[k], type) != 0) k++;
        if (k == MOST) continue;
        if (k == n) name[n++] = type;
        bytes[k] += s->tensor[i].size;
        if (bytes[k] > bytes[best]) best = k;
    }
    return name[best];
}

static const char *display_name(const model *m)
{
    const cairn_str name = meta_str(&m->src->meta, "general.name", STR_LIT(""));
    if (m->src->format == SOURCE_GGUF && name.len && name.ptr[name.len] == '\0') return name.ptr;
    const char *slash = strrchr(m->src->path, '/');
    return slash && slash[1] ? slash + 1 : m->src->path;
}

static void count_elements(const model *m, cairn_model_info *i)
{
    for (size_t k = 0; k < m->src->n_tensor; k++) {
        const tensor_desc *t = &m->src->tensor[k];
        uint64_t n = 1;
        for (int32_t d = 0; d < t->n_dim; d++) n *= (uint64_t)t->dim[d];
        i->n_params += n;
        i->file_bytes += t->size;
    }
}

static void count_cache(const model *m, cairn_model_info *i)
{
    enum { MANY = 1 << 12 }; /* whole blocks of any size, so that a quotient is exact */
    const kv_scheme codec = stepper_codec(m);
    i->cache_bytes_state = cache_state_bytes(&m->cache);
    for (int32_t l = 0; l < m->cache.n_layer; l++) {
        cache_layer_spec layer = m->cache.layer[l];
        const cachespec one = {1, &layer};
        layer.n_state = 0;
        const kv_scheme own = {.all = kv_layer_pair(&codec, l)};
        if (one.layer->window)
            i->cache_bytes_window += cache_bytes(&one, &own, STEP_ROWS, CAIRN_MAX_CTX);
        else
            i->cache_bytes_token += cache_bytes(&one, &own, STEP_ROWS, MANY) / MANY;
    }
}

uint64_t cairn_model_cache_bytes(const cairn_model *m, int32_t n_pos)
{
    const kv_scheme codec = stepper_codec(m->m);
    return n_pos > 0 ? cache_bytes(&m->m->cache, &codec, STEP_ROWS, n_pos) : 0;
}

void cairn_model_get_info(const cairn_model *cm, cairn_model_info *info)
{
    const model *m = cm->m;
    const model_shape *s = &m->shape;
    cairn_model_info i = {.struct_size = info->struct_size,
                          .format = m->src->format == SOURCE_GGUF ? "gguf" : "safetensors",
                          .family = m->arch,
                          .name = display_name(m),
                          .quant = dominant_type(m->src),
                          .n_layer = s->n_layer,
                          .hidden = s->hidden,
                          .n_head = s->n_head,
                          .n_kv_head = s->n_kv_head,
                          .head_dim = s->head_dim,
                          .vocab = s->vocab,
                          .ctx_train = s->ctx_train,
                          .token_bytes = model_token_bytes(m),
                          .loaded_bytes = model_loaded_bytes(m),
                          .load_seconds = m->load_seconds,
                          .kv_codec = cm->kv.text.ptr,
                          .isa = m->dev ? m->be->isa(m->dev) : "none",
                          .n_threads = m->dev ? m->be->threads(m->dev) : 0,
                          .resident_bytes = m->dev ? m->be->resident(m->dev) : 0};
    count_elements(m, &i);
    count_cache(m, &i);
    model_count_matmul(m, &i.matmul_params, &i.head_params);
    memcpy(info, &i, info->struct_size < sizeof i ? info->struct_size : sizeof i);
}

const cairn_text *cairn_model_text(const cairn_model *m)
{
    return m->text;
}

size_t cairn_model_n_tensors(const cairn_model *m)
{
    return m->m->src->n_tensor;
}

void cairn_model_tensor(const cairn_model *m, size_t i, cairn_tensor_info *out)
{
    assert(i < m->m->src->n_tensor);
    const tensor_desc *t = &m->m->src->tensor[i];
    *out = (cairn_tensor_info){t->name.ptr, tensor_type_name(t), t->n_dim, {0}, t->size};
    for (int32_t d = 0; d < t->n_dim && d < 4; d++) out->dim[d] = t->dim[d];
}

cairn_status cairn_model_read_tensor(const cairn_model *m, const char *name, float *out, size_t n,
                                     cairn_diag *dg)
{
    const tensor_desc *t = source_find(m->m->src, name);
    size_t elems = 1;
    if (!t) return diag_set(dg, CAIRN_E_NOTFOUND, "%s: no tensor %s", m->m->src->path, name);
    for (int32_t d = 0; d < t->n_dim; d++) elems *= (size_t)t->dim[d];
    if (elems != n)
        return diag_set(dg, CAIRN_E_ARG, "%s: tensor %s has %zu elements; expected %zu",
                        m->m->src->path, name, elems, n);
    if (t->packed) {
        TRY(packed_check(t->packed, t->name.ptr, dg));
        for (size_t r = 0; r < (size_t)t->packed->rows; r++)
            packed_row_f32(t->packed, r, out + r * (size_t)t->packed->cols);
        return CAIRN_OK;
    }
    if (!dtype_can_dequant(t->type))
        return diag_set(dg, CAIRN_E_UNSUPPORTED, "%s: tensor %s: type is %s; expected a float type",
                        m->m->src->path, name, dtype_name(t->type));
    dtype_to_f32(t->type, t->data, out, n);
    return CAIRN_OK;
}

cairn_status cairn_model_resolve(const char *word, cairn_bytes *path, cairn_diag *dg)
{
    buf b;
    if (!word || !path) return diag_set(dg, CAIRN_E_ARG, "cairn_model_resolve: NULL argument");
    buf_init(&b, MEM_MISC);
    cairn_status st = hub_resolve(word, &b, dg);
    if (st == CAIRN_OK) st = buf_take(&b, path);
    buf_deinit(&b);
    return st;
}
