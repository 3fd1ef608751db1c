/* What Gemma 3n and Gemma 4 share: attention whose keys and values another layer may have written, and
   an input of its own for every layer; with Gemma 3: two rotations. */
#ifndef MODEL_GEMMA_PARTS_H
#define MODEL_GEMMA_PARTS_H

#include "model/family.h" /* IWYU pragma: export */
#include "nn/blocks.h"    /* IWYU pragma: export */

typedef struct gemma_attn {
    const weight *wq, *wk, *wv,
        *wo; /* wk NULL: keys of `cache`; wv NULL: the keys are the values */
    const weight *q_norm, *k_norm;
    const weight *value_gain; /* ones */
    const rope_spec *rope;
    int32_t n_head, n_kv_head, head_dim, window;
    int32_t cache; /* the layer whose keys and values it reads */
} gemma_attn;

typedef struct gemma_own {
    const weight *embed, *proj, *norm; /* of all layers' own inputs; NULL: none */
} gemma_own;

typedef struct gemma_own_layer {
    const weight *gate, *proj, *norm; /* NULL: no input of its own */
} gemma_own_layer;

/* The last `shared` layers read the cache of the last of their kind (windowed or not) before them; the
   others have their own, laid out in m->cache. */
cairn_status gemma_share_caches(model *m, config *c, int32_t shared, gemma_attn *a, cairn_diag *dg);
/* Keys unless the layer shares those of another, values where `values`. */
cairn_status gemma_bind_attn(model *m, int32_t i, bool values, gemma_attn *a, cairn_diag *dg);
/* Files keep keys and values that shared layers do not use. */
void gemma_skip_shared(model *m);
/* Widths of the layers' own inputs, DIM_PLE 0 where there are none. */
void gemma_read_own(model *m, config *c);
cairn_status gemma_bind_own(model *m, gemma_own *own, cairn_diag *dg);
cairn_status gemma_bind_own_layer(model *m, int32_t i, gemma_own_layer *own, cairn_diag *dg);

/* A cap of logits or scores: null means none; `otherwise` is what the reference assumes where the file
   is silent. */
float gemma_cap(config *c, const char *key, double otherwise);
/* The rotations of full and of windowed layers, by either spelling. */
void gemma_ropes(config *c, const base_config *b, arena *a, rope_params *full,
                 rope_params *windowed);

/* Wo · attend(rope(norm(Wq x)), rope(norm(Wk x)), norm(Wv x)), scores not scaled */
val gemma_attention(fwd *f, val x, const gemma_attn *a, float eps);
/* Every layer's own input, side by side: (norm(projection of x) + embedding) / √2. */
val gemma_own_inputs(fwd *f, val x, const gemma_own *own, float eps);
/* norm(proj · (gelu(gate x) · the layer's own input)) */
val gemma_own_input(fwd *f, val x, val inputs, const gemma_own_layer *own, float eps);

#endif
