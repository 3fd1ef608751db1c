/* LFM2 (Liquid AI 2025, "LFM2 technical report", section 2): most layers convolve three positions between
   two gates instead of attending, the others are grouped-query attention with norms on the heads of q
   and k; the MLP is gated, or a mixture of experts with DeepSeek-V3's bias of choosing.

   Files of MLX have no head of their own, whatever their config says of ties; those of the mixture name the
   matrices of dense layers by what they are. */
#include <string.h>

#include "base/diag.h"
#include "base/str.h"
#include "model/config_hybrid.h"
#include "model/config_moe.h"
#include "model/decoder.h"
#include "model/rows.h"

typedef struct conv_layer {
    const weight *w_in, *kernel, *w_out; /* w_in NULL: the layer attends */
} conv_layer;

typedef struct lfm2 {
    decoder d; /* first */
    conv_layer *conv;
} lfm2;

#define TOP(f) offsetof(decoder, f)
static const weight_row norm_row = {
    TOP(out_norm), "model.embedding_norm", "token_embd_norm", DIM_ONE, DIM_HIDDEN, 0};
#undef TOP

#define AT(n) HF("self_attn." n)
#define FF(n) HF("feed_forward." n)
static const weight_row norm_rows[] = {
    {L(attn_norm), HF("operator_norm"), GG("attn_norm"), DIM_ONE, DIM_HIDDEN, 0},
    {L(mlp_norm), HF("ffn_norm"), GG("ffn_norm"), DIM_ONE, DIM_HIDDEN, 0},
};
static const weight_row attn_rows[] = {
    {L(attn.wq), AT("q_proj"), GG("attn_q"), DIM_Q, DIM_HIDDEN, 0},
    {L(attn.wk), AT("k_proj"), GG("attn_k"), DIM_KV, DIM_HIDDEN, 0},
    {L(attn.wv), AT("v_proj"), GG("attn_v"), DIM_KV, DIM_HIDDEN, 0},
    {L(attn.wo), AT("out_proj"), GG("attn_output"), DIM_HIDDEN, DIM_Q, W_ATTN_OUT},
    {L(attn.q_norm), AT("q_layernorm"), GG("attn_q_norm"), DIM_ONE, DIM_HEAD, 0},
    {L(attn.k_norm), AT("k_layernorm"), GG("attn_k_norm"), DIM_ONE, DIM_HEAD, 0},
};
#define MLP(w1, w3, w2)                                                                            \
    {                                                                                              \
        {L(mlp.gate), FF(w1), GG("ffn_gate"), DIM_FFN, DIM_HIDDEN, 0},                             \
            {L(mlp.up), FF(w3), GG("ffn_up"), DIM_FFN, DIM_HIDDEN, 0},                             \
            {L(mlp.down), FF(w2), GG("ffn_down"), DIM_HIDDEN, DIM_FFN, W_FFN_DOWN},                \
    }
enum { MLP_ROWS = 3 };
static const weight_row mlp_rows[MLP_ROWS] = MLP("w1", "w3", "w2");
static const weight_row mlx_mlp_rows[MLP_ROWS] = MLP("gate_proj", "up_proj", "down_proj");
#undef MLP
static const weight_row router_row = {L(moe.router), FF("gate"), GG("ffn_gate_inp"),
                                      DIM_EXPERTS,   DIM_HIDDEN, W_ROUTER};
static const weight_row choice_row = {L(moe.bias), FF("expert_bias"), GG("exp_probs_b.bias"),
                                      DIM_ONE,     DIM_EXPERTS,       W_BARE};
static const expert_row expert_rows[] = {
    {L(moe.gate),
     {EXPERT_WHOLE(FF("experts.%d.w1.weight")), EXPERT_WHOLE(FF("switch_mlp.gate_proj.weight")),
      EXPERT_PART(FF("experts.gate_up_proj"), 0, 2)},
     {EXPERT_WHOLE(GG("ffn_gate_exps.weight"))},
     DIM_EXPERT_FFN,
     DIM_HIDDEN,
     0},
    {L(moe.up),
     {EXPERT_WHOLE(FF("experts.%d.w3.weight")), EXPERT_WHOLE(FF("switch_mlp.up_proj.weight")),
      EXPERT_PART(FF("experts.gate_up_proj"), 1, 2)},
     {EXPERT_WHOLE(GG("ffn_up_exps.weight"))},
     DIM_EXPERT_FFN,
     DIM_HIDDEN,
     0},
    {L(moe.down),
     {EXPERT_WHOLE(FF("experts.%d.w2.weight")), EXPERT_WHOLE(FF("switch_mlp.down_proj.weight")),
      EXPERT_WHOLE(FF("experts.down_proj"))},
     {EXPERT_WHOLE(GG("ffn_down_exps.weight"))},
     DIM_HIDDEN,
     DIM_EXPERT_FFN,
     W_FFN_DOWN},
};
#define C(f) offsetof(conv_layer, f)
static const weight_row conv_rows[] = {
    {C(w_in), HF("conv.in_proj"), GG("shortconv.in_proj"), DIM_IN, DIM_HIDDEN, W_BIAS_CONV},
    {C(kernel), HF("conv.conv"), GG("shortconv.conv"), DIM_KERNEL, DIM_CONV, W_CONV | W_BIAS_CONV},
    {C(w_out), HF("conv.out_proj"), GG("shortconv.out_proj"), DIM_HIDDEN, DIM_CONV,
     W_BIAS_CONV | W_ATTN_OUT},
};
#undef C
#undef AT
#undef FF

static const config_defaults dense_base = {.n_head = 32,
                                           .n_kv_head = 8,
                                           .vocab = 65536,
                                           .ctx = 128000,
                                           .tied = true,
                                           .eps = 1e-5f,
                                           .eps_key = "norm_eps",
                                           .ffn = 12288,
                                           .by_layer = true};
static const moe_defaults experts_of = {.scale = 1.0f,
                                        .score = ROUTE_SIGMOID,
                                        .n_expert = 32,
                                        .k = 4,
                                        .ffn = 1792,
                                        .normalise = true,
                                        .eps = 1e-6f,
                                        .normalise_key = "norm_topk_prob"};

/* By layer_types, else by full_attn_idxs, else all attend. */
static const uint8_t *kinds(config *c, int32_t n_layer, arena *a)
{
    static const kind_word words[] = {
        {"conv", LAYER_STATE}, {"full_attention", LAYER_KEYS}, {NULL, 0}};
    if (c->gguf) return config_kinds_by_heads(c, n_layer, a);
    const uint8_t *said = config_kinds(c, "layer_types", words, n_layer, a);
    if (said || c->status != CAIRN_OK) return said;
    bool *attends = arena_calloc(a, (size_t)n_layer, sizeof *attends);
    uint8_t *kind = arena_alloc(a, (size_t)n_layer);
    if (!attends || !kind) return NULL;
    const bool listed = config_named(c, "full_attn_idxs", n_layer, attends);
    for (int32_t i = 0; i < n_layer; i++)
        kind[i] = !listed || attends[i] ? LAYER_KEYS : LAYER_STATE;
    return kind;
}

/* The width that block_auto_adjust_ff_dim makes of the config's; a multiplier of null leaves two thirds
   as they are, as transformers does (llama.cpp's converter rounds them too). */
static int32_t mlp_width(config *c, const base_config *b)
{
    const int32_t wide = 1 << 20;
    int32_t n = config_int(c, "block_ff_dim", NULL, 1, wide, b->ffn);
    if (c->gguf || !config_bool(c, "block_auto_adjust_ff_dim", true)) return n;
    const double by = config_num(c, "block_ffn_dim_multiplier", NULL, 1e-3, 1e3, 1.0);
    const int32_t of = config_int(c, "block_multiple_of", NULL, 1, wide, 256);
    n = 2 * n / 3;
    if (!config_null(c, "block_ffn_dim_multiplier") && c->status == CAIRN_OK)
        n = ((int32_t)(by * n) + of - 1) / of * of;
    if (n < 1 || n > wide)
        config_misfit(c, "block_ff_dim", NULL, n, "1 to %d once it is adjusted", (int)wide);
    return n;
}

static cairn_status bind_layer(model *m, lfm2 *s, int32_t i, bool attends, bool sparse, bool biased,
                               cairn_diag *dg)
{
    decoder_layer *l = &s->d.layer[i];
    weights *w = &m->w;
    TRY(weights_bind(w, norm_rows, N_ROWS(norm_rows), i, l, dg));
    TRY(attends ? weights_bind(w, attn_rows, N_ROWS(attn_rows), i, l, dg)
                : weights_bind(w, conv_rows, N_ROWS(conv_rows), i, &s->conv[i], dg));
    const bool mlx = weights_has(w, mlx_mlp_rows[0].hf, mlx_mlp_rows[0].gguf, i);
    if (!sparse) return weights_bind(w, mlx ? mlx_mlp_rows : mlp_rows, MLP_ROWS, i, l, dg);
    TRY(weights_bind(w, &router_row, 1, i, l, dg));
    if (biased) TRY(weights_bind(w, &choice_row, 1, i, l, dg));
    return weights_bind_experts(w, expert_rows, N_ROWS(expert_rows), i, l, dg);
}

static cairn_status bind_all(model *m, config *c, lfm2 *s, const uint8_t *kind, bool moe, bool tied,
                             cairn_diag *dg)
{
    const int32_t n = m->shape.n_layer;
    const bool *sparse = moe ? config_sparse_from(c, n, "num_dense_layers", 2, &m->a) : NULL;
    const bool biased = moe && config_bool(c, "use_expert_bias", true);
    TRY(c->status);
    TRY(family_cache_hybrid(m, kind, (m->w.dim[DIM_KERNEL] - 1) * m->w.dim[DIM_CONV], dg));
    TRY(decoder_bind_head_as(m, &s->d, tied, &decoder_embed_row, &norm_row, dg));
    for (int32_t i = 0; i < n; i++)
        TRY(bind_layer(m, s, i, kind[i] & LAYER_KEYS, moe && sparse[i], biased, dg));
    return CAIRN_OK;
}

static cairn_status lfm2_open(model *m, config *c, cairn_diag *dg)
{
    const bool moe = str_is(str_of(c->arch), "lfm2_moe") || str_is(str_of(c->arch), "lfm2moe");
    config_defaults base = dense_base;
    if (moe) base.ffn = 7168;
    base_config b = config_base(c, &base);
    lfm2 *s = arena_calloc(&m->a, 1, sizeof *s);
    if (!s) return diag_set(dg, CAIRN_E_NOMEM, "model");
    if (!moe) b.ffn = mlp_width(c, &b);
    TRY(decoder_begin_in(m, c, &b, &s->d, dg));
    s->conv = arena_calloc(&m->a, (size_t)b.s.n_layer, sizeof *s->conv);
    if (!s->conv) return diag_set(dg, CAIRN_E_NOMEM, "%d layers", (int)b.s.n_layer);
    m->w.dim[DIM_CONV] = b.s.hidden;
    m->w.dim[DIM_IN] = 3 * b.s.hidden;
    m->w.dim[DIM_KERNEL] =
        config_class_int(c, "conv_L_cache", "shortconv.l_cache", 2, CONV_MAX_ROWS, 3);
    if (c->gguf)
        m->w.may_bias = W_BIAS_CONV;
    else
        m->w.need_bias = config_bool(c, "conv_bias", false) ? W_BIAS_CONV : 0;
    const uint8_t *kind = kinds(c, b.s.n_layer, &m->a);
    const rope_params rope = config_rope(c, &b, NULL, 1000000.0, &m->a);
    if (moe) config_moe(c, &experts_of, &m->w, &s->d.route);
    TRY(c->status);
    if (!kind) return diag_set(dg, CAIRN_E_NOMEM, "kinds of layers");
    TRY(decoder_rope(m, &s->d, &rope, dg));
    const bool tied =
        config_bool(c, "tie_embedding", b.tied) || !weights_has(&m->w, "lm_head", "output", -1);
    return bind_all(m, c, s, kind, moe, tied, dg);
}

/* Wo (C · conv(B · x)) */
static val short_conv(fwd *f, val h, const conv_layer *w)
{
    const int32_t n = w->kernel->cols;
    const val bcx = linear(f, h, w->w_in);
    const val b = slice(f, bcx, 1, 0, n);
    const val c = slice(f, bcx, 1, n, n);
    val x = slice(f, bcx, 1, 2 * n, n);
    x = glu(f, GLU_BILINEAR, b, x);
    x = conv(f, x, w->kernel, false, 0);
    x = glu(f, GLU_BILINEAR, c, x);
    return linear(f, x, w->w_out);
}

static val sublayer(fwd *f, val x, const model *m)
{
    const lfm2 *s = m->impl;
    const decoder_layer *L = &s->d.layer[f->layer];
    const attention a = decoder_attention(m, &s->d);
    return L->attn.wq ? gqa(f, x, &L->attn, &a, L->rope, s->d.eps)
                      : short_conv(f, x, &s->conv[f->layer]);
}

static val lfm2_forward(fwd *f, const model *m)
{
    return decoder_forward_by(f, m, sublayer, decoder_mlp);
}

static const char *const hf_types[] = {"lfm2", "lfm2_moe", NULL};
static const char *const gguf_archs[] = {"lfm2", "lfm2moe", NULL};
const family family_lfm2 = {"lfm2", hf_types, gguf_archs, lfm2_open, lfm2_forward, true};
