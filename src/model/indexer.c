/* The indexer's config, weights and forward pass; how positions are ranked is PICK's business.

   The first elements of its heads rotate, as many as in attention's, where those come last: neighbours
   are a pair in glm_moe_dsa, halves in deepseek_v32.  DeepSeek's own code turns queries and keys by a
   Hadamard matrix, which changes no product, and rounds them to fp8; transformers does neither.
   llama.cpp takes rms_norm_eps for the norm of the keys, mlx-lm 1e-5. */
#include "model/indexer.h"

#include <math.h>

#include "base/diag.h"
#include "base/num.h"
#include "model/rows.h"

enum { MOST_PICKED = 1 << 16 }; /* a row of them lies in the scratch of each row of a step */

#define X(f)  offsetof(indexer_layer, f)
#define AT(n) HF("self_attn.indexer." n)
#define IX(n) GG("indexer." n)
static const weight_row rows[] = {
    {X(wq_b), AT("wq_b"), IX("attn_q_b"), DIM_INDEX_Q, DIM_Q_LORA, 0},
    {X(wk), AT("wk"), IX("attn_k"), DIM_INDEX, DIM_HIDDEN, 0},
    {X(k_norm), AT("k_norm"), IX("k_norm"), DIM_ONE, DIM_INDEX, 0},
    {X(k_bias), AT("k_norm.bias"), IX("k_norm.bias"), DIM_ONE, DIM_INDEX, W_BARE},
    {X(w), AT("weights_proj"), IX("proj"), DIM_INDEX_HEADS, DIM_HIDDEN, W_ROUTER},
};
#undef X
#undef AT
#undef IX

/* Pattern "FSSF…", one letter a layer. */
static void read_pattern(config *c, cairn_str s, int32_t n_layer, bool *own)
{
    static const char key[] = "index_topk_pattern";
    if (s.len < (size_t)n_layer) config_fail(c, key, "too few letters", "one a layer");
    for (size_t i = 0; i < s.len && i < (size_t)n_layer; i++) {
        if (s.ptr[i] != 'F' && s.ptr[i] != 'S')
            config_fail(c, key, "another letter", "F (full) or S (shared)");
        own[i] = s.ptr[i] == 'F';
    }
}

/* HF: indexer_types, index_topk_pattern, or every so many layers.  GGUF: indexer.types, or the layers
   that have the tensors. */
static void who_chooses(model *m, config *c, bool shared, bool *own)
{
    const int32_t n = m->shape.n_layer;
    if (!shared) {
        for (int32_t i = 0; i < n; i++) own[i] = true;
        return;
    }
    if (config_words(c, "indexer_types", "attention.indexer.types", "full", "shared", n, own))
        return;
    for (int32_t i = 0; c->gguf && i < n; i++)
        own[i] = weights_has(&m->w, rows[0].hf, rows[0].gguf, i);
    if (c->gguf) return;
    const cairn_str pattern = meta_str(&c->src->meta, "index_topk_pattern", (cairn_str){0});
    if (pattern.len) {
        read_pattern(c, pattern, n, own);
        return;
    }
    if (config_words(c, "index_topk_pattern", NULL, "full", "shared", n, own)) return;
    const int32_t every = config_int(c, "index_topk_freq", NULL, INT16_MIN, INT16_MAX, 1);
    const int32_t skip = config_int(c, "index_skip_topk_offset", NULL, INT16_MIN, INT16_MAX, 2);
    for (int32_t i = 0; i < n; i++) own[i] = max_i32(i - skip + 1, 0) % max_i32(every, 1) == 0;
}

static cairn_status read_config(model *m, config *c, const indexer_defaults *d, int32_t rot,
                                indexer *ix)
{
    static const char hf[] = "index_head_dim", gguf[] = "attention.indexer.key_length";
    int32_t *dim = m->w.dim;
    ix->spec.n_head =
        config_class_int(c, "index_n_heads", "attention.indexer.head_count", 1, 1 << 10, d->n_head);
    ix->spec.dim = config_class_int(c, hf, gguf, 1, 1 << 12, 128);
    ix->spec.k = config_class_int(c, "index_topk", "attention.indexer.top_k", 1, MOST_PICKED, 2048);
    if (c->status == CAIRN_OK && ix->spec.dim < rot)
        config_misfit(c, hf, gguf, ix->spec.dim, "at least the %d that rotate", (int)rot);
    config_switch(c, "indexer_rope_interleave", d->interleaved);
    ix->spec.scale = 1.0f / sqrtf((float)ix->spec.dim * (float)ix->spec.n_head);
    dim[DIM_INDEX] = ix->spec.dim;
    dim[DIM_INDEX_HEADS] = ix->spec.n_head;
    dim[DIM_INDEX_Q] = ix->spec.n_head * ix->spec.dim;
    return c->status;
}

cairn_status indexer_open(model *m, config *c, const indexer_defaults *d, const rope_params *rope,
                          indexer *out, cairn_diag *dg)
{
    const size_t n = (size_t)m->shape.n_layer;
    rope_params r = *rope;
    bool *own = arena_calloc(&m->a, n, sizeof *own);
    out->layer = arena_calloc(&m->a, n, sizeof *out->layer);
    if (!own || !out->layer) return diag_set(dg, CAIRN_E_NOMEM, "%zu layers", n);
    TRY(read_config(m, c, d, rope->dim, out));
    who_chooses(m, c, d->shared, own);
    if (c->status == CAIRN_OK && !own[0])
        config_fail(c, c->gguf ? "attention.indexer.types" : "indexer_types",
                    "a first layer that is shared", "one with an indexer of its own");
    TRY(c->status);
    r.interleaved = d->interleaved;
    TRY(family_rope(m, &r, &out->rope, dg));
    for (int32_t i = 0; i < m->shape.n_layer; i++) {
        if (!own[i]) continue;
        out->layer[i].cache = m->shape.n_layer + out->n_own++;
        TRY(weights_bind(&m->w, rows, N_ROWS(rows), i, &out->layer[i], dg));
    }
    return CAIRN_OK;
}

val indexer_choose(fwd *f, const indexer *ix, val x, val q_latent, val before)
{
    const indexer_layer *l = &ix->layer[f->layer];
    if (!l->wq_b) return before;
    val q = linear(f, q_latent, l->wq_b);
    q = rope(f, q, ix->spec.dim, &ix->rope);
    val k = linear(f, x, l->wk);
    k = layer_norm_bias(f, k, l->k_norm, l->k_bias, 1e-6f);
    k = rope(f, k, ix->spec.dim, &ix->rope);
    const val w = linear(f, x, l->w);
    return pick(f, q, k, w, &ix->spec, l->cache);
}
