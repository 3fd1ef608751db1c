/* Granite 4 (IBM 2025, "Granite 4.0"): a Granite block whose attention is Mamba-2's mixer in most layers, and
   whose MLP is a shared one, beside which experts may stand.  Positions are told by rotation only where
   position_embedding_type says "rope"; llama.cpp's switch for it is rope.scaling.finetuned.
   mlx-lm cuts time steps at 0.001 and 100 where the config is silent; the reference does not. */
#include <stdio.h>

#include "base/diag.h"
#include "base/str.h"
#include "model/config_hybrid.h"
#include "model/granite.h"
#include "model/mamba.h"
#include "model/rows.h"

typedef struct granite_h {
    decoder d; /* first */
    mamba_weights *mixer;
    mamba_spec spec;
    bool sparse; /* every layer has experts */
} granite_h;

/* Without experts GGUF and MLX call them the MLP. */
static const weight_row dense_rows[] = {
    {L(moe.shared.gate), HF("mlp.gate_proj"), GG("ffn_gate"), DIM_SHARED_FFN, DIM_HIDDEN, 0},
    {L(moe.shared.up), HF("mlp.up_proj"), GG("ffn_up"), DIM_SHARED_FFN, DIM_HIDDEN, 0},
    {L(moe.shared.down), HF("mlp.down_proj"), GG("ffn_down"), DIM_HIDDEN, DIM_SHARED_FFN,
     W_FFN_DOWN},
};
static const config_defaults base = {
    .n_head = 32, .vocab = 32000, .ctx = 2048, .by_layer = true, .bias = W_BIAS_ATTN};

/* All layers mix where config.json is silent; the reference's other word for its list wins, as there. */
static const uint8_t *kinds(config *c, int32_t n_layer, arena *a)
{
    static const kind_word words[] = {{"mamba", LAYER_STATE},
                                      {"linear_attention", LAYER_STATE},
                                      {"attention", LAYER_KEYS},
                                      {"full_attention", LAYER_KEYS},
                                      {NULL, 0}};
    if (c->gguf) return config_kinds_by_heads(c, n_layer, a);
    const bool other = config_has(c, "layers_block_type", NULL);
    const char *key = other ? "layers_block_type" : "layer_types";
    const uint8_t *kind = config_kinds(c, key, words, n_layer, a);
    return kind ? kind : config_kinds_all(c, LAYER_STATE, n_layer, a);
}

static bool rotates(config *c)
{
    static const char *const types[] = {"rope", "nope", NULL};
    char key[CONFIG_KEY_LEN];
    if (c->gguf)
        return meta_bool(&c->src->meta, config_key(c, NULL, "rope.scaling.finetuned", key), true);
    if (!config_has(c, "position_embedding_type", NULL)) return false;
    config_only(c, "position_embedding_type", types);
    return str_is(config_str(c, "position_embedding_type", NULL), "rope");
}

static void read_mlp(config *c, weights *w, granite_h *s)
{
    s->sparse = config_int(c, "num_local_experts", "expert_count", 0, 1 << 12, c->gguf ? 0 : 8) > 0;
    if (s->sparse) granite_experts(c, w, &s->d.route);
    w->dim[DIM_SHARED_FFN] =
        config_int(c, "shared_intermediate_size",
                   s->sparse ? "expert_shared_feed_forward_length" : "feed_forward_length", 1,
                   1 << 20, c->gguf ? 0 : 1024);
}

static cairn_status bind_mlp(model *m, const granite_h *s, decoder_layer *l, int32_t i,
                             cairn_diag *dg)
{
    weights *w = &m->w;
    const bool named = weights_has(w, dense_rows[0].hf, dense_rows[0].gguf, i);
    TRY(!s->sparse && named ? weights_bind(w, dense_rows, N_ROWS(dense_rows), i, l, dg)
                            : granite_bind_shared(w, l, i, dg));
    l->mlp = l->moe.shared; /* all of it, without experts */
    if (!s->sparse) return CAIRN_OK;
    TRY(weights_bind(w, &granite_router_row, 1, i, l, dg));
    return weights_bind_experts(w, granite_expert_rows, GRANITE_EXPERT_ROWS, i, l, dg);
}

static cairn_status bind_all(model *m, granite_h *s, bool tied, const uint8_t *kind, cairn_diag *dg)
{
    TRY(family_cache_hybrid(m, kind, mamba_n_state(&s->spec, &m->w), dg));
    TRY(decoder_bind_head(m, &s->d, tied, 0, dg));
    for (int32_t i = 0; i < m->shape.n_layer; i++) {
        decoder_layer *l = &s->d.layer[i];
        TRY(weights_bind(&m->w, decoder_pre_norms, DECODER_PRE_NORMS, i, l, dg));
        TRY(kind[i] & LAYER_KEYS ? decoder_bind_attn(m, l, i, dg)
                                 : mamba_bind(m, &s->mixer[i], i, MAMBA_MODEL_MAMBA, true, dg));
        TRY(bind_mlp(m, s, l, i, dg));
    }
    return CAIRN_OK;
}

static cairn_status granite_h_open(model *m, config *c, cairn_diag *dg)
{
    const base_config b = config_base(c, &base);
    rope_params rope = config_rope(c, &b, NULL, 10000.0, &m->a);
    granite_h *s = arena_calloc(&m->a, 1, sizeof *s);
    if (!s) return diag_set(dg, CAIRN_E_NOMEM, "model");
    TRY(decoder_begin_in(m, c, &b, &s->d, dg));
    s->mixer = arena_calloc(&m->a, (size_t)b.s.n_layer, sizeof *s->mixer);
    if (!s->mixer) return diag_set(dg, CAIRN_E_NOMEM, "%d layers", (int)b.s.n_layer);
    config_only_one(c, "hidden_act", "silu");
    granite_multipliers(c, &s->d);
    mamba_config(c, &mamba_bamba_keys, b.s.hidden, &m->w, &s->spec);
    s->spec.eps = b.eps;
    read_mlp(c, &m->w, s);
    const uint8_t *kind = kinds(c, b.s.n_layer, &m->a);
    const bool turns = rotates(c);
    TRY(c->status);
    rope.interleaved = c->gguf;
    if (turns) TRY(decoder_rope(m, &s->d, &rope, dg));
    return bind_all(m, s, b.tied, kind, dg);
}

static val sublayer(fwd *f, val x, const model *m)
{
    const granite_h *s = m->impl;
    const decoder_layer *L = &s->d.layer[f->layer];
    const attention a = decoder_attention(m, &s->d);
    return L->attn.wq ? gqa(f, x, &L->attn, &a, L->rope, s->d.eps)
                      : mamba(f, x, &s->mixer[f->layer], &s->spec);
}

static val granite_h_forward(fwd *f, const model *m)
{
    return decoder_forward_by(f, m, sublayer, decoder_mlp);
}

static const char *const hf_types[] = {"granitemoehybrid", NULL};
static const char *const gguf_archs[] = {"granitehybrid", NULL};
const family family_granite_h = {"granite_h",    hf_types,          gguf_archs,
                                 granite_h_open, granite_h_forward, true};
