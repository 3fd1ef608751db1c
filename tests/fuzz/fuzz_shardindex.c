/* libFuzzer target: model.safetensors.index.json. */
#include "format/shardindex.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    shard_index x;
    if (shard_index_parse("fuzz", (cairn_str){(const char *)p, n}, &x, NULL) == CAIRN_OK)
        for (size_t i = 0; i < x.n_tensor; i++)
            if (x.tensor[i].shard >= x.n_shard) abort();
    shard_index_deinit(&x);
    return 0;
}
