/* libFuzzer target: config.json in Python's dialect, and lookups by dotted path.  The input's first
   line is the path, the rest the file. */
#include "format/hfconfig.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void look(const meta_view *v, const char *key)
{
    meta m, e;
    if (!meta_get(v, key, &m) || m.type != META_ARR) return;
    for (size_t i = 0; i < m.u.n && i < 100; i++) (void)meta_at(v, &m, i, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    const uint8_t *end = n ? memchr(p, '\n', n) : NULL;
    const size_t key_len = end ? (size_t)(end - p) : 0, skip = end ? key_len + 1 : 0;
    char key[300] = "a.0.b";
    hfconfig *c;

    if (key_len > 0 && key_len < sizeof key) {
        memcpy(key, p, key_len);
        key[key_len] = 0;
    }
    if (hfconfig_parse("fuzz", (cairn_str){(const char *)p + skip, n - skip}, &c, NULL) != CAIRN_OK)
        return 0;
    const meta_view v = hfconfig_meta(c);
    look(&v, key);
    look(&v, "layer_types");
    hfconfig_close(c);
    return 0;
}
