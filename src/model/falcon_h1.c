/* Falcon-H1 (Zuo et al. 2025, "Falcon-H1: a family of hybrid-head language models"): in every layer
   attention and Mamba-2's mixer read the same norm, and what they make is added; a gated MLP.  Thirteen
   multipliers (section 3.2.3, "maximal update parametrization") scale what goes in and out.

   GGUF files have the multipliers in their matrices.  They do not say whether a mixer's norm comes
   before its gate; llama.cpp's comes after.  MLX files have those in their matrices that mlx-lm knows:
   it leaves out key_multiplier, attention_in_multiplier for the values and the groups of the norm, which
   all hold here as in the reference. */
#include <stdio.h>

#include "base/diag.h"
#include "model/config_hybrid.h"
#include "model/mamba.h"
#include "model/rows.h"

enum { Z, X, B, C, DT, N_PART };

typedef struct falcon_h1 {
    decoder d; /* first */
    mamba_weights *mixer;
    mamba_spec spec;
    float attn_in, attn_out, ssm_in, ssm_out;
    float part[N_PART], gate_by, down_by;
} falcon_h1;

#define TOP(f) offsetof(decoder, f)
static const weight_row out_norm_row = {
    TOP(out_norm), "model.final_layernorm", "output_norm", DIM_ONE, DIM_HIDDEN, 0};
#undef TOP
static const weight_row layer_rows[] = {
    {L(attn_norm), HF("input_layernorm"), GG("attn_norm"), DIM_ONE, DIM_HIDDEN, 0},
    {L(mlp_norm), HF("pre_ff_layernorm.weight"), GG("ffn_norm"), DIM_ONE, DIM_HIDDEN, W_BARE},
    {L(mlp.gate), HF("feed_forward.gate_proj"), GG("ffn_gate"), DIM_FFN, DIM_HIDDEN, W_BIAS_MLP},
    {L(mlp.up), HF("feed_forward.up_proj"), GG("ffn_up"), DIM_FFN, DIM_HIDDEN, W_BIAS_MLP},
    {L(mlp.down), HF("feed_forward.down_proj"), GG("ffn_down"), DIM_HIDDEN, DIM_FFN,
     W_BIAS_MLP | W_FFN_DOWN},
};

static const config_defaults base = {.n_head = 32,
                                     .n_kv_head = 8,
                                     .vocab = 128000,
                                     .ctx = 8192,
                                     .eps = 1e-5f,
                                     .bias = W_BIAS_ATTN | W_BIAS_MLP};

static float multiplier(config *c, const char *key)
{
    return (float)config_num(c, key, NULL, 1e-9, 1e9, 1);
}

static float multiplier_at(config *c, const char *list, int32_t i)
{
    char key[CONFIG_KEY_LEN];
    (void)snprintf(key, sizeof key, "%s.%d", list, (int)i);
    return (float)config_num(c, key, NULL, 1e-9, 1e9, 1);
}

static void read_multipliers(config *c, falcon_h1 *s)
{
    s->d.embed_by = multiplier(c, "embedding_multiplier");
    s->d.logits_by = multiplier(c, "lm_head_multiplier");
    s->d.score_scale *= multiplier(c, "key_multiplier"); /* of the keys before they turn */
    s->attn_in = multiplier(c, "attention_in_multiplier");
    s->attn_out = multiplier(c, "attention_out_multiplier");
    s->ssm_in = multiplier(c, "ssm_in_multiplier");
    s->ssm_out = multiplier(c, "ssm_out_multiplier");
    for (int32_t i = 0; i < N_PART; i++) s->part[i] = multiplier_at(c, "ssm_multipliers", i);
    s->gate_by = multiplier_at(c, "mlp_multipliers", 0);
    s->down_by = multiplier_at(c, "mlp_multipliers", 1);
}

static void read_mixer(config *c, const base_config *b, weights *w, mamba_spec *out)
{
    mamba_keys k = mamba_bamba_keys;
    k.inner = "mamba_d_ssm";
    k.inner_otherwise = 1024;
    k.out_bias = "projectors_bias";
    mamba_config(c, &k, b->s.hidden, w, out);
    out->eps = b->eps;
    out->norm_first = !c->gguf && config_bool(c, "mamba_norm_before_gate", true);
}

/* mlx-lm's own sign of a file whose matrices it multiplied. */
static bool multiplied(const weights *w)
{
    const tensor_desc *t = weights_tensor(w, HF("mamba.conv1d"), GG("ssm_conv1d"), 0);
    return w->src->format != SOURCE_GGUF && t && t->n_dim == 3 && t->dim[2] <= t->dim[1];
}

/* What is left to multiply then.  Biases were not multiplied: a file that has any is refused. */
static void leave_multiplied(config *c, falcon_h1 *s, bool tied)
{
    static const char *const biases[] = {"attention_bias", "mlp_bias", "mamba_proj_bias",
                                         "projectors_bias"};
    for (size_t i = 0; i < N_ROWS(biases); i++)
        if (config_bool(c, biases[i], false))
            config_fail(c, biases[i], "true", "false, in the layout of MLX");
    s->d.logits_by = tied ? s->d.logits_by / s->d.embed_by : 1;
    s->attn_out = s->attn_in; /* of the values */
    s->d.embed_by = s->attn_in = s->ssm_in = s->ssm_out = s->gate_by = s->down_by = 1;
    for (int32_t i = 0; i < N_PART; i++) s->part[i] = 1;
}

static cairn_status bind_all(model *m, falcon_h1 *s, bool tied, bool normed, cairn_diag *dg)
{
    TRY(decoder_bind_head_as(m, &s->d, tied, &decoder_embed_row, &out_norm_row, dg));
    for (int32_t i = 0; i < m->shape.n_layer; i++) {
        TRY(weights_bind(&m->w, layer_rows, N_ROWS(layer_rows), i, &s->d.layer[i], dg));
        TRY(decoder_bind_attn(m, &s->d.layer[i], i, dg));
        TRY(mamba_bind(m, &s->mixer[i], i, MAMBA_MODEL_MAMBA, normed, dg));
    }
    return CAIRN_OK;
}

static cairn_status falcon_h1_open(model *m, config *c, cairn_diag *dg)
{
    const base_config b = config_base(c, &base);
    const rope_params rope = config_rope(c, &b, NULL, 10000.0, &m->a);
    falcon_h1 *s = arena_calloc(&m->a, 1, sizeof *s);
    if (!s) return diag_set(dg, CAIRN_E_NOMEM, "model");
    TRY(decoder_begin_in(m, c, &b, &s->d, dg));
    s->mixer = arena_calloc(&m->a, (size_t)b.s.n_layer, sizeof *s->mixer);
    if (!s->mixer) return diag_set(dg, CAIRN_E_NOMEM, "%d layers", (int)b.s.n_layer);
    config_only_one(c, "hidden_act", "silu");
    read_multipliers(c, s);
    if (multiplied(&m->w)) leave_multiplied(c, s, b.tied);
    read_mixer(c, &b, &m->w, &s->spec);
    const uint8_t *kind = config_kinds_all(c, LAYER_KEYS | LAYER_STATE, b.s.n_layer, &m->a);
    TRY(c->status);
    TRY(decoder_rope(m, &s->d, &rope, dg));
    TRY(family_cache_hybrid(m, kind, mamba_n_state(&s->spec, &m->w), dg));
    return bind_all(m, s, b.tied, config_bool(c, "mamba_rms_norm", false), dg);
}

static val part(fwd *f, val x, int32_t from, int32_t cols, float by)
{
    return times(f, slice(f, x, 1, from, cols), by);
}

/* mamba() with a multiplier for each part of what the first matrix makes */
static val mixer(fwd *f, val u, const falcon_h1 *s, const mamba_weights *w)
{
    const ssm_spec *h = &s->spec.s;
    const int32_t inner = h->n_head * h->dim, bc = h->n_group * h->n_state;
    u = times(f, u, s->ssm_in);
    const val zxbcdt = linear(f, u, w->w_in);
    const val z = part(f, zxbcdt, 0, inner, s->part[Z]);
    val xbc;
    if (s->part[X] == s->part[B] && s->part[X] == s->part[C]) {
        xbc = part(f, zxbcdt, inner, inner + 2 * bc, s->part[X]);
    } else {
        const val b = part(f, zxbcdt, 2 * inner, bc, s->part[B]);
        const val c = part(f, zxbcdt, 2 * inner + bc, bc, s->part[C]);
        xbc = part(f, zxbcdt, inner, inner, s->part[X]);
        xbc = join(f, xbc, b, 1);
        xbc = join(f, xbc, c, 1);
    }
    const val dt = part(f, zxbcdt, 2 * inner + 2 * bc, h->n_head, s->part[DT]);
    const val y = mamba_mix(f, z, xbc, dt, w, &s->spec);
    return times(f, y, s->ssm_out);
}

/* What both mixers make of one norm. */
static val sublayer(fwd *f, val u, const model *m)
{
    const falcon_h1 *s = m->impl;
    const decoder_layer *L = &s->d.layer[f->layer];
    const attention a = decoder_attention(m, &s->d);
    const val y = mixer(f, u, s, &s->mixer[f->layer]);
    val h = times(f, u, s->attn_in);
    h = gqa(f, h, &L->attn, &a, L->rope, s->d.eps);
    h = times(f, h, s->attn_out);
    return add(f, y, h);
}

static val mlp(fwd *f, val x, const model *m)
{
    const falcon_h1 *s = m->impl;
    const glu_weights *w = &s->d.layer[f->layer].mlp;
    val g = linear(f, x, w->gate);
    g = times(f, g, s->gate_by);
    const val u = linear(f, x, w->up);
    const val h = glu(f, GLU_SILU, g, u);
    const val y = linear(f, h, w->down);
    return times(f, y, s->down_by);
}

static val falcon_h1_forward(fwd *f, const model *m)
{
    return decoder_forward_by(f, m, sublayer, mlp);
}

static const char *const hf_types[] = {"falcon_h1", NULL};
static const char *const gguf_archs[] = {"falcon-h1", NULL};
const family family_falcon_h1 = {"falcon_h1",    hf_types,          gguf_archs,
                                 falcon_h1_open, falcon_h1_forward, false};
