/* Models whose layers are of several kinds: which layer is what, from either file format. */
#ifndef MODEL_CONFIG_HYBRID_H
#define MODEL_CONFIG_HYBRID_H

#include "model/config.h"

typedef struct kind_word {
    const char *word; /* of config.json; NULL ends a list */
    uint8_t kind;
} kind_word;

/* The kind of each layer, [n_layer] in the arena, as the list `key` (complete) spells it: words, in GGUF
   files truth values too, which are 0 and 1.  NULL where there is no such list, and after a failure,
   which c->status tells. */
const uint8_t *config_kinds(config *c, const char *key, const kind_word *words, int32_t n_layer,
                            arena *a);
/* Whether each layer attends: GGUF files have a number of KV heads a layer, 0 where it does not. */
const bool *config_attends(config *c, int32_t n_layer, arena *a);

#endif
