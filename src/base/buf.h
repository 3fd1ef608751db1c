/* Growable bytes with a sticky error: after the first failure every call is a no-op; check
   buf_status once at the end.  A buf always keeps a NUL after its last byte once it holds any. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <string.h>

#include "base/alloc.h"
#include "cairn/status.h"

typedef struct buf {
    char *ptr;
    size_t len, cap;
    size_t max; /* limit on len; 0: none */
    bool no_memory, over_limit;
    mem_tag tag;
} buf;

void buf_init(buf *b, mem_tag tag);
void buf_deinit(buf *b); /* zeroed is fine */
void buf_clear(buf *b);  /* len 0, errors kept off, capacity kept */
void buf_put(buf *b, const void *p, size_t n);
void buf_str(buf *b, cairn_str s);
void buf_puts(buf *b, const char *z);
void buf_byte(buf *b, char c);
void buf_printf(buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Room for n more bytes, uninitialised, already counted in len; NULL after a failure. */
void *buf_grow(buf *b, size_t n);
/* Room for n more bytes, so that adding them cannot fail. */
cairn_status buf_reserve(buf *b, size_t n);
/* Gives back the room behind its bytes, which may move. */
void buf_fit(buf *b);
void buf_cut(buf *b, size_t len); /* shorten to len */
/* buf_put of a few bytes, without its call where there is room. */
static inline void buf_add(buf *b, const void *p, size_t n)
{
    if (b->cap - b->len <= n || b->max || b->no_memory || b->over_limit) {
        buf_put(b, p, n);
        return;
    }
    memcpy(b->ptr + b->len, p, n);
    b->len += n;
    b->ptr[b->len] = '\0';
}
/* E_NOMEM, E_LIMIT or OK. */
cairn_status buf_status(const buf *b);
static inline cairn_str buf_view(const buf *b)
{
    return (cairn_str){b->ptr, b->len};
}
/* Moves the bytes to the caller (cairn_bytes_free); b is left empty. */
cairn_status buf_take(buf *b, cairn_bytes *out);

#endif
