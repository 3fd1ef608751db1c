/* Qwen 2 and Qwen 3 with experts (Yang et al. 2024, "Qwen2 technical report", section 2.2.2; Yang et al.
   2025, "Qwen3 technical report"): their dense blocks, the MLP a mixture of small experts, softmax over
   all of them.  Qwen 2 has one shared expert beside, weighed by a sigmoid; its weights are not
   normalised unless the config says so. */
#include "model/qwen_moe.h"
#include "base/diag.h"
#include "base/str.h"
#include "model/config_moe.h"
#include "model/rows.h"

#define M(f)  offsetof(decoder_layer, moe.f)
#define ML(n) HF("mlp." n)
const weight_row qwen_router_rows[QWEN_ROUTER_ROWS] = {
    {M(router), ML("gate"), GG("ffn_gate_inp"), DIM_EXPERTS, DIM_HIDDEN, W_ROUTER},
};
const weight_row qwen_shared_rows[QWEN_SHARED_ROWS] = {
    {M(shared_gate), ML("shared_expert_gate"), GG("ffn_gate_inp_shexp"), DIM_UNIT, DIM_HIDDEN,
     W_ROUTER},
    {M(shared.gate), ML("shared_expert.gate_proj"), GG("ffn_gate_shexp"), DIM_SHARED_FFN,
     DIM_HIDDEN, 0},
    {M(shared.up), ML("shared_expert.up_proj"), GG("ffn_up_shexp"), DIM_SHARED_FFN, DIM_HIDDEN, 0},
    {M(shared.down), ML("shared_expert.down_proj"), GG("ffn_down_shexp"), DIM_HIDDEN,
     DIM_SHARED_FFN, W_FFN_DOWN},
};
#undef M
#undef ML

static const config_defaults qwen2_base = {
    .n_head = 16, .n_kv_head = 16, .vocab = 151936, .ctx = 32768};
static const config_defaults qwen3_base = {
    .n_head = 32, .n_kv_head = 4, .vocab = 151936, .ctx = 32768, .bias = W_BIAS_ATTN};
static const moe_defaults qwen2_experts = {
    .n_expert = 60, .k = 4, .ffn = 1408, .shared_ffn = 5632, .normalise_key = "norm_topk_prob"};
static const moe_defaults qwen3_experts = {
    .n_expert = 128, .k = 8, .ffn = 768, .normalise_key = "norm_topk_prob"};

/* Switched on by use_sliding_window: every layer of Qwen 3; of Qwen 2 those that layer_types names, or
   every second one before max_window_layers. */
static const int32_t *windows(config *c, int32_t n_layer, bool third, arena *a)
{
    const bool on =
        config_bool(c, "use_sliding_window", false) && !config_null(c, "sliding_window");
    const int32_t window = on ? config_int(c, "sliding_window", NULL, 1, 1 << 28, 4096) : 0;
    const int32_t end = config_int(c, "max_window_layers", NULL, 0, 1 << 12, 28);
    int32_t *w = arena_calloc(a, (size_t)n_layer, sizeof *w);
    if (!third && config_has(c, "layer_types", NULL))
        return config_windows(c, n_layer, window, 0, a);
    for (int32_t i = 0; w && i < n_layer; i++)
        if (third || (i % 2 == 0 && i < end)) w[i] = window;
    return w;
}

static void bias_policy(config *c, bool third, weights *w)
{
    if (third) return;
    if (c->gguf)
        w->may_bias = W_BIAS_QKV;
    else
        w->need_bias = config_bool(c, "qkv_bias", true) ? W_BIAS_QKV : 0;
}

static cairn_status qwen_moe_open(model *m, config *c, cairn_diag *dg)
{
    const bool third = str_is(str_of(c->arch), "qwen3_moe") || str_is(str_of(c->arch), "qwen3moe");
    const base_config b = config_base(c, third ? &qwen3_base : &qwen2_base);
    const rope_params rope = config_rope(c, &b, NULL, 10000.0, &m->a);
    moe_defaults e = third ? qwen3_experts : qwen2_experts;
    decoder *d;
    TRY(decoder_begin(m, c, &b, &d, dg));
    e.normalise = third && c->gguf; /* GGUF does not say: llama.cpp's function */
    config_only_one(c, "hidden_act", "silu");
    d->window = windows(c, b.s.n_layer, third, &m->a);
    bias_policy(c, third, &m->w);
    config_moe(c, &e, &m->w, &d->route);
    const bool *sparse = config_sparse_step(c, b.s.n_layer, &m->a);
    TRY(c->status);
    const decoder_moe moe = {.sparse = sparse,
                             .row = qwen_router_rows,
                             .n_row = QWEN_ROUTER_ROWS,
                             .expert = decoder_expert_rows,
                             .n_expert = DECODER_EXPERT_ROWS,
                             .shared = third ? NULL : qwen_shared_rows,
                             .n_shared = QWEN_SHARED_ROWS};
    TRY(decoder_bind_moe(m, c, &b, &rope, decoder_pre_norms, DECODER_PRE_NORMS, &moe, dg));
    for (int32_t i = 0; third && i < b.s.n_layer; i++)
        TRY(weights_bind(&m->w, decoder_head_norms, DECODER_HEAD_NORMS, i, &d->layer[i], dg));
    return CAIRN_OK;
}

static const char *const hf_types[] = {"qwen2_moe", "qwen3_moe", NULL};
static const char *const gguf_archs[] = {"qwen2moe", "qwen3moe", NULL};
const family family_qwen_moe = {"qwen_moe",    hf_types,        gguf_archs,
                                qwen_moe_open, decoder_forward, true};
