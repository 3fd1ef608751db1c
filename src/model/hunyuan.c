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
    .n_head = 32, .vocab = 290943, .ctx = 2048, .eps = 1e-5f};

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
    static const char *const acts[] = {"silu", NULL};
    const base_config b = config_base(c, &hunyuan_defaults);
    const rope_params rope = read_rope(c, &b, &m->a);
    decoder *d;
    TRY(decoder_begin(m, c, &b, &d, dg));
    config_only(c, "hidden_act", acts);
    if (!config_bool(c, "use_qk_norm", true))
        config_fail(c, "use_qk_norm", "false", "norms on q and k");
    if (config_bool(c, "use_cla", false))
        config_fail(c, "use_cla", "true", "keys and values of every layer's own");
    (void)config_int(c, "num_experts", NULL, 0, 1, 1);
    d->window = config_windows(c, b.s.n_layer, 0, 0, &m->a);
    TRY(decoder_bind(m, c, &b, d, &rope, decoder_pre_norms, DECODER_PRE_NORMS, dg));
    for (int32_t i = 0; i < b.s.n_layer; i++)
        TRY(weights_bind(&m->w, head_norm_rows, N_ROWS(head_norm_rows), i, &d->layer[i], dg));
    return CAIRN_OK;
}

/* As gqa, but for the place of the norms. */
static val attention_of(fwd *f, val x, const decoder_layer *L, const attention *a, float eps)
{
    val q = linear(f, x, L->attn.wq);
    val k = linear(f, x, L->attn.wk);
    const val v = linear(f, x, L->attn.wv);
    q = rope(f, q, a->h.dim, L->rope);
    k = rope(f, k, a->h.dim, L->rope);
    q = rms_norm(f, q, L->attn.q_norm, eps);
    k = rms_norm(f, k, L->attn.k_norm, eps);
    const val o = attend(f, q, k, v, a);
    return linear(f, o, L->attn.wo);
}

static val hunyuan_forward(fwd *f, const model *m)
{
    const decoder *d = m->impl;
    const attention a = decoder_attention(m, d);
    val x = embed(f, d->tok_embed, 1.0f);
    tap(f, x, 0);
    for (f->layer = 0; f->layer < m->shape.n_layer; f->layer++) {
        const decoder_layer *L = &d->layer[f->layer];
        val h = rms_norm(f, x, L->attn_norm, d->eps);
        h = attention_of(f, h, L, &a, d->eps);
        x = add(f, x, h);
        h = rms_norm(f, x, L->mlp_norm, d->eps);
        h = glu_mlp(f, h, &L->mlp, GLU_SILU);
        x = add(f, x, h);
        tap(f, x, f->layer + 1);
    }
    f->layer = -1;
    x = rms_norm(f, x, d->out_norm, d->eps);
    return linear(f, x, d->lm_head);
}

static const char *const hf_types[] = {"hunyuan_v1_dense", NULL};
static const char *const gguf_archs[] = {"hunyuan-dense", NULL};
const family family_hunyuan = {"hunyuan", hf_types, gguf_archs, hunyuan_open, hunyuan_forward};
