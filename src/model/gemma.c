/* Gemma 2 (Riviere et al. 2024, "Gemma 2": table 1, sections 2 and 3) and Gemma 3, text
   (Kamath et al. 2025, "Gemma 3 technical report").

   Beside a Llama block: embeddings scaled by sqrt(hidden); gains stored less one in HF files; a norm
   after attention and after the MLP too; tanh-GELU; windowed layers between full ones (2: every
   other, 3: five of six).  Gemma 2 caps attention scores and logits, Gemma 3 the logits alone: its
   reference reads attn_logit_softcapping and does nothing with it.  Gemma 3 norms the heads of q and k
   and rotates its windowed layers at a base of their own.

   With use_bidirectional_attention, "gemma-embedding" in GGUF files, it is EmbeddingGemma (Vera et al. 2025,
   "EmbeddingGemma", section 2): rows see both sides, windowed ones half a window each; no logits. */
#include <math.h>

#include "base/diag.h"
#include "base/str.h"
#include "model/decoder.h"
#include "model/gemma_parts.h"
#include "model/rows.h"

typedef struct gemma {
    decoder d; /* first */
    rope_spec rope_windowed;
    float attn_cap, out_cap; /* 0: none */
} gemma;

static const weight_row norm_rows[] = {
    {L(attn_norm), HF("input_layernorm"), GG("attn_norm"), DIM_ONE, DIM_HIDDEN, W_PLUS_ONE},
    {L(attn_post), HF("post_attention_layernorm"), GG("post_attention_norm"), DIM_ONE, DIM_HIDDEN,
     W_PLUS_ONE},
    {L(mlp_norm), HF("pre_feedforward_layernorm"), GG("ffn_norm"), DIM_ONE, DIM_HIDDEN, W_PLUS_ONE},
    {L(mlp_post), HF("post_feedforward_layernorm"), GG("post_ffw_norm"), DIM_ONE, DIM_HIDDEN,
     W_PLUS_ONE},
    {L(attn.q_norm), HF("self_attn.q_norm"), GG("attn_q_norm"), DIM_ONE, DIM_HEAD, W_PLUS_ONE},
    {L(attn.k_norm), HF("self_attn.k_norm"), GG("attn_k_norm"), DIM_ONE, DIM_HEAD, W_PLUS_ONE},
};
enum { N_NORMS = N_ROWS(norm_rows) }; /* the last two are Gemma 3's */

/* GGUF files do not hold query_pre_attn_scalar: it is the head width, but hidden / heads in the
   27B models, which only their number of layers tells (46 in Gemma 2, 62 in Gemma 3). */
static float score_scale(config *c, const base_config *b, bool third)
{
    const bool wide = c->gguf && b->s.n_layer == (third ? 62 : 46);
    const double by = wide ? (double)b->s.hidden / b->s.n_head : b->s.head_dim;
    const double scalar =
        c->gguf ? by : config_num(c, "query_pre_attn_scalar", NULL, 1e-3, 1e6, 256);
    return 1.0f / sqrtf((float)scalar);
}

static const config_defaults gemma2_defaults = {.n_head = 8,
                                                .n_kv_head = 4,
                                                .head_dim = 256,
                                                .vocab = 256000,
                                                .ctx = 8192,
                                                .tied = true,
                                                .bias = W_BIAS_ATTN};
static const config_defaults gemma3_defaults = {.n_head = 8,
                                                .n_kv_head = 4,
                                                .head_dim = 256,
                                                .vocab = 262208,
                                                .ctx = 131072,
                                                .tied = true,
                                                .bias = W_BIAS_ATTN};

/* A Gemma 3 GGUF without the key has no windows; everywhere else it means 4,096. */
static int32_t window_of(config *c, bool third, bool both)
{
    if (config_null(c, "sliding_window")) return 0;
    const int32_t n = config_int(c, "sliding_window", "attention.sliding_window", 1, 1 << 28,
                                 c->gguf && third ? 0 : 4096);
    return both && n ? n / 2 + 1 : n;
}

static cairn_status gemma_open(model *m, config *c, cairn_diag *dg)
{
    static const char *const acts[] = {"gelu_pytorch_tanh", "gelu_new", NULL};
    const bool embeds = str_is(str_of(c->arch), "gemma-embedding");
    const bool third = embeds || str_starts(str_of(c->arch), STR_LIT("gemma3"));
    base_config b = config_base(c, third ? &gemma3_defaults : &gemma2_defaults);
    rope_params full, windowed;
    gemma *g = arena_calloc(&m->a, 1, sizeof *g);
    if (!g) return diag_set(dg, CAIRN_E_NOMEM, "model");
    const bool both = config_bool(c, "use_bidirectional_attention", false);
    m->both = embeds || (third && both);
    if (m->both && !embeds) m->headless_by = "use_bidirectional_attention";
    TRY(decoder_begin_in(m, c, &b, &g->d, dg));
    config_only(c, "hidden_activation", acts);
    g->d.score_scale = score_scale(c, &b, third);
    g->d.embed_by = sqrtf((float)b.s.hidden);
    g->d.glu.act = GLU_GELU_TANH;
    g->attn_cap = third ? 0 : gemma_cap(c, "attn_logit_softcapping", 50);
    g->out_cap = gemma_cap(c, "final_logit_softcapping", third ? 0 : 30);
    const int32_t period = config_int(c, "sliding_window_pattern", NULL, 1, 1 << 12, third ? 6 : 2);
    g->d.window = config_windows(c, b.s.n_layer, window_of(c, third, m->both), period, &m->a);
    if (third)
        gemma_ropes(c, &b, &m->a, &full, &windowed);
    else
        full = windowed = config_rope(c, &b, NULL, 1e4, &m->a);
    if (!third && both) config_fail(c, "use_bidirectional_attention", "true", "a causal model");
    /* MLX's files have no head, but those of Gemma 3 may, whatever the config says. */
    if (m->src->mlx) b.tied = !(third && source_find(m->src, "lm_head.weight"));
    if (c->gguf && !b.tied)
        config_fail(c, "tensor output.weight", "one",
                    "embeddings that are the head too in files of this family");
    TRY(c->status);
    TRY(family_rope(m, &windowed, &g->rope_windowed, dg));
    TRY(decoder_bind(m, c, &b, &full, norm_rows, third ? N_NORMS : N_NORMS - 2, dg));
    for (int32_t i = 0; i < b.s.n_layer; i++)
        if (g->d.window[i]) g->d.layer[i].rope = &g->rope_windowed;
    return CAIRN_OK;
}

static val sublayer(fwd *f, val x, const model *m)
{
    const gemma *g = m->impl;
    const decoder_layer *L = &g->d.layer[f->layer];
    attention a = decoder_attention(m, &g->d);
    a.softcap = g->attn_cap;
    a.window = g->d.window[f->layer];
    return gqa(f, x, &L->attn, &a, L->rope, g->d.eps);
}

static val gemma_forward(fwd *f, const model *m)
{
    const gemma *g = m->impl;
    const val x = decoder_forward_by(f, m, sublayer, decoder_mlp);
    return g->out_cap > 0 && !m->headless ? softcap(f, x, g->out_cap) : x;
}

static const char *const hf_types[] = {"gemma2", "gemma3_text", "gemma3", NULL};
static const char *const gguf_archs[] = {"gemma2", "gemma3", "gemma-embedding", NULL};
const family family_gemma = {"gemma", hf_types, gguf_archs, gemma_open, gemma_forward, true};
