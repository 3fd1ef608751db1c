/* libFuzzer target: the safetensors header parser. */
#include "format/safetensors_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    safetensors_file f;
    arena a;

    arena_init(&a, MEM_MODEL);
    if (safetensors_parse("fuzz", p, n, &a, &f, NULL) == CAIRN_OK)
        for (size_t i = 0; i < f.n_tensor; i++)
            if (f.tensor[i].data < p || f.tensor[i].size > (size_t)(p + n - f.tensor[i].data))
                __builtin_trap();
    arena_deinit(&a);
    return 0;
}
