/* What decoders of one attention and one MLP a layer share: opening, the names of their matrices, and
   the forward pass (Touvron et al. 2023, "LLaMA", section 2.2) with the norms and multipliers that a
   family has.  What a family adds or does in another order stands in its own file. */
#include <math.h>

#include "model/decoder.h"

#include "base/diag.h"
#include "model/rows.h"

#define TOP(f) offsetof(decoder, f)
const weight_row decoder_embed_row = {TOP(tok_embed), "model.embed_tokens", "token_embd",
                                      DIM_VOCAB,      DIM_HIDDEN,           W_GATHER};
static const weight_row out_norm_row = {TOP(out_norm), "model.norm", "output_norm",
                                        DIM_ONE,       DIM_HIDDEN,   0};
static const weight_row head_rows[] = {
    {TOP(lm_head), "lm_head", "output", DIM_VOCAB, DIM_HIDDEN, W_HEAD},
};
#undef TOP

const weight_row decoder_pre_norms[DECODER_PRE_NORMS] = {
    {L(attn_norm), HF("input_layernorm"), GG("attn_norm"), DIM_ONE, DIM_HIDDEN, 0},
    {L(mlp_norm), HF("post_attention_layernorm"), GG("ffn_norm"), DIM_ONE, DIM_HIDDEN, 0},
};
const weight_row decoder_head_norms[DECODER_HEAD_NORMS] = {
    {L(attn.q_norm), HF("self_attn.q_norm"), GG("attn_q_norm"), DIM_ONE, DIM_HEAD, 0},
    {L(attn.k_norm), HF("self_attn.k_norm"), GG("attn_k_norm"), DIM_ONE, DIM_HEAD, 0},
};
static const weight_split qkv_split = {
    HF("self_attn.qkv_proj"),
    GG("attn_qkv"),
    DIM_HIDDEN,
    W_BIAS_QKV,
    {{L(attn.wq), DIM_Q}, {L(attn.wk), DIM_KV}, {L(attn.wv), DIM_KV}}};
static const weight_row qkv_rows[] = {
    {L(attn.wq), HF("self_attn.q_proj"), GG("attn_q"), DIM_Q, DIM_HIDDEN, W_BIAS_QKV},
    {L(attn.wk), HF("self_attn.k_proj"), GG("attn_k"), DIM_KV, DIM_HIDDEN, W_BIAS_QKV},
    {L(attn.wv), HF("self_attn.v_proj"), GG("attn_v"), DIM_KV, DIM_HIDDEN, W_BIAS_QKV},
};
static const weight_row out_rows[] = {
    {L(attn.wo), HF("self_attn.o_proj"), GG("attn_output"), DIM_HIDDEN, DIM_Q,
     W_BIAS_OUT | W_ATTN_OUT},
};
/* GGUF files call the pair ffn_up, and have no ffn_gate. */
static const weight_split gate_up_split = {HF("mlp.gate_up_proj"),
                                           GG("ffn_up"),
                                           DIM_HIDDEN,
                                           W_BIAS_MLP,
                                           {{L(mlp.gate), DIM_FFN}, {L(mlp.up), DIM_FFN}}};
static const weight_row gate_up_rows[] = {
    {L(mlp.gate), HF("mlp.gate_proj"), GG("ffn_gate"), DIM_FFN, DIM_HIDDEN, W_BIAS_MLP},
    {L(mlp.up), HF("mlp.up_proj"), GG("ffn_up"), DIM_FFN, DIM_HIDDEN, W_BIAS_MLP},
};
static const weight_row down_rows[] = {
    {L(mlp.down), HF("mlp.down_proj"), GG("ffn_down"), DIM_HIDDEN, DIM_FFN,
     W_BIAS_MLP | W_FFN_DOWN},
};
#define M(f)  offsetof(decoder_layer, moe.f)
#define EX(n) HF("mlp.experts." n)
#define SW(n) HF("mlp.switch_mlp." n)
const expert_row decoder_expert_rows[DECODER_EXPERT_ROWS] = {
    {M(gate),
     {EXPERT_WHOLE(EX("%d.gate_proj.weight")), EXPERT_WHOLE(SW("gate_proj.weight")),
      EXPERT_PART(EX("gate_up_proj"), 0, 2)},
     {EXPERT_WHOLE(GG("ffn_gate_exps.weight")), EXPERT_PART(GG("ffn_gate_up_exps.weight"), 0, 2)},
     DIM_EXPERT_FFN,
     DIM_HIDDEN,
     0},
    {M(up),
     {EXPERT_WHOLE(EX("%d.up_proj.weight")), EXPERT_WHOLE(SW("up_proj.weight")),
      EXPERT_PART(EX("gate_up_proj"), 1, 2)},
     {EXPERT_WHOLE(GG("ffn_up_exps.weight")), EXPERT_PART(GG("ffn_gate_up_exps.weight"), 1, 2)},
     DIM_EXPERT_FFN,
     DIM_HIDDEN,
     0},
    {M(down),
     {EXPERT_WHOLE(EX("%d.down_proj.weight")), EXPERT_WHOLE(SW("down_proj.weight")),
      EXPERT_WHOLE(EX("down_proj"))},
     {EXPERT_WHOLE(GG("ffn_down_exps.weight"))},
     DIM_HIDDEN,
     DIM_EXPERT_FFN,
     W_FFN_DOWN},
};
const weight_row decoder_router_rows[DECODER_ROUTER_ROWS] = {
    {M(router), HF("mlp.gate"), GG("ffn_gate_inp"), DIM_EXPERTS, DIM_HIDDEN, W_ROUTER},
    {M(bias), HF("mlp.gate.e_score_correction_bias"), GG("exp_probs_b.bias"), DIM_ONE, DIM_EXPERTS,
     W_BARE},
};
#define SH(n) HF("mlp.shared_experts." n)
const weight_row decoder_shared_rows[DECODER_SHARED_ROWS] = {
    {M(shared.gate), SH("gate_proj"), GG("ffn_gate_shexp"), DIM_SHARED_FFN, DIM_HIDDEN, 0},
    {M(shared.up), SH("up_proj"), GG("ffn_up_shexp"), DIM_SHARED_FFN, DIM_HIDDEN, 0},
    {M(shared.down), SH("down_proj"), GG("ffn_down_shexp"), DIM_HIDDEN, DIM_SHARED_FFN, W_FFN_DOWN},
};
#undef SH
#undef M
#undef EX
#undef SW

cairn_status decoder_begin_in(model *m, config *c, const base_config *b, decoder *d, cairn_diag *dg)
{
    TRY(c->status);
    d->layer = arena_calloc(&m->a, (size_t)b->s.n_layer, sizeof *d->layer);
    if (!d->layer) return diag_set(dg, CAIRN_E_NOMEM, "%d layers", (int)b->s.n_layer);
    d->eps = b->eps;
    d->score_scale = 1.0f / sqrtf((float)b->s.head_dim);
    d->embed_by = d->residual_by = d->logits_by = 1.0f;
    m->shape = b->s;
    m->impl = d;
    TRY(family_weights(m, b, dg));
    if (c->gguf) m->w.may_bias = W_BIAS_QKV | W_BIAS_OUT | W_BIAS_MLP;
    if (config_bool(c, "attention_bias", false)) m->w.need_bias |= b->bias & W_BIAS_ATTN;
    if (config_bool(c, "mlp_bias", false)) m->w.need_bias |= b->bias & W_BIAS_MLP;
    return CAIRN_OK;
}

cairn_status decoder_begin(model *m, config *c, const base_config *b, decoder **out, cairn_diag *dg)
{
    decoder *d = arena_calloc(&m->a, 1, sizeof *d);
    if (!d) return diag_set(dg, CAIRN_E_NOMEM, "model");
    TRY(decoder_begin_in(m, c, b, d, dg));
    *out = d;
    return CAIRN_OK;
}

/* Divisors of frequencies: one list, or two that the length of the sequence switches. */
static cairn_status rope_tables(model *m, rope_params *p, cairn_diag *dg)
{
    if (m->src->format != SOURCE_GGUF || p->dim < 2) return CAIRN_OK;
    TRY(weights_vector(&m->w, "rope_freqs.weight", p->dim / 2, &p->divisor, dg));
    TRY(weights_vector(&m->w, "rope_factors_short.weight", p->dim / 2, &p->short_div, dg));
    TRY(weights_vector(&m->w, "rope_factors_long.weight", p->dim / 2, &p->long_div, dg));
    if (!p->short_div && !p->long_div) return CAIRN_OK;
    p->kind = ROPE_LONG;
    p->attention_factor = 1; /* the file's attention_scale is all of it */
    return CAIRN_OK;
}

cairn_status decoder_rope(model *m, decoder *d, const rope_params *rope, cairn_diag *dg)
{
    rope_params p = *rope;
    TRY(rope_tables(m, &p, dg));
    TRY(family_rope(m, &p, &d->rope, dg));
    for (int32_t i = 0; i < m->shape.n_layer; i++) d->layer[i].rope = &d->rope;
    return CAIRN_OK;
}

cairn_status decoder_prepare(model *m, config *c, decoder *d, const rope_params *rope,
                             cairn_diag *dg)
{
    TRY(c->status);
    TRY(decoder_rope(m, d, rope, dg));
    return family_cache(m, d->window, dg);
}

cairn_status decoder_bind_head_as(model *m, decoder *d, bool tied, const weight_row *embed,
                                  const weight_row *norm, cairn_diag *dg)
{
    TRY(weights_bind(&m->w, embed, 1, -1, d, dg));
    TRY(weights_bind(&m->w, norm, 1, -1, d, dg));
    const bool bare = !tied && m->src->pool && m->family->may_lack_head &&
                      !weights_has(&m->w, head_rows[0].hf, head_rows[0].gguf, -1);
    if (m->both || bare) {
        m->headless = true;
        return CAIRN_OK;
    }
    if (!tied) return weights_bind(&m->w, head_rows, N_ROWS(head_rows), -1, d, dg);
    weights_tie(&m->w, d->tok_embed);
    d->lm_head = d->tok_embed;
    return CAIRN_OK;
}

cairn_status decoder_bind_head(model *m, decoder *d, bool tied, uint32_t norm_flags, cairn_diag *dg)
{
    weight_row norm = out_norm_row;
    norm.flags = norm_flags;
    return decoder_bind_head_as(m, d, tied, &decoder_embed_row, &norm, dg);
}

cairn_status decoder_bind_attn(model *m, decoder_layer *L, int32_t i, cairn_diag *dg)
{
    if (weights_has(&m->w, qkv_split.hf, qkv_split.gguf, i))
        TRY(weights_bind_split(&m->w, &qkv_split, i, L, dg));
    else
        TRY(weights_bind(&m->w, qkv_rows, N_ROWS(qkv_rows), i, L, dg));
    return weights_bind(&m->w, out_rows, N_ROWS(out_rows), i, L, dg);
}

cairn_status decoder_bind_mlp(model *m, decoder_layer *L, int32_t i, cairn_diag *dg)
{
    const bool joined = weights_has(&m->w, gate_up_split.hf, gate_up_split.gguf, i) &&
                        !weights_has(&m->w, gate_up_rows[0].hf, gate_up_rows[0].gguf, i);
    if (joined)
        TRY(weights_bind_split(&m->w, &gate_up_split, i, L, dg));
    else
        TRY(weights_bind(&m->w, gate_up_rows, N_ROWS(gate_up_rows), i, L, dg));
    return weights_bind(&m->w, down_rows, N_ROWS(down_rows), i, L, dg);
}

cairn_status decoder_bind_experts(model *m, decoder_layer *L, int32_t i, const decoder_moe *moe,
                                  cairn_diag *dg)
{
    TRY(weights_bind(&m->w, moe->row, moe->n_row, i, L, dg));
    if (moe->shared) TRY(weights_bind(&m->w, moe->shared, moe->n_shared, i, L, dg));
    return weights_bind_experts(&m->w, moe->expert, moe->n_expert, i, L, dg);
}

cairn_status decoder_bind_moe(model *m, config *c, const base_config *b, const rope_params *rope,
                              const weight_row *norms, size_t n_norms, const decoder_moe *moe,
                              cairn_diag *dg)
{
    decoder *d = m->impl;
    TRY(decoder_prepare(m, c, d, rope, dg));
    TRY(decoder_bind_head(m, d, b->tied, norms[0].flags & W_PLUS_ONE, dg));
    for (int32_t i = 0; i < m->shape.n_layer; i++) {
        TRY(weights_bind(&m->w, norms, n_norms, i, &d->layer[i], dg));
        TRY(decoder_bind_attn(m, &d->layer[i], i, dg));
        TRY(moe && moe->sparse[i] ? decoder_bind_experts(m, &d->layer[i], i, moe, dg)
                                  : decoder_bind_mlp(m, &d->layer[i], i, dg));
    }
    return CAIRN_OK;
}

cairn_status decoder_bind(model *m, config *c, const base_config *b, const rope_params *rope,
                          const weight_row *norms, size_t n_norms, cairn_diag *dg)
{
    return decoder_bind_moe(m, c, b, rope, norms, n_norms, NULL, dg);
}

attention decoder_attention(const model *m, const decoder *d)
{
    return (attention){.h = {m->shape.n_head, m->shape.n_kv_head, m->shape.head_dim},
                       .scale = d->score_scale,
                       .both = m->both,
                       .q_rope = d->q_rope};
}

val decoder_mlp(fwd *f, val x, const model *m)
{
    const decoder *d = m->impl;
    const decoder_layer *L = &d->layer[f->layer];
    if (L->moe.router) return moe(f, x, &L->moe, &d->route, &d->glu);
    if (L->mlp.gate) return glu_mlp(f, x, &L->mlp, d->glu.act);
    val h = linear(f, x, L->mlp.up);
    h = xielu(f, h, L->xielu);
    return linear(f, h, L->mlp.down);
}

/* A norm that a family lacks leaves no op. */
static val norm(fwd *f, val x, const weight *gain, float eps)
{
    return gain ? rms_norm(f, x, gain, eps) : x;
}

/* x + post(sublayer(pre(x))) */
static val residual(fwd *f, val x, const model *m, const weight *pre, decoder_sublayer sublayer,
                    const weight *post)
{
    const decoder *d = m->impl;
    val h = norm(f, x, pre, d->eps);
    h = sublayer(f, h, m);
    h = norm(f, h, post, d->eps);
    h = times(f, h, d->residual_by);
    return add(f, x, h);
}

static val attend_layer(fwd *f, val x, const model *m)
{
    const decoder *d = m->impl;
    const decoder_layer *L = &d->layer[f->layer];
    attention a = decoder_attention(m, d);
    a.window = d->window[f->layer];
    a.sinks = L->sinks;
    return gqa(f, x, &L->attn, &a, L->rope, d->eps);
}

val decoder_forward(fwd *f, const model *m)
{
    return decoder_forward_by(f, m, attend_layer, decoder_mlp);
}

val decoder_forward_by(fwd *f, const model *m, decoder_sublayer mixer, decoder_sublayer mlp)
{
    const decoder *d = m->impl;
    val x = embed(f, d->tok_embed, d->embed_by);
    tap(f, x, 0);
    for (f->layer = 0; f->layer < m->shape.n_layer; f->layer++) {
        const decoder_layer *L = &d->layer[f->layer];
        x = residual(f, x, m, L->attn_norm, mixer, L->attn_post);
        if (mlp) x = residual(f, x, m, L->mlp_norm, mlp, L->mlp_post);
        tap(f, x, f->layer + 1);
    }
    f->layer = -1;
    x = rms_norm(f, x, d->out_norm, d->eps);
    if (m->headless) return x;
    x = linear(f, x, d->lm_head);
    return times(f, x, d->logits_by);
}
