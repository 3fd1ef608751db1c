/* The head of a GGUF file by hand: counts, keys and names as the format writes them, right or wrong. */
#ifndef TESTS_GGUF_HEAD_H
#define TESTS_GGUF_HEAD_H

#include <stdint.h>
#include <string.h>

#include "base/buf.h"

/* n bytes, little end first. */
static inline void gguf_put_int(buf *b, uint64_t v, int n)
{
    for (int i = 0; i < n; i++) buf_byte(b, (char)(i < 8 ? v >> 8 * i & 255 : 0));
}

static inline void gguf_put_head(buf *b, uint64_t version, uint64_t n_tensor, uint64_t n_kv)
{
    buf_clear(b);
    buf_puts(b, "GGUF");
    gguf_put_int(b, version, 4);
    gguf_put_int(b, n_tensor, 8);
    gguf_put_int(b, n_kv, 8);
}

static inline void gguf_put_str(buf *b, const char *z)
{
    gguf_put_int(b, strlen(z), 8);
    buf_puts(b, z);
}

/* Its value follows. */
static inline void gguf_put_key(buf *b, const char *name, uint64_t type)
{
    gguf_put_str(b, name);
    gguf_put_int(b, type, 4);
}

#endif
