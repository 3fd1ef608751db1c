/* Qwen 2, 2.5 (Yang et al. 2024, "Qwen2 technical report", "Qwen2.5 technical report": biases on q, k, v)
   and Qwen 3, dense (Yang et al. 2025, "Qwen3 technical report": RMS norms on the heads of q and k, no
   biases).  Everything else is a Llama block.

   A config with use_sliding_window names its windowed layers in layer_types, or all from
   max_window_layers on. */
#include "base/diag.h"
#include "base/str.h"
#include "model/decoder.h"

static const config_defaults qwen2_defaults = {.n_kv_head = 32, .ctx = 32768};
static const config_defaults qwen3_defaults = {
    .n_kv_head = 32, .head_dim = 128, .ctx = 32768, .bias = W_BIAS_ATTN};

/* Windows count only when the config switches them on. */
static const int32_t *windows(config *c, int32_t n_layer, arena *a)
{
    const bool on =
        config_bool(c, "use_sliding_window", false) && !config_null(c, "sliding_window");
    const int32_t window = config_int(c, "sliding_window", NULL, 1, 1 << 28, 4096);
    const int32_t first = config_int(c, "max_window_layers", NULL, 0, 1 << 12, 28);
    if (!on || config_has(c, "layer_types", NULL))
        return config_windows(c, n_layer, on ? window : 0, 0, a);
    int32_t *w = arena_calloc(a, (size_t)n_layer, sizeof *w);
    for (int32_t i = first; w && i < n_layer; i++) w[i] = window;
    return w;
}

/* The second generation always has biases on q, k and v, and never others. */
static void bias_policy(const config *c, bool third, weights *w)
{
    if (third) return;
    w->need_bias = W_BIAS_QKV;
    if (c->gguf) w->may_bias = 0;
}

static cairn_status qwen_open(model *m, config *c, cairn_diag *dg)
{
    const bool third = str_is(str_of(c->arch), "qwen3");
    const base_config b = config_base(c, third ? &qwen3_defaults : &qwen2_defaults);
    const rope_params rope = config_rope(c, &b, NULL, 10000.0, &m->a);
    decoder *d;
    TRY(decoder_begin(m, c, &b, &d, dg));
    config_only_one(c, "hidden_act", "silu");
    d->window = windows(c, b.s.n_layer, &m->a);
    bias_policy(c, third, &m->w);
    TRY(decoder_bind(m, c, &b, &rope, decoder_pre_norms, DECODER_PRE_NORMS, dg));
    for (int32_t i = 0; third && i < b.s.n_layer; i++)
        TRY(weights_bind(&m->w, decoder_head_norms, DECODER_HEAD_NORMS, i, &d->layer[i], dg));
    return CAIRN_OK;
}

static const char *const hf_types[] = {"qwen2", "qwen3", NULL};
static const char *const gguf_archs[] = {"qwen2", "qwen3", NULL};
const family family_qwen = {"qwen", hf_types, gguf_archs, qwen_open, decoder_forward, true};
