/* Files on disk → tensor/source.h. */
#ifndef FORMAT_FORMAT_H
#define FORMAT_FORMAT_H

#include "cairn/status.h"
#include "tensor/source.h"

/* A directory with config.json beside safetensors (single, or sharded with an index), or a .gguf
   file (any part of a split set).  Headers only: tensor bytes are mapped, not read.  Every offset,
   shape and count is checked; messages name file, field, found, expected. */
cairn_status source_open(const char *path, source **out, cairn_diag *dg);
void source_close(source *s); /* NULL is fine */

cairn_status gguf_open(const char *path, source **out, cairn_diag *dg);
cairn_status safetensors_open_dir(const char *dir, source **out, cairn_diag *dg);
/* One file without a config: tensors only, `meta` answers its __metadata__ strings. */
cairn_status safetensors_open_file(const char *path, source **out, cairn_diag *dg);

/* NumPy files, for `logits` and `info --tensor`: little-endian f32/i32, C order. */
cairn_status npy_write_f32(const char *path, const float *p, const size_t *dim, size_t n_dim,
                           cairn_diag *dg);
/* Stored .npz of ids i32 [n,k], logits f32 [n,k], lse f32 [n]. */
cairn_status npz_write_top(const char *path, const int32_t *ids, const float *logits,
                           const float *lse, size_t n, size_t k, cairn_diag *dg);

#endif
