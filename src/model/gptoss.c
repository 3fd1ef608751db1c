/* gpt-oss (OpenAI 2025, "gpt-oss-120b & gpt-oss-20b model card"): biases on every projection, every
   second layer windowed, a learned sink in each head's softmax, and experts with a clamped SwiGLU
   chosen by logit and weighed by a softmax over the chosen.

   HF's unquantised experts lie with inputs first, gate and up interleaved.  Yarn's correction range
   stays fractional, which GGUF files do not say; where
   config.json does, mlx-lm rounds it all the same. */
#include "base/diag.h"
#include "model/config_moe.h"
#include "model/decoder.h"
#include "model/rows.h"

#define EX(n) HF("mlp.experts." n)
static const weight_row norm_rows[] = {
    {L(attn_norm), HF("input_layernorm"), GG("attn_norm"), DIM_ONE, DIM_HIDDEN, 0},
    {L(mlp_norm), HF("post_attention_layernorm"), GG("post_attention_norm"), DIM_ONE, DIM_HIDDEN,
     0},
};
static const weight_row moe_rows[] = {
    {L(moe.router), HF("mlp.router"), GG("ffn_gate_inp"), DIM_EXPERTS, DIM_HIDDEN,
     W_ROUTER | W_BIAS_ROUTER},
    {L(sinks), HF("self_attn.sinks"), GG("attn_sinks.weight"), DIM_ONE, DIM_HEADS, W_BARE},
};
static const expert_row expert_rows[] = {
    {L(moe.gate),
     {{EX("gate_up_proj"), 0, 2, EX("gate_up_proj_bias"), true},
      {EX("gate_proj.weight"), 0, 1, EX("gate_proj.bias"), false}},
     {{GG("ffn_gate_exps.weight"), 0, 1, GG("ffn_gate_exps.bias"), false}},
     DIM_EXPERT_FFN,
     DIM_HIDDEN,
     0},
    {L(moe.up),
     {{EX("gate_up_proj"), 1, 2, EX("gate_up_proj_bias"), true},
      {EX("up_proj.weight"), 0, 1, EX("up_proj.bias"), false}},
     {{GG("ffn_up_exps.weight"), 0, 1, GG("ffn_up_exps.bias"), false}},
     DIM_EXPERT_FFN,
     DIM_HIDDEN,
     0},
    {L(moe.down),
     {{EX("down_proj"), 0, 1, EX("down_proj_bias"), true},
      {EX("down_proj.weight"), 0, 1, EX("down_proj.bias"), false}},
     {{GG("ffn_down_exps.weight"), 0, 1, GG("ffn_down_exps.bias"), false}},
     DIM_HIDDEN,
     DIM_EXPERT_FFN,
     W_FFN_DOWN},
};
#undef EX

static const config_defaults base = {
    .n_head = 64, .n_kv_head = 8, .head_dim = 64, .vocab = 201088, .ctx = 131072, .eps = 1e-5f};
static const moe_defaults experts_of = {
    .score = ROUTE_CHOSEN, .n_expert = 128, .k = 4, .ffn = 2880, .ffn_key = "intermediate_size"};

/* A config without the block means yarn by 32 from 4,096 positions. */
static rope_params read_rope(config *c, const base_config *b, arena *a)
{
    rope_params r = config_rope(c, b, NULL, 150000.0, a);
    if (c->gguf) r.no_truncate = true;
    if (!c->gguf && !config_has(c, "rope_parameters", NULL) &&
        !config_has(c, "rope_scaling", NULL)) {
        r.kind = ROPE_YARN;
        r.factor = 32;
        r.ctx_orig = 4096;
        r.beta_fast = 32;
        r.beta_slow = 1;
        r.no_truncate = true;
    }
    return r;
}

static cairn_status gptoss_open(model *m, config *c, cairn_diag *dg)
{
    const base_config b = config_base(c, &base);
    const rope_params rope = read_rope(c, &b, &m->a);
    decoder *d;
    TRY(decoder_begin(m, c, &b, &d, dg));
    config_only_one(c, "hidden_act", "silu");
    d->glu = (glu_spec){GLU_CLAMPED, (float)config_num(c, "swiglu_alpha", NULL, 0, 1e6, 1.702),
                        (float)config_num(c, "swiglu_limit", NULL, 0, 1e6, 7.0)};
    const int32_t window =
        config_int(c, "sliding_window", "attention.sliding_window", 1, 1 << 28, 128);
    d->window = config_windows(c, b.s.n_layer, window, 2, &m->a);
    m->w.dim[DIM_HEADS] = b.s.n_head;
    config_moe(c, &experts_of, &m->w, &d->route);
    m->w.need_bias = W_BIAS_ROUTER;
    if (c->gguf || config_bool(c, "attention_bias", true))
        m->w.need_bias |= W_BIAS_QKV | W_BIAS_OUT;
    const bool *sparse = config_sparse_from(c, b.s.n_layer, NULL, 0, &m->a);
    TRY(c->status);
    const decoder_moe moe = {.sparse = sparse,
                             .row = moe_rows,
                             .n_row = N_ROWS(moe_rows),
                             .expert = expert_rows,
                             .n_expert = N_ROWS(expert_rows)};
    return decoder_bind_moe(m, c, &b, &rope, norm_rows, N_ROWS(norm_rows), &moe, dg);
}

static const char *const hf_types[] = {"gpt_oss", NULL};
static const char *const gguf_archs[] = {"gpt-oss", NULL};
const family family_gptoss = {"gptoss", hf_types, gguf_archs, gptoss_open, decoder_forward, true};
