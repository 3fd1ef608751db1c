/* Qwen3-Next and Qwen3.5, dense and with experts (Qwen team 2025, "Qwen3-Next"; Yang, Kautz and
   Hatamizadeh 2024, "Gated Delta Networks"): three of four layers are linear attention by the gated
   delta rule, the others attention whose queries bring a gate for their output.  Pre-norm blocks; a part
   of each head rotates.

   Qwen3-Next projects q, k, v and z (and b and a) with one matrix, key head after key head; Qwen3.5 has
   four.  GGUF files of Qwen3.5 hold the heads of values in another order: those of key head 0 are not
   next to each other, but n_key apart.  Norm gains are stored minus one, in HF's own files alone: MLX
   adds the one when it converts, which the shape of the convolutions tells. */
#include "base/diag.h"
#include "base/str.h"
#include "model/config_hybrid.h"
#include "model/config_moe.h"
#include "model/qwen_moe.h"
#include "model/rows.h"

typedef struct delta_weights {
    const weight *qkvz, *ba;       /* either these two */
    const weight *qkv, *z, *b, *a; /* or these four, or qkv, z and ba */
    const weight *conv, *rate,
        *bias; /* rate: minus the speed of forgetting; bias: of the time step */
    const weight *norm, *out;
} delta_weights;

typedef struct qwen_next {
    decoder d;            /* first */
    delta_weights *delta; /* [n_layer] */
    const bool *linear;   /* [n_layer] */
    delta_spec rule;
} qwen_next;

#define D(f) offsetof(delta_weights, f)
static const weight_row norm_rows[] = {
    {L(attn_norm), HF("input_layernorm"), GG("attn_norm"), DIM_ONE, DIM_HIDDEN, W_PLUS_ONE},
    {L(mlp_norm), HF("post_attention_layernorm"), GG("post_attention_norm"), DIM_ONE, DIM_HIDDEN,
     W_PLUS_ONE},
};
static const weight_row head_norm_rows[] = {
    {L(attn.q_norm), HF("self_attn.q_norm"), GG("attn_q_norm"), DIM_ONE, DIM_HEAD, W_PLUS_ONE},
    {L(attn.k_norm), HF("self_attn.k_norm"), GG("attn_k_norm"), DIM_ONE, DIM_HEAD, W_PLUS_ONE},
};
static const weight_row attn_rows[] = {
    {L(attn.wq), HF("self_attn.q_proj"), GG("attn_q"), DIM_Q_GATE, DIM_HIDDEN, W_BIAS_QKV},
    {L(attn.wk), HF("self_attn.k_proj"), GG("attn_k"), DIM_KV, DIM_HIDDEN, W_BIAS_QKV},
    {L(attn.wv), HF("self_attn.v_proj"), GG("attn_v"), DIM_KV, DIM_HIDDEN, W_BIAS_QKV},
    {L(attn.wo), HF("self_attn.o_proj"), GG("attn_output"), DIM_HIDDEN, DIM_Q,
     W_BIAS_OUT | W_ATTN_OUT},
};
#define LA(n) HF("linear_attn." n)
static const weight_row delta_rows[] = {
    {D(conv), LA("conv1d"), GG("ssm_conv1d"), DIM_KERNEL, DIM_CONV, W_CONV},
    {D(rate), LA("A_log"), GG("ssm_a"), DIM_ONE, DIM_V_HEADS, W_BARE | W_NEG_EXP},
    {D(bias), LA("dt_bias"), GG("ssm_dt.bias"), DIM_ONE, DIM_V_HEADS, W_BARE},
    {D(norm), LA("norm"), GG("ssm_norm"), DIM_ONE, DIM_V_HEAD, 0},
    {D(out), LA("out_proj"), GG("ssm_out"), DIM_HIDDEN, DIM_V_ALL, W_ATTN_OUT},
};
static const weight_row joined_rows[] = {
    {D(qkvz), LA("in_proj_qkvz"), GG("ssm_in"), DIM_IN, DIM_HIDDEN, 0},
};
static const weight_row ba_rows[] = {
    {D(ba), LA("in_proj_ba"), GG("ssm_ba"), DIM_BA, DIM_HIDDEN, 0},
};
static const weight_row qkv_z_rows[] = {
    {D(qkv), LA("in_proj_qkv"), GG("attn_qkv"), DIM_CONV, DIM_HIDDEN, 0},
    {D(z), LA("in_proj_z"), GG("attn_gate"), DIM_V_ALL, DIM_HIDDEN, 0},
};
static const weight_row b_a_rows[] = {
    {D(b), LA("in_proj_b"), GG("ssm_beta"), DIM_V_HEADS, DIM_HIDDEN, 0},
    {D(a), LA("in_proj_a"), GG("ssm_alpha"), DIM_V_HEADS, DIM_HIDDEN, 0},
};
#undef LA
#undef D

static const config_defaults next_base = {.n_head = 16,
                                          .n_kv_head = 2,
                                          .head_dim = 256,
                                          .vocab = 151936,
                                          .ctx = 32768,
                                          .ffn = 5632,
                                          .bias = W_BIAS_ATTN,
                                          .partial = 0.25f};
static const config_defaults dense_base = {.n_head = 16,
                                           .n_kv_head = 4,
                                           .head_dim = 256,
                                           .vocab = 248320,
                                           .ctx = 32768,
                                           .bias = W_BIAS_ATTN,
                                           .partial = 0.25f};
static const config_defaults sparse_base = {.n_head = 16,
                                            .n_kv_head = 2,
                                            .head_dim = 256,
                                            .vocab = 248320,
                                            .ctx = 32768,
                                            .ffn = 1,
                                            .bias = W_BIAS_ATTN,
                                            .partial = 0.25f}; /* every MLP is experts */
static const moe_defaults next_experts = {.n_expert = 512,
                                          .k = 10,
                                          .ffn = 512,
                                          .shared_ffn = 512,
                                          .normalise = true,
                                          .normalise_key = "norm_topk_prob"};
static const moe_defaults sparse_experts = {
    .n_expert = 256, .k = 8, .ffn = 512, .shared_ffn = 512, .normalise = true};

/* All but every fourth, where the file does not name them. */
static const bool *linear_layers(config *c, int32_t n_layer, arena *a)
{
    static const kind_word words[] = {{"full_attention", 0}, {"linear_attention", 1}, {NULL, 0}};
    static const char interval[] = "full_attention_interval";
    char key[CONFIG_KEY_LEN];
    const int32_t every = config_int(c, interval, interval, 1, 1 << 12, 4);
    const uint8_t *kind = config_kinds(
        c, config_key(c, "layer_types", "attention.recurrent_layers", key), words, n_layer, a);
    bool *linear = arena_calloc(a, (size_t)n_layer, sizeof *linear);
    for (int32_t i = 0; linear && i < n_layer; i++)
        linear[i] = kind ? kind[i] : (i + 1) % every != 0;
    return linear;
}

/* The numbers of the delta rule, and the dims that its tables name. */
static delta_spec read_rule(config *c, bool tiled, weights *w)
{
    enum { HEADS = 1 << 10, WIDTH = 1 << 10 };
    delta_spec r = {.tiled = tiled};
    r.n_key = config_int(c, "linear_num_key_heads", "ssm.group_count", 1, HEADS, 16);
    r.n_value = config_int(c, "linear_num_value_heads", "ssm.time_step_rank", 1, HEADS, 32);
    r.key_dim = config_int(c, "linear_key_head_dim", "ssm.state_size", 1, WIDTH, 128);
    if (c->gguf) {
        const int32_t all = config_need_int(c, NULL, "ssm.inner_size", 1, HEADS * WIDTH);
        r.value_dim = all / r.n_value;
        if (all % r.n_value)
            config_misfit(c, NULL, "ssm.inner_size", all, "a multiple of the %d heads of values",
                          (int)r.n_value);
    } else {
        r.value_dim = config_int(c, "linear_value_head_dim", NULL, 1, WIDTH, 128);
    }
    if (r.n_value % r.n_key)
        config_misfit(c, "linear_num_value_heads", "ssm.time_step_rank", r.n_value,
                      "a multiple of the %d heads of keys", (int)r.n_key);
    const int32_t keys = r.n_key * r.key_dim, values = r.n_value * r.value_dim;
    w->dim[DIM_KERNEL] =
        config_int(c, "linear_conv_kernel_dim", "ssm.conv_kernel", 1, CONV_MAX_ROWS, 4);
    w->dim[DIM_CONV] = 2 * keys + values;
    w->dim[DIM_V_HEADS] = r.n_value;
    w->dim[DIM_V_HEAD] = r.value_dim;
    w->dim[DIM_V_ALL] = values;
    w->dim[DIM_IN] = 2 * keys + 2 * values;
    w->dim[DIM_BA] = 2 * r.n_value;
    r.state = (w->dim[DIM_KERNEL] - 1) * w->dim[DIM_CONV];
    return r;
}

/* Attention layers remember keys and values; linear ones the convolution's last inputs, then a matrix a
   head of values. */
static cairn_status lay_out_cache(model *m, const qwen_next *q, cairn_diag *dg)
{
    const int32_t n = m->shape.n_layer;
    const delta_spec *r = &q->rule;
    const int64_t state = r->state + (int64_t)r->n_value * r->key_dim * r->value_dim;
    uint8_t *kind = arena_calloc(&m->a, (size_t)n, sizeof *kind);
    if (!kind) return diag_set(dg, CAIRN_E_NOMEM, "cache layout");
    if (state > INT32_MAX)
        return diag_set(dg, CAIRN_E_LIMIT,
                        "%s: the state of a linear layer has %lld numbers; expected at most %d",
                        m->src->path, (long long)state, INT32_MAX);
    for (int32_t i = 0; i < n; i++) kind[i] = q->linear[i] ? LAYER_STATE : LAYER_KEYS;
    return family_cache_hybrid(m, kind, (int32_t)state, dg);
}

/* HF stores convolutions as [columns, 1, rows], MLX as [columns, rows, 1]. */
static bool gains_lack_one(const model *m, const qwen_next *q)
{
    int32_t i = 0;
    while (i < m->shape.n_layer && !q->linear[i]) i++;
    const tensor_desc *t = i < m->shape.n_layer
                               ? weights_tensor(&m->w, delta_rows[0].hf, delta_rows[0].gguf, i)
                               : NULL;
    return !t || t->n_dim != 3 || t->dim[1] == 1;
}

static cairn_status bind_gains(model *m, const weight_row *rows, size_t n, bool plus, int32_t i,
                               decoder_layer *L, cairn_diag *dg)
{
    for (size_t k = 0; k < n; k++) {
        weight_row r = rows[k];
        if (!plus) r.flags &= ~(uint32_t)W_PLUS_ONE;
        TRY(weights_bind(&m->w, &r, 1, i, L, dg));
    }
    return CAIRN_OK;
}

static cairn_status bind_delta(model *m, int32_t i, delta_weights *D, cairn_diag *dg)
{
    weights *w = &m->w;
    TRY(weights_bind(w, delta_rows, N_ROWS(delta_rows), i, D, dg));
    if (weights_has(w, joined_rows[0].hf, joined_rows[0].gguf, i))
        TRY(weights_bind(w, joined_rows, N_ROWS(joined_rows), i, D, dg));
    else
        TRY(weights_bind(w, qkv_z_rows, N_ROWS(qkv_z_rows), i, D, dg));
    if (weights_has(w, ba_rows[0].hf, ba_rows[0].gguf, i))
        return weights_bind(w, ba_rows, N_ROWS(ba_rows), i, D, dg);
    return weights_bind(w, b_a_rows, N_ROWS(b_a_rows), i, D, dg);
}

static cairn_status bind(model *m, const base_config *b, qwen_next *q, const decoder_moe *moe,
                         cairn_diag *dg)
{
    decoder *d = &q->d;
    const bool plus = gains_lack_one(m, q);
    TRY(decoder_bind_head(m, d, b->tied, plus ? W_PLUS_ONE : 0, dg));
    for (int32_t i = 0; i < m->shape.n_layer; i++) {
        decoder_layer *L = &d->layer[i];
        TRY(bind_gains(m, norm_rows, N_ROWS(norm_rows), plus, i, L, dg));
        if (q->linear[i]) {
            TRY(bind_delta(m, i, &q->delta[i], dg));
        } else {
            TRY(bind_gains(m, head_norm_rows, N_ROWS(head_norm_rows), plus, i, L, dg));
            TRY(weights_bind(&m->w, attn_rows, N_ROWS(attn_rows), i, L, dg));
        }
        TRY(moe->sparse[i] ? decoder_bind_experts(m, L, i, moe, dg)
                           : decoder_bind_mlp(m, L, i, dg));
    }
    return CAIRN_OK;
}

static cairn_status qwen_next_open(model *m, config *c, cairn_diag *dg)
{
    const cairn_str arch = str_of(c->arch);
    const bool next = str_is(arch, "qwen3_next") || str_is(arch, "qwen3next");
    const bool sparse = next || str_find(arch, STR_LIT("moe"), 0) != SIZE_MAX;
    base_config b = config_base(c, next ? &next_base : sparse ? &sparse_base : &dense_base);
    const int32_t n_file = b.s.n_layer, n_mtp = config_skip_mtp(c, &b);
    rope_params rope = config_rope(c, &b, NULL, 10000.0, &m->a);
    qwen_next *q = arena_calloc(&m->a, 1, sizeof *q);
    if (!q) return diag_set(dg, CAIRN_E_NOMEM, "model");
    TRY(decoder_begin_in(m, c, &b, &q->d, dg));
    config_only_one(c, "hidden_act", "silu");
    config_only_one(c, "output_gate_type", "swish");
    q->linear = linear_layers(c, n_file, &m->a);
    q->rule = read_rule(c, c->gguf && !next, &m->w);
    q->delta = arena_calloc(&m->a, (size_t)b.s.n_layer, sizeof *q->delta);
    m->w.dim[DIM_Q_GATE] = 2 * m->w.dim[DIM_Q];
    if (sparse) config_moe(c, next ? &next_experts : &sparse_experts, &m->w, &q->d.route);
    const decoder_moe moe = {.sparse = sparse ? config_sparse_step(c, b.s.n_layer, &m->a)
                                              : arena_calloc(&m->a, (size_t)b.s.n_layer, 1),
                             .row = qwen_router_rows,
                             .n_row = QWEN_ROUTER_ROWS,
                             .expert = decoder_expert_rows,
                             .n_expert = DECODER_EXPERT_ROWS,
                             .shared = qwen_shared_rows,
                             .n_shared = QWEN_SHARED_ROWS};
    TRY(c->status);
    if (!q->delta || !q->linear || !moe.sparse)
        return diag_set(dg, CAIRN_E_NOMEM, "%d layers", (int)b.s.n_layer);
    TRY(decoder_rope(m, &q->d, &rope, dg));
    TRY(lay_out_cache(m, q, dg));
    weights_skip(&m->w, "mtp.");
    weights_skip_mtp(&m->w, b.s.n_layer, n_mtp);
    return bind(m, &b, q, &moe, dg);
}

/* The queries' projection brings a gate beside each head, which its sigmoid puts on the head's output. */
static val gated_attention(fwd *f, const decoder *d, const decoder_layer *L, const attention *a,
                           val x)
{
    const gqa_weights *w = &L->attn;
    const val both = linear(f, x, w->wq);
    val k = linear(f, x, w->wk);
    const val v = linear(f, x, w->wv);
    val q = slice(f, both, a->h.n, 0, a->h.dim);
    const val g = slice(f, both, a->h.n, a->h.dim, a->h.dim);
    q = rms_norm(f, q, w->q_norm, d->eps);
    k = rms_norm(f, k, w->k_norm, d->eps);
    q = rope(f, q, a->h.dim, &d->rope);
    k = rope(f, k, a->h.dim, &d->rope);
    val o = attend(f, q, k, v, a);
    o = glu(f, GLU_SIGMOID, g, o);
    return linear(f, o, w->wo);
}

typedef struct delta_inputs {
    val qkv, z, b, a;
} delta_inputs;

static delta_inputs project(fwd *f, const delta_weights *w, const delta_spec *r, val x)
{
    const int32_t n = r->n_key, each = r->n_value / n, values = each * r->value_dim;
    delta_inputs in;
    if (w->qkvz) {
        const val all = linear(f, x, w->qkvz);
        const val q = slice(f, all, n, 0, r->key_dim);
        const val k = slice(f, all, n, r->key_dim, r->key_dim);
        const val v = slice(f, all, n, 2 * r->key_dim, values);
        in.z = slice(f, all, n, 2 * r->key_dim + values, values);
        in.qkv = join(f, q, k, 1);
        in.qkv = join(f, in.qkv, v, 1);
    } else {
        in.qkv = linear(f, x, w->qkv);
        in.z = linear(f, x, w->z);
    }
    if (w->ba) {
        const val both = linear(f, x, w->ba);
        in.b = slice(f, both, n, 0, each);
        in.a = slice(f, both, n, each, each);
    } else {
        in.b = linear(f, x, w->b);
        in.a = linear(f, x, w->a);
    }
    return in;
}

static val linear_attention(fwd *f, const decoder *d, const delta_weights *w, const delta_spec *r,
                            val x)
{
    const delta_inputs in = project(f, w, r, x);
    const val qkv = conv(f, in.qkv, w->conv, true, 0);
    val y = delta(f, qkv, in.a, in.b, w->rate, w->bias, r);
    y = rms_norm(f, y, w->norm, d->eps);
    y = glu(f, GLU_SILU, in.z, y);
    return linear(f, y, w->out);
}

static val mixer(fwd *f, val x, const model *m)
{
    const qwen_next *q = m->impl;
    const attention a = decoder_attention(m, &q->d);
    return q->linear[f->layer] ? linear_attention(f, &q->d, &q->delta[f->layer], &q->rule, x)
                               : gated_attention(f, &q->d, &q->d.layer[f->layer], &a, x);
}

static val qwen_next_forward(fwd *f, const model *m)
{
    return decoder_forward_by(f, m, mixer, decoder_mlp);
}

static const char *const hf_types[] = {"qwen3_next",  "qwen3_5",          "qwen3_5_text",
                                       "qwen3_5_moe", "qwen3_5_moe_text", NULL};
static const char *const gguf_archs[] = {"qwen3next", "qwen35", "qwen35moe", NULL};
const family family_qwen_next = {"qwen_next",    hf_types,          gguf_archs,
                                 qwen_next_open, qwen_next_forward, true};
