/* Qwen 2, 2.5 (Yang et al. 2024, "Qwen2 technical report", "Qwen2.5 technical report": biases on q, k, v)
   and Qwen 3, dense (Yang et al. 2025, "Qwen3 technical report": RMS norms on the heads of q and k, no
   biases).  Everything else is a Llama block.

   A config with use_sliding_window names its windowed layers in layer_types, or all from
   max_window_layers on. */
#include <math.h>

#include "base/diag.h"
#include "base/str.h"
#include "model/family.h"
#include "nn/blocks.h"

typedef struct qwen_layer {
    const weight *attn_norm, *mlp_norm;
    gqa_weights attn; /* with norms on q and k in Qwen 3 */
    glu_weights mlp;
} qwen_layer;

typedef struct qwen {
    const weight *tok_embed, *out_norm, *lm_head;
    qwen_layer *layer;
    const int32_t *window;
    rope_spec rope;
    float eps;
} qwen;

#define TOP(f) offsetof(qwen, f)
static const weight_row top_rows[] = {
    {TOP(tok_embed), "model.embed_tokens", "token_embd", DIM_VOCAB, DIM_HIDDEN, W_GATHER},
    {TOP(out_norm), "model.norm", "output_norm", DIM_ONE, DIM_HIDDEN, 0},
};
static const weight_row head_rows[] = {
    {TOP(lm_head), "lm_head", "output", DIM_VOCAB, DIM_HIDDEN, W_HEAD},
};
#undef TOP

#define L(f)  offsetof(qwen_layer, f)
#define HF(n) "model.layers.%d." n
#define GG(n) "blk.%d." n
static const weight_row layer_rows[] = {
    {L(attn_norm), HF("input_layernorm"), GG("attn_norm"), DIM_ONE, DIM_HIDDEN, 0},
    {L(attn.wq), HF("self_attn.q_proj"), GG("attn_q"), DIM_Q, DIM_HIDDEN, W_BIAS},
    {L(attn.wk), HF("self_attn.k_proj"), GG("attn_k"), DIM_KV, DIM_HIDDEN, W_BIAS},
    {L(attn.wv), HF("self_attn.v_proj"), GG("attn_v"), DIM_KV, DIM_HIDDEN, W_BIAS},
    {L(attn.wo), HF("self_attn.o_proj"), GG("attn_output"), DIM_HIDDEN, DIM_Q, W_BIAS | W_ATTN_OUT},
    {L(attn.q_norm), HF("self_attn.q_norm"), GG("attn_q_norm"), DIM_ONE, DIM_HEAD, W_OPTIONAL},
    {L(attn.k_norm), HF("self_attn.k_norm"), GG("attn_k_norm"), DIM_ONE, DIM_HEAD, W_OPTIONAL},
    {L(mlp_norm), HF("post_attention_layernorm"), GG("ffn_norm"), DIM_ONE, DIM_HIDDEN, 0},
    {L(mlp.gate), HF("mlp.gate_proj"), GG("ffn_gate"), DIM_FFN, DIM_HIDDEN, 0},
    {L(mlp.up), HF("mlp.up_proj"), GG("ffn_up"), DIM_FFN, DIM_HIDDEN, 0},
    {L(mlp.down), HF("mlp.down_proj"), GG("ffn_down"), DIM_HIDDEN, DIM_FFN, W_FFN_DOWN},
};
#undef L
#undef HF
#undef GG
#define N(a) (sizeof(a) / sizeof((a)[0]))

static cairn_status bind(model *m, qwen *l, bool tied, cairn_diag *dg)
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

/* Windows count only when the config switches them on. */
static const int32_t *windows(config *c, int32_t n_layer, arena *a)
{
    const bool on = config_bool(c, "use_sliding_window", false);
    const int32_t window = config_int(c, "sliding_window", NULL, 1, 1 << 28, 4096);
    const int32_t first = config_int(c, "max_window_layers", NULL, 0, 1 << 12, 28);
    if (!on || config_has(c, "layer_types", NULL))
        return config_windows(c, n_layer, on ? window : 0, 0, a);
    int32_t *w = arena_calloc(a, (size_t)n_layer, sizeof *w);
    for (int32_t i = first; w && i < n_layer; i++) w[i] = window;
    return w;
}

/* What tells the generations apart must be whole: both norms or none. */
static cairn_status check_generation(const model *m, const config *c, const qwen *l, cairn_diag *dg)
{
    const bool third = str_is(str_of(c->arch), "qwen3");
    for (int32_t i = 0; i < m->shape.n_layer; i++) {
        const qwen_layer *L = &l->layer[i];
        if ((L->attn.q_norm != NULL) != third || (L->attn.k_norm != NULL) != third)
            return diag_set(dg, CAIRN_E_CORRUPT,
                            "%s: layer %d has %s norms on q and k; expected %s", m->src->path,
                            (int)i, third ? "missing" : "unknown", third ? "both" : "none");
    }
    return CAIRN_OK;
}

static cairn_status qwen_open(model *m, config *c, cairn_diag *dg)
{
    static const char *const acts[] = {"silu", NULL};
    const base_config b = config_base(c, false);
    qwen *l = arena_calloc(&m->a, 1, sizeof *l);
    if (!l) return diag_set(dg, CAIRN_E_NOMEM, "model");
    config_only(c, "hidden_act", acts);
    m->shape = b.s;
    m->impl = l;
    l->eps = b.eps;
    l->window = windows(c, b.s.n_layer, &m->a);
    const rope_params rope = config_rope(c, &b, NULL, 10000.0, &m->a);
    TRY(c->status);
    if (!l->window) return diag_set(dg, CAIRN_E_NOMEM, "layer windows");
    TRY(family_weights(m, &b, dg));
    TRY(rope_make(&rope, &m->a, &l->rope, dg));
    TRY(family_cache(m, l->window, dg));
    l->layer = arena_calloc(&m->a, (size_t)b.s.n_layer, sizeof *l->layer);
    if (!l->layer) return diag_set(dg, CAIRN_E_NOMEM, "%d layers", (int)b.s.n_layer);
    TRY(bind(m, l, b.tied, dg));
    return check_generation(m, c, l, dg);
}

static val qwen_forward(fwd *f, const model *m)
{
    const qwen *l = m->impl;
    const model_shape *s = &m->shape;
    attention a = {.h = {s->n_head, s->n_kv_head, s->head_dim},
                   .scale = 1.0f / sqrtf((float)s->head_dim)};
    val x = embed(f, l->tok_embed, 1.0f);
    tap(f, x, 0);
    for (f->layer = 0; f->layer < s->n_layer; f->layer++) {
        const qwen_layer *L = &l->layer[f->layer];
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

static const char *const hf_types[] = {"qwen2", "qwen3", NULL};
static const char *const gguf_archs[] = {"qwen2", "qwen3", NULL};
const family family_qwen = {"qwen", hf_types, gguf_archs, qwen_open, qwen_forward};
