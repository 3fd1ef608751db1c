/* MiniMax-M2 (MiniMax 2025): a Llama block whose q and k are normed as whole vectors, over all heads,
   and whose heads rotate in part; every MLP a mixture of experts with sigmoid scores, a bias of
   choosing and normalised weights.  No expert is shared. */
#include "base/diag.h"
#include "model/config_moe.h"
#include "model/decoder.h"
#include "model/rows.h"

static const weight_row norm_rows[] = {
    {L(attn.q_norm), HF("self_attn.q_norm"), GG("attn_q_norm"), DIM_ONE, DIM_Q, 0},
    {L(attn.k_norm), HF("self_attn.k_norm"), GG("attn_k_norm"), DIM_ONE, DIM_KV, 0},
};
#define M(f)  offsetof(decoder_layer, moe.f)
#define SP(n) HF("block_sparse_moe." n)
static const weight_row router_rows[] = {
    {M(router), SP("gate"), GG("ffn_gate_inp"), DIM_EXPERTS, DIM_HIDDEN, W_ROUTER},
    {M(bias), SP("e_score_correction_bias"), GG("exp_probs_b.bias"), DIM_ONE, DIM_EXPERTS, W_BARE},
};
static const expert_row expert_rows[] = {
    {M(gate),
     {EXPERT_WHOLE(SP("experts.%d.w1.weight")), EXPERT_WHOLE(SP("switch_mlp.gate_proj.weight"))},
     {EXPERT_WHOLE(GG("ffn_gate_exps.weight"))},
     DIM_EXPERT_FFN,
     DIM_HIDDEN,
     0},
    {M(up),
     {EXPERT_WHOLE(SP("experts.%d.w3.weight")), EXPERT_WHOLE(SP("switch_mlp.up_proj.weight"))},
     {EXPERT_WHOLE(GG("ffn_up_exps.weight"))},
     DIM_EXPERT_FFN,
     DIM_HIDDEN,
     0},
    {M(down),
     {EXPERT_WHOLE(SP("experts.%d.w2.weight")), EXPERT_WHOLE(SP("switch_mlp.down_proj.weight"))},
     {EXPERT_WHOLE(GG("ffn_down_exps.weight"))},
     DIM_HIDDEN,
     DIM_EXPERT_FFN,
     W_FFN_DOWN},
};
#undef M
#undef SP

static const config_defaults minimax_base = {
    .n_head = 48, .n_kv_head = 8, .head_dim = 128, .vocab = 200064, .ctx = 196608, .partial = 1.0f};
static const moe_defaults minimax_experts = {.score = ROUTE_SIGMOID,
                                             .n_expert = 256,
                                             .k = 8,
                                             .ffn = 1536,
                                             .normalise = true,
                                             .ffn_key = "intermediate_size"};

static bool says_partial(config *c)
{
    return config_has(c, "partial_rotary_factor", NULL) ||
           config_has(c, "rope_parameters.partial_rotary_factor", NULL) ||
           config_has(c, "rope_scaling.partial_rotary_factor", NULL);
}

/* Published configs say rotary_dim, which yields to a partial_rotary_factor beside it. */
static rope_params read_rope(config *c, const base_config *b, arena *a)
{
    rope_params r = config_rope(c, b, NULL, 5000000.0, a);
    if (!c->gguf && !says_partial(c))
        r.dim = config_int(c, "rotary_dim", NULL, 2, b->s.head_dim, r.dim);
    return r;
}

static cairn_status minimax_open(model *m, config *c, cairn_diag *dg)
{
    const base_config b = config_base(c, &minimax_base);
    const rope_params rope = read_rope(c, &b, &m->a);
    decoder *d;
    TRY(decoder_begin(m, c, &b, &d, dg));
    config_only_one(c, "hidden_act", "silu");
    d->window = config_windows(c, b.s.n_layer, 0, 0, &m->a);
    config_moe(c, &minimax_experts, &m->w, &d->route);
    const bool *sparse = config_sparse_from(c, b.s.n_layer, NULL, 0, &m->a);
    TRY(c->status);
    const decoder_moe moe = {.sparse = sparse,
                             .row = router_rows,
                             .n_row = N_ROWS(router_rows),
                             .expert = expert_rows,
                             .n_expert = N_ROWS(expert_rows)};
    TRY(decoder_bind_moe(m, c, &b, &rope, decoder_pre_norms, DECODER_PRE_NORMS, &moe, dg));
    for (int32_t i = 0; i < b.s.n_layer; i++)
        TRY(weights_bind(&m->w, norm_rows, N_ROWS(norm_rows), i, &d->layer[i], dg));
    return CAIRN_OK;
}

static const char *const hf_types[] = {"minimax_m2", NULL};
static const char *const gguf_archs[] = {"minimax-m2", NULL};
const family family_minimax = {"minimax",    hf_types,        gguf_archs,
                               minimax_open, decoder_forward, true};
