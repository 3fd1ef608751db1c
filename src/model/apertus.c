/* Apertus (Hernández-Cano et al. 2025, "Apertus", section 2): a Llama block with RMS norms on the heads
   of q and k and an MLP without a gate, down · xIELU(up x), whose two slopes are learned a layer
   (Huang and Schlag 2024).  HF files hold the numbers of xIELU as tensors, GGUF files as metadata;
   both before softplus.  mlx-lm does not
   scale rotation where a config is silent. */
#include "base/diag.h"
#include "base/fmath.h"
#include "model/decoder.h"
#include "model/rows.h"

typedef struct numbers {
    const weight *alpha_p, *alpha_n, *beta, *eps;
} numbers;

static const weight_row layer_rows[] = {
    {L(attn_norm), HF("attention_layernorm"), GG("attn_norm"), DIM_ONE, DIM_HIDDEN, 0},
    {L(mlp_norm), HF("feedforward_layernorm"), GG("ffn_norm"), DIM_ONE, DIM_HIDDEN, 0},
    {L(mlp.up), HF("mlp.up_proj"), GG("ffn_up"), DIM_FFN, DIM_HIDDEN, 0},
    {L(mlp.down), HF("mlp.down_proj"), GG("ffn_down"), DIM_HIDDEN, DIM_FFN, W_FFN_DOWN},
};
#define A(f) offsetof(numbers, f)
static const weight_row number_rows[] = {
    {A(alpha_p), HF("mlp.act_fn.alpha_p"), NULL, DIM_ONE, DIM_ONE, W_BARE},
    {A(alpha_n), HF("mlp.act_fn.alpha_n"), NULL, DIM_ONE, DIM_ONE, W_BARE},
    {A(beta), HF("mlp.act_fn.beta"), NULL, DIM_ONE, DIM_ONE, W_BARE | W_OPTIONAL},
    {A(eps), HF("mlp.act_fn.eps"), NULL, DIM_ONE, DIM_ONE, W_BARE | W_OPTIONAL},
};
#undef A

static const config_defaults apertus_defaults = {
    .n_head = 32, .vocab = 131072, .ctx = 65536, .eps = 1e-5f, .bias = W_BIAS_ATTN};

/* A config without rotary parameters means Llama 3's scaling of these numbers. */
static rope_params read_rope(config *c, const base_config *b, arena *a)
{
    rope_params p = config_rope(c, b, NULL, 12e6, a);
    if (c->gguf || config_has(c, "rope_parameters", NULL) || config_has(c, "rope_scaling", NULL))
        return p;
    return (rope_params){.kind = ROPE_LLAMA3,
                         .theta = 12e6,
                         .dim = p.dim,
                         .factor = 8,
                         .ctx = p.ctx,
                         .ctx_orig = 8192,
                         .low_freq = 1,
                         .high_freq = 4};
}

/* log(1 + e^x) */
static double softplus(double x)
{
    if (x > 30) return x;
    return x > -30 ? fmath_log(1.0 + fmath_exp(x)) : 0;
}

static xielu_params effective(double alpha_p, double alpha_n, double beta, double eps)
{
    return (xielu_params){.alpha_p = (float)softplus(alpha_p),
                          .alpha_n = (float)(beta + softplus(alpha_n)),
                          .beta = (float)beta,
                          .eps = (float)eps};
}

/* Number i of a list with one a layer, or the one number for all. */
static double listed(config *c, const char *key, int32_t i)
{
    meta list = {0}, m;
    const bool found = meta_get(&c->src->meta, key, &list);
    m = list;
    if (found && (list.type != META_ARR || meta_at(&c->src->meta, &list, (size_t)i, &m)) &&
        m.type == META_FLOAT)
        return m.u.f;
    config_fail(c, key, found ? "another list" : "missing", "one number a layer");
    return 0;
}

static cairn_status bind_numbers(model *m, config *c, int32_t i, xielu_params *out, cairn_diag *dg)
{
    numbers n;
    if (c->gguf) {
        const double p = listed(c, "xielu.alpha_p", i), q = listed(c, "xielu.alpha_n", i);
        const double beta = listed(c, "xielu.beta", i), eps = listed(c, "xielu.eps", i);
        *out = effective(p, q, beta, eps);
        return c->status;
    }
    TRY(weights_bind(&m->w, number_rows, N_ROWS(number_rows), i, &n, dg));
    *out = effective((double)n.alpha_p->f32[0], (double)n.alpha_n->f32[0],
                     n.beta ? (double)n.beta->f32[0] : 0.5, n.eps ? (double)n.eps->f32[0] : -1e-6);
    return CAIRN_OK;
}

static cairn_status apertus_open(model *m, config *c, cairn_diag *dg)
{
    const base_config b = config_base(c, &apertus_defaults);
    const rope_params rope = read_rope(c, &b, &m->a);
    decoder *d;
    TRY(decoder_begin(m, c, &b, &d, dg));
    config_only_one(c, "hidden_act", "xielu");
    config_switch(c, "qk_norm", true);
    config_switch(c, "post_norm", false);
    d->window = config_windows(c, b.s.n_layer, 0, 0, &m->a);
    xielu_params *act = arena_calloc(&m->a, (size_t)b.s.n_layer, sizeof *act);
    if (!act) return diag_set(dg, CAIRN_E_NOMEM, "%d layers", (int)b.s.n_layer);
    TRY(decoder_prepare(m, c, d, &rope, dg));
    TRY(decoder_bind_head(m, d, b.tied, 0, dg));
    for (int32_t i = 0; i < b.s.n_layer; i++) {
        TRY(decoder_bind_attn(m, &d->layer[i], i, dg));
        TRY(weights_bind(&m->w, decoder_head_norms, DECODER_HEAD_NORMS, i, &d->layer[i], dg));
        TRY(weights_bind(&m->w, layer_rows, N_ROWS(layer_rows), i, &d->layer[i], dg));
        TRY(bind_numbers(m, c, i, &act[i], dg));
        d->layer[i].xielu = &act[i];
    }
    return CAIRN_OK;
}

static const char *const hf_types[] = {"apertus", NULL};
static const char *const gguf_archs[] = {"apertus", NULL};
const family family_apertus = {"apertus",    hf_types,        gguf_archs,
                               apertus_open, decoder_forward, true};
