/* GLM-4-0414, "glm4" (GLM team 2024, "ChatGLM"): norms before and after both sublayers; a part of each
   head rotates, in pairs (2i, 2i+1); biases on q, k and v; gate and up in one tensor. */
#include "base/diag.h"
#include "model/decoder.h"
#include "model/rows.h"

static const weight_row norm_rows[] = {
    {L(attn_norm), HF("input_layernorm"), GG("attn_norm"), DIM_ONE, DIM_HIDDEN, 0},
    {L(attn_post), HF("post_self_attn_layernorm"), GG("post_attention_norm"), DIM_ONE, DIM_HIDDEN,
     0},
    {L(mlp_norm), HF("post_attention_layernorm"), GG("ffn_norm"), DIM_ONE, DIM_HIDDEN, 0},
    {L(mlp_post), HF("post_mlp_layernorm"), GG("post_ffw_norm"), DIM_ONE, DIM_HIDDEN, 0},
};

static const config_defaults glm4_defaults = {.n_head = 32,
                                              .n_kv_head = 2,
                                              .head_dim = 128,
                                              .vocab = 151552,
                                              .ctx = 131072,
                                              .eps = 1.5625e-7f};

/* Half of each head rotates in a config that does not say. */
static rope_params read_rope(config *c, const base_config *b, arena *a)
{
    rope_params p = config_rope(c, b, NULL, 10000.0, a);
    if (!config_says_partial(c)) p.dim = b->s.head_dim / 2;
    p.interleaved = true;
    return p;
}

static cairn_status glm_open(model *m, config *c, cairn_diag *dg)
{
    static const char *const acts[] = {"silu", NULL};
    const base_config b = config_base(c, &glm4_defaults);
    const rope_params rope = read_rope(c, &b, &m->a);
    decoder *d;
    TRY(decoder_begin(m, c, &b, &d, dg));
    config_only(c, "hidden_act", acts);
    d->window = config_windows(c, b.s.n_layer, 0, 0, &m->a);
    if (!c->gguf) m->w.need_bias = config_bool(c, "attention_bias", true) ? W_BIAS_QKV : 0;
    if (config_has(c, NULL, "rope.dimension_sections"))
        config_fail(c, "rope.dimension_sections", "present", "a text model");
    return decoder_bind(m, c, &b, d, &rope, norm_rows, N_ROWS(norm_rows), dg);
}

static val glm_forward(fwd *f, const model *m)
{
    const decoder *d = m->impl;
    const attention a = decoder_attention(m, d);
    val x = embed(f, d->tok_embed, 1.0f);
    tap(f, x, 0);
    for (f->layer = 0; f->layer < m->shape.n_layer; f->layer++) {
        const decoder_layer *L = &d->layer[f->layer];
        val h = rms_norm(f, x, L->attn_norm, d->eps);
        h = gqa(f, h, &L->attn, &a, L->rope, d->eps);
        h = rms_norm(f, h, L->attn_post, d->eps);
        x = add(f, x, h);
        h = rms_norm(f, x, L->mlp_norm, d->eps);
        h = glu_mlp(f, h, &L->mlp, GLU_SILU);
        h = rms_norm(f, h, L->mlp_post, d->eps);
        x = add(f, x, h);
        tap(f, x, f->layer + 1);
    }
    f->layer = -1;
    x = rms_norm(f, x, d->out_norm, d->eps);
    return linear(f, x, d->lm_head);
}

static const char *const hf_types[] = {"glm4", NULL};
static const char *const gguf_archs[] = {"glm4", NULL};
const family family_glm = {"glm", hf_types, gguf_archs, glm_open, glm_forward};
