/* What follows the hidden states of an embedding model: which pooling its files name, and the dense modules
   behind it as a program of their own.  Pooling itself is engine/pooler.c's.

   HF: the files of sentence-transformers, read by format/; without them the library's default, the mean, or
   the last row of a causal model, not normalised.  GGUF: ARCH.pooling_type and the tensors dense_2 and
   dense_3; such files do not tell whether vectors are normalised, and llama.cpp normalises all. */
#include "base/diag.h"
#include "base/str.h"
#include "model/family.h"

static pool_kind default_kind(const model *m, config *c)
{
    meta word = {0};
    const bool named = meta_get(&c->src->meta, "architectures.0", &word) && word.type == META_STR;
    const bool causal = c->gguf ? !m->both : named && str_ends(word.u.s, STR_LIT("ForCausalLM"));
    return causal ? POOL_LAST : POOL_MEAN;
}

/* GGUF's numbers: 0 none, 1 mean, 2 cls, 3 last, 4 rank (which gives a score, no vector). */
static void gguf_kind(model *m, config *c)
{
    static const pool_kind kinds[] = {POOL_MEAN, POOL_CLS, POOL_LAST};
    const int32_t n = config_int(c, NULL, "pooling_type", -1, 4, -1);
    m->pool.n_kind = n == 0 || n == 4 ? 0 : 1;
    m->pool.kind[0] = n >= 1 && n <= 3 ? kinds[n - 1] : default_kind(m, c);
}

static void gguf_dense(model *m)
{
    static const char *const stems[] = {"dense_2", "dense_3"};
    static const char *const names[] = {"dense_2.weight", "dense_3.weight"};
    for (size_t i = 0; i < 2; i++) {
        const tensor_desc *t = source_find(m->src, names[i]);
        if (!t || t->n_dim != 2 || t->dim[0] > 1 << 20 || t->dim[1] > 1 << 20) continue;
        m->pool.dense[m->pool.n_dense++] = (pool_dense){.weight = stems[i],
                                                        .in = (int32_t)t->dim[1],
                                                        .out = (int32_t)t->dim[0],
                                                        .act = GLU_BILINEAR};
    }
}

static cairn_status bind_matrix(model *m, const char *name, uint32_t bias, const weight **out,
                                cairn_diag *dg)
{
    const uint32_t need = m->w.need_bias;
    const weight_row row = {0, name, name, DIM_DENSE_OUT, DIM_DENSE_IN, W_BIAS_MLP};
    m->w.need_bias = bias;
    const cairn_status st = weights_bind(&m->w, &row, 1, -1, (void *)out, dg);
    m->w.need_bias = need;
    return st;
}

static cairn_status bind_dense(model *m, cairn_diag *dg)
{
    int32_t width = model_pooled_dim(m);
    model_dense *list = arena_calloc(&m->a, POOL_DENSE_MAX, sizeof *list);
    if (!list) return diag_set(dg, CAIRN_E_NOMEM, "dense modules");
    for (int32_t i = 0; i < m->pool.n_dense; i++) {
        const pool_dense *d = &m->pool.dense[i];
        if (d->in != width)
            return diag_set(dg, CAIRN_E_CORRUPT, "%s: %s takes vectors of %d; expected %d",
                            m->src->path, d->weight, (int)d->in, (int)width);
        m->w.dim[DIM_DENSE_IN] = d->in;
        m->w.dim[DIM_DENSE_OUT] = width = d->out;
        TRY(bind_matrix(m, d->weight, d->bias ? W_BIAS_MLP : 0, &list[i].weight, dg));
        if (d->shortcut) TRY(bind_matrix(m, d->shortcut, 0, &list[i].shortcut, dg));
    }
    m->dense = list;
    return CAIRN_OK;
}

cairn_status family_pool(model *m, config *c, cairn_diag *dg)
{
    pool_spec *p = &m->pool;
    m->embeds = m->src->pool || config_has(c, NULL, "pooling_type");
    if (m->src->pool) {
        *p = *m->src->pool;
    } else if (c->gguf) {
        p->default_prompt = -1;
        p->normalise = true;
        gguf_kind(m, c);
        gguf_dense(m);
    } else {
        *p = (pool_spec){.n_kind = 1, .kind = {default_kind(m, c)}, .default_prompt = -1};
    }
    TRY(c->status);
    if (p->width && p->width != m->shape.hidden && p->width != model_pooled_dim(m))
        return diag_set(dg, CAIRN_E_CORRUPT, "%s: pooling of vectors of %d; expected %d",
                        m->src->path, (int)p->width, (int)m->shape.hidden);
    TRY(bind_dense(m, dg));
    if (p->n_dim > model_embed_dim(m))
        p->n_dim = 0; /* as a slice, which ends where the vector does */
    return CAIRN_OK;
}

int32_t model_pooled_dim(const model *m)
{
    return m->pool.n_kind * m->shape.hidden;
}

int32_t model_embed_dim(const model *m)
{
    const int32_t n = m->pool.n_dense;
    return n ? m->pool.dense[n - 1].out : model_pooled_dim(m);
}

cairn_status model_record_dense(const model *m, arena *a, prog *out, cairn_diag *dg)
{
    prog_init(out, a);
    fwd f = {.p = out, .layer = -1};
    val x = input(&f, model_pooled_dim(m));
    for (int32_t i = 0; i < m->pool.n_dense; i++) {
        const pool_dense *d = &m->pool.dense[i];
        val y = linear(&f, x, m->dense[i].weight);
        if (d->tanh) y = softcap(&f, y, 1.0f); /* which is tanh */
        if (d->act != GLU_BILINEAR) y = act(&f, y, d->act);
        if (d->residual && d->shortcut) x = linear(&f, x, m->dense[i].shortcut);
        x = d->residual ? add(&f, y, x) : y;
    }
    prog_set_output(out, x);
    if (out->status == CAIRN_OK) return CAIRN_OK;
    return diag_set(dg, out->status, "%s: dense modules: %s", m->src->path, out->diag.message);
}
