/* ERNIE 4.5, dense (Baidu 2025, "ERNIE 4.5 technical report"): a Llama block whose rotary pairs are
   (2i, 2i+1), with biases on every matrix of a layer where use_bias says so. */
#include "base/diag.h"
#include "model/decoder.h"

static const config_defaults ernie_defaults = {.n_head = 16,
                                               .n_kv_head = 2,
                                               .head_dim = 128,
                                               .vocab = 103424,
                                               .ctx = 131072,
                                               .tied = true,
                                               .eps = 1e-5f};

static cairn_status ernie_open(model *m, config *c, cairn_diag *dg)
{
    const base_config b = config_base(c, &ernie_defaults);
    rope_params rope = config_rope(c, &b, NULL, 500000.0, &m->a);
    decoder *d;
    TRY(decoder_begin(m, c, &b, &d, dg));
    config_only_one(c, "hidden_act", "silu");
    if (config_bool(c, "use_bias", false)) m->w.need_bias = W_BIAS_QKV | W_BIAS_OUT | W_BIAS_MLP;
    d->window = config_windows(c, b.s.n_layer, 0, 0, &m->a);
    rope.interleaved = true;
    return decoder_bind(m, c, &b, &rope, decoder_pre_norms, DECODER_PRE_NORMS, dg);
}

static const char *const hf_types[] = {"ernie4_5", NULL};
static const char *const gguf_archs[] = {"ernie4_5", NULL};
const family family_ernie = {"ernie", hf_types, gguf_archs, ernie_open, decoder_forward, true};
