/* Length + pointer strings: helpers over cairn_str. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <string.h>

#include "cairn/status.h"

#define STR_LIT(s) ((cairn_str){(s), sizeof(s) - 1})
/* For printf: "%.*s", STR_ARG(s) */
#define STR_ARG(s) (int)((s).len > 400 ? 400 : (s).len), (s).ptr

static inline cairn_str str_of(const char *z)
{
    return (cairn_str){z, z ? strlen(z) : 0};
}
static inline bool str_eq(cairn_str a, cairn_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}
static inline bool str_is(cairn_str a, const char *z)
{
    return str_eq(a, str_of(z));
}
static inline bool str_starts(cairn_str a, cairn_str prefix)
{
    return a.len >= prefix.len && (prefix.len == 0 || memcmp(a.ptr, prefix.ptr, prefix.len) == 0);
}
static inline bool str_ends(cairn_str a, cairn_str suffix)
{
    return a.len >= suffix.len &&
           (suffix.len == 0 || memcmp(a.ptr + a.len - suffix.len, suffix.ptr, suffix.len) == 0);
}
static inline cairn_str str_sub(cairn_str a, size_t from, size_t len)
{
    return (cairn_str){a.ptr + from, len};
}
static inline bool str_is_digit(char c)
{
    return c >= '0' && c <= '9';
}
/* Value of a hexadecimal digit, or -1. */
static inline int str_hex_digit(char c)
{
    if (str_is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}
/* Byte order; negative, 0, positive. */
int str_cmp(cairn_str a, cairn_str b);
/* Index of the first occurrence at or after `from`; SIZE_MAX if none. */
size_t str_find(cairn_str hay, cairn_str needle, size_t from);
cairn_str str_trim(cairn_str s); /* ASCII white space at both ends */

#endif
