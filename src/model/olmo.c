/* OLMo 2 (Walsh et al. 2024, "2 OLMo 2 furious", section 3.1) and OLMo 3: norms stand after attention
   and after the MLP, none before; q and k have norms over their whole width, all heads together.
   OLMo 3 windows three of four layers, and scaled rotation is for its full layers alone.

   Both are "olmo2" in GGUF files, which hold a window if they are of the third generation.
   Where config.json has one rope_theta it is the full layers'; mlx-lm turns the others by it too. */
#include "base/diag.h"
#include "base/str.h"
#include "model/decoder.h"
#include "model/rows.h"

static const weight_row norm_rows[] = {
    {L(attn.q_norm), HF("self_attn.q_norm"), GG("attn_q_norm"), DIM_ONE, DIM_Q, 0},
    {L(attn.k_norm), HF("self_attn.k_norm"), GG("attn_k_norm"), DIM_ONE, DIM_KV, 0},
    {L(attn_post), HF("post_attention_layernorm"), GG("post_attention_norm"), DIM_ONE, DIM_HIDDEN,
     0},
    {L(mlp_post), HF("post_feedforward_layernorm"), GG("post_ffw_norm"), DIM_ONE, DIM_HIDDEN, 0},
};

static const config_defaults olmo_defaults = {
    .n_head = 32, .vocab = 50304, .ctx = 2048, .eps = 1e-5f, .bias = W_BIAS_ATTN};

static const int32_t *windows(config *c, bool third, int32_t n_layer, arena *a)
{
    if (!third && !c->gguf) return config_windows(c, n_layer, 0, 0, a);
    const int32_t window =
        config_int(c, "sliding_window", "attention.sliding_window", 1, 1 << 28, c->gguf ? 0 : 4096);
    return config_windows(c, n_layer, config_null(c, "sliding_window") ? 0 : window, 4, a);
}

/* The rotation of windowed layers: as config.json says of their kind, else without scaling. */
static cairn_status windowed_rope(model *m, config *c, const base_config *b,
                                  const rope_params *full, rope_spec *out, cairn_diag *dg)
{
    rope_params p = {.dim = full->dim, .theta = c->gguf ? full->theta : 500000.0, .ctx = full->ctx};
    if (config_has(c, "rope_parameters.sliding_attention", NULL))
        p = config_rope(c, b, "sliding_attention", 500000.0, &m->a);
    TRY(c->status);
    return family_rope(m, &p, out, dg);
}

static cairn_status olmo_open(model *m, config *c, cairn_diag *dg)
{
    const bool third = str_is(str_of(c->arch), "olmo3");
    const base_config b = config_base(c, &olmo_defaults);
    const rope_params rope =
        config_rope(c, &b, third ? "full_attention" : NULL, third ? 500000.0 : 10000.0, &m->a);
    decoder *d;
    rope_spec *windowed = arena_calloc(&m->a, 1, sizeof *windowed);
    if (!windowed) return diag_set(dg, CAIRN_E_NOMEM, "model");
    TRY(decoder_begin(m, c, &b, &d, dg));
    config_only_one(c, "hidden_act", "silu");
    if (third && config_has(c, "rope_parameters.rope_type", NULL))
        config_fail(c, "rope_parameters", "of one kind", "one block a kind of layer");
    d->window = windows(c, third, b.s.n_layer, &m->a);
    TRY(decoder_bind(m, c, &b, &rope, norm_rows, N_ROWS(norm_rows), dg));
    TRY(windowed_rope(m, c, &b, &rope, windowed, dg));
    for (int32_t i = 0; i < b.s.n_layer; i++)
        if (d->window[i]) d->layer[i].rope = windowed;
    return CAIRN_OK;
}

static const char *const hf_types[] = {"olmo2", "olmo3", NULL};
static const char *const gguf_archs[] = {"olmo2", NULL};
const family family_olmo = {"olmo", hf_types, gguf_archs, olmo_open, decoder_forward, true};
