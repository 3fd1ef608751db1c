/* The mixer of Mamba-2 in the families that have it: its numbers, its names, its part of a layer's state. */
#ifndef MODEL_MAMBA_H
#define MODEL_MAMBA_H

#include "model/decoder.h" /* IWYU pragma: export */

/* Fields of config.json, and what the config class assumes where it is silent. */
typedef struct mamba_keys {
    const char *n_head, *dim, *n_state, *n_group, *kernel;
    const char *inner, *expand; /* the width; NULL, or both absent: the heads' widths together */
    const char *conv_bias, *in_bias, *out_bias;
    int32_t n_head_otherwise, dim_otherwise; /* dim 0: an equal share of the width */
    int32_t n_state_otherwise, n_group_otherwise, inner_otherwise; /* inner 0: expand · hidden */
} mamba_keys;
extern const mamba_keys mamba_own_keys;   /* of Mamba-2's class */
extern const mamba_keys mamba_bamba_keys; /* of Bamba's, which others were made from */

/* Fills the dims and biases of `w` and *out; time steps are cut to time_step_limit, GGUF's never. */
void mamba_config(config *c, const mamba_keys *k, int32_t hidden, weights *w, mamba_spec *out);

/* Floats of a layer's state: the scan's, then the convolution's. */
int32_t mamba_n_state(const mamba_spec *m, const weights *w);

/* What stands before the names of a mixer's tensors. */
typedef enum mamba_names {
    MAMBA_BACKBONE_MIXER, /* backbone.layers.N.mixer. */
    MAMBA_MODEL_MAMBA     /* model.layers.N.mamba. */
} mamba_names;
/* `normed`: there is a norm of the gated result; without it GGUF files may have one all the same. */
cairn_status mamba_bind(model *m, mamba_weights *w, int32_t layer, mamba_names names, bool normed,
                        cairn_diag *dg);

/* The embedding, the last norm and the head of models whose tensors are backbone.* */
cairn_status mamba_bind_head(model *m, decoder *d, bool tied, cairn_diag *dg);

#endif
