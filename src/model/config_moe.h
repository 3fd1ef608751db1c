/* The numbers of a mixture of experts, from either file format. */
#ifndef MODEL_CONFIG_MOE_H
#define MODEL_CONFIG_MOE_H

#include "model/config.h"

/* What the reference's config class assumes where config.json is silent. */
typedef struct moe_defaults {
    route_score score;
    int32_t n_expert, k, ffn; /* 0: the config must say */
    int32_t shared_ffn;       /* width of the shared expert; 0: none */
    bool normalise;
    float eps;                 /* added to the sum that normalises */
    const char *normalise_key; /* of config.json; NULL: not for the config to say */
    bool gguf_normalises;      /* GGUF's expert_weights_norm says, false where it is absent */
    const char *k_key; /* of config.json: experts a token meets; NULL: num_experts_per_tok */
    int32_t n_group, n_group_used; /* 0: one, whatever config.json says */
    float scale;                   /* 0: 1, whatever config.json says */
    const char *ffn_key; /* of config.json: the width of an expert; NULL: moe_intermediate_size */
} moe_defaults;

/* Weights that add to 1, as DeepSeek-V3's; its number of groups is the family's to say. */
#define MOE_NORMALISED                                                                             \
    .normalise = true, .eps = 1e-20f, .normalise_key = "norm_topk_prob", .gguf_normalises = true

/* Fills *out and the dims and n_expert_used of `w`. */
void config_moe(config *c, const moe_defaults *d, weights *w, route_spec *out);
/* Which layers have experts: [n_layer] in the arena; all from `first_key`'s number on (HF; GGUF:
   leading_dense_block_count).  NULL after a failure, which c->status tells. */
bool *config_sparse_from(config *c, int32_t n_layer, const char *first_key, int32_t otherwise,
                         arena *a);
/* Those of decoder_sparse_step and mlp_only_layers (HF); GGUF: all. */
bool *config_sparse_step(config *c, int32_t n_layer, arena *a);

/* Layers of multi-token prediction come last, and are not part of the model; GGUF counts them among its
   blocks.  Takes them from b's layers and answers how many there are; the second marks their tensors. */
int32_t config_skip_mtp(config *c, base_config *b);
void weights_skip_mtp(weights *w, int32_t first, int32_t n);

#endif
