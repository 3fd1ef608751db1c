/* Gemma 4, text (Google DeepMind 2026, model card; dense, e-models and experts).  What it adds to
   Gemma 3: attention scores are not scaled; values are normed without a gain; full layers have wider
   heads of their own, of which a quarter rotates, and may take their keys for values; the last layers
   of the e-models read the keys and values of the last layer of their kind that has some; a sparse
   layer adds experts to its dense MLP; e-models feed every layer an input of its own, made of the
   token and of the first hidden state; each layer's output is scaled.

   Gains are stored whole.  Heads, widths and windows differ by layer: the dims of the weight tables
   are set before each. */
#include <math.h>
#include <stdio.h>

#include "base/diag.h"
#include "model/config_moe.h"
#include "model/gemma4.h"

#define TOP(f) offsetof(gemma4, f)
static const weight_row top_rows[] = {
    {TOP(tok_embed), "model.embed_tokens", "token_embd", DIM_VOCAB, DIM_HIDDEN, W_GATHER},
    {TOP(out_norm), "model.norm", "output_norm", DIM_ONE, DIM_HIDDEN, 0},
};
static const weight_row ple_top_rows[] = {
    {TOP(ple_embed), "model.embed_tokens_per_layer", "per_layer_token_embd", DIM_VOCAB, DIM_PLES,
     W_GATHER},
    {TOP(ple_proj), "model.per_layer_model_projection", "per_layer_model_proj", DIM_PLES,
     DIM_HIDDEN, 0},
    {TOP(ple_norm), "model.per_layer_projection_norm", "per_layer_proj_norm", DIM_ONE, DIM_PLE, 0},
};
#undef TOP

#define L(f)  offsetof(gemma4_layer, f)
#define HF(n) "model.layers.%d." n
#define GG(n) "blk.%d." n
static const weight_row layer_rows[] = {
    {L(attn_norm), HF("input_layernorm"), GG("attn_norm"), DIM_ONE, DIM_HIDDEN, 0},
    {L(wq), HF("self_attn.q_proj"), GG("attn_q"), DIM_Q, DIM_HIDDEN, W_BIAS_QKV},
    {L(q_norm), HF("self_attn.q_norm"), GG("attn_q_norm"), DIM_ONE, DIM_HEAD, 0},
    {L(wo), HF("self_attn.o_proj"), GG("attn_output"), DIM_HIDDEN, DIM_Q, W_BIAS_OUT | W_ATTN_OUT},
    {L(post_attn_norm), HF("post_attention_layernorm"), GG("post_attention_norm"), DIM_ONE,
     DIM_HIDDEN, 0},
    {L(mlp_norm), HF("pre_feedforward_layernorm"), GG("ffn_norm"), DIM_ONE, DIM_HIDDEN, 0},
    {L(mlp.gate), HF("mlp.gate_proj"), GG("ffn_gate"), DIM_FFN, DIM_HIDDEN, 0},
    {L(mlp.up), HF("mlp.up_proj"), GG("ffn_up"), DIM_FFN, DIM_HIDDEN, 0},
    {L(mlp.down), HF("mlp.down_proj"), GG("ffn_down"), DIM_HIDDEN, DIM_FFN, W_FFN_DOWN},
    {L(post_mlp_norm), HF("post_feedforward_layernorm"), GG("post_ffw_norm"), DIM_ONE, DIM_HIDDEN,
     0},
};
static const weight_row key_rows[] = {
    {L(wk), HF("self_attn.k_proj"), GG("attn_k"), DIM_KV, DIM_HIDDEN, W_BIAS_QKV},
    {L(k_norm), HF("self_attn.k_norm"), GG("attn_k_norm"), DIM_ONE, DIM_HEAD, 0},
};
static const weight_row value_rows[] = {
    {L(wv), HF("self_attn.v_proj"), GG("attn_v"), DIM_KV, DIM_HIDDEN, W_BIAS_QKV},
};
static const weight_row moe_rows[] = {
    {L(moe.router), HF("router.proj"), GG("ffn_gate_inp"), DIM_EXPERTS, DIM_HIDDEN, W_ROUTER},
    {L(router_gain), HF("router.scale"), GG("ffn_gate_inp.scale"), DIM_ONE, DIM_HIDDEN, W_BARE},
    {L(expert_scale), HF("router.per_expert_scale"), GG("ffn_down_exps.scale"), DIM_ONE,
     DIM_EXPERTS, W_BARE},
    {L(post_mlp_norm_1), HF("post_feedforward_layernorm_1"), GG("post_ffw_norm_1"), DIM_ONE,
     DIM_HIDDEN, 0},
    {L(mlp_norm_2), HF("pre_feedforward_layernorm_2"), GG("pre_ffw_norm_2"), DIM_ONE, DIM_HIDDEN,
     0},
    {L(post_mlp_norm_2), HF("post_feedforward_layernorm_2"), GG("post_ffw_norm_2"), DIM_ONE,
     DIM_HIDDEN, 0},
};
#define EX(n) HF("experts." n)
static const expert_row expert_rows[] = {
    {L(moe.gate),
     {EXPERT_PART(EX("gate_up_proj"), 0, 2), EXPERT_WHOLE(EX("switch_glu.gate_proj.weight"))},
     {EXPERT_PART(GG("ffn_gate_up_exps.weight"), 0, 2), EXPERT_WHOLE(GG("ffn_gate_exps.weight"))},
     DIM_EXPERT_FFN,
     DIM_HIDDEN,
     0},
    {L(moe.up),
     {EXPERT_PART(EX("gate_up_proj"), 1, 2), EXPERT_WHOLE(EX("switch_glu.up_proj.weight"))},
     {EXPERT_PART(GG("ffn_gate_up_exps.weight"), 1, 2), EXPERT_WHOLE(GG("ffn_up_exps.weight"))},
     DIM_EXPERT_FFN,
     DIM_HIDDEN,
     0},
    {L(moe.down),
     {EXPERT_WHOLE(EX("down_proj")), EXPERT_WHOLE(EX("switch_glu.down_proj.weight"))},
     {EXPERT_WHOLE(GG("ffn_down_exps.weight"))},
     DIM_HIDDEN,
     DIM_EXPERT_FFN,
     W_FFN_DOWN},
};
#undef EX
static const weight_row ple_rows[] = {
    {L(ple_gate), HF("per_layer_input_gate"), GG("inp_gate"), DIM_PLE, DIM_HIDDEN, 0},
    {L(ple_proj), HF("per_layer_projection"), GG("proj"), DIM_HIDDEN, DIM_PLE, 0},
    {L(ple_norm), HF("post_per_layer_input_norm"), GG("post_norm"), DIM_ONE, DIM_HIDDEN, 0},
};
#undef L
#undef HF
#undef GG

static const config_defaults gemma4_defaults = {.n_head = 8,
                                                .n_kv_head = 4,
                                                .head_dim = 256,
                                                .vocab = 262144,
                                                .ctx = 131072,
                                                .tied = true,
                                                .by_layer = true};
static const moe_defaults gemma4_experts = {.normalise = true, .k_key = "top_k_experts"};

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
    w->dim[DIM_HEAD] = l->head_dim;
    w->dim[DIM_Q] = l->head_dim * m->shape.n_head;
    w->dim[DIM_KV] = l->head_dim * l->n_kv_head;
    w->dim[DIM_FFN] = l->ffn;
    TRY(weights_bind(w, layer_rows, N_ROWS(layer_rows), i, l, dg));
    TRY(bind_scale(m, i, l, dg));
    TRY(ones(m, l->head_dim, &l->value_gain, dg));
    if (i < g->n_own_cache) {
        const bool k_eq_v =
            l->window == 0 && (c->gguf ? !weights_has(w, value_rows[0].hf, value_rows[0].gguf, i)
                                       : config_bool(c, "attention_k_eq_v", false));
        TRY(weights_bind(w, key_rows, N_ROWS(key_rows), i, l, dg));
        if (!k_eq_v) TRY(weights_bind(w, value_rows, N_ROWS(value_rows), i, l, dg));
    }
    if (w->dim[DIM_PLE]) TRY(weights_bind(w, ple_rows, N_ROWS(ple_rows), i, l, dg));
    if (!sparse) return CAIRN_OK;
    TRY(weights_bind(w, moe_rows, N_ROWS(moe_rows), i, l, dg));
    TRY(scale_gain(m, &l->router_gain, dg));
    return weights_bind_experts(w, expert_rows, N_ROWS(expert_rows), i, l, dg);
}

/* Files keep keys and values that shared layers do not use. */
static void skip_unused(model *m, const gemma4 *g)
{
    static const char *const hf[] = {"k_proj.", "v_proj.", "k_norm."};
    static const char *const gguf[] = {"attn_k.", "attn_v.", "attn_k_norm."};
    const bool is_gguf = m->src->format == SOURCE_GGUF;
    for (int32_t i = g->n_own_cache; i < m->shape.n_layer; i++)
        for (int k = 0; k < 3; k++) {
            char part[64];
            (void)snprintf(part, sizeof part, is_gguf ? "blk.%d.%s" : "layers.%d.self_attn.%s",
                           (int)i, is_gguf ? gguf[k] : hf[k]);
            weights_skip(&m->w, part);
        }
}

static cairn_status bind(model *m, config *c, gemma4 *g, bool sparse, cairn_diag *dg)
{
    TRY(weights_bind(&m->w, top_rows, N_ROWS(top_rows), -1, g, dg));
    weights_tie(&m->w, g->tok_embed);
    if (m->w.dim[DIM_PLE]) TRY(weights_bind(&m->w, ple_top_rows, N_ROWS(ple_top_rows), -1, g, dg));
    for (int32_t i = 0; i < m->shape.n_layer; i++) TRY(bind_layer(m, c, g, i, sparse, dg));
    skip_unused(m, g);
    return CAIRN_OK;
}

static cairn_status cache_layout(model *m, const gemma4 *g, cairn_diag *dg)
{
    const size_t n = (size_t)g->n_own_cache;
    cache_layer_spec *l = arena_calloc(&m->a, n, sizeof *l);
    if (!l) return diag_set(dg, CAIRN_E_NOMEM, "cache layout");
    for (size_t i = 0; i < n; i++) {
        const gemma4_layer *from = &g->layer[i];
        l[i] = (cache_layer_spec){from->n_kv_head, from->head_dim, from->head_dim, from->window, 0};
    }
    m->cache = (cachespec){g->n_own_cache, l};
    return CAIRN_OK;
}

static cairn_status check_text(config *c, const base_config *b)
{
    static const char *const acts[] = {"gelu_pytorch_tanh", NULL};
    static const char *const directions[] = {"vision", NULL}; /* matters to images alone */
    config_only(c, "hidden_activation", acts);
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
    if (!config_null(c, "final_logit_softcapping"))
        g->out_cap = (float)config_num(c, "final_logit_softcapping", "final_logit_softcapping",
                                       1e-3, 1e6, 0);
    TRY(gemma4_read_layers(m, c, &b, g, dg));
    TRY(gemma4_read_ropes(m, c, &b, g, dg));
    TRY(family_weights(m, &b, dg));
    const bool sparse =
        c->gguf ? config_has(c, NULL, "expert_count") : config_bool(c, "enable_moe_block", false);
    if (sparse) config_moe(c, &gemma4_experts, &m->w, &g->route);
    m->w.dim[DIM_PLE] =
        config_int(c, "hidden_size_per_layer_input", "embedding_length_per_layer_input", 0, 1 << 16,
                   c->gguf ? 0 : 256);
    m->w.dim[DIM_PLES] = m->w.dim[DIM_PLE] * b.s.n_layer;
    if (config_bool(c, "attention_bias", false)) m->w.need_bias = W_BIAS_QKV | W_BIAS_OUT;
    TRY(c->status);
    TRY(cache_layout(m, g, dg));
    return bind(m, c, g, sparse, dg);
}

static val attention_of(fwd *f, val x, const gemma4 *g, const gemma4_layer *l, int32_t n_head)
{
    const attention a = {
        .h = {n_head, l->n_kv_head, l->head_dim}, .scale = 1.0f, .window = l->window};
    const rope_spec *r = l->window ? &g->rope_windowed : &g->rope;
    val k = VAL_NONE, v = VAL_NONE;
    val q = linear(f, x, l->wq);
    if (l->wk) {
        k = linear(f, x, l->wk);
        v = l->wv ? linear(f, x, l->wv) : k;
        k = rms_norm(f, k, l->k_norm, g->eps);
        v = rms_norm(f, v, l->value_gain, g->eps);
        k = rope(f, k, l->head_dim, r);
    }
    q = rms_norm(f, q, l->q_norm, g->eps);
    q = rope(f, q, l->head_dim, r);
    const val o = attend_cache(f, q, k, v, &a, l->cache);
    return linear(f, o, l->wo);
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

/* Every layer's own input, side by side: (norm(projection of x) + embedding) / √2. */
static val own_inputs(fwd *f, val x, const gemma4 *g)
{
    if (!g->ple_embed) return VAL_NONE;
    const val by_token = embed(f, g->ple_embed, sqrtf((float)g->ple_norm->cols));
    val y = linear(f, x, g->ple_proj);
    y = scale(f, y, 1.0f / sqrtf((float)g->ple_proj->cols));
    y = rms_norm(f, y, g->ple_norm, g->eps);
    y = add(f, y, by_token);
    return scale(f, y, sqrtf(0.5f));
}

static val own_input_of(fwd *f, val x, val inputs, const gemma4 *g, const gemma4_layer *l)
{
    const int32_t width = l->ple_gate->rows;
    const val mine = slice(f, inputs, 1, f->layer * width, width);
    val h = linear(f, x, l->ple_gate);
    h = glu(f, GLU_GELU_TANH, h, mine);
    h = linear(f, h, l->ple_proj);
    h = rms_norm(f, h, l->ple_norm, g->eps);
    return add(f, x, h);
}

static val gemma4_forward(fwd *f, const model *m)
{
    const gemma4 *g = m->impl;
    val x = embed(f, g->tok_embed, sqrtf((float)m->shape.hidden));
    const val inputs = own_inputs(f, x, g);
    tap(f, x, 0);
    for (f->layer = 0; f->layer < m->shape.n_layer; f->layer++) {
        const gemma4_layer *l = &g->layer[f->layer];
        val h = rms_norm(f, x, l->attn_norm, g->eps);
        h = attention_of(f, h, g, l, m->shape.n_head);
        h = rms_norm(f, h, l->post_attn_norm, g->eps);
        x = add(f, x, h);
        h = mlp_of(f, x, g, l);
        x = add(f, x, h);
        if (l->ple_gate) x = own_input_of(f, x, inputs, g, l);
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
const family family_gemma4 = {"gemma4", hf_types, gguf_archs, gemma4_open, gemma4_forward};
