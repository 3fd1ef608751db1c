/* Streaming writer.  Commas are its business, brackets the caller's: closing what was not opened is
   a mistake of ours and asserts.  Errors stay in the buf. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_priv.h"
#include "base/str.h"
#include "base/utf8.h"

json_writer json_write(buf *out)
{
    return (json_writer){.out = out};
}

/* Before each value: the comma that parts it from the one before. */
static void before(json_writer *w)
{
    if (w->need_comma && !w->after_key) buf_byte(w->out, ',');
    w->after_key = false;
    w->need_comma = true;
}

static void open_with(json_writer *w, char c)
{
    before(w);
    buf_byte(w->out, c);
    w->need_comma = false;
    w->depth++;
}

static void close_with(json_writer *w, char c)
{
    assert(w->depth > 0 && !w->after_key);
    buf_byte(w->out, c);
    w->need_comma = true;
    w->depth--;
}

void json_w_obj(json_writer *w)
{
    open_with(w, '{');
}

void json_w_end_obj(json_writer *w)
{
    close_with(w, '}');
}

void json_w_arr(json_writer *w)
{
    open_with(w, '[');
}

void json_w_end_arr(json_writer *w)
{
    close_with(w, ']');
}

/* One byte that JSON wants escaped. */
static void put_escape(buf *b, unsigned char c)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *at = c ? strchr(from, c) : NULL;
    if (at)
        buf_printf(b, "\\%c", to[at - from]);
    else
        buf_printf(b, "\\u%04x", (unsigned)c);
}

static void put_string(buf *b, cairn_str s)
{
    size_t from = 0, i = 0; /* bytes from `from` on can be copied as they are */
    buf_byte(b, '"');
    while (i < s.len) {
        const unsigned char c = (unsigned char)s.ptr[i];
        uint32_t cp;
        if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
            i++;
            continue;
        }
        const int n = utf8_decode(s.ptr + i, s.len - i, &cp);
        if (n > 1) {
            i += (size_t)n;
            continue;
        }
        buf_put(b, s.ptr + from, i - from);
        if (n == 1)
            put_escape(b, c);
        else
            buf_puts(b, "\xEF\xBF\xBD");
        i += (size_t)abs(n);
        from = i;
    }
    if (i > from) buf_put(b, s.ptr + from, i - from);
    buf_byte(b, '"');
}

static void put_key(json_writer *w, cairn_str key)
{
    assert(!w->after_key);
    before(w);
    put_string(w->out, key);
    buf_byte(w->out, ':');
    w->after_key = true;
}

void json_w_key_str(json_writer *w, cairn_str key)
{
    put_key(w, key);
}

void json_w_key(json_writer *w, const char *key)
{
    put_key(w, str_of(key));
}

void json_w_str(json_writer *w, cairn_str s)
{
    before(w);
    put_string(w->out, s);
}

void json_w_int(json_writer *w, int64_t v)
{
    before(w);
    buf_printf(w->out, "%lld", (long long)v);
}

void json_w_uint(json_writer *w, uint64_t v)
{
    before(w);
    buf_printf(w->out, "%llu", (unsigned long long)v);
}

void json_w_num(json_writer *w, double v)
{
    char text[40];
    if (!isfinite(v)) {
        json_w_null(w);
        return;
    }
    before(w);
    for (int digits = 15; digits <= 17; digits++) { /* 17 always read back */
        (void)snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v) break;
    }
    buf_puts(w->out, text);
    if (!strpbrk(text, ".e")) buf_puts(w->out, ".0"); /* reads back as a float, with its sign */
}

void json_w_bool(json_writer *w, bool v)
{
    before(w);
    buf_puts(w->out, v ? "true" : "false");
}

void json_w_null(json_writer *w)
{
    before(w);
    buf_puts(w->out, "null");
}

void json_w_raw(json_writer *w, cairn_str json)
{
    before(w);
    buf_str(w->out, json);
}

/* Recursion ends: a parsed document is at most JSON_MAX_DEPTH deep. */
void json_w_val(json_writer *w, json_val v)
{
    json_iter it = json_each(v);
    json_val item;
    cairn_str key;
    switch (json_typeof(v)) {
    case JSON_NONE:
    case JSON_NULL:
        json_w_null(w);
        return;
    case JSON_BOOL:
        json_w_bool(w, json_bool(v, false));
        return;
    case JSON_INT:
        json_w_int(w, json_int(v, 0));
        return;
    case JSON_UINT:
        json_w_uint(w, json_uint_bits(v));
        return;
    case JSON_FLOAT:
        if (json_digits(v).len)
            json_w_raw(w, json_digits(v));
        else if (isinf(json_num(v, 0)))
            json_w_raw(w, json_num(v, 0) < 0 ? STR_LIT("-1e999") : STR_LIT("1e999"));
        else
            json_w_num(w, json_num(v, 0));
        return;
    case JSON_STR:
        json_w_str(w, json_str(v));
        return;
    case JSON_ARR:
        json_w_arr(w);
        while (json_next(&it, &item)) json_w_val(w, item);
        json_w_end_arr(w);
        return;
    case JSON_OBJ:
        json_w_obj(w);
        while (json_next_member(&it, &key, &item)) {
            put_key(w, key);
            json_w_val(w, item);
        }
        json_w_end_obj(w);
        return;
    }
}

void json_w_kstr(json_writer *w, const char *key, cairn_str s)
{
    json_w_key(w, key);
    json_w_str(w, s);
}

void json_w_kint(json_writer *w, const char *key, int64_t v)
{
    json_w_key(w, key);
    json_w_int(w, v);
}

void json_w_kuint(json_writer *w, const char *key, uint64_t v)
{
    json_w_key(w, key);
    json_w_uint(w, v);
}

void json_w_knum(json_writer *w, const char *key, double v)
{
    json_w_key(w, key);
    json_w_num(w, v);
}

void json_w_kbool(json_writer *w, const char *key, bool v)
{
    json_w_key(w, key);
    json_w_bool(w, v);
}
