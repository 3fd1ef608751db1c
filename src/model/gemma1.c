/* Gemma (Mesnard et al. 2024, "Gemma", section 2): a Llama block with embeddings scaled by sqrt(hidden),
   gains stored less one in HF files, tanh-GELU (mlx-lm: the exact one), and the embedding as head. */
#include <math.h>

#include "base/diag.h"
#include "model/decoder.h"
#include "model/rows.h"

static const weight_row norm_rows[] = {
    {L(attn_norm), "model.layers.%d.input_layernorm", "blk.%d.attn_norm", DIM_ONE, DIM_HIDDEN,
     W_PLUS_ONE},
    {L(mlp_norm), "model.layers.%d.post_attention_layernorm", "blk.%d.ffn_norm", DIM_ONE,
     DIM_HIDDEN, W_PLUS_ONE},
};
static const config_defaults gemma_defaults = {.n_head = 16,
                                               .n_kv_head = 16,
                                               .head_dim = 256,
                                               .vocab = 256000,
                                               .ctx = 8192,
                                               .tied = true,
                                               .bias = W_BIAS_ATTN};

static cairn_status gemma1_open(model *m, config *c, cairn_diag *dg)
{
    /* "gelu" is how the first configs wrote it */
    static const char *const acts[] = {"gelu_pytorch_tanh", "gelu", "gelu_new", NULL};
    const base_config b = config_base(c, &gemma_defaults);
    const rope_params rope = config_rope(c, &b, NULL, 10000.0, &m->a);
    decoder *d;
    TRY(decoder_begin(m, c, &b, &d, dg));
    config_only(c, "hidden_act", acts);
    config_only(c, "hidden_activation", acts);
    if (config_bool(c, "use_bidirectional_attention", false))
        config_fail(c, "use_bidirectional_attention", "true", "a causal model");
    d->embed_by = sqrtf((float)b.s.hidden);
    d->glu.act = GLU_GELU_TANH;
    d->window = config_windows(c, b.s.n_layer, 0, 0, &m->a);
    return decoder_bind(m, c, &b, &rope, norm_rows, N_ROWS(norm_rows), dg);
}

static const char *const hf_types[] = {"gemma", NULL};
static const char *const gguf_archs[] = {"gemma", NULL};
const family family_gemma1 = {"gemma1", hf_types, gguf_archs, gemma1_open, decoder_forward, true};
