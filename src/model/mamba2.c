/* Mamba-2 (Dao and Gu 2024, "Transformers are SSMs"): nothing but its mixers, each behind a norm.  The
   norm of a mixer's gated result goes by the groups of B and C, as the reference has it and
   mlx-lm has not.  Nothing tells
   positions, nothing limits them: where the config is silent a context of 2^20 is assumed. */
#include "base/diag.h"
#include "model/config_hybrid.h"
#include "model/mamba.h"

typedef struct mamba2 {
    decoder d; /* first */
    mamba_weights *mixer;
    mamba_spec spec;
} mamba2;

static const weight_row norm_row = {offsetof(decoder_layer, attn_norm),
                                    "backbone.layers.%d.norm",
                                    "blk.%d.attn_norm",
                                    DIM_ONE,
                                    DIM_HIDDEN,
                                    0};

static const config_defaults base = {.vocab = 32768,
                                     .ctx = 1 << 20,
                                     .eps = 1e-5f,
                                     .eps_key = "layer_norm_epsilon",
                                     .no_heads = true,
                                     .no_mlp = true};

static cairn_status mamba2_open(model *m, config *c, cairn_diag *dg)
{
    const base_config b = config_base(c, &base);
    mamba2 *s = arena_calloc(&m->a, 1, sizeof *s);
    if (!s) return diag_set(dg, CAIRN_E_NOMEM, "model");
    TRY(decoder_begin_in(m, c, &b, &s->d, dg));
    s->mixer = arena_calloc(&m->a, (size_t)b.s.n_layer, sizeof *s->mixer);
    if (!s->mixer) return diag_set(dg, CAIRN_E_NOMEM, "%d layers", (int)b.s.n_layer);
    config_only_one(c, "hidden_act", "silu");
    mamba_config(c, &mamba_own_keys, b.s.hidden, &m->w, &s->spec);
    s->spec.eps = b.eps;
    const uint8_t *kind = config_kinds_all(c, LAYER_STATE, b.s.n_layer, &m->a);
    TRY(c->status);
    TRY(family_cache_hybrid(m, kind, mamba_n_state(&s->spec, &m->w), dg));
    TRY(mamba_bind_head(m, &s->d, b.tied, dg));
    for (int32_t i = 0; i < b.s.n_layer; i++) {
        TRY(weights_bind(&m->w, &norm_row, 1, i, &s->d.layer[i], dg));
        TRY(mamba_bind(m, &s->mixer[i], i, MAMBA_BACKBONE_MIXER, true, dg));
    }
    return CAIRN_OK;
}

static val mixer(fwd *f, val x, const model *m)
{
    const mamba2 *s = m->impl;
    return mamba(f, x, &s->mixer[f->layer], &s->spec);
}

static val mamba2_forward(fwd *f, const model *m)
{
    return decoder_forward_by(f, m, mixer, NULL);
}

static const char *const hf_types[] = {"mamba2", NULL};
static const char *const gguf_archs[] = {"mamba2", NULL};
const family family_mamba2 = {"mamba2", hf_types, gguf_archs, mamba2_open, mamba2_forward, false};
