/* A pre-norm decoder, the shape that most families share: a norm before attention and
   one before the gated MLP in each layer, a norm and a head at the end. */
#ifndef MODEL_DECODER_H
#define MODEL_DECODER_H

#include "model/family.h"
#include "nn/blocks.h"

typedef struct decoder_layer {
    const weight *attn_norm, *mlp_norm;
    gqa_weights attn; /* norms on q and k where the family has them */
    glu_weights mlp;
} decoder_layer;

typedef struct decoder {
    const weight *tok_embed, *out_norm, *lm_head;
    decoder_layer *layer;  /* [n_layer], in the model's arena */
    const int32_t *window; /* of each layer, 0: none */
    rope_spec rope;
    float eps;
} decoder;

/* Binds all of it by the names that HF and GGUF files use.  `tied`: the embedding is the head.
   `head_norms`: q and k have norms; a file that says otherwise is an error. */
cairn_status decoder_bind(model *m, decoder *d, bool tied, bool head_norms, cairn_diag *dg);
/* The forward pass of a model whose impl is a decoder; returns the logits. */
val decoder_forward(fwd *f, const model *m);

#endif
