/* A converter with a stack of brackets.  It writes JSON as soon as a byte's meaning is sure: strings
   leave as they come, words and numbers when they end.  Commas are written before the next element,
   so that Python's trailing ones vanish. */
#include "text/tool/tool_literal.h"

#include <string.h>

#include "base/str.h"
#include "base/utf8.h"

enum { L_VALUE, L_FIRST, L_KEY, L_BARE, L_COLON, L_AFTER, L_STR, L_WORD };

/* What opens and closes a string that takes more than a byte for that. */
static const char *mark_of(const literal *l)
{
    return l->kind == LITERAL_ESCAPE ? "<escape>" : "<|\"|>";
}

static bool one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

static size_t put_cp(unescape *u, uint32_t cp, char *out)
{
    size_t n = 0;
    if (u->high) {
        const uint32_t high = u->high;
        u->high = 0;
        if (cp >= 0xDC00 && cp <= 0xDFFF)
            return (size_t)utf8_encode(0x10000 + ((high - 0xD800) << 10) + (cp - 0xDC00), out);
        n = (size_t)utf8_encode(0xFFFD, out);
    }
    if (cp >= 0xD800 && cp <= 0xDBFF) {
        u->high = cp;
        return n;
    }
    return n + (size_t)utf8_encode(cp, out + n);
}

/* A high surrogate that no low one follows. */
static size_t put_lone(unescape *u, char *out)
{
    if (!u->high) return 0;
    u->high = 0;
    return (size_t)utf8_encode(0xFFFD, out);
}

static uint32_t valid_cp(uint32_t cp)
{
    return cp > 0x10FFFF ? 0xFFFD : cp;
}

static int hex_of(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static size_t after_slash(unescape *u, char c, char *out)
{
    static const char from[] = "abfnrtv0\\\"'/", to[] = "\a\b\f\n\r\t\v\0\\\"'/";
    const char *at = c ? strchr(from, c) : NULL;
    u->slash = false;
    if (c == 'x' || c == 'u' || c == 'U') {
        u->left = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        u->cp = 0;
        return 0;
    }
    size_t n = put_lone(u, out);
    if (at) {
        out[n++] = to[at - from];
        return n;
    }
    out[n++] = '\\';
    out[n++] = c;
    return n;
}

size_t unescape_feed(unescape *u, char c, char out[10])
{
    if (u->left) {
        const int h = hex_of(c);
        if (h < 0) { /* cut short: what is there counts */
            u->left = 0;
            const size_t n = put_cp(u, valid_cp(u->cp), out);
            return n + unescape_feed(u, c, out + n);
        }
        u->cp = (u->cp << 4) | (uint32_t)h;
        return --u->left ? 0 : put_cp(u, valid_cp(u->cp), out);
    }
    if (u->slash) return after_slash(u, c, out);
    if (c == '\\') {
        u->slash = true;
        return 0;
    }
    const size_t n = put_lone(u, out);
    out[n] = c;
    return n + 1;
}

void literal_init(literal *l, literal_kind kind)
{
    l->kind = kind;
    l->state = L_VALUE;
    l->depth = 0;
    l->n_mark = 0;
    l->is_key = false;
}

static void put_escaped(buf *out, const char *p, size_t n)
{
    char esc[6];
    for (size_t i = 0; i < n; i++) buf_put(out, esc, scan_escape(p[i], esc));
}

static char top(const literal *l)
{
    return l->depth ? l->open[l->depth - 1] : '\0';
}

/* An element begins: the comma that separates it. */
static void element(literal *l, buf *out)
{
    if (!l->depth || top(l) == '{') return;
    if (l->filled[l->depth - 1]) buf_byte(out, ',');
    l->filled[l->depth - 1] = true;
}

static void key_begins(literal *l, buf *out)
{
    if (l->filled[l->depth - 1]) buf_byte(out, ',');
    l->filled[l->depth - 1] = true;
    buf_byte(out, '"');
}

static scan_result ended(literal *l, scan_result how)
{
    l->state = L_AFTER;
    return l->depth ? SCAN_MORE : how;
}

static scan_result open_level(literal *l, char c, buf *out)
{
    if (l->depth == CAIRN_REPLY_MAX_DEPTH) return SCAN_BAD;
    element(l, out);
    l->open[l->depth] = c;
    l->filled[l->depth++] = false;
    buf_byte(out, c == '{' ? '{' : '[');
    l->state = c == '{' ? L_KEY : L_FIRST;
    return SCAN_MORE;
}

static scan_result close_level(literal *l, char c, buf *out)
{
    const char open = top(l);
    if (!open || c != (open == '{' ? '}' : open == '[' ? ']' : ')')) return SCAN_BAD;
    buf_byte(out, open == '{' ? '}' : ']');
    l->depth--;
    return ended(l, SCAN_DONE);
}

static void string_begins(literal *l, char quote)
{
    l->state = L_STR;
    l->quote = quote;
    l->n_mark = 0;
    l->esc = (unescape){0};
}

static scan_result string_ended(literal *l, buf *out)
{
    char last[10];
    size_t n = l->esc.left ? put_cp(&l->esc, valid_cp(l->esc.cp), last) : 0;
    n += put_lone(&l->esc, last + n);
    put_escaped(out, last, n);
    buf_byte(out, '"');
    if (!l->is_key) return ended(l, SCAN_DONE);
    l->is_key = false;
    l->state = L_COLON;
    return SCAN_MORE;
}

static scan_result in_string(literal *l, char c, bool mark, buf *out)
{
    char bytes[10];
    if (l->quote) {
        if (c == l->quote && !l->esc.slash) return string_ended(l, out);
        put_escaped(out, bytes, unescape_feed(&l->esc, c, bytes));
        return SCAN_MORE;
    }
    const char *quote = mark_of(l);
    if (mark && c == quote[l->n_mark]) {
        if (quote[++l->n_mark]) return SCAN_MORE;
        l->n_mark = 0;
        return string_ended(l, out);
    }
    put_escaped(out, quote, l->n_mark);
    l->n_mark = 0;
    if (mark && c == quote[0])
        l->n_mark = 1;
    else
        put_escaped(out, &c, 1);
    return SCAN_MORE;
}

static bool constant(const literal *l, const char **json)
{
    static const char *const words[][2] = {{"true", "true"}, {"false", "false"}, {"null", "null"},
                                           {"True", "true"}, {"False", "false"}, {"None", "null"}};
    const cairn_str w = {l->word, l->n_word};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (str_is(w, words[i][0])) {
            *json = words[i][1];
            return true;
        }
    return false;
}

static bool word_ended(literal *l, buf *out)
{
    const char *json;
    if (constant(l, &json)) {
        element(l, out);
        buf_puts(out, json);
        return true;
    }
    if (!scan_is_number(l->word, l->n_word)) return false;
    element(l, out);
    buf_put(out, l->word, l->n_word);
    return true;
}

static bool word_add(literal *l, char c)
{
    if (l->n_word == sizeof l->word) return false;
    l->word[l->n_word++] = c;
    return true;
}

static scan_result in_word(literal *l, char c, bool mark, buf *out)
{
    if (scan_is_space(c) || one_of(c, ",]})")) {
        if (!word_ended(l, out)) return SCAN_BAD;
        if (ended(l, SCAN_AFTER) == SCAN_AFTER) return SCAN_AFTER;
        return literal_feed(l, c, mark, out);
    }
    return word_add(l, c) ? SCAN_MORE : SCAN_BAD;
}

/* Gemma's quote where a value or key may begin: 1 whole, 0 under way, -1 none. */
static int quote_mark(literal *l, char c, bool mark)
{
    const char *quote = mark_of(l);
    if (l->kind == LITERAL_PYTHON || !mark || c != quote[l->n_mark]) return -1;
    if (quote[++l->n_mark]) return 0;
    l->n_mark = 0;
    return 1;
}

static scan_result value_begins(literal *l, char c, bool mark, buf *out)
{
    const int q = quote_mark(l, c, mark);
    if (q == 0) return SCAN_MORE;
    if (q < 0 && l->n_mark) return SCAN_BAD;
    if (q > 0 || c == '"' || (c == '\'' && l->kind == LITERAL_PYTHON)) {
        element(l, out);
        buf_byte(out, '"');
        string_begins(l, q > 0 ? '\0' : c);
        return SCAN_MORE;
    }
    if (scan_is_space(c)) return SCAN_MORE;
    if (l->state == L_FIRST && (c == ']' || c == ')')) return close_level(l, c, out);
    if (c == '{' || c == '[' || (c == '(' && l->kind == LITERAL_PYTHON))
        return open_level(l, c, out);
    l->n_word = 0;
    l->state = L_WORD;
    return one_of(c, ",]}):") || !word_add(l, c) ? SCAN_BAD : SCAN_MORE;
}

static scan_result key_or_end(literal *l, char c, bool mark, buf *out)
{
    const int q = quote_mark(l, c, mark);
    if (q == 0) return SCAN_MORE;
    if (q < 0 && l->n_mark) return SCAN_BAD;
    if (q > 0 || c == '"' || (c == '\'' && l->kind == LITERAL_PYTHON)) {
        key_begins(l, out);
        l->is_key = true;
        string_begins(l, q > 0 ? '\0' : c);
        return SCAN_MORE;
    }
    if (scan_is_space(c)) return SCAN_MORE;
    if (c == '}') return close_level(l, c, out);
    l->n_word = 0;
    l->state = L_BARE;
    return one_of(c, "{[(,:") || !word_add(l, c) ? SCAN_BAD : SCAN_MORE;
}

static scan_result in_bare_key(literal *l, char c, buf *out)
{
    if (c != ':') return !one_of(c, "{}[],\n") && word_add(l, c) ? SCAN_MORE : SCAN_BAD;
    const cairn_str key = str_trim((cairn_str){l->word, l->n_word});
    key_begins(l, out);
    put_escaped(out, key.ptr, key.len);
    buf_puts(out, "\":");
    l->state = L_VALUE;
    return SCAN_MORE;
}

static scan_result after_value(literal *l, char c, buf *out)
{
    if (scan_is_space(c)) return SCAN_MORE;
    if (c != ',') return close_level(l, c, out);
    l->state = top(l) == '{' ? L_KEY : L_FIRST;
    return SCAN_MORE;
}

scan_result literal_feed(literal *l, char c, bool mark, buf *out)
{
    switch (l->state) {
    case L_VALUE:
    case L_FIRST:
        return value_begins(l, c, mark, out);
    case L_KEY:
        return key_or_end(l, c, mark, out);
    case L_BARE:
        return in_bare_key(l, c, out);
    case L_STR:
        return in_string(l, c, mark, out);
    case L_WORD:
        return in_word(l, c, mark, out);
    case L_AFTER:
        return after_value(l, c, out);
    case L_COLON:
        if (scan_is_space(c)) return SCAN_MORE;
        buf_byte(out, ':');
        l->state = L_VALUE;
        return c == ':' ? SCAN_MORE : SCAN_BAD;
    }
    return SCAN_BAD;
}

scan_result literal_end(literal *l, buf *out)
{
    return l->state == L_WORD && l->depth == 0 && word_ended(l, out) ? SCAN_DONE : SCAN_BAD;
}

bool literal_convert(cairn_str text, buf *out)
{
    literal l;
    const size_t before = out->len;
    const cairn_str s = str_trim(text);
    scan_result res = SCAN_MORE;
    size_t i = 0;
    literal_init(&l, LITERAL_PYTHON);
    while (i < s.len && res == SCAN_MORE) res = literal_feed(&l, s.ptr[i++], true, out);
    if (res == SCAN_MORE) res = literal_end(&l, out);
    if (res == SCAN_DONE && i == s.len) return true;
    buf_cut(out, before);
    return false;
}
