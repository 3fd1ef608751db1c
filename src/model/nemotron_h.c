/* Nemotron-H (NVIDIA 2025, "Nemotron-H: a family of accurate and efficient hybrid Mamba-Transformer models")
   and Nemotron 3: each layer is one thing behind a norm, Mamba-2's mixer, attention without positions, an
   MLP of two matrices with relu², or experts of that kind beside a shared one, which may work on a
   latent narrower than the hidden state.

   The reference cuts time steps at time_step_min, and ignores time_step_limit, attention_bias and
   tie_word_embeddings: a head that is there is used.  mlx-lm cuts at time_step_limit alone. */
#include <math.h>
#include <string.h>

#include "base/diag.h"
#include "base/str.h"
#include "model/config_hybrid.h"
#include "model/config_moe.h"
#include "model/mamba.h"
#include "model/rows.h"

enum { MIXER = LAYER_STATE, ATTENTION = LAYER_KEYS, MLP = 4, MOE = 8 };

typedef struct nemotron_layer {
    mamba_weights mixer;
    const weight *to_latent, *from_latent; /* of experts, or NULL */
} nemotron_layer;

typedef struct nemotron_h {
    decoder d; /* first */
    nemotron_layer *layer;
    const uint8_t *kind; /* [n_layer] */
    mamba_spec spec;
} nemotron_h;

#define BB(n) "backbone.layers.%d." n
#define MX(n) BB("mixer." n)
static const weight_row norm_row = {L(attn_norm), BB("norm"), GG("attn_norm"),
                                    DIM_ONE,      DIM_HIDDEN, 0};
static const weight_row attn_rows[] = {
    {L(attn.wq), MX("q_proj"), GG("attn_q"), DIM_Q, DIM_HIDDEN, 0},
    {L(attn.wk), MX("k_proj"), GG("attn_k"), DIM_KV, DIM_HIDDEN, 0},
    {L(attn.wv), MX("v_proj"), GG("attn_v"), DIM_KV, DIM_HIDDEN, 0},
    {L(attn.wo), MX("o_proj"), GG("attn_output"), DIM_HIDDEN, DIM_Q, W_ATTN_OUT},
};
static const weight_row mlp_rows[] = {
    {L(mlp.up), MX("up_proj"), GG("ffn_up"), DIM_FFN, DIM_HIDDEN, W_BIAS_MLP},
    {L(mlp.down), MX("down_proj"), GG("ffn_down"), DIM_HIDDEN, DIM_FFN, W_BIAS_MLP | W_FFN_DOWN},
};
static const weight_row moe_rows[] = {
    {L(moe.router), MX("gate"), GG("ffn_gate_inp"), DIM_EXPERTS, DIM_HIDDEN, W_ROUTER},
    {L(moe.bias), MX("gate.e_score_correction_bias"), GG("exp_probs_b.bias"), DIM_ONE, DIM_EXPERTS,
     W_BARE},
    {L(moe.shared.up), MX("shared_experts.up_proj"), GG("ffn_up_shexp"), DIM_SHARED_FFN, DIM_HIDDEN,
     W_BIAS_MLP},
    {L(moe.shared.down), MX("shared_experts.down_proj"), GG("ffn_down_shexp"), DIM_HIDDEN,
     DIM_SHARED_FFN, W_BIAS_MLP | W_FFN_DOWN},
};
static const expert_row expert_rows[] = {
    {L(moe.up),
     {EXPERT_WHOLE(MX("experts.%d.up_proj.weight")), EXPERT_WHOLE(MX("experts.up_proj")),
      EXPERT_WHOLE(MX("switch_mlp.fc1.weight"))},
     {EXPERT_WHOLE(GG("ffn_up_exps.weight"))},
     DIM_EXPERT_FFN,
     DIM_LATENT,
     0},
    {L(moe.down),
     {EXPERT_WHOLE(MX("experts.%d.down_proj.weight")), EXPERT_WHOLE(MX("experts.down_proj")),
      EXPERT_WHOLE(MX("switch_mlp.fc2.weight"))},
     {EXPERT_WHOLE(GG("ffn_down_exps.weight"))},
     DIM_LATENT,
     DIM_EXPERT_FFN,
     W_FFN_DOWN},
};
#define N(f) offsetof(nemotron_layer, f)
static const weight_row latent_rows[] = {
    {N(to_latent), MX("fc1_latent_proj"), GG("ffn_latent_down"), DIM_LATENT, DIM_HIDDEN,
     W_BIAS_MLP},
    {N(from_latent), MX("fc2_latent_proj"), GG("ffn_latent_up"), DIM_HIDDEN, DIM_LATENT,
     W_BIAS_MLP},
};
#undef N
#undef BB
#undef MX

static const config_defaults base = {.n_head = 32,
                                     .n_kv_head = 8,
                                     .head_dim = 128,
                                     .vocab = 131072,
                                     .ctx = 4096,
                                     .eps = 1e-5f,
                                     .by_layer = true,
                                     .eps_key = "layer_norm_epsilon",
                                     .no_mlp = true,
                                     .bias = W_BIAS_MLP};
static const moe_defaults experts_of = {.n_group = 1,
                                        .n_group_used = 1,
                                        .scale = 1.0f,
                                        .score = ROUTE_SIGMOID,
                                        .n_expert = 8,
                                        .k = 2,
                                        .ffn = 7688,
                                        MOE_NORMALISED};

static const char *either(config *c, const char *old, const char *key)
{
    return config_has(c, old, NULL) ? old : key;
}

/* Older files' words win, as in the reference. */
static void read_mixer(config *c, const base_config *b, weights *w, mamba_spec *out)
{
    mamba_keys k = mamba_own_keys;
    k.n_head = "mamba_num_heads";
    k.dim = "mamba_head_dim";
    k.n_state = "ssm_state_size";
    k.expand = NULL;
    k.n_group = either(c, "mamba_n_groups", k.n_group);
    k.kernel = either(c, "mamba_d_conv", k.kernel);
    k.conv_bias = either(c, "mamba_conv_bias", k.conv_bias);
    mamba_config(c, &k, b->s.hidden, w, out);
    out->eps = b->eps;
    out->s.dt_min =
        (float)config_num(c, either(c, "mamba_dt_min", "time_step_min"), NULL, 0, 1e30, 0.001);
    out->s.dt_max = INFINITY;
}

/* The reference's other word for its list wins, as there. */
static const char *layers_key(config *c)
{
    if (config_has(c, "layer_types", NULL)) return "layer_types";
    return config_has(c, "layers_block_type", NULL) ? "layers_block_type"
                                                    : "hybrid_override_pattern";
}

/* A letter a layer. */
static void read_pattern(config *c, cairn_str pattern, uint8_t *kind)
{
    static const struct {
        char letter;
        uint8_t kind;
    } all[] = {{'M', MIXER}, {'*', ATTENTION}, {'-', MLP}, {'E', MOE}};
    for (size_t i = 0; i < pattern.len; i++) {
        for (size_t k = 0; k < N_ROWS(all); k++)
            if (pattern.ptr[i] == all[k].letter) kind[i] = all[k].kind;
        if (!kind[i]) config_fail(c, "hybrid_override_pattern", "another letter", "M, *, - or E");
    }
}

/* GGUF files have the tensors of a layer's kind. */
static uint8_t kind_by_tensors(const weights *w, int32_t i)
{
    if (weights_has(w, NULL, "blk.%d.ssm_in", i)) return MIXER;
    if (weights_has(w, NULL, "blk.%d.attn_q", i)) return ATTENTION;
    return weights_has(w, NULL, "blk.%d.ffn_gate_inp", i) ? MOE : MLP;
}

static const uint8_t *kinds(model *m, config *c)
{
    static const kind_word words[] = {{"mamba", MIXER},
                                      {"linear_attention", MIXER},
                                      {"attention", ATTENTION},
                                      {"full_attention", ATTENTION},
                                      {"mlp", MLP},
                                      {"moe", MOE},
                                      {NULL, 0}};
    const int32_t n = m->shape.n_layer;
    const char *key = layers_key(c);
    const cairn_str pattern = meta_str(&c->src->meta, key, STR_LIT(""));
    if (!c->gguf && pattern.len != (size_t)n) {
        const uint8_t *said = config_kinds(c, key, words, n, &m->a);
        if (!said) config_fail(c, key, "nothing", "the kind of each layer");
        return said;
    }
    uint8_t *kind = arena_calloc(&m->a, (size_t)n, sizeof *kind);
    if (kind && !c->gguf) read_pattern(c, pattern, kind);
    for (int32_t i = 0; kind && c->gguf && i < n; i++) kind[i] = kind_by_tensors(&m->w, i);
    return kind;
}

/* llama.cpp's converter writes a width of 0 for the MLPs of what it takes for a mixture of experts. */
static void mlp_width_by_tensor(const uint8_t *kind, int32_t n_layer, weights *w)
{
    const uint8_t *mlp = memchr(kind, MLP, (size_t)n_layer);
    if (!mlp || w->dim[DIM_FFN]) return;
    const tensor_desc *t = weights_tensor(w, NULL, "blk.%d.ffn_up", (int32_t)(mlp - kind));
    if (t && t->n_dim == 2 && t->dim[0] <= 1 << 20) w->dim[DIM_FFN] = (int32_t)t->dim[0];
}

static void read_experts(config *c, weights *w, nemotron_h *s)
{
    const int32_t wide = 1 << 20;
    const int32_t latent = config_null(c, "moe_latent_size")
                               ? 0
                               : config_int(c, "moe_latent_size", "moe_latent_size", 1, wide, 0);
    config_moe(c, &experts_of, w, &s->d.route);
    w->dim[DIM_SHARED_FFN] =
        config_int(c, "moe_shared_expert_intermediate_size", "expert_shared_feed_forward_length", 1,
                   wide, c->gguf ? 0 : 7688);
    w->dim[DIM_LATENT] = latent ? latent : w->dim[DIM_HIDDEN];
    s->d.glu.act = GLU_RELU;
}

static cairn_status bind_layer(model *m, nemotron_h *s, int32_t i, cairn_diag *dg)
{
    weights *w = &m->w;
    decoder_layer *l = &s->d.layer[i];
    TRY(weights_bind(w, &norm_row, 1, i, l, dg));
    switch (s->kind[i]) {
    case MIXER:
        return mamba_bind(m, &s->layer[i].mixer, i, MAMBA_BACKBONE_MIXER, true, dg);
    case ATTENTION:
        return weights_bind(w, attn_rows, N_ROWS(attn_rows), i, l, dg);
    case MLP:
        return weights_bind(w, mlp_rows, N_ROWS(mlp_rows), i, l, dg);
    case MOE:
        TRY(weights_bind(w, moe_rows, N_ROWS(moe_rows), i, l, dg));
        TRY(weights_bind_experts(w, expert_rows, N_ROWS(expert_rows), i, l, dg));
        l->moe.gate = l->moe.up;
        if (w->dim[DIM_LATENT] == w->dim[DIM_HIDDEN]) return CAIRN_OK;
        return weights_bind(w, latent_rows, N_ROWS(latent_rows), i, &s->layer[i], dg);
    }
    return CAIRN_OK;
}

static cairn_status bind_all(model *m, nemotron_h *s, bool tied, cairn_diag *dg)
{
    TRY(family_cache_hybrid(m, s->kind, mamba_n_state(&s->spec, &m->w), dg));
    TRY(mamba_bind_head(m, &s->d, tied, dg));
    for (int32_t i = 0; i < m->shape.n_layer; i++) TRY(bind_layer(m, s, i, dg));
    weights_skip(&m->w, "mtp."); /* layers of multi-token prediction are not part of the model */
    return CAIRN_OK;
}

static cairn_status nemotron_h_open(model *m, config *c, cairn_diag *dg)
{
    config_defaults defaults = base;
    defaults.layers_key = layers_key(c);
    base_config b = config_base(c, &defaults);
    nemotron_h *s = arena_calloc(&m->a, 1, sizeof *s);
    if (!s) return diag_set(dg, CAIRN_E_NOMEM, "model");
    b.ffn = c->gguf ? config_first_above_0(c, "feed_forward_length", 1 << 20, 0)
                    : config_int(c, "intermediate_size", NULL, 1, 1 << 20, 21504);
    b.eps = (float)config_num(c, NULL, "attention.layer_norm_epsilon", 0, 1, (double)b.eps);
    TRY(decoder_begin_in(m, c, &b, &s->d, dg));
    s->layer = arena_calloc(&m->a, (size_t)b.s.n_layer, sizeof *s->layer);
    if (!s->layer) return diag_set(dg, CAIRN_E_NOMEM, "%d layers", (int)b.s.n_layer);
    config_only_one(c, "mlp_hidden_act", "relu2");
    config_only_one(c, "mamba_hidden_act", "silu");
    read_mixer(c, &b, &m->w, &s->spec);
    s->kind = kinds(m, c);
    TRY(c->status);
    if (!s->kind) return diag_set(dg, CAIRN_E_NOMEM, "kinds of layers");
    if (memchr(s->kind, MOE, (size_t)b.s.n_layer)) read_experts(c, &m->w, s);
    mlp_width_by_tensor(s->kind, b.s.n_layer, &m->w);
    TRY(c->status);
    return bind_all(m, s, !weights_has(&m->w, "lm_head", "output", -1), dg);
}

static val relu2_mlp(fwd *f, val x, const glu_weights *w)
{
    const val u = linear(f, x, w->up);
    const val h = glu(f, GLU_RELU, u, u);
    return linear(f, h, w->down);
}

static val latent_moe(fwd *f, val x, const decoder *d, const moe_weights *w,
                      const nemotron_layer *l)
{
    const val logits = linear(f, x, w->router);
    const routes to = route(f, logits, w->bias, NULL, &d->route);
    val h = l->to_latent ? linear(f, x, l->to_latent) : x;
    h = experts(f, h, to, w->gate, w->up, w->down, &d->glu);
    if (l->from_latent) h = linear(f, h, l->from_latent);
    const val y = relu2_mlp(f, x, &w->shared);
    return add(f, h, y);
}

static val sublayer(fwd *f, val x, const model *m)
{
    const nemotron_h *s = m->impl;
    const decoder_layer *L = &s->d.layer[f->layer];
    const nemotron_layer *l = &s->layer[f->layer];
    const attention a = decoder_attention(m, &s->d);
    switch (s->kind[f->layer]) {
    case MIXER:
        return mamba(f, x, &l->mixer, &s->spec);
    case ATTENTION:
        return gqa(f, x, &L->attn, &a, NULL, s->d.eps);
    case MOE:
        return latent_moe(f, x, &s->d, &L->moe, l);
    case MLP:
        break;
    }
    return relu2_mlp(f, x, &L->mlp);
}

static val nemotron_h_forward(fwd *f, const model *m)
{
    return decoder_forward_by(f, m, sublayer, NULL);
}

static const char *const hf_types[] = {"nemotron_h", NULL};
static const char *const gguf_archs[] = {"nemotron_h", "nemotron_h_moe", NULL};
const family family_nemotron_h = {"nemotron_h",    hf_types,           gguf_archs,
                                  nemotron_h_open, nemotron_h_forward, false};
