/* What gemma4.c (weights, forward pass) and gemma4_config.c (shapes of the layers) share. */
#ifndef MODEL_GEMMA4_H
#define MODEL_GEMMA4_H

#include "model/gemma_parts.h" /* IWYU pragma: export */

typedef struct gemma4_layer {
    const weight *attn_norm, *post_attn_norm, *mlp_norm, *post_mlp_norm;
    glu_weights mlp;
    moe_weights moe; /* router NULL: dense */
    const weight *router_gain, *expert_scale, *post_mlp_norm_1, *mlp_norm_2, *post_mlp_norm_2;
    gemma_own_layer own;
    float out_scale;
    int32_t ffn;
} gemma4_layer;

typedef struct gemma4 {
    const weight *tok_embed, *out_norm;
    gemma_own own;
    gemma_attn *attn; /* [n_layer], as layer */
    gemma4_layer *layer;
    rope_spec rope, rope_windowed;
    route_spec route;
    float eps, out_cap;
} gemma4;

/* Heads, windows, widths and caches of every layer, g->layer; then the two rotations. */
cairn_status gemma4_read_layers(model *m, config *c, const base_config *b, gemma4 *g,
                                cairn_diag *dg);
cairn_status gemma4_read_ropes(model *m, config *c, const base_config *b, gemma4 *g,
                               cairn_diag *dg);

#endif
