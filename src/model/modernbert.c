/* ModernBERT (Warner et al. 2024, "Smarter, better, faster, longer", section 2.1), an encoder: pre-norm
   LayerNorms, mostly without bias, the first layer's attention without one; gated GELU; every third layer
   sees the whole text, the others half of local_attention to each side; each kind rotates at a base of its own.

   llama.cpp's files hold the same; where they leave out the base of windowed layers it is the reference's. */
#include <math.h>
#include <stdio.h>

#include "base/diag.h"
#include "model/family.h"
#include "model/rows.h"
#include "nn/blocks.h"

typedef struct mb_layer {
    gqa_weights attn;
    glu_weights mlp;
    const weight *attn_norm, *mlp_norm, *attn_norm_bias, *mlp_norm_bias; /* attn_norm NULL: none */
} mb_layer;

typedef struct modernbert {
    const weight *words, *embed_norm, *out_norm, *embed_norm_bias, *out_norm_bias;
    mb_layer *layer;
    const int32_t *window;
    rope_spec rope, rope_windowed;
    glu_act act;
    float eps;
} modernbert;

#define T(f) offsetof(modernbert, f)
static const weight_row top_rows[] = {
    {T(words), "model.embeddings.tok_embeddings", "token_embd", DIM_VOCAB, DIM_HIDDEN, W_GATHER},
    {T(embed_norm), "model.embeddings.norm", "token_embd_norm", DIM_ONE, DIM_HIDDEN, 0},
    {T(out_norm), "model.final_norm", "output_norm", DIM_ONE, DIM_HIDDEN, 0},
};
static const weight_row top_biases[] = {
    {T(embed_norm_bias), "model.embeddings.norm.bias", "token_embd_norm.bias", DIM_ONE, DIM_HIDDEN,
     W_BARE},
    {T(out_norm_bias), "model.final_norm.bias", "output_norm.bias", DIM_ONE, DIM_HIDDEN, W_BARE},
};
#undef T
#define M(f) offsetof(mb_layer, f)
/* The first row is not the first layer's. */
static const weight_row norm_rows[] = {
    {M(attn_norm), HF("attn_norm"), GG("attn_norm"), DIM_ONE, DIM_HIDDEN, 0},
    {M(mlp_norm), HF("mlp_norm"), GG("ffn_norm"), DIM_ONE, DIM_HIDDEN, 0},
};
static const weight_row norm_biases[] = {
    {M(attn_norm_bias), HF("attn_norm.bias"), GG("attn_norm.bias"), DIM_ONE, DIM_HIDDEN, W_BARE},
    {M(mlp_norm_bias), HF("mlp_norm.bias"), GG("ffn_norm.bias"), DIM_ONE, DIM_HIDDEN, W_BARE},
};
static const weight_split qkv_split = {
    HF("attn.Wqkv"),
    GG("attn_qkv"),
    DIM_HIDDEN,
    W_BIAS_QKV,
    {{M(attn.wq), DIM_Q}, {M(attn.wk), DIM_KV}, {M(attn.wv), DIM_KV}}};
static const weight_split in_split = {HF("mlp.Wi"),
                                      GG("ffn_up"),
                                      DIM_HIDDEN,
                                      W_BIAS_MLP,
                                      {{M(mlp.gate), DIM_FFN}, {M(mlp.up), DIM_FFN}}};
static const weight_row out_rows[] = {
    {M(attn.wo), HF("attn.Wo"), GG("attn_output"), DIM_HIDDEN, DIM_Q, W_BIAS_OUT | W_ATTN_OUT},
    {M(mlp.down), HF("mlp.Wo"), GG("ffn_down"), DIM_HIDDEN, DIM_FFN, W_BIAS_MLP | W_FFN_DOWN},
};
#undef M

/* Heads of training and of classifiers. */
static const char *const other_heads[] = {"head.", "decoder.", "classifier.", "cls."};

static const config_defaults modernbert_defaults = {.n_head = 12, .vocab = 50368, .ctx = 8192};

/* Without a list the first layer, and every `period`th after it, sees everything. */
static const int32_t *windows(config *c, int32_t n_layer, arena *a)
{
    static const char every[] = "global_attn_every_n_layers", gguf[] = "sliding_window_pattern";
    char key[CONFIG_KEY_LEN];
    meta list = {0};
    const int32_t local =
        config_int(c, "local_attention", "attention.sliding_window", 1, 1 << 28, c->gguf ? 0 : 128);
    const int32_t window = local / 2 + 1;
    (void)snprintf(key, sizeof key, "modern-bert.attention.%s", gguf);
    if (meta_get(&c->src->meta, c->gguf ? key : "layer_types", &list) && list.type == META_ARR)
        return config_windows(c, n_layer, window, 0, a);
    const int32_t period = config_int(c, every, "attention.sliding_window_pattern", 1, 1 << 12, 3);
    int32_t *w = arena_calloc(a, (size_t)n_layer, sizeof *w);
    for (int32_t i = 0; w && i < n_layer; i++) w[i] = local && i % period ? window : 0;
    return w;
}

static cairn_status read_ropes(model *m, config *c, const base_config *b, modernbert *t,
                               cairn_diag *dg)
{
    const double global = config_num(c, "global_rope_theta", NULL, 1.01, 1e12, 160000);
    const double local = config_num(c, "local_rope_theta", "rope.freq_base_swa", 1.01, 1e12, 10000);
    const rope_params full = config_rope(c, b, "full_attention", global, &m->a);
    rope_params windowed = {.dim = full.dim, .theta = local, .ctx = full.ctx};
    if (config_has(c, "rope_parameters.sliding_attention", NULL))
        windowed = config_rope(c, b, "sliding_attention", local, &m->a);
    TRY(c->status);
    TRY(family_rope(m, &full, &t->rope, dg));
    return family_rope(m, &windowed, &t->rope_windowed, dg);
}

static cairn_status bind_layer(model *m, const modernbert *t, int32_t i, bool biased,
                               cairn_diag *dg)
{
    const size_t skip = i == 0;
    mb_layer *L = &t->layer[i];
    TRY(weights_bind(&m->w, norm_rows + skip, N_ROWS(norm_rows) - skip, i, L, dg));
    if (biased) TRY(weights_bind(&m->w, norm_biases + skip, N_ROWS(norm_biases) - skip, i, L, dg));
    TRY(weights_bind_split(&m->w, &qkv_split, i, L, dg));
    TRY(weights_bind_split(&m->w, &in_split, i, L, dg));
    return weights_bind(&m->w, out_rows, N_ROWS(out_rows), i, L, dg);
}

static cairn_status modernbert_open(model *m, config *c, cairn_diag *dg)
{
    const base_config b = config_base(c, &modernbert_defaults);
    modernbert *t = arena_calloc(&m->a, 1, sizeof *t);
    TRY(c->status);
    if (t) t->layer = arena_calloc(&m->a, (size_t)b.s.n_layer, sizeof *t->layer);
    if (!t || !t->layer) return diag_set(dg, CAIRN_E_NOMEM, "model");
    m->both = m->headless = true;
    m->shape = b.s;
    m->impl = t;
    TRY(family_weights(m, &b, dg));
    if (config_bool(c, "attention_bias", false)) m->w.need_bias |= W_BIAS_QKV | W_BIAS_OUT;
    if (config_bool(c, "mlp_bias", false)) m->w.need_bias |= W_BIAS_MLP;
    if (c->gguf) m->w.may_bias = W_BIAS_QKV | W_BIAS_OUT | W_BIAS_MLP;
    const bool biased = c->gguf ? source_find(m->src, "output_norm.bias") != NULL
                                : config_bool(c, "norm_bias", false);
    const double eps = config_num(c, NULL, "attention.layer_norm_rms_epsilon", 0, 1, 1e-5);
    t->eps = (float)config_num(c, "norm_eps", "attention.layer_norm_epsilon", 0, 1, eps);
    t->act = config_act(c, "hidden_activation", "hidden_activation");
    t->window = windows(c, b.s.n_layer, &m->a);
    TRY(read_ropes(m, c, &b, t, dg));
    TRY(family_cache(m, t->window, dg));
    TRY(weights_bind(&m->w, top_rows, N_ROWS(top_rows), -1, t, dg));
    if (biased) TRY(weights_bind(&m->w, top_biases, N_ROWS(top_biases), -1, t, dg));
    for (int32_t i = 0; i < b.s.n_layer; i++) TRY(bind_layer(m, t, i, biased, dg));
    for (size_t i = 0; i < N_ROWS(other_heads); i++) weights_skip(&m->w, other_heads[i]);
    return CAIRN_OK;
}

static val modernbert_forward(fwd *f, const model *m)
{
    const modernbert *t = m->impl;
    attention a = {.h = {m->shape.n_head, m->shape.n_kv_head, m->shape.head_dim},
                   .scale = 1.0f / sqrtf((float)m->shape.head_dim),
                   .both = true};
    val x = embed(f, t->words, 1.0f);
    x = layer_norm_bias(f, x, t->embed_norm, t->embed_norm_bias, t->eps);
    tap(f, x, 0);
    for (f->layer = 0; f->layer < m->shape.n_layer; f->layer++) {
        const mb_layer *L = &t->layer[f->layer];
        val h = x;
        if (L->attn_norm) h = layer_norm_bias(f, x, L->attn_norm, L->attn_norm_bias, t->eps);
        a.window = t->window[f->layer];
        h = gqa(f, h, &L->attn, &a, a.window ? &t->rope_windowed : &t->rope, t->eps);
        x = add(f, x, h);
        h = layer_norm_bias(f, x, L->mlp_norm, L->mlp_norm_bias, t->eps);
        h = glu_mlp(f, h, &L->mlp, t->act);
        x = add(f, x, h);
        tap(f, x, f->layer + 1);
    }
    f->layer = -1;
    return layer_norm_bias(f, x, t->out_norm, t->out_norm_bias, t->eps);
}

static const char *const hf_types[] = {"modernbert", NULL};
static const char *const gguf_archs[] = {"modern-bert", NULL};
const family family_modernbert = {"modernbert",    hf_types,           gguf_archs,
                                  modernbert_open, modernbert_forward, false};
