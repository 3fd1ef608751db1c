/* Llama 2 and 3, Mistral, and the many models of that shape (SmolLM2, Yi, ...).
   Touvron et al. 2023, "LLaMA"; Dubey et al. 2024, "The Llama 3 herd of models"; Jiang et al. 2023,
   "Mistral 7B" (every layer windowed).

   GGUF files of this architecture hold q and k with rows permuted so that rotary pairs are
   consecutive; HF files pair i with i + dim/2.  A file may carry frequency divisors (rope_freqs). */
#include <math.h>

#include "base/diag.h"
#include "base/str.h"
#include "model/family.h"
#include "nn/blocks.h"

typedef struct llama_layer {
    const weight *attn_norm, *mlp_norm;
    gqa_weights attn;
    glu_weights mlp;
} llama_layer;

typedef struct llama {
    const weight *tok_embed, *out_norm, *lm_head;
    llama_layer *layer;
    const int32_t *window;
    rope_spec rope;
    float eps;
} llama;

#define TOP(f) offsetof(llama, f)
static const weight_row top_rows[] = {
    {TOP(tok_embed), "model.embed_tokens", "token_embd", DIM_VOCAB, DIM_HIDDEN, W_GATHER},
    {TOP(out_norm), "model.norm", "output_norm", DIM_ONE, DIM_HIDDEN, 0},
};
static const weight_row head_rows[] = {
    {TOP(lm_head), "lm_head", "output", DIM_VOCAB, DIM_HIDDEN, W_HEAD},
};
#undef TOP

#define L(f)  offsetof(llama_layer, f)
#define HF(n) "model.layers.%d." n
#define GG(n) "blk.%d." n
static const weight_row layer_rows[] = {
    {L(attn_norm), HF("input_layernorm"), GG("attn_norm"), DIM_ONE, DIM_HIDDEN, 0},
    {L(attn.wq), HF("self_attn.q_proj"), GG("attn_q"), DIM_Q, DIM_HIDDEN, W_BIAS},
    {L(attn.wk), HF("self_attn.k_proj"), GG("attn_k"), DIM_KV, DIM_HIDDEN, W_BIAS},
    {L(attn.wv), HF("self_attn.v_proj"), GG("attn_v"), DIM_KV, DIM_HIDDEN, W_BIAS},
    {L(attn.wo), HF("self_attn.o_proj"), GG("attn_output"), DIM_HIDDEN, DIM_Q, W_BIAS | W_ATTN_OUT},
    {L(mlp_norm), HF("post_attention_layernorm"), GG("ffn_norm"), DIM_ONE, DIM_HIDDEN, 0},
    {L(mlp.gate), HF("mlp.gate_proj"), GG("ffn_gate"), DIM_FFN, DIM_HIDDEN, W_BIAS},
    {L(mlp.up), HF("mlp.up_proj"), GG("ffn_up"), DIM_FFN, DIM_HIDDEN, W_BIAS},
    {L(mlp.down), HF("mlp.down_proj"), GG("ffn_down"), DIM_HIDDEN, DIM_FFN, W_BIAS | W_FFN_DOWN},
};
#undef L
#undef HF
#undef GG
#define N(a) (sizeof(a) / sizeof((a)[0]))

static cairn_status bind(model *m, llama *l, bool tied, cairn_diag *dg)
{
    TRY(weights_bind(&m->w, top_rows, N(top_rows), -1, l, dg));
    if (tied) {
        weights_tie(&m->w, l->tok_embed);
        l->lm_head = l->tok_embed;
    } else {
        TRY(weights_bind(&m->w, head_rows, N(head_rows), -1, l, dg));
    }
    for (int32_t i = 0; i < m->shape.n_layer; i++)
        TRY(weights_bind(&m->w, layer_rows, N(layer_rows), i, &l->layer[i], dg));
    return CAIRN_OK;
}

static cairn_status llama_open(model *m, config *c, cairn_diag *dg)
{
    static const char *const acts[] = {"silu", NULL};
    const base_config b = config_base(c, false);
    llama *l = arena_calloc(&m->a, 1, sizeof *l);
    if (!l) return diag_set(dg, CAIRN_E_NOMEM, "model");
    config_only(c, "hidden_act", acts);
    m->shape = b.s;
    m->impl = l;
    l->eps = b.eps;
    const int32_t window =
        config_int(c, "sliding_window", "attention.sliding_window", 1, 1 << 28, 0);
    l->window = config_windows(c, b.s.n_layer, window, 0, &m->a);
    rope_params rope = config_rope(c, &b, NULL, 10000.0, &m->a);
    TRY(c->status);
    TRY(family_weights(m, &b, dg));
    rope.interleaved = c->gguf;
    TRY(weights_vector(&m->w, "rope_freqs.weight", rope.dim / 2, &rope.divisor, dg));
    TRY(rope_make(&rope, &m->a, &l->rope, dg));
    TRY(family_cache(m, l->window, dg));
    l->layer = arena_calloc(&m->a, (size_t)b.s.n_layer, sizeof *l->layer);
    if (!l->layer) return diag_set(dg, CAIRN_E_NOMEM, "%d layers", (int)b.s.n_layer);
    return bind(m, l, b.tied, dg);
}

static val llama_forward(fwd *f, const model *m)
{
    const llama *l = m->impl;
    const model_shape *s = &m->shape;
    attention a = {.h = {s->n_head, s->n_kv_head, s->head_dim},
                   .scale = 1.0f / sqrtf((float)s->head_dim)};
    val x = embed(f, l->tok_embed, 1.0f);
    tap(f, x, 0);
    for (f->layer = 0; f->layer < s->n_layer; f->layer++) {
        const llama_layer *L = &l->layer[f->layer];
        val h = rms_norm(f, x, L->attn_norm, l->eps);
        a.window = l->window[f->layer];
        h = gqa(f, h, &L->attn, &a, &l->rope, l->eps);
        x = add(f, x, h);
        h = rms_norm(f, x, L->mlp_norm, l->eps);
        h = glu_mlp(f, h, &L->mlp, GLU_SILU);
        x = add(f, x, h);
        tap(f, x, f->layer + 1);
    }
    f->layer = -1;
    x = rms_norm(f, x, l->out_norm, l->eps);
    return linear(f, x, l->lm_head);
}

static const char *const hf_types[] = {"llama", "mistral", NULL};
static const char *const gguf_archs[] = {"llama", NULL};
const family family_llama = {"llama", hf_types, gguf_archs, llama_open, llama_forward};
