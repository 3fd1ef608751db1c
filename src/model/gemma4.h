/* What gemma4.c (weights, forward pass) and gemma4_config.c (shapes of the layers) share. */
#ifndef MODEL_GEMMA4_H
#define MODEL_GEMMA4_H

#include "model/family.h"
#include "nn/blocks.h"

typedef struct gemma4_layer {
    const weight *attn_norm, *post_attn_norm, *mlp_norm, *post_mlp_norm;
    const weight *wq, *wk, *wv,
        *wo; /* wk NULL: keys of `cache`; wv NULL: the keys are the values */
    const weight *q_norm, *k_norm;
    glu_weights mlp;
    moe_weights moe; /* router NULL: dense */
    const weight *router_gain, *expert_scale, *post_mlp_norm_1, *mlp_norm_2, *post_mlp_norm_2;
    const weight *ple_gate, *ple_proj, *ple_norm; /* NULL: no input of its own */
    const weight *value_gain;                     /* ones */
    float out_scale;
    int32_t window, head_dim, n_kv_head, ffn;
    int32_t cache; /* the layer whose keys and values it reads */
} gemma4_layer;

typedef struct gemma4 {
    const weight *tok_embed, *out_norm;
    const weight *ple_embed, *ple_proj, *ple_norm; /* of all layers' own inputs; NULL: none */
    gemma4_layer *layer;
    rope_spec rope, rope_windowed;
    route_spec route;
    float eps, out_cap;
    int32_t n_own_cache; /* layers before the first that reads another's */
} gemma4;

/* Heads, windows, widths and caches of every layer, g->layer; then the two rotations. */
cairn_status gemma4_read_layers(model *m, config *c, const base_config *b, gemma4 *g,
                                cairn_diag *dg);
cairn_status gemma4_read_ropes(model *m, config *c, const base_config *b, gemma4 *g,
                               cairn_diag *dg);

#endif
