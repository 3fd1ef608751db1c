/* SmolLM3 (Bakouch et al. 2025): a Llama block in which every fourth layer does not rotate ("NoPE":
   Yang et al. 2025, "RoPE to NoPE and back again").

   GGUF files hold q and k with rows permuted, as those of Llama, and no list: it is every fourth. */
#include "base/diag.h"
#include "model/decoder.h"

static const config_defaults smollm3_defaults = {.n_head = 16,
                                                 .n_kv_head = 4,
                                                 .vocab = 128256,
                                                 .ctx = 32768,
                                                 .tied = true,
                                                 .bias = W_BIAS_ATTN | W_BIAS_MLP};

/* no_rope_layers holds 1 for layers that rotate. */
static bool rotates(config *c, const meta *list, int32_t every, int32_t i)
{
    meta m;
    if (list->type == META_NONE) return (i + 1) % every != 0;
    if (list->type == META_ARR && meta_at(&c->src->meta, list, (size_t)i, &m) &&
        m.type == META_INT && (m.u.i == 0 || m.u.i == 1))
        return m.u.i == 1;
    config_fail(c, "no_rope_layers", "another list", "a 0 or 1 a layer");
    return true;
}

/* The layers that do not rotate have the windows, unless layer_types says which. */
static const int32_t *windows(config *c, int32_t n_layer, const bool *rope, arena *a)
{
    const int32_t window = config_int(c, "sliding_window", NULL, 1, 1 << 28, 0);
    const bool on = config_bool(c, "use_sliding_window", false);
    if (config_has(c, "layer_types", NULL)) return config_windows(c, n_layer, window, 0, a);
    if (!on) return config_windows(c, n_layer, 0, 0, a);
    int32_t *w = arena_calloc(a, (size_t)n_layer, sizeof *w);
    for (int32_t i = 0; w && i < n_layer; i++) w[i] = rope[i] ? 0 : window;
    return w;
}

static cairn_status smollm_open(model *m, config *c, cairn_diag *dg)
{
    const base_config b = config_base(c, &smollm3_defaults);
    rope_params rope = config_rope(c, &b, NULL, 2000000.0, &m->a);
    meta list = {0};
    decoder *d;
    TRY(decoder_begin(m, c, &b, &d, dg));
    bool *on = arena_calloc(&m->a, (size_t)b.s.n_layer, sizeof *on);
    if (!on) return diag_set(dg, CAIRN_E_NOMEM, "%d layers", (int)b.s.n_layer);
    config_only_one(c, "hidden_act", "silu");
    const int32_t every = config_int(c, "no_rope_layer_interval", NULL, 1, 1 << 12, 4);
    if (!c->gguf && !meta_get(&c->src->meta, "no_rope_layers", &list)) list.type = META_NONE;
    for (int32_t i = 0; i < b.s.n_layer; i++) on[i] = rotates(c, &list, every, i);
    d->window = windows(c, b.s.n_layer, on, &m->a);
    rope.interleaved = c->gguf;
    TRY(decoder_bind(m, c, &b, &rope, decoder_pre_norms, DECODER_PRE_NORMS, dg));
    for (int32_t i = 0; i < b.s.n_layer; i++)
        if (!on[i]) d->layer[i].rope = NULL;
    return CAIRN_OK;
}

static const char *const hf_types[] = {"smollm3", NULL};
static const char *const gguf_archs[] = {"smollm3", NULL};
const family family_smollm = {"smollm", hf_types, gguf_archs, smollm_open, decoder_forward, true};
