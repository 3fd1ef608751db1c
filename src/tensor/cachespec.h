/* What each layer of a model must remember.  Filled by model/, read by cache/. */
#ifndef TENSOR_CACHESPEC_H
#define TENSOR_CACHESPEC_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cache_layer_spec {
    int32_t n_kv_head, dk, dv; /* n_kv_head 0: no keys and values; dv 0: keys alone */
    int32_t window;            /* 0: everything */
    int32_t n_state;           /* f32 values of recurrent state, one set a sequence; 0: none */
    bool latent;               /* values are the first dv elements of keys, and not kept again */
} cache_layer_spec;

typedef struct cachespec {
    int32_t n_layer;
    const cache_layer_spec *layer;
} cachespec;

#endif
