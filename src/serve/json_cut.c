/* One look at each byte.  A value is known to be complete when a comma or a closing bracket follows, so
   what was begun and cut is left out rather than guessed. */
#include "serve/json_cut.h"

#include <string.h>

#include "base/json.h"

size_t json_string_end(cairn_str s, size_t at)
{
    for (size_t i = at; i < s.len; i++) {
        const char *quote = memchr(s.ptr + i, '"', s.len - i);
        size_t n = 0;

        if (!quote) return s.len;
        i = (size_t)(quote - s.ptr);
        while (n < i - at && s.ptr[i - 1 - n] == '\\') n++;
        if (n % 2 == 0) return i;
    }
    return s.len;
}

void json_cut_close(buf *b)
{
    const cairn_str s = buf_view(b);
    char closers[JSON_MAX_DEPTH];
    size_t depth = 0, keep = 0;

    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];
        if (c == '"') i = json_string_end(s, i + 1);
        if (c == ',') keep = i;
        if ((c == '{' || c == '[') && depth == sizeof closers) break;
        if (c == '{' || c == '[') closers[depth++] = c == '{' ? '}' : ']';
        if ((c == '}' || c == ']') && depth) depth--;
        if (c == '{' || c == '[' || c == '}' || c == ']') keep = i + 1;
    }
    if (depth == 0 && keep) return;
    buf_cut(b, keep);
    while (depth) buf_byte(b, closers[--depth]);
    if (b->len == 0) buf_puts(b, "{}");
}
