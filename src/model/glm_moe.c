/* GLM 4.5 and later with experts (GLM-4.5 Team 2025, "GLM-4.5: agentic, reasoning, and coding
   foundation models"): a Llama block whose heads rotate in part, with norms on the heads of q and k
   where the config says so; after the first dense layers a mixture of experts routed as DeepSeek-V3
   does (sigmoid scores, a bias of choosing, groups) beside shared ones.

   Checkpoints carry a layer more, of multi-token prediction, which is not part of the model. */
#include "base/diag.h"
#include "model/config_moe.h"
#include "model/decoder.h"

static const weight_row norm_rows[] = {
    {offsetof(decoder_layer, attn_norm), "model.layers.%d.input_layernorm", "blk.%d.attn_norm",
     DIM_ONE, DIM_HIDDEN, 0},
    {offsetof(decoder_layer, mlp_norm), "model.layers.%d.post_attention_layernorm",
     "blk.%d.post_attention_norm", DIM_ONE, DIM_HIDDEN, 0},
};

static const config_defaults glm_base = {.n_head = 96,
                                         .n_kv_head = 8,
                                         .vocab = 151552,
                                         .ctx = 131072,
                                         .eps = 1e-5f,
                                         .partial = 0.5f,
                                         .bias = W_BIAS_QKV};
static const moe_defaults glm_experts = {.n_group = 1,
                                         .n_group_used = 1,
                                         .scale = 1.0f,
                                         .score = ROUTE_SIGMOID,
                                         .n_expert = 128,
                                         .k = 8,
                                         .ffn = 1408,
                                         MOE_NORMALISED};

static bool has_head_norms(config *c)
{
    if (c->gguf) return source_find(c->src, "blk.0.attn_q_norm.weight") != NULL;
    return config_bool(c, "use_qk_norm", false);
}

static cairn_status glm_moe_open(model *m, config *c, cairn_diag *dg)
{
    base_config b = config_base(c, &glm_base);
    const rope_params rope = config_rope(c, &b, NULL, 10000.0, &m->a);
    const int32_t n_mtp = config_skip_mtp(c, &b);
    decoder *d;
    TRY(decoder_begin(m, c, &b, &d, dg));
    weights_skip_mtp(&m->w, b.s.n_layer, n_mtp);
    config_only_one(c, "hidden_act", "silu");
    d->window = config_windows(c, b.s.n_layer, 0, 0, &m->a);
    m->w.may_bias &= W_BIAS_QKV;
    config_moe(c, &glm_experts, &m->w, &d->route);
    m->w.dim[DIM_SHARED_FFN] = m->w.dim[DIM_EXPERT_FFN] *
                               config_int(c, "n_shared_experts", "expert_shared_count", 1, 256, 1);
    const bool *sparse = config_sparse_from(c, b.s.n_layer, "first_k_dense_replace", 1, &m->a);
    TRY(c->status);
    const decoder_moe moe = {.sparse = sparse,
                             .row = decoder_router_rows,
                             .n_row = DECODER_ROUTER_ROWS,
                             .expert = decoder_expert_rows,
                             .n_expert = DECODER_EXPERT_ROWS,
                             .shared = decoder_shared_rows,
                             .n_shared = DECODER_SHARED_ROWS};
    TRY(decoder_bind_moe(m, c, &b, &rope, norm_rows, N_ROWS(norm_rows), &moe, dg));
    for (int32_t i = 0; i < b.s.n_layer && has_head_norms(c); i++)
        TRY(weights_bind(&m->w, decoder_head_norms, DECODER_HEAD_NORMS, i, &d->layer[i], dg));
    return CAIRN_OK;
}

static const char *const hf_types[] = {"glm4_moe", NULL};
static const char *const gguf_archs[] = {"glm4moe", NULL};
const family family_glm_moe = {"glm_moe",    hf_types,        gguf_archs,
                               glm_moe_open, decoder_forward, true};
