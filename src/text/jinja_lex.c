/* Template text to tokens, white space already taken away as `-`, trim_blocks and lstrip_blocks ask.
   Owns line counting and string escapes; knows nothing of grammar.  The whole template becomes one
   array that ends in TK_EOF. */
#include <stdlib.h>

#include "base/diag.h"
#include "base/utf8.h"
#include "text/jinja_ast.h"
#include "text/jinja_big.h"

typedef struct lexer {
    jparse *p;
    const char *s;
    size_t n, pos;
    int32_t line;
    bool line_starting; /* the last match ended in a line break */
    jtoken *tok;
    size_t n_tok, cap;
    char close[JINJA_MAX_NESTING * 2]; /* brackets to be closed */
    uint32_t n_close;
} lexer;

const char *jtoken_name(int type)
{
    static const char *const names[] = {
#define JTOKEN_TEXT(name, text) text,
        JTOKEN_LIST(JTOKEN_TEXT)
#undef JTOKEN_TEXT
    };
    return names[type];
}

static bool add(lexer *x, int type, int32_t line, jv val)
{
    if (x->n_tok == x->cap) {
        size_t cap = x->cap ? x->cap * 2 : 256;
        jtoken *t = jparse_alloc(x->p, cap * sizeof *t);
        if (!t) return false;
        if (x->n_tok) memcpy(t, x->tok, x->n_tok * sizeof *t);
        x->tok = t;
        x->cap = cap;
    }
    x->tok[x->n_tok++] = (jtoken){.type = (uint8_t)type, .line = line, .val = val};
    return true;
}

static bool at(const lexer *x, size_t i, const char *z)
{
    size_t n = strlen(z);
    return i <= x->n && x->n - i >= n && memcmp(x->s + i, z, n) == 0;
}

static size_t skip_space(const lexer *x, size_t i)
{
    while (i < x->n) {
        size_t k = jtext_space(x->s + i, x->n - i);
        if (!k) break;
        i += k;
    }
    return i;
}

/* Moves to `to`, counting lines. */
static void advance(lexer *x, size_t to)
{
    for (size_t i = x->pos; i < to; i++) x->line += x->s[i] == '\n';
    if (to > x->pos) x->line_starting = x->s[to - 1] == '\n';
    x->pos = to;
}

/* End of a tag's closing mark at i ("%}", "#}"), with what is trimmed after it; 0 if none. */
static size_t close_mark(const lexer *x, size_t i, const char *mark)
{
    if (at(x, i, "-") && at(x, i + 1, mark)) return skip_space(x, i + 3);
    if (at(x, i, "+") && at(x, i + 1, mark)) return i + 3;
    if (at(x, i, mark)) return i + 2 + (i + 2 < x->n && x->s[i + 2] == '\n');
    return 0;
}

/* Text from x->pos to `end`, before a tag whose sign is `sign`; then x stands at `end`. */
static bool text(lexer *x, size_t end, char sign, bool variable)
{
    size_t from = x->pos, to = end;
    int32_t line = x->line;

    if (sign == '-') {
        size_t k;
        while (to > from && (k = jtext_space_back(x->s + from, to - from)) > 0) to -= k;
    } else if (sign != '+' && !variable) {
        size_t l = end;
        while (l > from && x->s[l - 1] != '\n') l--;
        if ((l > from || x->line_starting) && skip_space(x, l) >= end) to = l;
    }
    bool starting = x->line_starting;
    advance(x, end);
    if (end == from) x->line_starting = starting;
    return to == from || add(x, TK_DATA, line, jv_str((cairn_str){x->s + from, to - from}));
}

/* After "{%" at i: where a raw tag ends, 0 if it is another tag. */
static size_t raw_begin(const lexer *x, size_t i)
{
    i += 2;
    if (at(x, i, "-") || at(x, i, "+")) i++;
    i = skip_space(x, i);
    if (!at(x, i, "raw")) return 0;
    i = skip_space(x, i + 3);
    if (at(x, i, "-%}")) return skip_space(x, i + 3);
    return at(x, i, "%}") ? i + 2 : 0;
}

static bool raw_block(lexer *x)
{
    for (size_t i = x->pos; i + 1 < x->n; i++) {
        if (!at(x, i, "{%")) continue;
        size_t k = i + 2;
        char sign = k < x->n && (x->s[k] == '-' || x->s[k] == '+') ? x->s[k] : 0;
        k = skip_space(x, k + (sign != 0));
        if (!at(x, k, "endraw")) continue;
        size_t end = close_mark(x, skip_space(x, k + 6), "%}");
        if (!end) continue;
        if (!text(x, i, sign, false)) return false;
        advance(x, end);
        return true;
    }
    if (x->pos >= x->n) return true; /* nothing after the tag: the reference lets that pass */
    jparse_fail(x->p, CAIRN_E_CORRUPT, x->line, "raw block without endraw");
    return false;
}

static bool comment(lexer *x)
{
    for (size_t i = x->pos; i + 1 < x->n; i++) {
        size_t end = close_mark(x, i, "#}");
        if (!end) continue;
        advance(x, end);
        return true;
    }
    if (x->pos >= x->n) return true;
    jparse_fail(x->p, CAIRN_E_CORRUPT, x->line, "comment without its end '#}'");
    return false;
}

static int hex_value(char c)
{
    if (str_is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

static void put_char(buf *b, uint32_t cp)
{
    char c[4];
    int n = utf8_encode(cp, c);
    buf_put(b, c, (size_t)n);
}

/* A character after a backslash that is not ASCII keeps its code as text, as Python's
   unicode-escape leaves it. */
static size_t escape_wide(cairn_str s, size_t i, buf *b)
{
    uint32_t cp;
    int n = utf8_decode(s.ptr + i, s.len - i, &cp);
    buf_printf(b, cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)cp);
    return i + (size_t)(n > 0 ? n : 1);
}

/* One escape at s[i] (after the backslash); answers the index after it, 0 if malformed. */
static size_t escape(cairn_str s, size_t i, buf *b)
{
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    char c = s.ptr[i];
    const char *at_from = c ? strchr(from, c) : NULL;

    if (at_from) {
        buf_byte(b, to[at_from - from]);
        return i + 1;
    }
    if (c == '\n') return i + 1;
    if ((unsigned char)c >= 0x80) return escape_wide(s, i, b);
    if (c >= '0' && c <= '7') {
        uint32_t v = 0;
        for (int k = 0; k < 3 && i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '7'; k++, i++)
            v = v * 8 + (uint32_t)(s.ptr[i] - '0');
        put_char(b, v);
        return i;
    }
    size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (c == 'N') return 0; /* needs the names of all characters */
    if (!digits) {
        buf_byte(b, '\\');
        buf_byte(b, c);
        return i + 1;
    }
    uint32_t v = 0;
    if (s.len - i - 1 < digits) return 0;
    for (size_t k = 1; k <= digits; k++) {
        int h = hex_value(s.ptr[i + k]);
        if (h < 0) return 0;
        v = v << 4 | (uint32_t)h;
    }
    if (v > 0x10ffff) return 0;
    put_char(b, v);
    return i + 1 + digits;
}

static bool unescape(lexer *x, cairn_str s, jv *out)
{
    buf b;
    bool ok = false;
    char *copy;

    if (!s.len || !memchr(s.ptr, '\\', s.len)) {
        *out = jv_str(s);
        return true;
    }
    buf_init(&b, MEM_TEXT);
    for (size_t i = 0; i < s.len;) {
        if (s.ptr[i] != '\\') {
            buf_byte(&b, s.ptr[i++]);
        } else if (i + 1 >= s.len || (i = escape(s, i + 1, &b)) == 0) {
            jparse_fail(x->p, CAIRN_E_CORRUPT, x->line,
                        "malformed escape in a string; expected one as in Python");
            goto out;
        }
    }
    copy = buf_status(&b) == CAIRN_OK ? jparse_alloc(x->p, b.len + 1) : NULL;
    if (!copy) {
        jparse_fail(x->p, CAIRN_E_NOMEM, x->line, "no memory for a string");
        goto out;
    }
    if (b.len) memcpy(copy, b.ptr, b.len);
    *out = jv_str((cairn_str){copy, b.len});
    ok = true;
out:
    buf_deinit(&b);
    return ok;
}

static bool string(lexer *x)
{
    char quote = x->s[x->pos];
    size_t i = x->pos + 1;
    jv v;

    while (i < x->n && x->s[i] != quote) i += x->s[i] == '\\' ? 2 : 1;
    if (i >= x->n) {
        jparse_fail(x->p, CAIRN_E_CORRUPT, x->line, "string without its closing %c", quote);
        return false;
    }
    if (!unescape(x, (cairn_str){x->s + x->pos + 1, i - x->pos - 1}, &v)) return false;
    if (!add(x, TK_STRING, x->line, v)) return false;
    advance(x, i + 1);
    return true;
}

static bool digit_of(char c, unsigned base)
{
    int h = hex_value(c);
    return h >= 0 && (unsigned)h < base;
}

/* Digits with single underscores between them, from i; answers the end (i: none). */
static size_t digits(const lexer *x, size_t i, unsigned base)
{
    size_t end = i;
    while (i < x->n) {
        if (digit_of(x->s[i], base))
            end = ++i;
        else if (x->s[i] == '_' && i > 0 && digit_of(x->s[i - 1], base))
            i++;
        else
            break;
    }
    return end;
}

static size_t float_end(const lexer *x, size_t i)
{
    size_t start = i, whole = digits(x, i, 10), end = whole;
    if (whole == i || (start > 0 && x->s[start - 1] == '.')) return 0;
    if (at(x, whole, ".") && digits(x, whole + 1, 10) > whole + 1) end = digits(x, whole + 1, 10);
    if (end < x->n && (x->s[end] | 32) == 'e') {
        size_t k = end + 1;
        if (k < x->n && (x->s[k] == '+' || x->s[k] == '-')) k++;
        if (digits(x, k, 10) > k) return digits(x, k, 10);
    }
    return end > whole ? end : 0;
}

static bool long_integer(lexer *x, size_t from, size_t end, unsigned base)
{
    if (end - from > JBIG_MAX_DIGITS) {
        jparse_fail(x->p, CAIRN_E_LIMIT, x->line, "integer of more than %d digits",
                    JBIG_MAX_DIGITS);
        return false;
    }
    const jbig *v = jbig_read(x->p->a, (cairn_str){x->s + from, end - from}, base, false);
    if (!v) {
        jparse_fail(x->p, CAIRN_E_NOMEM, x->line, "no memory for an integer");
        return false;
    }
    if (!add(x, TK_INT, x->line, jbig_value(v))) return false;
    advance(x, end);
    return true;
}

static bool integer(lexer *x, size_t i)
{
    char next = i + 1 < x->n ? (char)(x->s[i + 1] | 32) : 0;
    unsigned base = x->s[i] != '0' ? 10 : next == 'x' ? 16 : next == 'o' ? 8 : next == 'b' ? 2 : 10;
    size_t from = base == 10 ? i : i + 2, end;
    int64_t v = 0;

    if (base != 10) {
        if (at(x, from, "_")) from++;
        if (digits(x, from, base) == from) base = 10, from = i;
    }
    end = digits(x, from, x->s[i] == '0' && base == 10 ? 1 : base);
    for (size_t k = from; k < end; k++) {
        if (x->s[k] == '_') continue;
        if (__builtin_mul_overflow(v, (int64_t)base, &v) ||
            __builtin_add_overflow(v, (int64_t)hex_value(x->s[k]), &v))
            return long_integer(x, from, end, base);
    }
    if (!add(x, TK_INT, x->line, jv_int(v))) return false;
    advance(x, end);
    return true;
}

static bool number(lexer *x)
{
    size_t end = float_end(x, x->pos), n = 0;
    char z[400];

    if (!end) return integer(x, x->pos);
    for (size_t i = x->pos; i < end; i++) {
        if (x->s[i] == '_') continue;
        if (n + 1 >= sizeof z) {
            jparse_fail(x->p, CAIRN_E_LIMIT, x->line, "number of more than 400 characters");
            return false;
        }
        z[n++] = x->s[i];
    }
    z[n] = 0;
    if (!add(x, TK_FLOAT, x->line, jv_float(strtod(z, NULL)))) return false;
    advance(x, end);
    return true;
}

static bool op(lexer *x)
{
    static const uint8_t two[] = {TK_FLOORDIV, TK_POW, TK_EQ, TK_NE, TK_GE, TK_LE};
    int type = 0;

    for (size_t k = 0; k < sizeof two && !type; k++)
        if (at(x, x->pos, jtoken_name(two[k]))) type = two[k];
    for (int k = TK_ADD; k <= TK_SEMICOLON && !type; k++)
        if (at(x, x->pos, jtoken_name(k))) type = k;
    if (!type) {
        jparse_fail(x->p, CAIRN_E_CORRUPT, x->line,
                    "unexpected character '%c'; expected an expression", x->s[x->pos]);
        return false;
    }
    char c = x->s[x->pos];
    if (c == '(' || c == '[' || c == '{') {
        if (x->n_close == sizeof x->close) {
            jparse_fail(x->p, CAIRN_E_LIMIT, x->line, "brackets nested more than %zu deep",
                        sizeof x->close);
            return false;
        }
        x->close[x->n_close++] = (char)(c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == ')' || c == ']' || c == '}') {
        if (!x->n_close || x->close[--x->n_close] != c) {
            jparse_fail(x->p, CAIRN_E_CORRUPT, x->line,
                        "unexpected '%c'; expected a bracket that closes the last open one", c);
            return false;
        }
    }
    if (!add(x, type, x->line, jv_of(J_MISSING))) return false;
    advance(x, x->pos + strlen(jtoken_name(type)));
    return true;
}

static size_t name_end(const lexer *x, size_t i)
{
    while (i < x->n) {
        unsigned char c = (unsigned char)x->s[i];
        if (c >= 0x80) {
            uint32_t cp;
            int k = utf8_decode(x->s + i, x->n - i, &cp);
            if (k <= 0 || !jtext_is((cairn_str){x->s + i, (size_t)k}, IS_ALNUM)) break;
            i += (size_t)k;
        } else if (c == '_' || str_is_digit((char)c) || ((c | 32) >= 'a' && (c | 32) <= 'z')) {
            i++;
        } else {
            break;
        }
    }
    return i;
}

/* The inside of {{ … }} or {% … %}, to its closing mark. */
static bool inside(lexer *x, bool block)
{
    while (x->pos < x->n) {
        size_t end = 0, i = x->pos;
        if (!x->n_close) {
            if (block)
                end = close_mark(x, i, "%}");
            else if (at(x, i, "-}}"))
                end = skip_space(x, i + 3);
            else if (at(x, i, "}}"))
                end = i + 2;
        }
        if (end) {
            int32_t line = x->line;
            advance(x, end);
            return add(x, block ? TK_BLOCK_END : TK_VAR_END, line, jv_of(J_MISSING));
        }
        char c = x->s[i];
        if (jtext_space(x->s + i, x->n - i)) {
            advance(x, skip_space(x, i));
        } else if (str_is_digit((char)c)) {
            if (!number(x)) return false;
        } else if (name_end(x, i) > i) {
            end = name_end(x, i);
            if (!add(x, TK_NAME, x->line, jv_str((cairn_str){x->s + i, end - i}))) return false;
            advance(x, end);
        } else if (c == '\'' || c == '"') {
            if (!string(x)) return false;
        } else if (!op(x)) {
            return false;
        }
    }
    return true; /* the parser misses the closing mark */
}

static bool template_text(lexer *x)
{
    while (x->pos < x->n) {
        size_t i = x->pos;
        while (i < x->n && !at(x, i, "{{") && !at(x, i, "{%") && !at(x, i, "{#")) i++;
        if (i >= x->n) return text(x, x->n, '+', false);
        char kind = x->s[i + 1], next = i + 2 < x->n ? x->s[i + 2] : 0;
        char sign = (char)(next == '-' || next == '+' ? next : 0);
        if (!text(x, i, sign, kind == '{')) return false;
        size_t raw = kind == '%' ? raw_begin(x, i) : 0;
        int32_t line = x->line;
        advance(x, raw ? raw : i + 2 + (sign != 0));
        if (raw) {
            if (!raw_block(x)) return false;
        } else if (kind == '#') {
            if (!comment(x)) return false;
        } else if (!add(x, kind == '%' ? TK_BLOCK_BEGIN : TK_VAR_BEGIN, line, jv_of(J_MISSING)) ||
                   !inside(x, kind == '%')) {
            return false;
        }
    }
    return true;
}

cairn_status jlex(jparse *p, cairn_str source, jtoken **out)
{
    lexer x = {.p = p, .line = 1, .line_starting = true};
    char *s = jparse_alloc(p, source.len + 1);

    if (!s) return p->st;
    for (size_t i = 0; i < source.len; i++) { /* \r\n and \r are line breaks too */
        bool cr = source.ptr[i] == '\r';
        if (cr && i + 1 < source.len && source.ptr[i + 1] == '\n') i++;
        s[x.n++] = (char)(cr ? '\n' : source.ptr[i]);
    }
    if (x.n && s[x.n - 1] == '\n') x.n--;
    x.s = s;
    if (!template_text(&x) || !add(&x, TK_EOF, x.line, jv_of(J_MISSING))) return p->st;
    *out = x.tok;
    return CAIRN_OK;
}
