/* What each layer of a model must remember.  Filled by model/, read by cache/. */
#ifndef TENSOR_CACHESPEC_H
#define TENSOR_CACHESPEC_H

#include <stdint.h>

typedef struct cache_layer_spec {
    int32_t n_kv_head, dk, dv;
    int32_t window; /* 0: everything */
} cache_layer_spec;

typedef struct cachespec {
    int32_t n_layer;
    const cache_layer_spec *layer;
} cachespec;

#endif
