/* A source of named tensors and metadata; every file format is one.  Immutable once open. */
#ifndef TENSOR_SOURCE_H
#define TENSOR_SOURCE_H

#include "base/map.h"
#include "base/meta.h"
#include "tensor/packed.h"

typedef enum source_format { SOURCE_GGUF, SOURCE_SAFETENSORS } source_format;

typedef struct tensor_desc {
    cairn_str name; /* NUL-terminated too */
    const char *file;
    dtype type;
    int32_t n_dim;       /* 0 … 4; a scalar has 0.  Higher ranks are folded: leading ones fall
                            away, then the last dimensions become one */
    int64_t dim[4];      /* outermost first (as HF writes shapes); the last is contiguous */
    const uint8_t *data; /* mapped; any alignment */
    size_t size;
    const struct packed
        *packed; /* of type PACKED: codes and scales; `data` is that of the codes, `size` the
                           bytes of all */
} tensor_desc;

/* "BF16", "Q4_K", "affine 4 g64". */
static inline const char *tensor_type_name(const tensor_desc *t)
{
    return t->packed ? t->packed->name : dtype_name(t->type);
}

typedef struct source {
    source_format format;
    const char *path; /* as opened */
    bool mlx;         /* laid out as MLX does: its names, its stacks */
    meta_view meta;   /* GGUF keys; or config.json by dotted path */
    const struct pool_spec
        *pool; /* what files beside the checkpoint say of embeddings; NULL: nothing */
    const tensor_desc *tensor;
    size_t n_tensor;
    map index; /* name → position in tensor */
    void *impl;
    void (*close)(struct source *s);
} source;

static inline const tensor_desc *source_find(const source *s, const char *name)
{
    uint32_t i;
    cairn_str key = {name, __builtin_strlen(name)};
    return map_get(&s->index, key, &i) ? &s->tensor[i] : NULL;
}

#endif
