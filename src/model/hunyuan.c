/* Hunyuan, dense (Tencent 2025): a Llama block with RMS norms on the heads of q and k after rotation,
   not before it.  A rotary block with `alpha` stretches the base: theta · alpha^(d / (d - 2)); GGUF
   files hold that product. */
#include "base/diag.h"
#include "base/fmath.h"
#include "model/decoder.h"
#include "model/rows.h"

static const weight_row head_norm_rows[] = {
    {L(attn.q_norm), "model.layers.%d.self_attn.query_layernorm", "blk.%d.attn_q_norm", DIM_ONE,
     DIM_HEAD, 0},
    {L(attn.k_norm), "model.layers.%d.self_attn.key_layernorm", "blk.%d.attn_k_norm", DIM_ONE,
     DIM_HEAD, 0},
};

static const config_defaults hunyuan_defaults = {
    .n_head = 32, .vocab = 290943, .ctx = 2048, .eps = 1e-5f, .bias = W_BIAS_ATTN};

static rope_params read_rope(config *c, const base_config *b, arena *a)
{
    rope_params p = config_rope(c, b, NULL, 10000.0, a);
    const double alpha = config_num(c, "rope_scaling.alpha", NULL, 1e-3, 1e6,
                                    config_num(c, "rope_parameters.alpha", NULL, 1e-3, 1e6, 0));
    if (p.kind != ROPE_DYNAMIC || !(alpha > 0) || p.dim <= 2) return p;
    p.theta *= fmath_exp(fmath_log(alpha) * p.dim / (p.dim - 2));
    p.kind = ROPE_DEFAULT;
    return p;
}

static cairn_status hunyuan_open(model *m, config *c, cairn_diag *dg)
{
    const base_config b = config_base(c, &hunyuan_defaults);
    const rope_params rope = read_rope(c, &b, &m->a);
    decoder *d;
    TRY(decoder_begin(m, c, &b, &d, dg));
    config_only_one(c, "hidden_act", "silu");
    if (!config_bool(c, "use_qk_norm", true))
        config_fail(c, "use_qk_norm", "false", "norms on q and k");
    if (config_bool(c, "use_cla", false))
        config_fail(c, "use_cla", "true", "keys and values of every layer's own");
    (void)config_int(c, "num_experts", NULL, 0, 1, 1);
    d->window = config_windows(c, b.s.n_layer, 0, 0, &m->a);
    TRY(decoder_bind(m, c, &b, &rope, decoder_pre_norms, DECODER_PRE_NORMS, dg));
    for (int32_t i = 0; i < b.s.n_layer; i++) {
        TRY(weights_bind(&m->w, head_norm_rows, N_ROWS(head_norm_rows), i, &d->layer[i], dg));
        d->layer[i].attn.rope_first = true;
    }
    return CAIRN_OK;
}

static const char *const hf_types[] = {"hunyuan_v1_dense", NULL};
static const char *const gguf_archs[] = {"hunyuan-dense", NULL};
const family family_hunyuan = {"hunyuan",    hf_types,        gguf_archs,
                               hunyuan_open, decoder_forward, true};
