/* Gemma 4, text (Google DeepMind 2026, model card; dense, e-models and experts).  What it adds to
   Gemma 3: attention scores are not scaled; values are normed without a gain; full layers have wider
   heads of their own, of which a quarter rotates, and may take their keys for values; the last layers
   of the e-models read the keys and values of the last layer of their kind that has some; a sparse
   layer adds experts to its dense MLP; e-models feed every layer an input of its own, made of the
   token and of the first hidden state; each layer's output is scaled.

   Gains are stored whole.  Heads, widths and windows differ by layer: the dims of the weight tables
   are set before each. */
#include <math.h>

#include "base/diag.h"
#include "model/config_moe.h"
#include "model/gemma4.h"
#include "model/rows.h"

#define TOP(f) offsetof(gemma4, f)
static const weight_row top_rows[] = {
    {TOP(tok_embed), "model.embed_tokens", "token_embd", DIM_VOCAB, DIM_HIDDEN, W_GATHER},
    {TOP(out_norm), "model.norm", "output_norm", DIM_ONE, DIM_HIDDEN, 0},
};
#undef TOP

#define G(f) offsetof(gemma4_layer, f)
static const weight_row layer_rows[] = {
    {G(attn_norm), HF("input_layernorm"), GG("attn_norm"), DIM_ONE, DIM_HIDDEN, 0},
    {G(post_attn_norm), HF("post_attention_layernorm"), GG("post_attention_norm"), DIM_ONE,
     DIM_HIDDEN, 0},
    {G(mlp_norm), HF("pre_feedforward_layernorm"), GG("ffn_norm"), DIM_ONE, DIM_HIDDEN, 0},
    {G(mlp.gate), HF("mlp.gate_proj"), GG("ffn_gate"), DIM_FFN, DIM_HIDDEN, 0},
    {G(mlp.up), HF("mlp.up_proj"), GG("ffn_up"), DIM_FFN, DIM_HIDDEN, 0},
    {G(mlp.down), HF("mlp.down_proj"), GG("ffn_down"), DIM_HIDDEN, DIM_FFN, W_FFN_DOWN},
    {G(post_mlp_norm), HF("post_feedforward_layernorm"), GG("post_ffw_norm"), DIM_ONE, DIM_HIDDEN,
     0},
};
static const weight_row moe_rows[] = {
    {G(moe.router), HF("router.proj"), GG("ffn_gate_inp"), DIM_EXPERTS, DIM_HIDDEN, W_ROUTER},
    {G(router_gain), HF("router.scale"), GG("ffn_gate_inp.scale"), DIM_ONE, DIM_HIDDEN, W_BARE},
    {G(expert_scale), HF("router.per_expert_scale"), GG("ffn_down_exps.scale"), DIM_ONE,
     DIM_EXPERTS, W_BARE},
    {G(post_mlp_norm_1), HF("post_feedforward_layernorm_1"), GG("post_ffw_norm_1"), DIM_ONE,
     DIM_HIDDEN, 0},
    {G(mlp_norm_2), HF("pre_feedforward_layernorm_2"), GG("pre_ffw_norm_2"), DIM_ONE, DIM_HIDDEN,
     0},
    {G(post_mlp_norm_2), HF("post_feedforward_layernorm_2"), GG("post_ffw_norm_2"), DIM_ONE,
     DIM_HIDDEN, 0},
};
#define EX(n) HF("experts." n)
static const expert_row expert_rows[] = {
    {G(moe.gate),
     {EXPERT_PART(EX("gate_up_proj"), 0, 2), EXPERT_WHOLE(EX("switch_glu.gate_proj.weight"))},
     {EXPERT_PART(GG("ffn_gate_up_exps.weight"), 0, 2), EXPERT_WHOLE(GG("ffn_gate_exps.weight"))},
     DIM_EXPERT_FFN,
     DIM_HIDDEN,
     0},
    {G(moe.up),
     {EXPERT_PART(EX("gate_up_proj"), 1, 2), EXPERT_WHOLE(EX("switch_glu.up_proj.weight"))},
     {EXPERT_PART(GG("ffn_gate_up_exps.weight"), 1, 2), EXPERT_WHOLE(GG("ffn_up_exps.weight"))},
     DIM_EXPERT_FFN,
     DIM_HIDDEN,
     0},
    {G(moe.down),
     {EXPERT_WHOLE(EX("down_proj")), EXPERT_WHOLE(EX("switch_glu.down_proj.weight"))},
     {EXPERT_WHOLE(GG("ffn_down_exps.weight"))},
     DIM_HIDDEN,
     DIM_EXPERT_FFN,
     W_FFN_DOWN},
};
#undef EX
#undef G

static const config_defaults gemma4_defaults = {.n_head = 8,
                                                .n_kv_head = 4,
                                                .head_dim = 256,
                                                .vocab = 262144,
                                                .ctx = 131072,
                                                .tied = true,
                                                .by_layer = true};
static const moe_defaults gemma4_experts = {.normalise = true, .k_key = "top_k_experts"};

/* The router's input is scaled by 1/√hidden beside its gain. */
static cairn_status scale_gain(model *m, const weight **gain, cairn_diag *dg)
{
    const size_t n = (size_t)(*gain)->cols;
    weight *w = arena_alloc(&m->a, sizeof *w);
    float *f = arena_alloc(&m->a, n * sizeof *f);
    if (!w || !f) return diag_set(dg, CAIRN_E_NOMEM, "gains of a router");
    for (size_t i = 0; i < n; i++) f[i] = (*gain)->f32[i] / sqrtf((float)n);
    *w = **gain;
    w->f32 = f;
    *gain = w;
    return CAIRN_OK;
}

static cairn_status bind_scale(model *m, int32_t i, gemma4_layer *l, cairn_diag *dg)
{
    static const weight_row row = {0,
                                   "model.layers.%d.layer_scalar",
                                   "blk.%d.layer_output_scale.weight",
                                   DIM_ONE,
                                   DIM_UNIT,
                                   W_BARE | W_OPTIONAL};
    const weight *w;
    TRY(weights_bind(&m->w, &row, 1, i, &w, dg));
    if (w) l->out_scale = w->f32[0];
    return CAIRN_OK;
}

static cairn_status bind_layer(model *m, config *c, gemma4 *g, int32_t i, bool sparse,
                               cairn_diag *dg)
{
    gemma4_layer *l = &g->layer[i];
    weights *w = &m->w;
    const bool k_eq_v =
        g->attn[i].window == 0 && (c->gguf ? !weights_has(w, NULL, "blk.%d.attn_v", i)
                                           : config_bool(c, "attention_k_eq_v", false));
    w->dim[DIM_FFN] = l->ffn;
    TRY(weights_bind(w, layer_rows, N_ROWS(layer_rows), i, l, dg));
    TRY(gemma_bind_attn(m, i, !k_eq_v, &g->attn[i], dg));
    TRY(bind_scale(m, i, l, dg));
    TRY(gemma_bind_own_layer(m, i, &l->own, dg));
    if (!sparse) return CAIRN_OK;
    TRY(weights_bind(w, moe_rows, N_ROWS(moe_rows), i, l, dg));
    TRY(scale_gain(m, &l->router_gain, dg));
    return weights_bind_experts(w, expert_rows, N_ROWS(expert_rows), i, l, dg);
}

static cairn_status bind(model *m, config *c, gemma4 *g, bool sparse, cairn_diag *dg)
{
    TRY(weights_bind(&m->w, top_rows, N_ROWS(top_rows), -1, g, dg));
    weights_tie(&m->w, g->tok_embed);
    TRY(gemma_bind_own(m, &g->own, dg));
    for (int32_t i = 0; i < m->shape.n_layer; i++) TRY(bind_layer(m, c, g, i, sparse, dg));
    gemma_skip_shared(m);
    return CAIRN_OK;
}

static cairn_status check_text(config *c, const base_config *b)
{
    static const char *const directions[] = {"vision", NULL}; /* matters to images alone */
    config_only_one(c, "hidden_activation", "gelu_pytorch_tanh");
    if (!config_null(c, "use_bidirectional_attention"))
        config_only(c, "use_bidirectional_attention", directions);
    if (!b->tied) config_fail(c, "tie_word_embeddings", "false", "true in this family");
    return c->status;
}

static cairn_status gemma4_open(model *m, config *c, cairn_diag *dg)
{
    const base_config b = config_base(c, &gemma4_defaults);
    gemma4 *g = arena_calloc(&m->a, 1, sizeof *g);
    if (!g) return diag_set(dg, CAIRN_E_NOMEM, "model");
    TRY(c->status);
    TRY(check_text(c, &b));
    m->shape = b.s;
    m->impl = g;
    g->eps = b.eps;
    g->out_cap = gemma_cap(c, "final_logit_softcapping", 0);
    TRY(gemma4_read_layers(m, c, &b, g, dg));
    TRY(gemma4_read_ropes(m, c, &b, g, dg));
    TRY(family_weights(m, &b, dg));
    const bool sparse =
        c->gguf ? config_has(c, NULL, "expert_count") : config_bool(c, "enable_moe_block", false);
    if (sparse) config_moe(c, &gemma4_experts, &m->w, &g->route);
    gemma_read_own(m, c);
    if (config_bool(c, "attention_bias", false)) m->w.need_bias = W_BIAS_QKV | W_BIAS_OUT;
    TRY(c->status);
    return bind(m, c, g, sparse, dg);
}

/* The dense MLP and, beside it, experts chosen by the residual itself. */
static val mlp_of(fwd *f, val x, const gemma4 *g, const gemma4_layer *l)
{
    static const glu_spec gelu = {.act = GLU_GELU_TANH};
    val h = rms_norm(f, x, l->mlp_norm, g->eps);
    h = glu_mlp(f, h, &l->mlp, GLU_GELU_TANH);
    if (l->moe.router) {
        h = rms_norm(f, h, l->post_mlp_norm_1, g->eps);
        val e = rms_norm(f, x, l->router_gain, g->eps);
        e = linear(f, e, l->moe.router);
        const routes to = route(f, e, NULL, l->expert_scale, &g->route);
        e = rms_norm(f, x, l->mlp_norm_2, g->eps);
        e = experts(f, e, to, l->moe.gate, l->moe.up, l->moe.down, &gelu);
        e = rms_norm(f, e, l->post_mlp_norm_2, g->eps);
        h = add(f, h, e);
    }
    return rms_norm(f, h, l->post_mlp_norm, g->eps);
}

static val gemma4_forward(fwd *f, const model *m)
{
    const gemma4 *g = m->impl;
    val x = embed(f, g->tok_embed, sqrtf((float)m->shape.hidden));
    const val inputs = gemma_own_inputs(f, x, &g->own, g->eps);
    tap(f, x, 0);
    for (f->layer = 0; f->layer < m->shape.n_layer; f->layer++) {
        const gemma4_layer *l = &g->layer[f->layer];
        val h = rms_norm(f, x, l->attn_norm, g->eps);
        h = gemma_attention(f, h, &g->attn[f->layer], g->eps);
        h = rms_norm(f, h, l->post_attn_norm, g->eps);
        x = add(f, x, h);
        h = mlp_of(f, x, g, l);
        x = add(f, x, h);
        if (l->own.gate) {
            h = gemma_own_input(f, x, inputs, &l->own, g->eps);
            x = add(f, x, h);
        }
        x = scale(f, x, l->out_scale);
        tap(f, x, f->layer + 1);
    }
    f->layer = -1;
    x = rms_norm(f, x, g->out_norm, g->eps);
    x = linear(f, x, g->tok_embed);
    return g->out_cap > 0 ? softcap(f, x, g->out_cap) : x;
}

static const char *const hf_types[] = {"gemma4_text", "gemma4", NULL};
static const char *const gguf_archs[] = {"gemma4", NULL};
const family family_gemma4 = {"gemma4", hf_types, gguf_archs, gemma4_open, gemma4_forward, false};
