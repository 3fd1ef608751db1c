/* Gemma 3n, text (Google DeepMind 2025, model card).  What it adds to Gemma 3: alternating updates
   (Baykal et al. 2023, "Alternating updates for efficient transformers", AltUp), learned augmented
   residuals (Menghani et al. 2024, "LAuReL"), an MLP that keeps the gates above a share of the normal
   distribution, an input of its own for every layer, caches shared by the last layers; attention
   scores are not scaled and values are normed without a gain.

   The streams of AltUp lie side by side in one value, part by part.  Gains are stored whole.
   llama.cpp cuts off gates in the first ten layers only, by the sample deviation at 95 %; here, as in
   HF, by the population's and as the file says of each layer. */
#include <math.h>

#include "base/diag.h"
#include "base/fmath.h"
#include "base/num.h"
#include "model/gemma_parts.h"
#include "model/rows.h"

typedef struct gemma3n_layer {
    const weight *attn_norm, *attn_post, *mlp_norm, *mlp_post;
    const weight *router_norm, *router, *predict, *correct, *correct_scale;
    const weight *laurel_left, *laurel_right, *laurel_norm;
    glu_weights mlp;
    gemma_own_layer own;
    float cutoff; /* of gates, in deviations from their mean; -INFINITY: none */
} gemma3n_layer;

typedef struct gemma3n {
    const weight *tok_embed, *out_norm;
    const weight **project, **unembed; /* [n_stream - 1], of the streams after the first */
    gemma_own own;
    gemma_attn *attn; /* [n_layer], as layer */
    gemma3n_layer *layer;
    rope_spec rope, rope_windowed;
    int32_t n_stream, active; /* the stream that layers work on */
    float eps, out_cap;
} gemma3n;

static const weight_row top_rows[] = {
    {offsetof(gemma3n, tok_embed), "model.embed_tokens", "token_embd", DIM_VOCAB, DIM_HIDDEN,
     W_GATHER},
    {offsetof(gemma3n, out_norm), "model.norm", "output_norm", DIM_ONE, DIM_HIDDEN, 0},
};
#define G(f) offsetof(gemma3n_layer, f)
/* The matrices of AltUp's few numbers meet float activations in every mode: all streams hang on them. */
static const weight_row layer_rows[] = {
    {G(attn_norm), HF("input_layernorm"), GG("attn_norm"), DIM_ONE, DIM_HIDDEN, 0},
    {G(attn_post), HF("post_attention_layernorm"), GG("post_attention_norm"), DIM_ONE, DIM_HIDDEN,
     0},
    {G(mlp_norm), HF("pre_feedforward_layernorm"), GG("ffn_norm"), DIM_ONE, DIM_HIDDEN, 0},
    {G(mlp.gate), HF("mlp.gate_proj"), GG("ffn_gate"), DIM_FFN, DIM_HIDDEN, 0},
    {G(mlp.up), HF("mlp.up_proj"), GG("ffn_up"), DIM_FFN, DIM_HIDDEN, 0},
    {G(mlp.down), HF("mlp.down_proj"), GG("ffn_down"), DIM_HIDDEN, DIM_FFN, W_FFN_DOWN},
    {G(mlp_post), HF("post_feedforward_layernorm"), GG("post_ffw_norm"), DIM_ONE, DIM_HIDDEN, 0},
    {G(router_norm), HF("altup.router_norm"), GG("altup_router_norm"), DIM_ONE, DIM_HIDDEN, 0},
    {G(router), HF("altup.modality_router"), GG("altup_router"), DIM_STREAMS, DIM_HIDDEN, W_ROUTER},
    {G(predict), HF("altup.prediction_coefs"), GG("altup_predict_coef"), DIM_STREAM_MIX,
     DIM_STREAMS, W_ROUTER},
    {G(correct), HF("altup.correction_coefs"), GG("altup_correct_coef"), DIM_STREAMS, DIM_STREAMS,
     W_ROUTER},
    {G(laurel_left), HF("laurel.linear_left"), GG("laurel_l"), DIM_LAUREL, DIM_HIDDEN, 0},
    {G(laurel_right), HF("laurel.linear_right"), GG("laurel_r"), DIM_HIDDEN, DIM_LAUREL, 0},
    {G(laurel_norm), HF("laurel.post_laurel_norm"), GG("laurel_post_norm"), DIM_ONE, DIM_HIDDEN, 0},
};
static const weight_row scale_rows[] = {
    {G(correct_scale), HF("altup.correct_output_scale"), GG("altup_correct_scale.weight"), DIM_ONE,
     DIM_HIDDEN, W_BARE},
};
#undef G

static const config_defaults gemma3n_defaults = {.n_head = 8,
                                                 .n_kv_head = 2,
                                                 .head_dim = 256,
                                                 .vocab = 262400,
                                                 .ctx = 32768,
                                                 .tied = true,
                                                 .by_layer = true};

/* The reference's steps, in f32: √2 · erf⁻¹(2s - 1) deviations leave the share s below. */
static float deviations(double share)
{
    const float y = 2.0f * (float)share - 1.0f;
    return share > 0 ? (float)fmath_erfinv((double)y) * 1.41421356f : -INFINITY;
}

static float cutoff_of(config *c, int32_t i, int32_t n_layer)
{
    const double least = 0x1p-24, most = 1 - least; /* beyond, f32 has none or all below */
    const double otherwise = n_layer > 10 && i < 10 ? 0.95 : 0;
    const double share =
        config_num_at(c, "activation_sparsity_pattern", NULL, i, n_layer, 0, most, otherwise);
    if (share > 0 && share < least) {
        config_fail(c, "activation_sparsity_pattern", "nearly 0", "0 or more than 2^-24");
        return 0;
    }
    return (float)config_num_at(c, NULL, "activation_sparsity_scale", i, n_layer, (double)-INFINITY,
                                10, (double)deviations(share));
}

static cairn_status read_layers(model *m, config *c, const base_config *b, gemma3n *g,
                                cairn_diag *dg)
{
    const int32_t n = b->s.n_layer;
    const int32_t window =
        config_int(c, "sliding_window", "attention.sliding_window", 1, 1 << 28, 512);
    const int32_t *windows = config_windows(c, n, window, 5, &m->a);
    const int32_t shared = config_int(c, "num_kv_shared_layers", "attention.shared_kv_layers", 0,
                                      n - 1, c->gguf ? max_i32(0, n - 20) : 15);
    if (c->status == CAIRN_OK && shared >= n)
        config_fail(c, "num_kv_shared_layers", "15 when nothing is said",
                    "fewer than there are layers");
    g->layer = arena_calloc(&m->a, (size_t)n, sizeof *g->layer);
    g->attn = arena_calloc(&m->a, (size_t)n, sizeof *g->attn);
    TRY(c->status);
    if (!g->layer || !g->attn) return diag_set(dg, CAIRN_E_NOMEM, "%d layers", (int)n);
    for (int32_t i = 0; i < n; i++) {
        g->layer[i].cutoff = cutoff_of(c, i, n);
        g->attn[i] = (gemma_attn){.n_head = b->s.n_head,
                                  .n_kv_head = b->s.n_kv_head,
                                  .head_dim = b->s.head_dim,
                                  .window = windows[i],
                                  .rope = windows[i] ? &g->rope_windowed : &g->rope};
    }
    return gemma_share_caches(m, c, shared, g->attn, dg);
}

/* GGUF has no rank of LAuReL: the first layer's matrix tells. */
static int32_t laurel_rank(config *c)
{
    enum { MOST = 1 << 16 };
    if (!c->gguf) return config_int(c, "laurel_rank", NULL, 1, MOST, 64);
    const tensor_desc *t = source_find(c->src, "blk.0.laurel_l.weight");
    if (t && t->n_dim == 2 && t->dim[0] > 0 && t->dim[0] <= MOST) return (int32_t)t->dim[0];
    config_fail(c, "tensor blk.0.laurel_l.weight", "none of that shape", "[rank, hidden]");
    return 1;
}

static void read_streams(model *m, config *c, gemma3n *g)
{
    enum { MOST = 64 }; /* their mixing takes the square of their number */
    const int32_t n = config_int(c, "altup_num_inputs", "altup.num_inputs", 1, MOST, 4);
    int32_t *dim = m->w.dim;
    g->n_stream = n;
    g->active = config_int(c, "altup_active_idx", "altup.active_idx", 0, n - 1, 0);
    dim[DIM_STREAMS] = n;
    dim[DIM_STREAM_MIX] = n * n;
    dim[DIM_LAUREL] = laurel_rank(c);
}

/* A square matrix for each stream but the first: HF has a tensor each, GGUF one for all. */
static cairn_status bind_streams(model *m, const char *hf, const char *gguf, int32_t n,
                                 const weight ***out, cairn_diag *dg)
{
    const weight_row each = {0, hf, NULL, DIM_HIDDEN, DIM_HIDDEN, 0};
    const expert_row all = {0, {{0}}, {EXPERT_WHOLE(gguf)}, DIM_HIDDEN, DIM_HIDDEN, 0};
    const weight *stack;
    const weight **w = arena_calloc(&m->a, (size_t)n + 1, sizeof *w);
    *out = w;
    if (!w) return diag_set(dg, CAIRN_E_NOMEM, "projections of streams");
    if (m->src->format != SOURCE_GGUF) {
        for (int32_t i = 0; i < n; i++) TRY(weights_bind(&m->w, &each, 1, i, &w[i], dg));
        return CAIRN_OK;
    }
    if (n == 0) return CAIRN_OK;
    m->w.dim[DIM_EXPERTS] = m->w.n_expert_used = n;
    TRY(weights_bind_experts(&m->w, &all, 1, -1, &stack, dg));
    for (int32_t i = 0; i < n; i++) w[i] = &stack->expert[i];
    return CAIRN_OK;
}

static cairn_status bind(model *m, config *c, const base_config *b, gemma3n *g, cairn_diag *dg)
{
    const bool scaled = config_bool(c, "altup_correct_scale", true);
    weights *w = &m->w;
    TRY(weights_bind(w, top_rows, N_ROWS(top_rows), -1, g, dg));
    weights_tie(w, g->tok_embed);
    TRY(bind_streams(m, "model.altup_projections.%d", "altup_proj.weight", g->n_stream - 1,
                     &g->project, dg));
    TRY(bind_streams(m, "model.altup_unembed_projections.%d", "altup_unembd_proj.weight",
                     g->n_stream - 1, &g->unembed, dg));
    TRY(gemma_bind_own(m, &g->own, dg));
    for (int32_t i = 0; i < m->shape.n_layer; i++) {
        gemma3n_layer *l = &g->layer[i];
        w->dim[DIM_FFN] =
            config_int_at(c, "intermediate_size", "feed_forward_length", i, 1, 1 << 20, b->ffn);
        TRY(c->status);
        TRY(weights_bind(w, layer_rows, N_ROWS(layer_rows), i, l, dg));
        if (scaled) TRY(weights_bind(w, scale_rows, N_ROWS(scale_rows), i, l, dg));
        TRY(gemma_bind_attn(m, i, true, &g->attn[i], dg));
        TRY(gemma_bind_own_layer(m, i, &l->own, dg));
    }
    if (!scaled) weights_skip(w, ".altup.correct_output_scale");
    gemma_skip_shared(m);
    return CAIRN_OK;
}

static cairn_status gemma3n_open(model *m, config *c, cairn_diag *dg)
{
    const base_config b = config_base(c, &gemma3n_defaults);
    rope_params full, windowed;
    gemma3n *g = arena_calloc(&m->a, 1, sizeof *g);
    if (!g) return diag_set(dg, CAIRN_E_NOMEM, "model");
    config_only_one(c, "hidden_activation", "gelu_pytorch_tanh");
    if (!b.tied) config_fail(c, "tie_word_embeddings", "false", "true in this family");
    TRY(c->status);
    m->shape = b.s;
    m->impl = g;
    g->eps = b.eps;
    g->out_cap = gemma_cap(c, "final_logit_softcapping", 30);
    gemma_ropes(c, &b, &m->a, &full, &windowed);
    TRY(read_layers(m, c, &b, g, dg));
    TRY(family_rope(m, &full, &g->rope, dg));
    TRY(family_rope(m, &windowed, &g->rope_windowed, dg));
    TRY(family_weights(m, &b, dg));
    gemma_read_own(m, c);
    read_streams(m, c, g);
    if (m->w.dim[DIM_PLE] == 0)
        config_fail(c, c->gguf ? "embedding_length_per_layer_input" : "hidden_size_per_layer_input",
                    "0", "an input of its own for every layer in this family");
    if (config_bool(c, "attention_bias", false)) m->w.need_bias = W_BIAS_QKV | W_BIAS_OUT;
    TRY(c->status);
    return bind(m, c, &b, g, dg);
}

static val stream(fwd *f, val xs, const gemma3n *g, int32_t i)
{
    const int32_t width = g->tok_embed->cols;
    return slice(f, xs, 1, i * width, width);
}

/* AltUp's router of x: tanh(W · norm(x) / hidden). */
static val modalities(fwd *f, val x, const gemma3n_layer *l, float eps)
{
    val h = rms_norm(f, x, l->router_norm, eps);
    h = scale(f, h, 1.0f / (float)l->router->cols);
    h = linear(f, h, l->router);
    return softcap(f, h, 1.0f);
}

/* AltUp, step 1: every stream from all of them. */
static val predict(fwd *f, val xs, const gemma3n *g, const gemma3n_layer *l)
{
    val p = stream(f, xs, g, g->active);
    p = modalities(f, p, l, g->eps);
    p = linear(f, p, l->predict);
    return mix(f, xs, g->n_stream, p, 0.0f, xs);
}

/* AltUp, step 3: what the layer made of the active stream corrects all. */
static val correct(fwd *f, val predicted, val active, val made, const gemma3n *g,
                   const gemma3n_layer *l)
{
    val innovation = scale(f, active, -1.0f);
    innovation = add(f, made, innovation);
    val p = modalities(f, made, l, g->eps);
    p = linear(f, p, l->correct);
    return mix(f, innovation, 1, p, 1.0f, predicted);
}

static val laurel(fwd *f, val x, const gemma3n_layer *l, float eps)
{
    val h = linear(f, x, l->laurel_left);
    h = linear(f, h, l->laurel_right);
    h = rms_norm(f, h, l->laurel_norm, eps);
    return add(f, x, h);
}

static val mlp_of(fwd *f, val x, const gemma3n_layer *l)
{
    val gate = linear(f, x, l->mlp.gate);
    if (l->cutoff > -INFINITY) gate = cutoff(f, gate, l->cutoff);
    const val up = linear(f, x, l->mlp.up);
    const val h = glu(f, GLU_GELU_TANH, gate, up);
    return linear(f, h, l->mlp.down);
}

/* Adds x to every stream but the first. */
static val add_to_others(fwd *f, val xs, val x, const gemma3n *g)
{
    const int32_t width = g->tok_embed->cols, n = g->n_stream - 1;
    val all = x;
    if (n == 0) return xs;
    for (int32_t i = 1; i < n; i++) all = join(f, all, x, 1);
    const val first = stream(f, xs, g, 0);
    val others = slice(f, xs, 1, width, n * width);
    others = add(f, others, all);
    return join(f, first, others, 1);
}

static val layer_of(fwd *f, val xs, val inputs, const gemma3n *g, const gemma3n_layer *l)
{
    const val predicted = predict(f, xs, g, l);
    const val active = stream(f, predicted, g, g->active);
    val h = rms_norm(f, active, l->attn_norm, g->eps);
    const val augmented = laurel(f, h, l, g->eps);
    h = gemma_attention(f, h, &g->attn[f->layer], g->eps);
    h = rms_norm(f, h, l->attn_post, g->eps);
    h = add(f, active, h);
    h = add(f, h, augmented);
    val x = scale(f, h, sqrtf(0.5f));
    h = rms_norm(f, x, l->mlp_norm, g->eps);
    h = mlp_of(f, h, l);
    h = rms_norm(f, h, l->mlp_post, g->eps);
    x = add(f, x, h);
    xs = correct(f, predicted, active, x, g, l);
    x = stream(f, xs, g, g->active);
    if (l->correct_scale) x = scale_by(f, x, l->correct_scale);
    x = gemma_own_input(f, x, inputs, &l->own, g->eps);
    return add_to_others(f, xs, x, g);
}

/* The hidden state that others see is the first stream. */
static void tap_first(fwd *f, val xs, const gemma3n *g, int32_t i)
{
    if (!f->taps) return;
    const val x = stream(f, xs, g, 0);
    tap(f, x, i);
}

static val gemma3n_forward(fwd *f, const model *m)
{
    const float least = 1e-5f; /* of a mean of squares that others are matched with */
    const gemma3n *g = m->impl;
    const val x0 = embed(f, g->tok_embed, sqrtf((float)m->shape.hidden));
    const val inputs = gemma_own_inputs(f, x0, &g->own, g->eps);
    val xs = x0;
    for (int32_t i = 1; i < g->n_stream; i++) {
        val x = linear(f, x0, g->project[i - 1]);
        x = match(f, x, x0, least);
        xs = join(f, xs, x, 1);
    }
    tap(f, x0, 0);
    for (f->layer = 0; f->layer < m->shape.n_layer; f->layer++) {
        xs = layer_of(f, xs, inputs, g, &g->layer[f->layer]);
        tap_first(f, xs, g, f->layer + 1);
    }
    f->layer = -1;
    const val first = stream(f, xs, g, 0);
    val y = first;
    for (int32_t i = 1; i < g->n_stream; i++) {
        val x = stream(f, xs, g, i);
        x = linear(f, x, g->unembed[i - 1]);
        x = match(f, x, first, least);
        y = add(f, y, x);
    }
    y = scale(f, y, 1.0f / (float)g->n_stream);
    y = rms_norm(f, y, g->out_norm, g->eps);
    y = linear(f, y, g->tok_embed);
    return g->out_cap > 0 ? softcap(f, y, g->out_cap) : y;
}

static const char *const hf_types[] = {"gemma3n_text", "gemma3n", NULL};
static const char *const gguf_archs[] = {"gemma3n", NULL};
const family family_gemma3n = {"gemma3n",    hf_types,        gguf_archs,
                               gemma3n_open, gemma3n_forward, false};
