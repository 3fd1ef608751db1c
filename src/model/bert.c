/* BERT (Devlin et al. 2018, "BERT", section 3) and RoBERTa with its kin (Liu et al. 2019, "RoBERTa"; Conneau et
   al. 2019, "XLM-R"), as encoders: each row sees the whole text; words, positions and token types are added;
   a LayerNorm with bias stands after attention and after the MLP.

   RoBERTa counts positions from the padding's id + 1 on, and padding takes none.  Token types are all the
   first.  llama.cpp computes GELU by its tanh, the reference by erf; its files hold no activation. */
#include <math.h>
#include <stdio.h>

#include "base/diag.h"
#include "base/meta.h"
#include "base/str.h"
#include "model/family.h"
#include "model/rows.h"
#include "nn/blocks.h"

typedef struct bert_norm {
    const weight *gain, *bias;
} bert_norm;

typedef struct bert_layer {
    gqa_weights attn;
    const weight *up, *down;
    bert_norm attn_norm, mlp_norm;
} bert_layer;

typedef struct bert {
    const weight *words, *positions, *types;
    bert_norm embed_norm;
    bert_layer *layer;
    glu_act act;
    int32_t first; /* row of position 0 */
    float eps;
} bert;

#define T(f)  offsetof(bert, f)
#define EM(n) "model.embeddings." n
static const weight_row top_rows[] = {
    {T(words), EM("word_embeddings"), "token_embd", DIM_VOCAB, DIM_HIDDEN, W_GATHER},
    {T(positions), EM("position_embeddings"), "position_embd", DIM_POSITIONS, DIM_HIDDEN, W_GATHER},
    {T(types), EM("token_type_embeddings"), "token_types", DIM_TYPES, DIM_HIDDEN, W_GATHER},
};
#undef EM
#undef T
#define B(f)  offsetof(bert_layer, f)
#define EN(n) "model.encoder.layer.%d." n
static const weight_row layer_rows[] = {
    {B(attn.wq), EN("attention.self.query"), GG("attn_q"), DIM_Q, DIM_HIDDEN, W_BIAS_QKV},
    {B(attn.wk), EN("attention.self.key"), GG("attn_k"), DIM_KV, DIM_HIDDEN, W_BIAS_QKV},
    {B(attn.wv), EN("attention.self.value"), GG("attn_v"), DIM_KV, DIM_HIDDEN, W_BIAS_QKV},
    {B(attn.wo), EN("attention.output.dense"), GG("attn_output"), DIM_HIDDEN, DIM_Q,
     W_BIAS_OUT | W_ATTN_OUT},
    {B(up), EN("intermediate.dense"), GG("ffn_up"), DIM_FFN, DIM_HIDDEN, W_BIAS_MLP},
    {B(down), EN("output.dense"), GG("ffn_down"), DIM_HIDDEN, DIM_FFN, W_BIAS_MLP | W_FFN_DOWN},
};
#undef B
#undef EN

/* The pooler, and the heads of training and of classifiers: none is part of an embedding. */
static const char *const other_heads[] = {"pooler.",    "cls.",     "lm_head.",
                                          "classifier", "cls_norm", "embeddings.position_ids"};

static const config_defaults bert_defaults = {.n_head = 12, .vocab = 30522, .ctx = 512};

/* Switches that make a decoder of it, or another table of positions. */
static void check_switches(config *c)
{
    config_only_one(c, "position_embedding_type", "absolute");
    config_switch(c, "is_decoder", false);
    config_switch(c, "add_cross_attention", false);
    if (c->gguf && meta_bool(&c->src->meta, "bert.attention.causal", false))
        config_fail(c, "bert.attention.causal", "true", "false: an encoder");
}

/* Rows of the two tables; positions that a text may have. */
static void read_tables(model *m, config *c, base_config *b, bert *t)
{
    const bool offset = !c->gguf && !str_is(str_of(c->arch), "bert");
    const tensor_desc *types = source_find(c->src, "token_types.weight");
    m->w.dim[DIM_POSITIONS] = b->s.ctx_train;
    m->w.dim[DIM_TYPES] = types && types->n_dim == 2 && types->dim[0] <= 1 << 20
                              ? (int32_t)types->dim[0]
                              : config_int(c, "type_vocab_size", NULL, 1, 1 << 20, 2);
    if (!offset) return;
    m->pad_id = config_int(c, "pad_token_id", NULL, 0, b->s.vocab - 1, 1);
    t->first = m->pad_id + 1;
    b->s.ctx_train -= t->first;
    m->shape.ctx_train = b->s.ctx_train;
    if (b->s.ctx_train <= 0)
        config_misfit(c, "max_position_embeddings", NULL, m->w.dim[DIM_POSITIONS],
                      "more than pad_token_id + 1");
}

static bool has_tensor(const model *m, const char *name)
{
    char whole[80];
    (void)snprintf(whole, sizeof whole, "%s%s", m->w.stem, name);
    return source_find(m->src, whole) != NULL;
}

/* What stands before the names of this file. */
static void find_stem(model *m)
{
    static const char *const stems[] = {"roberta.", "bert.", ""};
    for (size_t i = 0; i < N_ROWS(stems); i++) {
        m->w.stem = stems[i];
        if (has_tensor(m, "embeddings.word_embeddings.weight")) return;
    }
}

/* One LayerNorm by what its two names begin with. */
static cairn_status bind_norm(model *m, const char *hf, const char *gguf, int32_t layer,
                              bert_norm *out, cairn_diag *dg)
{
    /* The first checkpoints say gamma and beta. */
    const bool old = has_tensor(m, "embeddings.LayerNorm.gamma");
    char gain[96], bias[96], gguf_gain[64], gguf_bias[64];
    (void)snprintf(gain, sizeof gain, "%s.%s", hf, old ? "gamma" : "weight");
    (void)snprintf(bias, sizeof bias, "%s.%s", hf, old ? "beta" : "bias");
    (void)snprintf(gguf_gain, sizeof gguf_gain, "%s.weight", gguf);
    (void)snprintf(gguf_bias, sizeof gguf_bias, "%s.bias", gguf);
    const weight_row rows[] = {
        {offsetof(bert_norm, gain), gain, gguf_gain, DIM_ONE, DIM_HIDDEN, W_BARE},
        {offsetof(bert_norm, bias), bias, gguf_bias, DIM_ONE, DIM_HIDDEN, W_BARE},
    };
    return weights_bind(&m->w, rows, N_ROWS(rows), layer, out, dg);
}

static cairn_status bind_layer(model *m, bert_layer *L, int32_t i, cairn_diag *dg)
{
    TRY(weights_bind(&m->w, layer_rows, N_ROWS(layer_rows), i, L, dg));
    TRY(bind_norm(m, "model.encoder.layer.%d.attention.output.LayerNorm", "blk.%d.attn_output_norm",
                  i, &L->attn_norm, dg));
    return bind_norm(m, "model.encoder.layer.%d.output.LayerNorm", "blk.%d.layer_output_norm", i,
                     &L->mlp_norm, dg);
}

static cairn_status bert_open(model *m, config *c, cairn_diag *dg)
{
    base_config b = config_base(c, &bert_defaults);
    bert *t = arena_calloc(&m->a, 1, sizeof *t);
    TRY(c->status);
    if (t) t->layer = arena_calloc(&m->a, (size_t)b.s.n_layer, sizeof *t->layer);
    int32_t *window = arena_calloc(&m->a, (size_t)b.s.n_layer, sizeof *window);
    if (!t || !t->layer || !window) return diag_set(dg, CAIRN_E_NOMEM, "model");
    m->both = m->headless = true;
    m->shape = b.s;
    m->impl = t;
    TRY(family_weights(m, &b, dg));
    find_stem(m);
    m->w.need_bias = W_BIAS_QKV | W_BIAS_OUT | W_BIAS_MLP;
    check_switches(c);
    read_tables(m, c, &b, t);
    t->act = config_act(c, "hidden_act", NULL);
    t->eps = (float)config_num(c, "layer_norm_eps", "attention.layer_norm_epsilon", 0, 1,
                               str_is(str_of(c->arch), "bert") ? 1e-12 : 1e-5);
    TRY(c->status);
    TRY(family_cache(m, window, dg));
    TRY(weights_bind(&m->w, top_rows, N_ROWS(top_rows), -1, t, dg));
    TRY(bind_norm(m, "model.embeddings.LayerNorm", "token_embd_norm", -1, &t->embed_norm, dg));
    for (int32_t i = 0; i < b.s.n_layer; i++) TRY(bind_layer(m, &t->layer[i], i, dg));
    for (size_t i = 0; i < N_ROWS(other_heads); i++) weights_skip(&m->w, other_heads[i]);
    return CAIRN_OK;
}

static val norm(fwd *f, val x, const bert_norm *n, float eps)
{
    return layer_norm_bias(f, x, n->gain, n->bias, eps);
}

static val bert_forward(fwd *f, const model *m)
{
    const bert *t = m->impl;
    const attention a = {.h = {m->shape.n_head, m->shape.n_kv_head, m->shape.head_dim},
                         .scale = 1.0f / sqrtf((float)m->shape.head_dim),
                         .both = true};
    val x = embed(f, t->words, 1.0f);
    val h = embed_at(f, t->types, EMBED_ROW, 0);
    x = add(f, x, h);
    h = embed_at(f, t->positions, EMBED_POS, t->first);
    x = add(f, x, h);
    x = norm(f, x, &t->embed_norm, t->eps);
    tap(f, x, 0);
    for (f->layer = 0; f->layer < m->shape.n_layer; f->layer++) {
        const bert_layer *L = &t->layer[f->layer];
        h = gqa(f, x, &L->attn, &a, NULL, t->eps);
        x = add(f, x, h);
        x = norm(f, x, &L->attn_norm, t->eps);
        h = linear(f, x, L->up);
        h = act(f, h, t->act);
        h = linear(f, h, L->down);
        x = add(f, x, h);
        x = norm(f, x, &L->mlp_norm, t->eps);
        tap(f, x, f->layer + 1);
    }
    f->layer = -1;
    return x;
}

static const char *const hf_types[] = {"bert", "roberta", "xlm-roberta", "camembert", NULL};
static const char *const gguf_archs[] = {"bert", NULL};
const family family_bert = {"bert", hf_types, gguf_archs, bert_open, bert_forward, false};
