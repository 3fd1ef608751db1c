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
                                              .eps = 1.5625e-7f,
                                              .partial = 0.5f};

static cairn_status glm_open(model *m, config *c, cairn_diag *dg)
{
    const base_config b = config_base(c, &glm4_defaults);
    rope_params rope = config_rope(c, &b, NULL, 10000.0, &m->a);
    decoder *d;
    TRY(decoder_begin(m, c, &b, &d, dg));
    config_only_one(c, "hidden_act", "silu");
    rope.interleaved = true;
    d->window = config_windows(c, b.s.n_layer, 0, 0, &m->a);
    if (!c->gguf) m->w.need_bias = config_bool(c, "attention_bias", true) ? W_BIAS_QKV : 0;
    if (config_has(c, NULL, "rope.dimension_sections"))
        config_fail(c, "rope.dimension_sections", "present", "a text model");
    return decoder_bind(m, c, &b, &rope, norm_rows, N_ROWS(norm_rows), dg);
}

static const char *const hf_types[] = {"glm4", NULL};
static const char *const gguf_archs[] = {"glm4", NULL};
const family family_glm = {"glm", hf_types, gguf_archs, glm_open, decoder_forward, true};
