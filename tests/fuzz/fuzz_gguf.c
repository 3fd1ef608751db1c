/* libFuzzer target: the GGUF header parser and every metadata value. */
#include "format/gguf_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void walk(const meta_view *v, const meta *m, int depth)
{
    meta e;
    if (m->type != META_ARR || depth > 6) return;
    for (size_t i = 0; i < m->u.n && i < 1000; i++)
        if (meta_at(v, m, i, &e)) walk(v, &e, depth + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    gguf_file f;
    arena a;

    arena_init(&a, MEM_MODEL);
    if (gguf_parse("fuzz", p, n, &a, &f, NULL) == CAIRN_OK) {
        const meta_view v = gguf_meta(&f);
        for (size_t i = 0; i < f.n_kv; i++) {
            char *key = arena_strdup(&a, f.kv[i].key);
            meta m;
            if (key && meta_get(&v, key, &m)) walk(&v, &m, 0);
        }
        for (size_t i = 0; i < f.n_tensor; i++)
            if (f.tensor[i].data < p || f.tensor[i].size > (size_t)(p + n - f.tensor[i].data))
                __builtin_trap();
    }
    gguf_file_deinit(&f);
    arena_deinit(&a);
    return 0;
}
