/* What the readers of this folder share: one tensor list under construction, and checks of byte
   ranges.  Private to format/ and its tests. */
#ifndef FORMAT_FORMAT_PRIV_H
#define FORMAT_FORMAT_PRIV_H

#include "base/arena.h"
#include "base/file.h"
#include "tensor/source.h"

/* Kimi K2 with its scales has some 140,000 tensors; the index of this many takes 40 MB. */
enum { FORMAT_MAX_TENSORS = 1 << 18 };
/* GGUF's own limit is 64; names of HF checkpoints stay under 150. */
enum { FORMAT_MAX_NAME = 200 };
/* Of all names in a file, which are copied: three times Kimi K2's. */
enum { FORMAT_MAX_NAME_BYTES = 24 << 20 };

/* A span of a file's data section. */
typedef struct byte_range {
    uint64_t begin, end;
    uint32_t tensor; /* which of the list */
} byte_range;

/* Sorts the ranges by where they begin and finds the first that begins before its predecessor ends:
   its place in the sorted list, or n when none overlap. */
size_t ranges_first_overlap(byte_range *r, size_t n);

/* An open source under construction: sub-structs of one lifetime.  `src` comes first, so that the
   two pointers are one. */
typedef struct source_build {
    source src;
    arena mem; /* the list, names, metadata */
    file_map *map;
    size_t n_map;
    tensor_desc *tensor; /* what src.tensor points at */
    size_t cap;
} source_build;

cairn_status source_build_new(source_format format, const char *path, source_build **out,
                              cairn_diag *dg);
/* Room for n more tensors; E_LIMIT over FORMAT_MAX_TENSORS. */
cairn_status source_reserve(source_build *b, size_t n, cairn_diag *dg);
/* Appends; a name that is there already is E_CORRUPT. */
cairn_status source_add(source_build *b, const tensor_desc *t, cairn_diag *dg);
/* Maps one more file, closed with the source. */
cairn_status source_map_file(source_build *b, const char *path, file_map *out, cairn_diag *dg);

#endif
