/* Finds the place where a text stops being JSON (RFC 8259), for messages.  The parser decides what
   is right; this scanner runs only after it refused, so it may be slow, but like any reader of
   outside bytes it never goes past the end and has no recursion. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_priv.h"
#include "base/str.h"
#include "base/utf8.h"

typedef struct scan {
    const char *p;
    size_t n, at;
    const char *what;
    bool any; /* numbers beyond a double too */
    int depth;
    char close[JSON_MAX_DEPTH + 1]; /* the bracket that ends each open value */
} scan;

static bool fail(scan *s, size_t at, const char *what)
{
    s->at = at;
    s->what = what;
    return false;
}

/* The byte at i, or 0 past the end (no JSON token has a zero byte). */
static char peek(const scan *s, size_t i)
{
    return i < s->n ? s->p[i] : '\0';
}

static void skip_space(scan *s)
{
    while (s->at < s->n && s->p[s->at] && strchr(" \t\r\n", s->p[s->at])) s->at++;
}

static int hex4(const scan *s, size_t i)
{
    int v = 0;
    for (size_t k = i; k < i + 4; k++) {
        const char c = peek(s, k);
        const int low = c | 0x20;
        if (!str_is_digit(c) && (low < 'a' || low > 'f')) return -1;
        v = v << 4 | (str_is_digit(c) ? c - '0' : low - 'a' + 10);
    }
    return v;
}

static bool scan_escape(scan *s)
{
    const size_t start = s->at;
    const char c = peek(s, start + 1);
    if (c && strchr("\"\\/bfnrt", c)) {
        s->at += 2;
        return true;
    }
    if (c != 'u') return fail(s, start, "unknown escape");
    const int u = hex4(s, start + 2);
    if (u < 0) return fail(s, start, "\\u needs four hexadecimal digits");
    s->at += 6;
    if (u < 0xD800 || u > 0xDFFF) return true;
    const int low =
        peek(s, start + 6) == '\\' && peek(s, start + 7) == 'u' ? hex4(s, start + 8) : -1;
    if (u > 0xDBFF || low < 0xDC00 || low > 0xDFFF)
        return fail(s, start, "half of a surrogate pair");
    s->at += 6;
    return true;
}

static bool scan_string(scan *s)
{
    const size_t start = s->at++;
    while (s->at < s->n) {
        const unsigned char c = (unsigned char)s->p[s->at];
        uint32_t cp;
        if (c == '"') {
            s->at++;
            return true;
        }
        if (c < 0x20) return fail(s, s->at, "control character in a string");
        if (c == '\\') {
            if (!scan_escape(s)) return false;
            continue;
        }
        const int n = utf8_decode(s->p + s->at, s->n - s->at, &cp);
        if (n < 0) return fail(s, s->at, "bytes that are not UTF-8");
        s->at += (size_t)n;
    }
    return fail(s, start, "string without an end");
}

/* Of a number without faults. */
static double number_of(const char *p, size_t n, buf *text)
{
    buf_clear(text);
    buf_put(text, p, n);
    return buf_status(text) == CAIRN_OK ? strtod(text->ptr, NULL) : 0;
}

static bool in_range(const char *p, size_t n)
{
    buf text;
    buf_init(&text, MEM_JSON);
    const bool finite = isfinite(number_of(p, n, &text));
    buf_deinit(&text);
    return finite;
}

/* One that keeps to the syntax, whatever its size; 0 with `what` set: none begins here. */
static size_t number_end(scan *s)
{
    const size_t start = s->at;
    size_t i = start + (peek(s, start) == '-');
    if (!str_is_digit(peek(s, i))) return (size_t)fail(s, start, "unexpected character");
    if (peek(s, i) == '0' && str_is_digit(peek(s, i + 1)))
        return (size_t)fail(s, start, "number with a leading zero");
    while (str_is_digit(peek(s, i))) i++;
    if (peek(s, i) == '.') {
        if (!str_is_digit(peek(s, ++i)))
            return (size_t)fail(s, start, "number without digits after its point");
        while (str_is_digit(peek(s, i))) i++;
    }
    if ((peek(s, i) | 0x20) == 'e') {
        i++;
        if (peek(s, i) == '+' || peek(s, i) == '-') i++;
        if (!str_is_digit(peek(s, i)))
            return (size_t)fail(s, start, "number without digits in its exponent");
        while (str_is_digit(peek(s, i))) i++;
    }
    return i;
}

static bool scan_number(scan *s)
{
    const size_t start = s->at, end = number_end(s);
    if (end == 0) return false;
    if (!s->any && !in_range(s->p + start, end - start))
        return fail(s, start, "number out of range");
    s->at = end;
    return true;
}

static bool scan_word(scan *s)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i]);
        if (s->n - s->at >= n && memcmp(s->p + s->at, words[i], n) == 0) {
            s->at += n;
            return true;
        }
    }
    return fail(s, s->at, "unexpected character");
}

/* "key" : */
static bool scan_key(scan *s)
{
    skip_space(s);
    if (peek(s, s->at) != '"') return fail(s, s->at, "expected a member's name in quotes");
    if (!scan_string(s)) return false;
    skip_space(s);
    if (peek(s, s->at) != ':') return fail(s, s->at, "expected ':'");
    s->at++;
    return true;
}

/* A scalar, an empty container, or the opening of one (*opened: its first value comes next). */
static bool scan_value(scan *s, bool *opened)
{
    *opened = false;
    skip_space(s);
    if (s->at >= s->n) return fail(s, s->at, "ends before a value");
    const char c = s->p[s->at];
    if (c == '"') return scan_string(s);
    if (c == '-' || str_is_digit(c)) return scan_number(s);
    if (c != '{' && c != '[') return scan_word(s);
    if (s->depth == JSON_MAX_DEPTH) return fail(s, s->at, "nested too deeply");
    s->close[s->depth++] = c == '{' ? '}' : ']';
    s->at++;
    skip_space(s);
    if (peek(s, s->at) == s->close[s->depth - 1]) {
        s->depth--;
        s->at++;
        return true;
    }
    *opened = true;
    return c == '[' || scan_key(s);
}

/* After a value: closes what ends here; true when another value must follow. */
static bool scan_after(scan *s)
{
    while (s->depth > 0) {
        const char close = s->close[s->depth - 1];
        skip_space(s);
        const char c = peek(s, s->at);
        if (c == ',') {
            s->at++;
            return close == ']' || scan_key(s);
        }
        if (c != close)
            return fail(s, s->at, close == ']' ? "expected ',' or ']'" : "expected ',' or '}'");
        s->at++;
        s->depth--;
    }
    skip_space(s);
    if (s->at < s->n) return fail(s, s->at, "something after the value");
    return false;
}

json_place json_locate(cairn_str text, bool any)
{
    scan s = {.p = text.ptr, .n = text.len, .any = any};
    bool more = true, opened;
    if (str_starts(text, STR_LIT("\xef\xbb\xbf"))) /* which Python's json refuses too */
        return (json_place){0, "byte order mark; expected a value"};
    while (more) {
        if (!scan_value(&s, &opened)) break;
        more = opened || scan_after(&s);
    }
    return (json_place){s.at, s.what};
}

static bool over_64_bits(const char *p, size_t n, bool negative)
{
    static const char most[] = "18446744073709551615", least[] = "9223372036854775808";
    const char *limit = negative ? least : most;
    const size_t len = negative ? sizeof least - 1 : sizeof most - 1;

    return n > len || (n == len && memcmp(p, limit, n) > 0);
}

/* Bytes of the number that begins at s[i]; 0: none begins there. */
static size_t number_len(cairn_str text, size_t i)
{
    size_t end = i;
    if (text.ptr[i] != '-' && !str_is_digit(text.ptr[i])) return 0;
    while (end < text.len && (str_is_digit(text.ptr[end]) || strchr("+-.eE", text.ptr[end])) &&
           text.ptr[end])
        end++;
    return end - i;
}

static bool is_long_integer(const char *p, size_t n)
{
    const bool minus = n && *p == '-';
    size_t i = minus;
    while (i < n && str_is_digit(p[i])) i++;
    return i == n && over_64_bits(p + minus, n - minus, minus);
}

/* −1, 1: a number that keeps to the syntax, beyond a double; 0: any other. */
static int beyond_double(const char *p, size_t n, buf *scratch)
{
    scan s = {.p = p, .n = n};
    if (n == 0 || number_end(&s) != n) return 0;
    const double x = number_of(p, n, scratch);
    return isfinite(x) ? 0 : x < 0 ? -1 : 1;
}

/* What stands for a number that the parser does not take; NULL: it takes this one. */
static const char *stand_in(cairn_str number, bool any, json_long *l, buf *scratch)
{
    const bool digits = is_long_integer(number.ptr, number.len);
    l->infinite = any ? beyond_double(number.ptr, number.len, scratch) : 0;
    if (!digits) l->len = 0;
    return l->infinite ? "0.0" : digits ? "e0" : NULL;
}

void json_widen(cairn_str text, bool any, buf *out, buf *longs)
{
    size_t done = 0, i = 0;
    uint64_t ordinal = 0;
    bool in_string = false;
    buf scratch;

    buf_init(&scratch, MEM_JSON);
    while (i < text.len) {
        const char c = text.ptr[i];
        if (in_string || c == '"') {
            if (in_string && c == '\\') i++;
            if (c == '"') in_string = !in_string;
            i++;
            continue;
        }
        const size_t n = number_len(text, i);
        json_long l = {.at = ordinal, .from = i, .len = n};
        const char *other = stand_in((cairn_str){text.ptr + i, n}, any, &l, &scratch);
        if (other) {
            const size_t end = l.infinite ? i : i + n;
            buf_put(out, text.ptr + done, end - done);
            buf_puts(out, other);
            buf_put(longs, &l, sizeof l);
            done = i + n;
        }
        ordinal += n > 0;
        i += n ? n : 1;
    }
    if (done < text.len) buf_put(out, text.ptr + done, text.len - done);
    out->no_memory |= scratch.no_memory;
    buf_deinit(&scratch);
}
