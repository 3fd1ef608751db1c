/* What a model's caches hold, layer by layer: read from a word or a file, and told by one text. */
#ifndef CACHE_SCHEME_H
#define CACHE_SCHEME_H

#include "base/buf.h"
#include "tensor/cachespec.h"
#include "tensor/kvview.h"

typedef struct scheme {
    kv_scheme kv; /* borrows `layer` and `start` */
    kv_pair *layer;
    int32_t *start;
    buf text; /* the same for equal schemes of one model, and for no others */
} scheme;

/* `spec`: NULL (plain), f16, bf16, f32, q8, q4, k8v4 and its like, each with ":GROUP" and "@START" if
   wanted (positions before START, rounded up to whole blocks, stay plain), turbo, turbo:k8v3
   and its like, or the path of a kv_config.json (anything with a "/" or that ends in ".json").  `plain` is
   what layers hold that are not coded.  E_ARG names the layer, the word or the field that is wrong. */
cairn_status scheme_read(const char *spec, const cachespec *s, kv_kind plain, scheme *out,
                         cairn_diag *dg);
void scheme_free(scheme *s); /* zeroed is fine */

#endif
