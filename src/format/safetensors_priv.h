/* One safetensors file as bytes: what safetensors_parse.c finds and safetensors.c makes a source
   of. */
#ifndef FORMAT_SAFETENSORS_PRIV_H
#define FORMAT_SAFETENSORS_PRIV_H

#include "format/format_priv.h"

typedef struct safetensors_pair {
    cairn_str key, value;
} safetensors_pair;

typedef struct safetensors_file {
    tensor_desc *tensor; /* in header order */
    size_t n_tensor;
    safetensors_pair *pair; /* __metadata__ */
    size_t n_pair;
} safetensors_file;

/* Parses and checks a whole header: it begins the file, every tensor lies inside, none overlap and
   no byte is left over.  Results live in the arena and the bytes; `path` must outlive them. */
cairn_status safetensors_parse(const char *path, const uint8_t *p, size_t size, arena *a,
                               safetensors_file *out, cairn_diag *dg);
/* Maps a file into the source; its tensors are called FRONT.NAME. */
cairn_status safetensors_add_file(source_build *b, const char *path, const char *front,
                                  cairn_diag *dg);

#endif
