/* The weight tables and the forward pass of pre-norm decoders (Touvron et al. 2023, "LLaMA", section
   2.2): what a family adds to them stands in its own file. */
#include <math.h>

#include "model/decoder.h"

#include "base/diag.h"

#define TOP(f) offsetof(decoder, f)
static const weight_row top_rows[] = {
    {TOP(tok_embed), "model.embed_tokens", "token_embd", DIM_VOCAB, DIM_HIDDEN, W_GATHER},
    {TOP(out_norm), "model.norm", "output_norm", DIM_ONE, DIM_HIDDEN, 0},
};
static const weight_row head_rows[] = {
    {TOP(lm_head), "lm_head", "output", DIM_VOCAB, DIM_HIDDEN, W_HEAD},
};
#undef TOP

#define L(f)  offsetof(decoder_layer, f)
#define HF(n) "model.layers.%d." n
#define GG(n) "blk.%d." n
static const weight_row layer_rows[] = {
    {L(attn_norm), HF("input_layernorm"), GG("attn_norm"), DIM_ONE, DIM_HIDDEN, 0},
    {L(attn.wq), HF("self_attn.q_proj"), GG("attn_q"), DIM_Q, DIM_HIDDEN, W_BIAS_QKV},
    {L(attn.wk), HF("self_attn.k_proj"), GG("attn_k"), DIM_KV, DIM_HIDDEN, W_BIAS_QKV},
    {L(attn.wv), HF("self_attn.v_proj"), GG("attn_v"), DIM_KV, DIM_HIDDEN, W_BIAS_QKV},
    {L(attn.wo), HF("self_attn.o_proj"), GG("attn_output"), DIM_HIDDEN, DIM_Q,
     W_BIAS_OUT | W_ATTN_OUT},
    {L(mlp_norm), HF("post_attention_layernorm"), GG("ffn_norm"), DIM_ONE, DIM_HIDDEN, 0},
    {L(mlp.gate), HF("mlp.gate_proj"), GG("ffn_gate"), DIM_FFN, DIM_HIDDEN, W_BIAS_MLP},
    {L(mlp.up), HF("mlp.up_proj"), GG("ffn_up"), DIM_FFN, DIM_HIDDEN, W_BIAS_MLP},
    {L(mlp.down), HF("mlp.down_proj"), GG("ffn_down"), DIM_HIDDEN, DIM_FFN,
     W_BIAS_MLP | W_FFN_DOWN},
};
static const weight_row head_norm_rows[] = {
    {L(attn.q_norm), HF("self_attn.q_norm"), GG("attn_q_norm"), DIM_ONE, DIM_HEAD, 0},
    {L(attn.k_norm), HF("self_attn.k_norm"), GG("attn_k_norm"), DIM_ONE, DIM_HEAD, 0},
};
#undef L
#undef HF
#undef GG
#define N(a) (sizeof(a) / sizeof((a)[0]))

cairn_status decoder_bind(model *m, decoder *d, bool tied, bool head_norms, cairn_diag *dg)
{
    d->layer = arena_calloc(&m->a, (size_t)m->shape.n_layer, sizeof *d->layer);
    if (!d->layer) return diag_set(dg, CAIRN_E_NOMEM, "%d layers", m->shape.n_layer);
    TRY(weights_bind(&m->w, top_rows, N(top_rows), -1, d, dg));
    if (tied) {
        weights_tie(&m->w, d->tok_embed);
        d->lm_head = d->tok_embed;
    } else {
        TRY(weights_bind(&m->w, head_rows, N(head_rows), -1, d, dg));
    }
    for (int32_t i = 0; i < m->shape.n_layer; i++) {
        TRY(weights_bind(&m->w, layer_rows, N(layer_rows), i, &d->layer[i], dg));
        if (head_norms)
            TRY(weights_bind(&m->w, head_norm_rows, N(head_norm_rows), i, &d->layer[i], dg));
    }
    return CAIRN_OK;
}

val decoder_forward(fwd *f, const model *m)
{
    const decoder *d = m->impl;
    const model_shape *s = &m->shape;
    attention a = {.h = {s->n_head, s->n_kv_head, s->head_dim},
                   .scale = 1.0f / sqrtf((float)s->head_dim)};
    val x = embed(f, d->tok_embed, 1.0f);
    tap(f, x, 0);
    for (f->layer = 0; f->layer < s->n_layer; f->layer++) {
        const decoder_layer *L = &d->layer[f->layer];
        val h = rms_norm(f, x, L->attn_norm, d->eps);
        a.window = d->window[f->layer];
        h = gqa(f, h, &L->attn, &a, &d->rope, d->eps);
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
