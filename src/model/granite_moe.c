/* Granite 3's mixtures of experts (IBM 2024, "Granite 3.0 language models"): a Granite block whose MLP is
   experts, chosen by logit and weighed by a softmax over the chosen, beside which one that every token
   meets may stand.  Here too: the names of both, which Granite 4 has as well.

   The width of an expert is intermediate_size; GGUF files hold it as that of the MLP. */
#include "base/diag.h"
#include "base/str.h"
#include "model/config_moe.h"
#include "model/granite.h"
#include "model/rows.h"

static const weight_split shared_split = {
    HF("shared_mlp.input_linear"),
    NULL,
    DIM_HIDDEN,
    0,
    {{L(moe.shared.gate), DIM_SHARED_FFN}, {L(moe.shared.up), DIM_SHARED_FFN}}};
static const weight_row shared_out_row = {
    L(moe.shared.down), HF("shared_mlp.output_linear"), NULL, DIM_HIDDEN, DIM_SHARED_FFN,
    W_FFN_DOWN};
static const weight_row shared_rows[] = {
    {L(moe.shared.gate), NULL, GG("ffn_gate_shexp"), DIM_SHARED_FFN, DIM_HIDDEN, 0},
    {L(moe.shared.up), NULL, GG("ffn_up_shexp"), DIM_SHARED_FFN, DIM_HIDDEN, 0},
    {L(moe.shared.down), NULL, GG("ffn_down_shexp"), DIM_HIDDEN, DIM_SHARED_FFN, W_FFN_DOWN},
};
const weight_row granite_router_row = {L(moe.router),      HF("block_sparse_moe.router.layer"),
                                       GG("ffn_gate_inp"), DIM_EXPERTS,
                                       DIM_HIDDEN,         W_ROUTER};
#define EX(n) HF("block_sparse_moe." n)
const expert_row granite_expert_rows[GRANITE_EXPERT_ROWS] = {
    {L(moe.gate),
     {EXPERT_PART(EX("input_linear.weight"), 0, 2), EXPERT_PART(EX("experts.gate_up_proj"), 0, 2),
      EXPERT_WHOLE(EX("switch_mlp.gate_proj.weight"))},
     {EXPERT_WHOLE(GG("ffn_gate_exps.weight"))},
     DIM_EXPERT_FFN,
     DIM_HIDDEN,
     0},
    {L(moe.up),
     {EXPERT_PART(EX("input_linear.weight"), 1, 2), EXPERT_PART(EX("experts.gate_up_proj"), 1, 2),
      EXPERT_WHOLE(EX("switch_mlp.up_proj.weight"))},
     {EXPERT_WHOLE(GG("ffn_up_exps.weight"))},
     DIM_EXPERT_FFN,
     DIM_HIDDEN,
     0},
    {L(moe.down),
     {EXPERT_WHOLE(EX("output_linear.weight")), EXPERT_WHOLE(EX("experts.down_proj")),
      EXPERT_WHOLE(EX("switch_mlp.down_proj.weight"))},
     {EXPERT_WHOLE(GG("ffn_down_exps.weight"))},
     DIM_HIDDEN,
     DIM_EXPERT_FFN,
     W_FFN_DOWN},
};
#undef EX

static const config_defaults base = {
    .n_head = 32, .vocab = 32000, .ctx = 2048, .bias = W_BIAS_ATTN};

void granite_experts(config *c, weights *w, route_spec *out)
{
    static const moe_defaults hf = {
        .score = ROUTE_CHOSEN, .n_expert = 8, .k = 2, .ffn = 11008, .ffn_key = "intermediate_size"};
    moe_defaults e = hf;
    if (c->gguf) e.ffn = w->dim[DIM_FFN];
    config_moe(c, &e, w, out);
}

cairn_status granite_bind_shared(weights *w, decoder_layer *l, int32_t i, cairn_diag *dg)
{
    if (w->src->format == SOURCE_GGUF)
        return weights_bind(w, shared_rows, N_ROWS(shared_rows), i, l, dg);
    TRY(weights_bind_split(w, &shared_split, i, l, dg));
    return weights_bind(w, &shared_out_row, 1, i, l, dg);
}

/* 0: no expert is shared. */
static int32_t shared_width(config *c)
{
    const bool may = c->gguf || str_is(str_of(c->arch), "granitemoeshared");
    return may ? config_int(c, "shared_intermediate_size", "expert_shared_feed_forward_length", 0,
                            1 << 20, 0)
               : 0;
}

static cairn_status granite_moe_open(model *m, config *c, cairn_diag *dg)
{
    const base_config b = config_base(c, &base);
    rope_params rope = config_rope(c, &b, NULL, 10000.0, &m->a);
    decoder *d;
    TRY(decoder_begin(m, c, &b, &d, dg));
    config_only_one(c, "hidden_act", "silu");
    granite_multipliers(c, d);
    granite_rotates(c);
    d->window = config_windows(c, b.s.n_layer, 0, 0, &m->a);
    granite_experts(c, &m->w, &d->route);
    const int32_t shared = shared_width(c);
    const bool *sparse = config_sparse_from(c, b.s.n_layer, NULL, 0, &m->a);
    TRY(c->status);
    rope.interleaved = c->gguf;
    const decoder_moe moe = {.sparse = sparse,
                             .row = &granite_router_row,
                             .n_row = 1,
                             .expert = granite_expert_rows,
                             .n_expert = GRANITE_EXPERT_ROWS};
    TRY(decoder_bind_moe(m, c, &b, &rope, decoder_pre_norms, DECODER_PRE_NORMS, &moe, dg));
    m->w.dim[DIM_SHARED_FFN] = shared;
    for (int32_t i = 0; shared && i < b.s.n_layer; i++)
        TRY(granite_bind_shared(&m->w, &d->layer[i], i, dg));
    return CAIRN_OK;
}

static const char *const hf_types[] = {"granitemoe", "granitemoeshared", NULL};
static const char *const gguf_archs[] = {"granitemoe", NULL};
const family family_granite_moe = {"granite_moe",    hf_types,        gguf_archs,
                                   granite_moe_open, decoder_forward, true};
