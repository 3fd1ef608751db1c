/* Models whose layers are of several kinds: which layer is what, from either file format. */
#ifndef MODEL_CONFIG_HYBRID_H
#define MODEL_CONFIG_HYBRID_H

#include "model/family.h" /* IWYU pragma: export */

typedef struct kind_word {
    const char *word; /* of config.json; NULL ends a list */
    uint8_t kind;
} kind_word;

/* The kind of each layer, [n_layer] in the arena, as the list `key` (complete) spells it: words, in GGUF
   files truth values too, which are 0 and 1.  NULL where there is no such list, and after a failure,
   which c->status tells. */
const uint8_t *config_kinds(config *c, const char *key, const kind_word *words, int32_t n_layer,
                            arena *a);
/* LAYER_KEYS where a layer has KV heads, of which GGUF files have a number a layer; else LAYER_STATE. */
const uint8_t *config_kinds_by_heads(config *c, int32_t n_layer, arena *a);
/* All of one kind.  NULL: out of memory, as c->status tells. */
const uint8_t *config_kinds_all(config *c, uint8_t kind, int32_t n_layer, arena *a);

#endif
