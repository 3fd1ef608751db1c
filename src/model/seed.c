/* Seed-OSS (ByteDance Seed 2025): a Llama block with biases on q, k and v. */
#include "base/diag.h"
#include "model/decoder.h"
#include "model/rows.h"

static const weight_row norm_rows[] = {
    {L(attn_norm), "model.layers.%d.input_layernorm", "blk.%d.attn_norm", DIM_ONE, DIM_HIDDEN, 0},
    {L(mlp_norm), "model.layers.%d.post_attention_layernorm", "blk.%d.post_attention_norm", DIM_ONE,
     DIM_HIDDEN, 0},
};

static const config_defaults seed_defaults = {
    .n_head = 80, .n_kv_head = 8, .head_dim = 128, .vocab = 155136, .ctx = 524288};

static cairn_status seed_open(model *m, config *c, cairn_diag *dg)
{
    const base_config b = config_base(c, &seed_defaults);
    const rope_params rope = config_rope(c, &b, NULL, 10000.0, &m->a);
    decoder *d;
    TRY(decoder_begin(m, c, &b, &d, dg));
    config_only_one(c, "hidden_act", "silu");
    if (!c->gguf)
        m->w.need_bias = (config_bool(c, "attention_bias", true) ? W_BIAS_QKV : 0) |
                         (config_bool(c, "attention_out_bias", false) ? W_BIAS_OUT : 0) |
                         (config_bool(c, "mlp_bias", false) ? W_BIAS_MLP : 0);
    d->window = config_windows(c, b.s.n_layer, 0, 0, &m->a);
    return decoder_bind(m, c, &b, &rope, norm_rows, N_ROWS(norm_rows), dg);
}

static const char *const hf_types[] = {"seed_oss", NULL};
static const char *const gguf_archs[] = {"seed_oss", NULL};
const family family_seed = {"seed", hf_types, gguf_archs, seed_open, decoder_forward, true};
