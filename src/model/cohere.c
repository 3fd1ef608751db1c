/* Command R, "cohere", and Command R7B and A, "cohere2" (Cohere 2025, "Command A", section 2): attention
   and MLP side by side on one LayerNorm without bias; pairs (2i, 2i+1) rotate; the logits are scaled.
   Of Command R every layer sees and rotates all, and R+ norms each head of q and k with gains of its
   own; later ones have windowed layers, which rotate, between full ones, which do not.  The forward pass is
   this file's own: in decoder.c's the MLP would read what attention adds, and norms are RMS norms. */
#include <string.h>

#include "base/diag.h"
#include "model/decoder.h"
#include "model/rows.h"

static const weight_row norm_rows[] = {
    {L(attn_norm), HF("input_layernorm"), GG("attn_norm"), DIM_ONE, DIM_HIDDEN, 0},
};
static const weight_row head_norm_rows[] = {
    {L(attn.q_norm), HF("self_attn.q_norm"), GG("attn_q_norm"), DIM_ONE, DIM_Q, W_FLAT},
    {L(attn.k_norm), HF("self_attn.k_norm"), GG("attn_k_norm"), DIM_ONE, DIM_KV, W_FLAT},
};

static const config_defaults cohere_defaults = {
    .n_head = 64, .vocab = 256000, .ctx = 8192, .tied = true, .bias = W_BIAS_ATTN};

/* Switches of the originals' configs that this file's forward has in one position only. */
static void check_switches(config *c)
{
    config_switch(c, "use_parallel_block", true);
    config_switch(c, "use_gated_activation", true);
    config_switch(c, "layer_norm_bias", false);
    (void)config_num(c, "rotary_pct", NULL, 1, 1, 1);
    config_only_one(c, "hidden_act", "silu");
    config_only_one(c, "position_embedding_type", "rope_gptj");
    config_only_one(c, "order_of_interleaved_layers", "local_attn_first");
}

/* Windows of Command R7B and A. */
static const int32_t *windows_of(model *m, config *c)
{
    const int32_t window =
        config_int(c, "sliding_window", "attention.sliding_window", 1, 1 << 28, 4096);
    const int32_t period = config_int(c, "sliding_window_pattern", NULL, 1, 1 << 12, 4);
    return config_windows(c, m->shape.n_layer, config_null(c, "sliding_window") ? 0 : window,
                          period, &m->a);
}

static cairn_status bind_head_norms(model *m, decoder *d, cairn_diag *dg)
{
    for (int32_t i = 0; i < m->shape.n_layer; i++) {
        d->layer[i].attn.centred = true;
        TRY(weights_bind(&m->w, head_norm_rows, N_ROWS(head_norm_rows), i, &d->layer[i], dg));
    }
    return CAIRN_OK;
}

static cairn_status cohere_open(model *m, config *c, cairn_diag *dg)
{
    const bool first = strcmp(c->arch, "cohere") == 0 || strcmp(c->arch, "command-r") == 0;
    base_config b = config_base(c, &cohere_defaults);
    rope_params rope = config_rope(c, &b, NULL, first ? 500000.0 : 10000.0, &m->a);
    decoder *d;
    if (m->src->mlx) b.tied = true; /* the layout has no head, whatever the config says */
    TRY(decoder_begin(m, c, &b, &d, dg));
    check_switches(c);
    const bool normed = c->gguf ? weights_has(&m->w, NULL, "blk.%d.attn_q_norm", 0)
                                : config_bool(c, "use_qk_norm", false);
    if (normed && !first) config_fail(c, "use_qk_norm", "true", "false in this family");
    d->eps = (float)config_num(c, "layer_norm_eps", "attention.layer_norm_epsilon", 0, 1, 1e-5);
    d->logits_by = (float)config_num(c, "logit_scale", "logit_scale", 1e-9, 1e9, 0.0625);
    d->window =
        first ? arena_calloc(&m->a, (size_t)b.s.n_layer, sizeof *d->window) : windows_of(m, c);
    rope.interleaved = true;
    TRY(decoder_bind(m, c, &b, &rope, norm_rows, N_ROWS(norm_rows), dg));
    for (int32_t i = 0; i < b.s.n_layer; i++)
        if (!first && !d->window[i]) d->layer[i].rope = NULL;
    return normed ? bind_head_norms(m, d, dg) : CAIRN_OK;
}

static val cohere_forward(fwd *f, const model *m)
{
    const decoder *d = m->impl;
    attention a = decoder_attention(m, d);
    val x = embed(f, d->tok_embed, 1.0f);
    tap(f, x, 0);
    for (f->layer = 0; f->layer < m->shape.n_layer; f->layer++) {
        const decoder_layer *L = &d->layer[f->layer];
        const val n = layer_norm(f, x, L->attn_norm, d->eps);
        a.window = d->window[f->layer];
        val h = gqa(f, n, &L->attn, &a, L->rope, d->eps);
        x = add(f, x, h);
        h = glu_mlp(f, n, &L->mlp, GLU_SILU);
        x = add(f, x, h);
        tap(f, x, f->layer + 1);
    }
    f->layer = -1;
    x = layer_norm(f, x, d->out_norm, d->eps);
    x = linear(f, x, d->lm_head);
    return scale(f, x, d->logits_by);
}

static const char *const hf_types[] = {"cohere", "cohere2", NULL};
static const char *const gguf_archs[] = {"command-r", "cohere2", NULL};
const family family_cohere = {"cohere", hf_types, gguf_archs, cohere_open, cohere_forward, false};
