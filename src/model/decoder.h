/* A decoder of one attention and one MLP a layer: the fields, weight names and pieces that families of
   this shape share.  The MLP of a layer may be a mixture of experts, and something else may stand for
   its attention. */
#ifndef MODEL_DECODER_H
#define MODEL_DECODER_H

#include "model/family.h" /* IWYU pragma: export */
#include "nn/blocks.h"    /* IWYU pragma: export */

typedef struct decoder_layer {
    const weight *attn_norm, *attn_post, *mlp_norm, *mlp_post; /* those that the family has */
    gqa_weights attn;                                          /* norms on q and k likewise */
    glu_weights mlp;           /* of a dense layer; gate NULL: down · xIELU(up x) */
    const xielu_params *xielu; /* the layer's, if it has one */
    moe_weights moe;           /* of a sparse layer; router NULL: dense */
    const weight *sinks;       /* of attention, or NULL */
    const rope_spec *rope;     /* NULL: nothing tells positions */
} decoder_layer;

typedef struct decoder {
    const weight *tok_embed, *out_norm, *lm_head; /* lm_head NULL: the model is headless */
    decoder_layer *layer;                         /* [n_layer], in the model's arena */
    const int32_t *window;                        /* of each layer, 0: none */
    rope_spec rope;
    const rope_spec *q_rope;                /* of the queries; NULL: the keys' */
    route_spec route;                       /* of sparse layers */
    glu_spec glu;                           /* of MLPs and experts; zero: SiLU */
    float eps, score_scale;                 /* score_scale: 1/√head_dim unless the family says */
    float embed_by, residual_by, logits_by; /* multipliers; 1: none */
} decoder;

/* The mixture of experts of a family: which layers have one, and the names of its weights; fields are
   offsets in decoder_layer. */
typedef struct decoder_moe {
    const bool *sparse; /* [n_layer] */
    const weight_row *row;
    size_t n_row;
    const expert_row *expert;
    size_t n_expert;
    const weight_row *shared; /* NULL: no expert is shared */
    size_t n_shared;
} decoder_moe;

/* The stacks by the names that most files use: model.layers.N.mlp.experts. */
enum { DECODER_EXPERT_ROWS = 3, DECODER_ROUTER_ROWS = 2, DECODER_SHARED_ROWS = 3 };
extern const expert_row decoder_expert_rows[DECODER_EXPERT_ROWS];
/* DeepSeek-V3's router with its bias of choosing, and its shared experts. */
extern const weight_row decoder_router_rows[DECODER_ROUTER_ROWS];
extern const weight_row decoder_shared_rows[DECODER_SHARED_ROWS];

/* First step of a family's open: a decoder in the model's arena with the shared fields, m->w ready.
   Biases: HF's attention_bias and mlp_bias say, of those that the family has; a GGUF file's are used
   where they lie. */
cairn_status decoder_begin(model *m, config *c, const base_config *b, decoder **out,
                           cairn_diag *dg);
/* The same in a struct of the family's, which begins with a zeroed decoder: m->impl is both. */
cairn_status decoder_begin_in(model *m, config *c, const base_config *b, decoder *d,
                              cairn_diag *dg);
/* Last step: checks the config, lays out the cache by the decoder's windows, binds the embedding, the last
   norm, the head, the matrices of every layer and `norms`, rows of a decoder_layer (the last norm's gain
   is stored as the first of them is).  Every layer rotates by `rope`, to which tables that a GGUF file
   holds as tensors are added. */
cairn_status decoder_bind(model *m, config *c, const base_config *b, const rope_params *rope,
                          const weight_row *norms, size_t n_norms, cairn_diag *dg);

/* The same, the MLP of some layers being experts, whose numbers m->w.dim has. */
cairn_status decoder_bind_moe(model *m, config *c, const base_config *b, const rope_params *rope,
                              const weight_row *norms, size_t n_norms, const decoder_moe *moe,
                              cairn_diag *dg);

/* The parts of decoder_bind, for families that bind some of it themselves.
   Rotation of every layer, with the tables that a GGUF file may hold: */
cairn_status decoder_rope(model *m, decoder *d, const rope_params *rope, cairn_diag *dg);
/* Checks the config, rotation, and a cache by d->window: */
cairn_status decoder_prepare(model *m, config *c, decoder *d, const rope_params *rope,
                             cairn_diag *dg);
/* `norm_flags`: of the last norm's gain. */
cairn_status decoder_bind_head(model *m, decoder *d, bool tied, uint32_t norm_flags,
                               cairn_diag *dg);
/* The same by names of the family's own: rows of a decoder. */
extern const weight_row decoder_embed_row; /* the embedding's name in most */
cairn_status decoder_bind_head_as(model *m, decoder *d, bool tied, const weight_row *embed,
                                  const weight_row *norm, cairn_diag *dg);
/* q, k, v and o; q, k and v as three matrices or in one. */
cairn_status decoder_bind_attn(model *m, decoder_layer *L, int32_t i, cairn_diag *dg);
/* Gate, up and down; gate and up as two matrices or in one. */
cairn_status decoder_bind_mlp(model *m, decoder_layer *L, int32_t i, cairn_diag *dg);

/* Router, stacks and shared experts of a sparse layer. */
cairn_status decoder_bind_experts(model *m, decoder_layer *L, int32_t i, const decoder_moe *moe,
                                  cairn_diag *dg);

/* The names of a pre-norm block, and of norms on the heads of q and k. */
enum { DECODER_PRE_NORMS = 2, DECODER_HEAD_NORMS = 2 };
extern const weight_row decoder_pre_norms[DECODER_PRE_NORMS];
extern const weight_row decoder_head_norms[DECODER_HEAD_NORMS];

/* Window 0; a family's forward sets it layer by layer. */
attention decoder_attention(const model *m, const decoder *d);
/* A sublayer of f->layer, without its norms; m->impl begins with a decoder. */
typedef val (*decoder_sublayer)(fwd *f, val x, const model *m);
/* The MLP of a layer, or its experts. */
val decoder_mlp(fwd *f, val x, const model *m);
/* The forward pass of a decoder whose sublayers follow each other, x + post(sublayer(pre(x))), norms being
   there or not; returns the logits, of a headless model hidden states. */
val decoder_forward(fwd *f, const model *m);
/* The same with sublayers of the family's; `mlp` NULL: a layer is its mixer alone. */
val decoder_forward_by(fwd *f, const model *m, decoder_sublayer mixer, decoder_sublayer mlp);

#endif
