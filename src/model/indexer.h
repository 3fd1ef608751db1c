/* The indexer of sparse attention (DeepSeek-AI 2025, "DeepSeek-V3.2", section 2.1): a few narrow heads that
   choose the positions which a layer's attention reads. */
#ifndef MODEL_INDEXER_H
#define MODEL_INDEXER_H

#include "model/family.h"

typedef struct indexer_layer {
    const weight *wq_b, *wk, *k_norm, *k_bias,
        *w;        /* wq_b NULL: takes the choice of the layer before */
    int32_t cache; /* layer of the cache that has its keys */
} indexer_layer;

typedef struct indexer {
    pick_spec spec;
    rope_spec rope;
    indexer_layer *layer; /* [n_layer], in the model's arena */
    int32_t n_own;        /* layers that choose for themselves */
} indexer;

/* What the reference's config class assumes where config.json is silent, and what it fixes. */
typedef struct indexer_defaults {
    int32_t n_head;
    bool interleaved; /* the pairs that rotate */
    bool shared;      /* the class lets layers take the choice of another */
} indexer_defaults;

/* Reads the config and binds the weights of the layers that choose, m->shape and DIM_Q_LORA being there;
   `rope`: attention's. */
cairn_status indexer_open(model *m, config *c, const indexer_defaults *d, const rope_params *rope,
                          indexer *out, cairn_diag *dg);
/* The choice of layer f->layer from its input x and its query latent; `before`: that of the layer before. */
val indexer_choose(fwd *f, const indexer *ix, val x, val q_latent, val before);

#endif
