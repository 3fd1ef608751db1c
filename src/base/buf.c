/* Growable bytes.  Capacity doubles; one byte is always kept for the NUL.  Errors stick: the first
   failure turns every later call into nothing, and the bytes before it stay as they are. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

enum { BUF_FIRST = 64 };

void buf_init(buf *b, mem_tag tag)
{
    *b = (buf){.tag = tag};
}

void buf_deinit(buf *b)
{
    mem_free(b->ptr);
    *b = (buf){.tag = b->tag, .max = b->max};
}

void buf_clear(buf *b)
{
    b->len = 0;
    b->no_memory = b->over_limit = false;
    if (b->ptr) b->ptr[0] = '\0';
}

static bool reserve(buf *b, size_t n)
{
    size_t need, cap;
    if (b->no_memory || b->over_limit) return false;
    if (!add_size(b->len, n, &need) || (b->max && need > b->max)) {
        b->over_limit = true;
        return false;
    }
    if (b->ptr && need < b->cap) return true;
    cap = b->cap > SIZE_MAX / 2 ? SIZE_MAX : b->cap * 2;
    if (cap < BUF_FIRST) cap = BUF_FIRST;
    if (cap <= need && !add_size(need, 1, &cap)) {
        b->over_limit = true;
        return false;
    }
    char *p = mem_realloc(b->ptr, cap, b->tag);
    if (!p) {
        b->no_memory = true;
        return false;
    }
    b->ptr = p;
    b->cap = cap;
    return true;
}

cairn_status buf_reserve(buf *b, size_t n)
{
    (void)reserve(b, n);
    return buf_status(b);
}

void buf_fit(buf *b)
{
    char *p = b->ptr ? mem_realloc(b->ptr, b->len + 1, b->tag) : NULL;

    b->no_memory = b->no_memory || (b->ptr && !p);
    if (!p) return;
    b->ptr = p;
    b->cap = b->len + 1;
}

void *buf_grow(buf *b, size_t n)
{
    if (!reserve(b, n)) return NULL;
    char *at = b->ptr + b->len;
    b->len += n;
    b->ptr[b->len] = '\0';
    return at;
}

void buf_put(buf *b, const void *p, size_t n)
{
    if (n == 0) return;
    void *at = buf_grow(b, n);
    if (at) memcpy(at, p, n);
}

void buf_str(buf *b, cairn_str s)
{
    buf_put(b, s.ptr, s.len);
}

void buf_puts(buf *b, const char *z)
{
    buf_put(b, z, strlen(z));
}

void buf_byte(buf *b, char c)
{
    buf_put(b, &c, 1);
}

void buf_printf(buf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0) {
        b->over_limit = true; /* longer than INT_MAX, the only way for our formats to fail */
    } else if (n > 0) {
        char *at = buf_grow(b, (size_t)n);
        if (at) (void)vsnprintf(at, (size_t)n + 1, fmt, again);
    }
    va_end(again);
}

void buf_cut(buf *b, size_t len)
{
    if (len >= b->len) return;
    b->len = len;
    b->ptr[len] = '\0';
}

cairn_status buf_status(const buf *b)
{
    if (b->no_memory) return CAIRN_E_NOMEM;
    return b->over_limit ? CAIRN_E_LIMIT : CAIRN_OK;
}

cairn_status buf_take(buf *b, cairn_bytes *out)
{
    if (!b->ptr) (void)buf_grow(b, 0); /* an empty result is still a string */
    const cairn_status st = buf_status(b);
    if (st != CAIRN_OK) return st;
    *out = (cairn_bytes){b->ptr, b->len};
    *b = (buf){.tag = b->tag, .max = b->max};
    return CAIRN_OK;
}
