/* Command R7B and A, "cohere2" (Cohere 2025, "Command A", section 2): attention and MLP side by side on
   one LayerNorm without bias; windowed layers rotate pairs (2i, 2i+1), full layers not at all; the
   logits are scaled. */
#include "base/diag.h"
#include "model/decoder.h"
#include "model/rows.h"

static const weight_row norm_rows[] = {
    {L(attn_norm), "model.layers.%d.input_layernorm", "blk.%d.attn_norm", DIM_ONE, DIM_HIDDEN, 0},
};

static const config_defaults cohere_defaults = {
    .n_head = 64, .vocab = 256000, .ctx = 8192, .tied = true};

/* Switches of the originals' configs that this file's forward has in one position only. */
static void check_switches(config *c)
{
    static const struct {
        const char *key;
        bool want;
    } switches[] = {{"use_parallel_block", true},
                    {"use_gated_activation", true},
                    {"use_qk_norm", false},
                    {"layer_norm_bias", false}};
    static const char *const positions[] = {"rope_gptj", NULL};
    static const char *const acts[] = {"silu", NULL};
    static const char *const orders[] = {"local_attn_first", NULL};
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++)
        if (config_bool(c, switches[i].key, switches[i].want) != switches[i].want)
            config_fail(c, switches[i].key, switches[i].want ? "false" : "true",
                        switches[i].want ? "true" : "false");
    (void)config_num(c, "rotary_pct", NULL, 1, 1, 1);
    config_only(c, "hidden_act", acts);
    config_only(c, "position_embedding_type", positions);
    config_only(c, "order_of_interleaved_layers", orders);
}

static cairn_status cohere_open(model *m, config *c, cairn_diag *dg)
{
    base_config b = config_base(c, &cohere_defaults);
    rope_params rope = config_rope(c, &b, NULL, 10000.0, &m->a);
    decoder *d;
    if (m->src->mlx) b.tied = true; /* the layout has no head, whatever the config says */
    TRY(decoder_begin(m, c, &b, &d, dg));
    check_switches(c);
    d->eps = (float)config_num(c, "layer_norm_eps", "attention.layer_norm_epsilon", 0, 1, 1e-5);
    d->logits_by = (float)config_num(c, "logit_scale", "logit_scale", 1e-9, 1e9, 0.0625);
    const int32_t window =
        config_int(c, "sliding_window", "attention.sliding_window", 1, 1 << 28, 4096);
    const int32_t period = config_int(c, "sliding_window_pattern", NULL, 1, 1 << 12, 4);
    d->window = config_windows(c, b.s.n_layer, config_null(c, "sliding_window") ? 0 : window,
                               period, &m->a);
    rope.interleaved = true;
    TRY(decoder_bind(m, c, &b, d, &rope, norm_rows, N_ROWS(norm_rows), dg));
    for (int32_t i = 0; i < b.s.n_layer; i++)
        if (!d->window[i]) d->layer[i].rope = NULL;
    return CAIRN_OK;
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

static const char *const hf_types[] = {"cohere2", NULL};
static const char *const gguf_archs[] = {"cohere2", NULL};
const family family_cohere = {"cohere", hf_types, gguf_archs, cohere_open, cohere_forward};
