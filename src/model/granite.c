/* Granite 3 (IBM 2024, "Granite 3.0 language models") and MiniCPM (Hu et al. 2024, "MiniCPM", table 7):
   a Llama block with four multipliers, of the embedding, of what each sublayer adds, of the scores and
   of the logits.  MiniCPM spells them scale_emb, scale_depth / sqrt(layers), none, and
   dim_model_base / hidden.

   GGUF files hold q and k with rows permuted, as those of Llama.  The reference of MiniCPM is its
   authors' modelling file. */
#include <math.h>

#include "base/diag.h"
#include "base/str.h"
#include "model/granite.h"

static const config_defaults granite_defaults = {
    .n_head = 32, .vocab = 32000, .ctx = 2048, .bias = W_BIAS_ATTN | W_BIAS_MLP};
static const config_defaults minicpm_defaults = {
    .n_head = 32, .vocab = 32000, .ctx = 2048, .tied = true, .bias = W_BIAS_ATTN};

static double multiplier(config *c, const char *hf, const char *gguf, double otherwise)
{
    return config_num(c, hf, gguf, 1e-9, 1e9, otherwise);
}

void granite_multipliers(config *c, decoder *d)
{
    const double score = multiplier(c, "attention_multiplier", "attention.scale",
                                    c->gguf ? (double)d->score_scale : 1);
    d->score_scale = (float)score;
    d->embed_by = (float)multiplier(c, "embedding_multiplier", "embedding_scale", 1);
    d->residual_by = (float)multiplier(c, "residual_multiplier", "residual_scale", 1);
    d->logits_by = (float)(1 / multiplier(c, "logits_scaling", "logit_scale", 1));
}

void granite_rotates(config *c)
{
    static const char finetuned[] = "rope.scaling.finetuned"; /* llama.cpp's word for it */
    char key[CONFIG_KEY_LEN];
    if (c->gguf && !meta_bool(&c->src->meta, config_key(c, NULL, finetuned, key), true))
        config_fail(c, key, "false", "layers that rotate");
}

/* Files of the older converter hold none of them: those of the 2B model hold then. */
static void read_minicpm(config *c, const model_shape *s, decoder *d)
{
    const double depth = multiplier(c, "scale_depth", NULL, c->gguf ? 1.4 : 1);
    const double base = multiplier(c, "dim_model_base", NULL, c->gguf ? 256 : 1);
    d->embed_by = (float)multiplier(c, "scale_emb", "embedding_scale", c->gguf ? 12 : 1);
    d->residual_by =
        (float)multiplier(c, NULL, "residual_scale", depth / (double)sqrtf((float)s->n_layer));
    d->logits_by = (float)(1 / multiplier(c, NULL, "logit_scale", s->hidden / base));
    if (config_has(c, "sparse_config", NULL))
        config_fail(c, "sparse_config", "present", "dense attention");
}

static cairn_status granite_open(model *m, config *c, cairn_diag *dg)
{
    const bool minicpm = str_is(str_of(c->arch), "minicpm");
    const base_config b = config_base(c, minicpm ? &minicpm_defaults : &granite_defaults);
    rope_params rope = config_rope(c, &b, NULL, 10000.0, &m->a);
    decoder *d;
    TRY(decoder_begin(m, c, &b, &d, dg));
    config_only_one(c, "hidden_act", "silu");
    if (minicpm)
        read_minicpm(c, &b.s, d);
    else {
        granite_multipliers(c, d);
        granite_rotates(c);
    }
    d->window = config_windows(c, b.s.n_layer, 0, 0, &m->a);
    rope.interleaved = c->gguf;
    return decoder_bind(m, c, &b, &rope, decoder_pre_norms, DECODER_PRE_NORMS, dg);
}

static const char *const hf_types[] = {"granite", "minicpm", NULL};
static const char *const gguf_archs[] = {"granite", "minicpm", NULL};
const family family_granite = {"granite",    hf_types,        gguf_archs,
                               granite_open, decoder_forward, true};
