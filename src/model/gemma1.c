/* Gemma (Mesnard et al. 2024, "Gemma", section 2): a Llama block with embeddings scaled by sqrt(hidden),
   gains stored less one in HF files, tanh-GELU, and the embedding as head. */
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
static const config_defaults gemma_defaults = {
    .n_head = 16, .n_kv_head = 16, .head_dim = 256, .vocab = 256000, .ctx = 8192, .tied = true};

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
    d->window = config_windows(c, b.s.n_layer, 0, 0, &m->a);
    return decoder_bind(m, c, &b, d, &rope, norm_rows, N_ROWS(norm_rows), dg);
}

static val gemma1_forward(fwd *f, const model *m)
{
    const decoder *d = m->impl;
    const attention a = decoder_attention(m, d);
    val x = embed(f, d->tok_embed, d->embed_by);
    tap(f, x, 0);
    for (f->layer = 0; f->layer < m->shape.n_layer; f->layer++) {
        const decoder_layer *L = &d->layer[f->layer];
        val h = rms_norm(f, x, L->attn_norm, d->eps);
        h = gqa(f, h, &L->attn, &a, L->rope, d->eps);
        x = add(f, x, h);
        h = rms_norm(f, x, L->mlp_norm, d->eps);
        h = glu_mlp(f, h, &L->mlp, GLU_GELU_TANH);
        x = add(f, x, h);
        tap(f, x, f->layer + 1);
    }
    f->layer = -1;
    x = rms_norm(f, x, d->out_norm, d->eps);
    return linear(f, x, d->lm_head);
}

static const char *const hf_types[] = {"gemma", NULL};
static const char *const gguf_archs[] = {"gemma", NULL};
const family family_gemma1 = {"gemma1", hf_types, gguf_archs, gemma1_open, gemma1_forward};
