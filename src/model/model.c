/* Opens a model: finds its family, binds every tensor, hands the weights to a device.

   A file whose tensors are not all understood is refused (weights_audit): a wrong description cannot
   run.  A model that does not fit in memory is refused before its weights are read. */
#include "model/model.h"

#include <string.h>

#include "base/clock.h"
#include "base/diag.h"
#include "base/machine.h"
#include "base/str.h"
#include "format/format.h"
#include "model/family.h"
#include "tensor/fuse.h"

static const family *const families[] = {
    &family_llama,     &family_qwen,      &family_gemma,       &family_gemma1,
    &family_phi,       &family_granite,   &family_olmo,        &family_cohere,
    &family_smollm,    &family_glm,       &family_ernie,       &family_seed,
    &family_hunyuan,   &family_apertus,   &family_qwen_moe,    &family_qwen_next,
    &family_glm_moe,   &family_minimax,   &family_gptoss,      &family_gemma3n,
    &family_gemma4,    &family_deepseek,  &family_lfm2,        &family_mamba2,
    &family_falcon_h1, &family_granite_h, &family_granite_moe, &family_nemotron_h,
    &family_bert,      &family_modernbert};
enum { N_FAMILY = sizeof families / sizeof families[0] };

/* Tensors that may lie in a file and mean nothing to the forward pass: tables that are computed here,
   the head that a tied file repeats, and what wrappers have for pictures and sound. */
static const char *const ignored[] = {
    "rotary_emb.inv_freq", "rope_freqs.weight", "lm_head.weight",
    "vision_tower.",       "model.visual.",     "multi_modal_projector.",
    "audio_tower.",        "embed_vision.",     "embed_audio."};

static cairn_status unknown(const source *src, const char *arch, cairn_diag *dg)
{
    buf b;
    buf_init(&b, MEM_MODEL);
    for (size_t i = 0; i < N_FAMILY; i++) {
        const char *const *names = src->format == SOURCE_GGUF ? families[i]->gguf : families[i]->hf;
        for (; *names; names++) buf_printf(&b, "%s%s", b.len ? ", " : "", *names);
    }
    (void)diag_set(dg, CAIRN_E_UNSUPPORTED, "%s%s: found \"%s\"; expected one of: %s", src->path,
                   src->format == SOURCE_GGUF ? ": general.architecture"
                                              : "/config.json: model_type",
                   arch, b.ptr ? b.ptr : "");
    buf_deinit(&b);
    return CAIRN_E_UNSUPPORTED;
}

static const family *find_family(const source *src, const char *arch)
{
    for (size_t i = 0; i < N_FAMILY; i++) {
        const char *const *names = src->format == SOURCE_GGUF ? families[i]->gguf : families[i]->hf;
        for (; *names; names++)
            if (strcmp(*names, arch) == 0) return families[i];
    }
    return NULL;
}

/* The family of the file's own word, or of the language model inside it: wrappers with towers for
   pictures name it under text_config. */
static cairn_status choose_family(config *c, const family **out, cairn_diag *dg)
{
    const family *f = find_family(c->src, c->arch);
    char inner[sizeof c->arch] = "";
    const cairn_str word = meta_str(&c->src->meta, "text_config.model_type", STR_LIT(""));
    if (!f && !c->gguf && word.len > 0 && word.len < sizeof inner) {
        memcpy(inner, word.ptr, word.len);
        f = find_family(c->src, inner);
    }
    if (!f) return unknown(c->src, c->arch, dg);
    if (inner[0]) memcpy(c->arch, inner, sizeof inner);
    *out = f;
    return CAIRN_OK;
}

cairn_status family_cache(model *m, const int32_t *window, cairn_diag *dg)
{
    const size_t n = (size_t)m->shape.n_layer;
    cache_layer_spec *l = arena_calloc(&m->a, n, sizeof *l);
    if (!l || !window) return diag_set(dg, CAIRN_E_NOMEM, "cache layout");
    for (size_t i = 0; i < n; i++)
        l[i] = (cache_layer_spec){m->shape.n_kv_head, m->shape.head_dim, m->shape.head_dim,
                                  .window = m->both ? 0 : window[i]};
    m->cache = (cachespec){m->both ? 1 : m->shape.n_layer, l};
    return CAIRN_OK;
}

cairn_status family_cache_hybrid(model *m, const uint8_t *kind, int32_t n_state, cairn_diag *dg)
{
    const model_shape *s = &m->shape;
    cache_layer_spec *l = arena_calloc(&m->a, (size_t)s->n_layer, sizeof *l);
    if (!l) return diag_set(dg, CAIRN_E_NOMEM, "cache layout");
    for (int32_t i = 0; i < s->n_layer; i++) {
        if (kind[i] & LAYER_KEYS)
            l[i] =
                (cache_layer_spec){.n_kv_head = s->n_kv_head, .dk = s->head_dim, .dv = s->head_dim};
        if (kind[i] & LAYER_STATE) l[i].n_state = n_state;
    }
    m->cache = (cachespec){s->n_layer, l};
    return CAIRN_OK;
}

cairn_status family_rope(model *m, const rope_params *p, rope_spec *out, cairn_diag *dg)
{
    const cairn_status st = rope_make(p, &m->a, out, dg);
    return st == CAIRN_OK ? st : diag_prefix(dg, st, "%s", m->src->path);
}

cairn_status family_weights(model *m, const base_config *b, cairn_diag *dg)
{
    TRY(weights_init(&m->w, &m->a, m->src, dg));
    int32_t *d = m->w.dim;
    d[DIM_HIDDEN] = b->s.hidden;
    d[DIM_VOCAB] = b->s.vocab;
    d[DIM_Q] = b->s.n_head * b->s.head_dim;
    d[DIM_KV] = b->s.n_kv_head * b->s.head_dim;
    d[DIM_HEAD] = b->s.head_dim;
    d[DIM_HEADS] = b->s.n_head;
    d[DIM_FFN] = b->ffn;
    return CAIRN_OK;
}

/* What the device makes of a weight may be more than its bytes in the file; what is less, a tied
   embedding beside its tiles, counts as the file. */
uint64_t model_loaded_bytes(const model *m)
{
    uint64_t bytes = m->w.turn_bytes;
    for (size_t i = 0; i < m->src->n_tensor; i++) bytes += m->src->tensor[i].size;
    for (size_t i = 0; i < m->w.n; i++) {
        const weight *w = m->w.item[i];
        const size_t held = w->f32 ? 0 : m->be->held(m->compute, w);
        const uint64_t more = held > w->size ? held - w->size : 0;
        bytes = more > UINT64_MAX - bytes ? UINT64_MAX : bytes + more;
    }
    return bytes;
}

static cairn_status check_fits(const model *m, uint64_t limit, cairn_diag *dg)
{
    const uint64_t bytes = model_loaded_bytes(m);
    uint64_t available, total;
    machine_memory(&available, &total);
    if (limit && limit < available) available = limit;
    if (bytes <= available) return CAIRN_OK;
    const char *unit = bytes < 1000000000 ? "MB" : "GB";
    const double size = bytes < 1000000000 ? 1e6 : 1e9;
    return diag_set(dg, CAIRN_E_LIMIT,
                    "%s: weights take %.2f %s; expected at most the %.2f %s of memory available",
                    m->src->path, (double)bytes / size, unit, (double)available / size, unit);
}

static cairn_status adopt_all(model *m, const cairn_model_opts *o, cairn_diag *dg)
{
    for (size_t i = 0; i < m->w.n; i++) {
        if (m->w.item[i]->f32) continue;
        if (o->go_on && !o->go_on(o->go_on_ctx))
            return diag_set(dg, CAIRN_E_CANCELLED, "%s: loading was cancelled", m->src->path);
        TRY(m->be->adopt(m->dev, m->w.item[i], dg));
        m->n_adopted = i + 1;
    }
    return CAIRN_OK;
}

cairn_status model_load(model *m, const cairn_model_opts *o, cairn_diag *dg)
{
    const double start = clock_s();
    const dev_opts d = {.compute = o->compute, .n_threads = o->n_threads};
    TRY(m->be->open(&d, &m->dev, dg));
    TRY(check_fits(m, o->memory_limit, dg));
    for (size_t i = 0; i < m->src->n_tensor; i++) {
        const tensor_desc *t = &m->src->tensor[i];
        if (t->packed && m->w.used[i]) TRY(packed_check(t->packed, t->name.ptr, dg));
    }
    TRY(weights_settle(&m->w, dg));
    m->be->busy(m->dev, true);
    const cairn_status st = adopt_all(m, o, dg);
    m->be->busy(m->dev, false);
    TRY(st);
    m->load_seconds += clock_s() - start;
    return CAIRN_OK;
}

static cairn_status open_family(model *m, cairn_diag *dg)
{
    config c = config_of(m->src, dg);
    TRY(c.status);
    TRY(choose_family(&c, &m->family, dg));
    char *arch = arena_alloc(&m->a, sizeof c.arch);
    if (!arch) return diag_set(dg, CAIRN_E_NOMEM, "model");
    memcpy(arch, c.arch, sizeof c.arch);
    m->arch = arch;
    TRY(m->family->open(m, &c, dg));
    TRY(family_pool(m, &c, dg));
    TRY(c.status);
    return weights_audit(&m->w, ignored, sizeof ignored / sizeof ignored[0], dg);
}

static cairn_status make_lock(model *m, cairn_diag *dg)
{
    mutex *lock = arena_alloc(&m->a, sizeof *lock);
    if (!lock) return diag_set(dg, CAIRN_E_NOMEM, "model");
    mutex_init(lock);
    m->running = lock;
    return CAIRN_OK;
}

cairn_status model_open(const char *path, const cairn_model_opts *o, model **out, cairn_diag *dg)
{
    const double start = clock_s();
    cairn_status st;
    model *m = mem_calloc(1, sizeof *m, MEM_MODEL);
    if (!m) return diag_set(dg, CAIRN_E_NOMEM, "model");
    arena_init(&m->a, MEM_MODEL);
    m->be = &backend_cpu;
    m->compute = o->compute;
    m->pad_id = -1;
    TRY_GOTO(source_open(path, &m->src, dg), out);
    TRY_GOTO(open_family(m, dg), out);
    TRY_GOTO(make_lock(m, dg), out);
    m->load_seconds = clock_s() - start;
    if (!o->no_weights) TRY_GOTO(model_load(m, o, dg), out);
    *out = m;
    m = NULL;
out:
    model_close(m);
    return st;
}

void model_close(model *m)
{
    if (!m) return;
    for (size_t i = 0; i < m->n_adopted; i++)
        if (!m->w.item[i]->f32) m->be->release(m->dev, m->w.item[i]);
    if (m->running) mutex_deinit(m->running);
    if (m->dev) m->be->close(m->dev);
    source_close(m->src);
    arena_deinit(&m->a);
    mem_free(m);
}

/* What the head reads, the rest of the program being cut off. */
static val cut_head(prog *p)
{
    for (int32_t i = p->n_op - 1; i >= 0; i--) {
        const op *o = &p->op[i];
        if (o->kind != OP_LINEAR || o->w[0]->klass != WEIGHT_HEAD) continue;
        p->n_op = i;
        return o->in[0];
    }
    p->status = diag_set(&p->diag, CAIRN_E_UNSUPPORTED, "a forward pass without a head");
    return VAL_NONE;
}

static cairn_status record(const model *m, bool hidden, uint32_t fuse, bool taps, arena *a,
                           prog *out, cairn_diag *dg)
{
    prog p;
    prog_init(&p, a);
    fwd f = {.p = &p, .layer = -1, .taps = taps};
    const val logits = m->family->forward(&f, m);
    prog_set_output(&p, hidden && !m->headless && p.status == CAIRN_OK ? cut_head(&p) : logits);
    if (p.status == CAIRN_OK) p.status = fuse_prog(&p, fuse, a, out);
    if (p.status != CAIRN_OK)
        return diag_set(dg, p.status, "%s: %s", m->src->path,
                        p.diag.message[0] ? p.diag.message : "recording the forward pass");
    return CAIRN_OK;
}

cairn_status model_record(const model *m, uint32_t fuse, bool taps, arena *a, prog *out,
                          cairn_diag *dg)
{
    return record(m, false, fuse, taps, a, out, dg);
}

cairn_status model_record_hidden(const model *m, uint32_t fuse, bool taps, arena *a, prog *out,
                                 cairn_diag *dg)
{
    return record(m, true, fuse, taps, a, out, dg);
}

cairn_status model_check_head(const model *m, const char *what, cairn_diag *dg)
{
    if (!m->headless) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_ARG,
                    "%s: found a model that only embeds (%s%s%s); expected one with logits %s",
                    m->src->path, m->arch, m->headless_by ? " with " : "",
                    m->headless_by ? m->headless_by : "", what);
}

/* How often one token meets the matrix, out of how many it is made of. */
static uint64_t met(const weight *w, uint64_t n)
{
    if (!w->matmul) return 0;
    return w->expert ? n / (uint64_t)w->n_expert * (uint64_t)w->n_expert_used : n;
}

uint64_t model_token_bytes(const model *m)
{
    uint64_t n = 0;
    for (size_t i = 0; i < m->w.n; i++) n += met(m->w.item[i], m->w.item[i]->size);
    return n;
}

uint64_t model_step_bytes(const model *m, int32_t rows)
{
    uint64_t n = 0;
    for (size_t i = 0; i < m->w.n; i++) {
        const weight *w = m->w.item[i];
        const uint64_t most = w->matmul ? w->size : 0, one = met(w, w->size);
        n += w->expert && one < most / (uint64_t)rows ? one * (uint64_t)rows : most;
    }
    return n;
}

void model_count_matmul(const model *m, uint64_t *all, uint64_t *head)
{
    *all = *head = 0;
    for (size_t i = 0; i < m->w.n; i++) {
        const weight *w = m->w.item[i];
        const uint64_t each = (uint64_t)w->rows * (uint64_t)w->cols;
        const uint64_t n = met(w, w->expert ? each * (uint64_t)w->n_expert : each);
        *all += n;
        if (w->klass == WEIGHT_HEAD) *head += n;
    }
}
