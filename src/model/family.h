/* One family of models: how it is recognised, opened and run. */
#ifndef MODEL_FAMILY_H
#define MODEL_FAMILY_H

#include "model/config.h" /* IWYU pragma: export */
#include "model/model.h"  /* IWYU pragma: export */

typedef struct family {
    const char *name;
    const char *const *hf;   /* model_type values, NULL-terminated */
    const char *const *gguf; /* general.architecture values */
    /* Fills m->shape, m->cache and m->impl, and binds all weights into m->w. */
    cairn_status (*open)(model *m, config *c, cairn_diag *dg);
    /* Returns the logits; of a headless model hidden states. */
    val (*forward)(fwd *f, const model *m);
    bool may_lack_head; /* embedding models of the family are saved without one */
} family;

extern const family family_deepseek, family_gemma3n, family_gemma4, family_glm_moe, family_gptoss,
    family_minimax, family_qwen_moe, family_qwen_next, family_bert, family_modernbert,
    family_apertus, family_cohere, family_ernie, family_gemma, family_gemma1, family_lfm2,
    family_mamba2, family_falcon_h1, family_granite_h, family_nemotron_h, family_glm,
    family_granite, family_granite_moe, family_hunyuan, family_llama, family_olmo, family_phi,
    family_qwen, family_seed, family_smollm;

/* Every layer of the same heads, layer i seeing `window[i]` positions (0: all).  Where rows see both sides the
   layers share one cache, and windows are attention's alone. */
cairn_status family_cache(model *m, const int32_t *window, cairn_diag *dg);
/* What a layer of a hybrid leaves behind, as bits of its kind; other bits are the family's. */
enum { LAYER_KEYS = 1, LAYER_STATE = 2 };
/* The same by the kinds of layers, [n_layer]; a recurrent state has n_state floats. */
cairn_status family_cache_hybrid(model *m, const uint8_t *kind, int32_t n_state, cairn_diag *dg);
/* rope_make in the model's arena; messages name the file. */
cairn_status family_rope(model *m, const rope_params *p, rope_spec *out, cairn_diag *dg);
/* Sets the dims that weight tables name, and starts m->w. */
cairn_status family_weights(model *m, const base_config *b, cairn_diag *dg);

/* Takes the pooling of the source, of a GGUF file's keys, or the reference's default; binds dense modules. */
cairn_status family_pool(model *m, config *c, cairn_diag *dg);

#endif
