/* The parts that Gemma 3n and Gemma 4 have alike.  Heads, windows and caches are the family's to read,
   attention by attention; here are the tensors' names, how caches are shared, and what is computed.

   A layer binds keys and values exactly if it has a cache of its own: m->cache has those, first. */
#include "model/gemma_parts.h"

#include <math.h>
#include <stdio.h>

#include "base/diag.h"
#include "model/rows.h"

#define A(f) offsetof(gemma_attn, f)
static const weight_row query_rows[] = {
    {A(wq), HF("self_attn.q_proj"), GG("attn_q"), DIM_Q, DIM_HIDDEN, W_BIAS_QKV},
    {A(q_norm), HF("self_attn.q_norm"), GG("attn_q_norm"), DIM_ONE, DIM_HEAD, 0},
    {A(wo), HF("self_attn.o_proj"), GG("attn_output"), DIM_HIDDEN, DIM_Q, W_BIAS_OUT | W_ATTN_OUT},
};
static const weight_row key_rows[] = {
    {A(wk), HF("self_attn.k_proj"), GG("attn_k"), DIM_KV, DIM_HIDDEN, W_BIAS_QKV},
    {A(k_norm), HF("self_attn.k_norm"), GG("attn_k_norm"), DIM_ONE, DIM_HEAD, 0},
};
static const weight_row value_rows[] = {
    {A(wv), HF("self_attn.v_proj"), GG("attn_v"), DIM_KV, DIM_HIDDEN, W_BIAS_QKV},
};
#undef A
#define O(f) offsetof(gemma_own, f)
static const weight_row own_rows[] = {
    {O(embed), "model.embed_tokens_per_layer", "per_layer_token_embd", DIM_PLE_VOCAB, DIM_PLES,
     W_GATHER},
    {O(proj), "model.per_layer_model_projection", "per_layer_model_proj", DIM_PLES, DIM_HIDDEN, 0},
    {O(norm), "model.per_layer_projection_norm", "per_layer_proj_norm", DIM_ONE, DIM_PLE, 0},
};
#undef O
#define O(f) offsetof(gemma_own_layer, f)
static const weight_row own_layer_rows[] = {
    {O(gate), HF("per_layer_input_gate"), GG("inp_gate"), DIM_PLE, DIM_HIDDEN, 0},
    {O(proj), HF("per_layer_projection"), GG("proj"), DIM_HIDDEN, DIM_PLE, 0},
    {O(norm), HF("post_per_layer_input_norm"), GG("post_norm"), DIM_ONE, DIM_HIDDEN, 0},
};
#undef O

static cairn_status lay_out(model *m, int32_t n_own, const gemma_attn *a, cairn_diag *dg)
{
    cache_layer_spec *l = arena_calloc(&m->a, (size_t)n_own, sizeof *l);
    if (!l) return diag_set(dg, CAIRN_E_NOMEM, "cache layout");
    for (int32_t i = 0; i < n_own; i++)
        l[i] =
            (cache_layer_spec){a[i].n_kv_head, a[i].head_dim, a[i].head_dim, .window = a[i].window};
    m->cache = (cachespec){n_own, l};
    return CAIRN_OK;
}

cairn_status gemma_share_caches(model *m, config *c, int32_t shared, gemma_attn *a, cairn_diag *dg)
{
    const int32_t n_own = m->shape.n_layer - shared;
    int32_t last[2] = {-1, -1};
    for (int32_t i = 0; i < m->shape.n_layer; i++) {
        int32_t *mine = &last[a[i].window > 0];
        if (i < n_own) *mine = i;
        if (*mine < 0) {
            config_fail(c, "num_kv_shared_layers", "too many",
                        "a layer of each kind with keys of its own");
            return c->status;
        }
        a[i].cache = *mine;
        if (a[i].head_dim != a[*mine].head_dim || a[i].n_kv_head != a[*mine].n_kv_head) {
            config_fail(c, "per_layer_config", "heads that differ from those of the shared cache",
                        "the same in every layer that reads it");
            return c->status;
        }
    }
    return lay_out(m, n_own, a, dg);
}

void gemma_read_own(model *m, config *c)
{
    int32_t *dim = m->w.dim;
    dim[DIM_PLE] = config_int(c, "hidden_size_per_layer_input", "embedding_length_per_layer_input",
                              0, 1 << 16, c->gguf ? 0 : 256);
    dim[DIM_PLES] = dim[DIM_PLE] * m->shape.n_layer;
    dim[DIM_PLE_VOCAB] = config_int(c, "vocab_size_per_layer_input", NULL, 1, 1 << 24,
                                    c->gguf ? m->shape.vocab : 262144);
}

float gemma_cap(config *c, const char *key, double otherwise)
{
    if (config_null(c, key)) return 0;
    return (float)config_num(c, key, key, 1e-3, 1e6, otherwise);
}

void gemma_ropes(config *c, const base_config *b, arena *a, rope_params *full,
                 rope_params *windowed)
{
    *full = config_rope(c, b, "full_attention", 1e6, a);
    const double local =
        config_num(c, "rope_local_base_freq", "rope.freq_base_swa", 1.01, 1e12, 1e4);
    if (config_has(c, "rope_parameters.sliding_attention", NULL))
        *windowed = config_rope(c, b, "sliding_attention", local, a);
    else
        *windowed = (rope_params){.dim = full->dim, .theta = local, .ctx = full->ctx};
}

static cairn_status ones(model *m, int32_t n, const weight **out, cairn_diag *dg)
{
    weight *w = arena_calloc(&m->a, 1, sizeof *w);
    float *f = arena_alloc(&m->a, (size_t)n * sizeof *f);
    if (!w || !f) return diag_set(dg, CAIRN_E_NOMEM, "gains of values");
    for (int32_t i = 0; i < n; i++) f[i] = 1.0f;
    *w = (weight){.name = "ones", .rows = 1, .cols = n, .f32 = f};
    *out = w;
    return CAIRN_OK;
}

cairn_status gemma_bind_attn(model *m, int32_t i, bool values, gemma_attn *a, cairn_diag *dg)
{
    weights *w = &m->w;
    w->dim[DIM_HEAD] = a->head_dim;
    w->dim[DIM_Q] = a->head_dim * a->n_head;
    w->dim[DIM_KV] = a->head_dim * a->n_kv_head;
    TRY(weights_bind(w, query_rows, N_ROWS(query_rows), i, a, dg));
    TRY(ones(m, a->head_dim, &a->value_gain, dg));
    if (i >= m->cache.n_layer) return CAIRN_OK;
    TRY(weights_bind(w, key_rows, N_ROWS(key_rows), i, a, dg));
    return values ? weights_bind(w, value_rows, N_ROWS(value_rows), i, a, dg) : CAIRN_OK;
}

void gemma_skip_shared(model *m)
{
    static const char *const hf[] = {"k_proj.", "v_proj.", "k_norm."};
    static const char *const gguf[] = {"attn_k.", "attn_v.", "attn_k_norm."};
    const bool is_gguf = m->src->format == SOURCE_GGUF;
    for (int32_t i = m->cache.n_layer; i < m->shape.n_layer; i++)
        for (int k = 0; k < 3; k++) {
            char part[64];
            (void)snprintf(part, sizeof part, is_gguf ? "blk.%d.%s" : "layers.%d.self_attn.%s",
                           (int)i, is_gguf ? gguf[k] : hf[k]);
            weights_skip(&m->w, part);
        }
}

cairn_status gemma_bind_own(model *m, gemma_own *own, cairn_diag *dg)
{
    if (!m->w.dim[DIM_PLE]) return CAIRN_OK;
    return weights_bind(&m->w, own_rows, N_ROWS(own_rows), -1, own, dg);
}

cairn_status gemma_bind_own_layer(model *m, int32_t i, gemma_own_layer *own, cairn_diag *dg)
{
    if (!m->w.dim[DIM_PLE]) return CAIRN_OK;
    return weights_bind(&m->w, own_layer_rows, N_ROWS(own_layer_rows), i, own, dg);
}

val gemma_attention(fwd *f, val x, const gemma_attn *a, float eps)
{
    const attention spec = {
        .h = {a->n_head, a->n_kv_head, a->head_dim}, .scale = 1.0f, .window = a->window};
    val k = VAL_NONE, v = VAL_NONE;
    val q = linear(f, x, a->wq);
    if (a->wk) {
        k = linear(f, x, a->wk);
        v = a->wv ? linear(f, x, a->wv) : k;
        k = rms_norm(f, k, a->k_norm, eps);
        v = rms_norm(f, v, a->value_gain, eps);
        k = rope(f, k, a->head_dim, a->rope);
    }
    q = rms_norm(f, q, a->q_norm, eps);
    q = rope(f, q, a->head_dim, a->rope);
    const val o = attend_cache(f, q, k, v, &spec, a->cache);
    return linear(f, o, a->wo);
}

val gemma_own_inputs(fwd *f, val x, const gemma_own *own, float eps)
{
    if (!own->embed) return VAL_NONE;
    const val by_token = embed(f, own->embed, sqrtf((float)own->norm->cols));
    val y = linear(f, x, own->proj);
    y = scale(f, y, 1.0f / sqrtf((float)own->proj->cols));
    y = rms_norm(f, y, own->norm, eps);
    y = add(f, y, by_token);
    return scale(f, y, sqrtf(0.5f));
}

val gemma_own_input(fwd *f, val x, val inputs, const gemma_own_layer *own, float eps)
{
    const int32_t width = own->gate->rows;
    const val mine = slice(f, inputs, 1, f->layer * width, width);
    val h = linear(f, x, own->gate);
    h = glu(f, GLU_GELU_TANH, h, mine);
    h = linear(f, h, own->proj);
    return rms_norm(f, h, own->norm, eps);
}
