/* DeepSeek-V3 and models of its shape (DeepSeek-AI 2024, "DeepSeek-V3 technical report", section 2.1);
   Mistral 4 is one (Mistral AI 2026, model card), and with an indexer that chooses what attention reads
   DeepSeek-V3.2 and GLM-5 (indexer.c).

   Latent attention: a position leaves one latent c and one rotated key in the cache, which all heads
   share.  Instead of raising c to keys and values for every head, the query is lowered to the latent
   (q·W_uk) and the result raised from it (W_uv·o): the same function, and a cache a few per cent of
   the size.  The matrices of heads meet floats in every mode.

   After the first dense layers a mixture of experts: sigmoid scores, a bias of choosing, groups,
   shared experts.  Layers of multi-token prediction are not part of the model.  Mistral 4 scores by
   softmax, has no bias, and scales its queries up with their position.  The forward pass is this file's
   own, since a layer may take the choice of positions from the layer before it. */
#include <math.h>
#include <string.h>

#include "base/diag.h"
#include "model/config_moe.h"
#include "model/decoder.h"
#include "model/indexer.h"
#include "model/rows.h"

typedef struct mla_layer {
    const weight *wq; /* or through a latent of its own: */
    const weight *wq_a, *q_norm, *wq_b;
    const weight *wkv_a, *kv_norm; /* to the latent and the rotated key */
    const weight *k_b, *v_b;       /* a matrix a head */
} mla_layer;

typedef struct deepseek {
    decoder d; /* first */
    mla_layer *mla;
    int32_t nope, rot, lora, dv;
    const indexer *index; /* NULL: attention reads everything */
    rope_spec q_rope,
        q_still;   /* of the queries: what rotates, and what only gains by its position */
    bool tempered; /* they do gain */
} deepseek;

/* What the classes of the families assume where a file is silent. */
typedef struct mla_defaults {
    config_defaults base;
    const moe_defaults *experts;
    int32_t q_lora, kv_lora, nope, dv, n_dense;
    bool mistral;
    indexer_defaults index; /* n_head 0: none */
} mla_defaults;

#define A(f)  offsetof(mla_layer, f)
#define AT(n) HF("self_attn." n)
static const weight_row q_rows[] = {
    {A(wq), AT("q_proj"), GG("attn_q"), DIM_Q, DIM_HIDDEN, 0},
};
static const weight_row q_lora_rows[] = {
    {A(wq_a), AT("q_a_proj"), GG("attn_q_a"), DIM_Q_LORA, DIM_HIDDEN, W_BIAS_QKV},
    {A(q_norm), AT("q_a_layernorm"), GG("attn_q_a_norm"), DIM_ONE, DIM_Q_LORA, 0},
    {A(wq_b), AT("q_b_proj"), GG("attn_q_b"), DIM_Q, DIM_Q_LORA, 0},
};
static const weight_row kv_rows[] = {
    {A(wkv_a), AT("kv_a_proj_with_mqa"), GG("attn_kv_a_mqa"), DIM_KV_A, DIM_HIDDEN, W_BIAS_QKV},
    {A(kv_norm), AT("kv_a_layernorm"), GG("attn_kv_a_norm"), DIM_ONE, DIM_KV_LORA, 0},
};
static const expert_row head_rows[] = {
    {A(k_b),
     {EXPERT_WHOLE(AT("embed_q.weight"))},
     {EXPERT_WHOLE(GG("attn_k_b.weight"))},
     DIM_KV_LORA,
     DIM_NOPE,
     W_ROUTER},
    {A(v_b),
     {EXPERT_WHOLE(AT("unembed_out.weight"))},
     {EXPERT_WHOLE(GG("attn_v_b.weight"))},
     DIM_VALUE,
     DIM_KV_LORA,
     W_ROUTER},
};
#undef A
static const weight_row out_rows[] = {
    {L(attn.wo), AT("o_proj"), GG("attn_output"), DIM_HIDDEN, DIM_V, W_BIAS_OUT | W_ATTN_OUT},
};
#undef AT

#define EXPERTS                                                                                    \
    .n_expert = 256, .k = 8, .ffn = 2048, .score = ROUTE_SIGMOID, .scale = 2.5f, MOE_NORMALISED
static const moe_defaults deepseek_experts = {.n_group = 8, .n_group_used = 4, EXPERTS};
static const moe_defaults glm_experts = {.n_group = 1, .n_group_used = 1, EXPERTS};
#undef EXPERTS
static const moe_defaults mistral_experts = {.score = ROUTE_SOFTMAX,
                                             .n_group = 1,
                                             .n_group_used = 1,
                                             .scale = 1.0f,
                                             .n_expert = 128,
                                             .k = 4,
                                             .ffn = 2048,
                                             MOE_NORMALISED};

enum { V3, V32, GLM_DSA, MISTRAL, N_KIND };
static const char *const hf_types[] = {[V3] = "deepseek_v3",
                                       [V32] = "deepseek_v32",
                                       [GLM_DSA] = "glm_moe_dsa",
                                       [MISTRAL] = "mistral4",
                                       [N_KIND] = NULL};
static const char *const gguf_archs[] = {[V3] = "deepseek2",
                                         [V32] = "deepseek32",
                                         [GLM_DSA] = "glm-dsa",
                                         [MISTRAL] = "mistral4",
                                         [N_KIND] = NULL};
/* base: n_head, n_kv_head, head_dim, vocab, ctx */
static const mla_defaults kinds[] = {
    [V3] = {.base = {128, 128, 64, 129280, 4096, .bias = W_BIAS_ATTN, .latent = true},
            .experts = &deepseek_experts,
            .q_lora = 1536,
            .kv_lora = 512,
            .nope = 128,
            .dv = 128,
            .n_dense = 3},
    [V32] = {.base = {128, 128, 64, 129280, 163840, .bias = W_BIAS_ATTN, .latent = true},
             .experts = &deepseek_experts,
             .q_lora = 1536,
             .kv_lora = 512,
             .nope = 128,
             .dv = 128,
             .n_dense = 3,
             .index = {.n_head = 64}},
    [GLM_DSA] = {.base = {64, 64, 64, 154880, 202752, .eps = 1e-5f, .bias = W_BIAS_ATTN,
                          .latent = true},
                 .experts = &glm_experts,
                 .q_lora = 2048,
                 .kv_lora = 512,
                 .nope = 192,
                 .dv = 256,
                 .n_dense = 3,
                 .index = {.n_head = 32, .interleaved = true, .shared = true}},
    [MISTRAL] = {.base = {32, 32, 128, 131072, 1048576, .partial = 1.0f, .bias = W_BIAS_ATTN,
                          .latent = true},
                 .experts = &mistral_experts,
                 .q_lora = 1024,
                 .kv_lora = 256,
                 .nope = 64,
                 .dv = 128,
                 .mistral = true},
};

static cairn_status read_dims(model *m, config *c, const mla_defaults *as, deepseek *s)
{
    /* Queries lowered to the latent are as wide as all heads', 2^14 at most, together: in 31 bits. */
    enum { WIDE = 1 << 20, RANK = 1 << 16 };
    int32_t *d = m->w.dim;
    s->rot = config_int(c, "qk_rope_head_dim", "rope.dimension_count", 2, 1 << 14, 64);
    s->lora = config_int(c, "kv_lora_rank", "attention.kv_lora_rank", 1, RANK, as->kv_lora);
    s->dv = config_int(c, "v_head_dim", "attention.value_length_mla", 1, 1 << 14, as->dv);
    s->nope =
        c->gguf ? config_int(c, NULL, "attention.key_length_mla", s->rot + 1, 1 << 14, 192) - s->rot
                : config_int(c, "qk_nope_head_dim", NULL, 1, 1 << 14, as->nope);
    if (!c->gguf && m->shape.n_kv_head != m->shape.n_head)
        config_fail(c, "num_key_value_heads", "fewer than there are heads", "as many as heads");
    const bool direct = config_null(c, "q_lora_rank");
    d[DIM_Q_LORA] = direct ? 0
                           : config_int(c, "q_lora_rank", "attention.q_lora_rank", 1, WIDE,
                                        c->gguf ? 0 : as->q_lora);
    if (as->index.n_head && !d[DIM_Q_LORA])
        config_fail(c, "q_lora_rank", "nothing",
                    "a rank: the indexer's queries come from the latent");
    d[DIM_NOPE] = s->nope;
    d[DIM_KV_LORA] = s->lora;
    d[DIM_KV_A] = s->lora + s->rot;
    d[DIM_VALUE] = s->dv;
    d[DIM_V] = s->dv * m->shape.n_head;
    d[DIM_Q] = (s->nope + s->rot) * m->shape.n_head;
    return c->status;
}

/* With yarn the scores are scaled by the square of its factor for all dimensions. */
static float score_scale(const deepseek *s, const rope_params *r)
{
    const float by = 1.0f / sqrtf((float)(s->nope + s->rot));
    if (r->kind != ROPE_YARN || r->mscale_all_dim == 0) return by;
    const float m = (float)rope_yarn_mscale(r->factor, r->mscale_all_dim);
    return by * m * m;
}

/* The queries of Mistral 4 are scaled whole: by a rotation of nothing where none rotates. */
static cairn_status read_temper(model *m, config *c, const rope_params *r, deepseek *s,
                                cairn_diag *dg)
{
    config_temper(c, r, &s->q_rope);
    s->tempered = s->q_rope.temper > 0;
    if (s->tempered && s->nope % 2)
        config_fail(c, "qk_nope_head_dim", "an odd number", "an even one");
    float *none = arena_calloc(&m->a, (size_t)s->nope, sizeof *none);
    if (!none) return diag_set(dg, CAIRN_E_NOMEM, "rotary frequencies");
    s->q_still = (rope_spec){.n_freq = s->nope / 2,
                             .inv_freq = none,
                             .mscale = 1.0f,
                             .temper = s->q_rope.temper,
                             .temper_len = s->q_rope.temper_len};
    return c->status;
}

/* A latent a layer; behind them the keys of the indexers. */
static cairn_status one_latent(model *m, const deepseek *s, cairn_diag *dg)
{
    const size_t n = (size_t)m->shape.n_layer, n_index = s->index ? (size_t)s->index->n_own : 0;
    cache_layer_spec *l = arena_calloc(&m->a, n + n_index, sizeof *l);
    if (!l) return diag_set(dg, CAIRN_E_NOMEM, "cache layout");
    for (size_t i = 0; i < n; i++)
        l[i] = (cache_layer_spec){
            .n_kv_head = 1, .dk = s->lora + s->rot, .dv = s->lora, .latent = true};
    for (size_t i = n; i < n + n_index; i++)
        l[i] = (cache_layer_spec){.n_kv_head = 1, .dk = s->index->spec.dim};
    m->cache = (cachespec){(int32_t)(n + n_index), l};
    return CAIRN_OK;
}

static cairn_status bind_mla(model *m, deepseek *s, int32_t i, cairn_diag *dg)
{
    mla_layer *l = &s->mla[i];
    weights *w = &m->w;
    TRY(w->dim[DIM_Q_LORA] ? weights_bind(w, q_lora_rows, N_ROWS(q_lora_rows), i, l, dg)
                           : weights_bind(w, q_rows, N_ROWS(q_rows), i, l, dg));
    TRY(weights_bind(w, kv_rows, N_ROWS(kv_rows), i, l, dg));
    TRY(weights_bind(w, out_rows, N_ROWS(out_rows), i, &s->d.layer[i], dg));
    if (weights_has(w, "model.layers.%d.self_attn.kv_b_proj", "blk.%d.attn_kv_b", i))
        return weights_split_kv_b(w, "model.layers.%d.self_attn.kv_b_proj.weight",
                                  "blk.%d.attn_kv_b.weight", i, &l->k_b, &l->v_b, dg);
    return weights_bind_heads(w, head_rows, N_ROWS(head_rows), i, l, dg);
}

static cairn_status bind_mlp(model *m, deepseek *s, int32_t i, bool sparse, bool biased,
                             cairn_diag *dg)
{
    decoder_layer *l = &s->d.layer[i];
    TRY(weights_bind(&m->w, decoder_pre_norms, DECODER_PRE_NORMS, i, l, dg));
    if (!sparse) return decoder_bind_mlp(m, l, i, dg);
    TRY(weights_bind(&m->w, decoder_router_rows, biased ? DECODER_ROUTER_ROWS : 1, i, l, dg));
    TRY(weights_bind(&m->w, decoder_shared_rows, DECODER_SHARED_ROWS, i, l, dg));
    return weights_bind_experts(&m->w, decoder_expert_rows, DECODER_EXPERT_ROWS, i, l, dg);
}

static cairn_status bind_index(model *m, config *c, const mla_defaults *as, const rope_params *r,
                               deepseek *s, cairn_diag *dg)
{
    indexer *ix = arena_calloc(&m->a, 1, sizeof *ix);
    if (!ix) return diag_set(dg, CAIRN_E_NOMEM, "indexer");
    TRY(indexer_open(m, c, &as->index, r, ix, dg));
    s->index = ix;
    return CAIRN_OK;
}

/* Rotation, its scale of scores, what queries gain, and the indexer, which rotates too. */
static cairn_status read_rope(model *m, config *c, base_config *b, const mla_defaults *as,
                              deepseek *s, cairn_diag *dg)
{
    b->s.head_dim = as->mistral ? s->nope + s->rot : s->rot; /* what a share in the file is of */
    if (as->mistral && !c->gguf && !config_has(c, "rope_parameters", NULL))
        config_fail(c, "rope_parameters", "nothing", "the parameters of the rotation");
    rope_params rope = config_rope(c, b, NULL, 10000.0, &m->a);
    rope.dim = s->rot;
    rope.interleaved = c->gguf || as->index.n_head || config_bool(c, "rope_interleave", true);
    TRY(c->status);
    s->d.score_scale = score_scale(s, &rope);
    TRY(family_rope(m, &rope, &s->d.rope, dg));
    s->q_rope = s->d.rope;
    if (as->index.n_head) return bind_index(m, c, as, &rope, s, dg);
    return as->mistral ? read_temper(m, c, &rope, s, dg) : CAIRN_OK;
}

static cairn_status mla_open(model *m, config *c, const mla_defaults *as, cairn_diag *dg)
{
    base_config b = config_base(c, &as->base);
    const int32_t n_mtp = config_skip_mtp(c, &b);
    deepseek *s = arena_calloc(&m->a, 1, sizeof *s);
    if (!s) return diag_set(dg, CAIRN_E_NOMEM, "model");
    TRY(decoder_begin_in(m, c, &b, &s->d, dg));
    s->mla = arena_calloc(&m->a, (size_t)b.s.n_layer, sizeof *s->mla);
    if (!s->mla) return diag_set(dg, CAIRN_E_NOMEM, "%d layers", (int)b.s.n_layer);
    weights_skip_mtp(&m->w, b.s.n_layer, n_mtp);
    config_only_one(c, "hidden_act", "silu");
    TRY(read_dims(m, c, as, s));
    TRY(read_rope(m, c, &b, as, s, dg));
    config_moe(c, as->experts, &m->w, &s->d.route);
    m->w.dim[DIM_SHARED_FFN] = m->w.dim[DIM_EXPERT_FFN] *
                               config_int(c, "n_shared_experts", "expert_shared_count", 1, 256, 1);
    bool *sparse = config_sparse_from(c, b.s.n_layer, "first_k_dense_replace", as->n_dense, &m->a);
    if (!sparse) return c->status;
    if (as->index.n_head)
        (void)config_words(c, "mlp_layer_types", NULL, "sparse", "dense", b.s.n_layer, sparse);
    TRY(c->status);
    TRY(one_latent(m, s, dg));
    TRY(decoder_bind_head(m, &s->d, b.tied, 0, dg));
    for (int32_t i = 0; i < b.s.n_layer; i++) {
        TRY(bind_mla(m, s, i, dg));
        TRY(bind_mlp(m, s, i, sparse[i], !as->mistral, dg));
    }
    return CAIRN_OK;
}

static cairn_status deepseek_open(model *m, config *c, cairn_diag *dg)
{
    const char *const *names = c->gguf ? gguf_archs : hf_types;
    size_t k = 0;
    while (strcmp(c->arch, names[k]) != 0) k++;
    return mla_open(m, c, &kinds[k], dg);
}

/* *at: the positions that the layer before read, then those of this one; VAL_NONE: all. */
static val latent_attention(fwd *f, val x, const deepseek *s, const mla_layer *l, const weight *wo,
                            int32_t n_head, val *at)
{
    const attention a = {
        .h = {n_head, 1, s->lora + s->rot}, .dv = s->lora, .scale = s->d.score_scale};
    val q = linear(f, x, l->wq_a ? l->wq_a : l->wq);
    if (l->wq_a) {
        q = rms_norm(f, q, l->q_norm, 1e-6f);
        if (s->index) *at = indexer_choose(f, s->index, x, q, *at);
        q = linear(f, q, l->wq_b);
    }
    const val kv = linear(f, x, l->wkv_a);
    val c = slice(f, kv, 1, 0, s->lora);
    val k = slice(f, kv, 1, s->lora, s->rot);
    c = rms_norm(f, c, l->kv_norm, 1e-6f);
    k = rope(f, k, s->rot, &s->d.rope);
    k = join(f, c, k, 1);
    val q_rot = slice(f, q, n_head, s->nope, s->rot);
    q = slice(f, q, n_head, 0, s->nope);
    if (s->tempered) q = rope(f, q, s->nope, &s->q_still);
    q = linear_heads(f, q, l->k_b);
    q_rot = rope(f, q_rot, s->rot, &s->q_rope);
    q = join(f, q, q_rot, n_head);
    val o = attend_latent(f, q, k, *at, &a);
    o = linear_heads(f, o, l->v_b);
    return linear(f, o, wo);
}

static val deepseek_forward(fwd *f, const model *m)
{
    const deepseek *s = m->impl;
    const decoder *d = &s->d;
    val x = embed(f, d->tok_embed, 1.0f), at = VAL_NONE;
    tap(f, x, 0);
    for (f->layer = 0; f->layer < m->shape.n_layer; f->layer++) {
        const decoder_layer *L = &d->layer[f->layer];
        val h = rms_norm(f, x, L->attn_norm, d->eps);
        h = latent_attention(f, h, s, &s->mla[f->layer], L->attn.wo, m->shape.n_head, &at);
        x = add(f, x, h);
        h = rms_norm(f, x, L->mlp_norm, d->eps);
        h = decoder_mlp(f, h, m);
        x = add(f, x, h);
        tap(f, x, f->layer + 1);
    }
    f->layer = -1;
    x = rms_norm(f, x, d->out_norm, d->eps);
    return linear(f, x, d->lm_head);
}

const family family_deepseek = {"deepseek",    hf_types,         gguf_archs,
                                deepseek_open, deepseek_forward, false};
