/* One GGUF file as bytes: what gguf_parse.c finds in it and gguf.c makes a source of. */
#ifndef FORMAT_GGUF_PRIV_H
#define FORMAT_GGUF_PRIV_H

#include "base/arena.h"
#include "base/map.h"
#include "base/meta.h"
#include "tensor/source.h"

#define GGUF_TYPE_LIST(X)                                                                          \
    X(U8, 0, 1)                                                                                    \
    X(I8, 1, 1)                                                                                    \
    X(U16, 2, 2)                                                                                   \
    X(I16, 3, 2)                                                                                   \
    X(U32, 4, 4)                                                                                   \
    X(I32, 5, 4)                                                                                   \
    X(F32, 6, 4)                                                                                   \
    X(BOOL, 7, 1)                                                                                  \
    X(STR, 8, 0)                                                                                   \
    X(ARR, 9, 0)                                                                                   \
    X(U64, 10, 8)                                                                                  \
    X(I64, 11, 8)                                                                                  \
    X(F64, 12, 8)

typedef enum gguf_type {
#define GGUF_TYPE_ENUM(name, number, bytes) GGUF_##name = (number),
    GGUF_TYPE_LIST(GGUF_TYPE_ENUM)
#undef GGUF_TYPE_ENUM
} gguf_type;

/* Of one value; 0: it brings its own length. */
static inline size_t gguf_type_bytes(gguf_type t)
{
#define GGUF_TYPE_BYTES(name, number, bytes) [GGUF_##name] = (bytes),
    static const uint8_t of[] = {GGUF_TYPE_LIST(GGUF_TYPE_BYTES)};
#undef GGUF_TYPE_BYTES
    return of[t];
}

/* An array value.  Elements of fixed size lie at `data`; strings are found through `at`, arrays are
   in `sub`. */
typedef struct gguf_array {
    gguf_type elem;
    size_t n;
    const uint8_t *data;
    const uint32_t *at; /* STR: offset of each element from data */
    const struct gguf_array *sub;
} gguf_array;

typedef struct gguf_kv {
    cairn_str key;
    gguf_type type;
    const uint8_t *value; /* scalar or string, in the file */
    gguf_array array;
} gguf_kv;

typedef struct gguf_file {
    const char *path; /* for messages */
    uint32_t version;
    size_t alignment;
    gguf_kv *kv;
    size_t n_kv;
    map kv_index;
    tensor_desc *tensor; /* in file order */
    size_t n_tensor;
} gguf_file;

/* Parses and checks a whole header.  What it finds points into the bytes and the arena; nothing
   else is allocated but kv_index (gguf_file_deinit).  `out` may be deinitialised after a failure. */
cairn_status gguf_parse(const char *path, const uint8_t *p, size_t size, arena *a, gguf_file *out,
                        cairn_diag *dg);
void gguf_file_deinit(gguf_file *f);
meta_view gguf_meta(const gguf_file *f); /* valid as long as f */

#endif
