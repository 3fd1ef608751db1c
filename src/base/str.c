/* Helpers over borrowed strings that are too big to inline.  Nothing here allocates. */
#include "base/str.h"

int str_cmp(cairn_str a, cairn_str b)
{
    const size_t n = a.len < b.len ? a.len : b.len;
    const int c = n ? memcmp(a.ptr, b.ptr, n) : 0;
    if (c != 0) return c;
    return (a.len > b.len) - (a.len < b.len);
}

size_t str_find(cairn_str hay, cairn_str needle, size_t from)
{
    if (from > hay.len || needle.len > hay.len - from) return SIZE_MAX;
    if (needle.len == 0) return from;
    if (needle.len <= 4) { /* too short for memmem's preparations; four times the time at worst */
        for (const char *p = hay.ptr + from, *end = hay.ptr + hay.len - needle.len + 1; p < end;
             p++) {
            p = memchr(p, needle.ptr[0], (size_t)(end - p));
            if (!p) break;
            if (memcmp(p, needle.ptr, needle.len) == 0) return (size_t)(p - hay.ptr);
        }
        return SIZE_MAX;
    }
    const char *p = memmem(hay.ptr + from, hay.len - from, needle.ptr, needle.len);
    return p ? (size_t)(p - hay.ptr) : SIZE_MAX;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

cairn_str str_trim(cairn_str s)
{
    while (s.len && is_space(s.ptr[s.len - 1])) s.len--;
    while (s.len && is_space(s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    return s;
}
