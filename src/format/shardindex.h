/* model.safetensors.index.json: which file holds which tensor.  Private to format/ and its tests. */
#ifndef FORMAT_SHARDINDEX_H
#define FORMAT_SHARDINDEX_H

#include "base/arena.h"
#include "base/map.h"

typedef struct shard_tensor {
    cairn_str name;
    uint32_t shard;
} shard_tensor;

typedef struct shard_index {
    const char *path; /* the caller's, for messages */
    shard_tensor *tensor;
    size_t n_tensor;
    cairn_str *shard; /* plain file names, NUL-terminated too */
    size_t n_shard;
    map where;    /* tensor → place in `shard` */
    map by_shard; /* the same for shards */
    arena mem;    /* all of the above but the maps */
    size_t names_left;
} shard_index;

/* Reads the file's text, which is not kept.  What is malformed, too big, or leads out of the folder is
   refused.  Memory: the names and one piece of the text.  Deinitialise it in any case. */
cairn_status shard_index_parse(const char *path, cairn_str text, shard_index *out, cairn_diag *dg);
void shard_index_deinit(shard_index *x);

#endif
