/* Text as Python's str sees it: white space, case, character classes, lines.  Characters are code
   points; properties are utf8proc's, but for the few whose case is several characters. */
#include <utf8proc.h>

#include "base/utf8.h"
#include "text/jinja_value.h"

static const struct {
    uint32_t cp;
    const char *upper, *title;
} special[] = {
#include "text/jinja_case_table.inc"
};

static bool is_space(uint32_t cp)
{
    return cp == ' ' || (cp >= 9 && cp <= 13) || (cp >= 0x1c && cp <= 0x1f) || cp == 0x85 ||
           cp == 0xa0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 ||
           cp == 0x2029 || cp == 0x202f || cp == 0x205f || cp == 0x3000;
}

static size_t decode(const char *p, size_t n, uint32_t *cp)
{
    if (!((unsigned char)*p & 0x80)) {
        *cp = (unsigned char)*p;
        return 1;
    }
    int k = utf8_decode(p, n, cp);
    return (size_t)(k > 0 ? k : 1);
}

/* Start of the character that ends at n (n > 0). */
static size_t back(const char *p, size_t n)
{
    n--;
    while (n > 0 && ((unsigned char)p[n] & 0xc0) == 0x80) n--;
    return n;
}

size_t jtext_space(const char *p, size_t n)
{
    uint32_t cp;
    size_t k = decode(p, n, &cp);
    return is_space(cp) ? k : 0;
}

size_t jtext_space_back(const char *p, size_t n)
{
    size_t at = back(p, n);
    return jtext_space(p + at, n - at);
}

static bool among(const char *p, size_t n, const cairn_str *chars)
{
    if (!chars) return jtext_space(p, n) == n;
    for (size_t i = 0; i < chars->len;) {
        uint32_t cp;
        size_t k = decode(chars->ptr + i, chars->len - i, &cp);
        if (k == n && memcmp(chars->ptr + i, p, n) == 0) return true;
        i += k;
    }
    return false;
}

cairn_str jtext_strip(cairn_str s, const cairn_str *chars, bool left, bool right)
{
    uint32_t cp;

    while (left && s.len) {
        size_t k = decode(s.ptr, s.len, &cp);
        if (!among(s.ptr, k, chars)) break;
        s = str_sub(s, k, s.len - k);
    }
    while (right && s.len) {
        size_t at = back(s.ptr, s.len);
        if (!among(s.ptr + at, s.len - at, chars)) break;
        s.len = at;
    }
    return s;
}

size_t jtext_count(cairn_str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) n += ((unsigned char)s.ptr[i] & 0xc0) != 0x80;
    return n;
}

size_t jtext_offset(cairn_str s, size_t i_char)
{
    size_t i = 0;
    for (; i < s.len; i++)
        if (((unsigned char)s.ptr[i] & 0xc0) != 0x80 && i_char-- == 0) break;
    return i;
}

static void put(uint32_t cp, buf *b)
{
    char c[4];
    buf_put(b, c, (size_t)utf8_encode(cp, c));
}

static uint32_t simple(uint32_t cp, int how)
{
    utf8proc_int32_t c = (utf8proc_int32_t)cp;
    c = how == CASE_UPPER   ? utf8proc_toupper(c)
        : how == CASE_TITLE ? utf8proc_totitle(c)
                            : utf8proc_tolower(c);
    return (uint32_t)c;
}

static void put_case(uint32_t cp, int how, buf *b)
{
    if (cp < 0x80) {
        bool letter = (cp | 32) >= 'a' && (cp | 32) <= 'z';
        buf_byte(b, (char)(!letter ? cp : how == CASE_LOWER ? cp | 32 : cp & ~32u));
        return;
    }
    if (how == CASE_LOWER && cp == 0x130) { /* the one with two characters */
        put('i', b);
        put(0x307, b);
        return;
    }
    for (size_t i = 0; how != CASE_LOWER && i < sizeof special / sizeof *special; i++) {
        if (special[i].cp != cp) continue;
        buf_puts(b, how == CASE_UPPER ? special[i].upper : special[i].title);
        return;
    }
    put(simple(cp, how), b);
}

static bool is_cased(uint32_t cp)
{
    if (cp < 0x80) return (cp | 32) >= 'a' && (cp | 32) <= 'z';
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c == UTF8PROC_CATEGORY_LU || c == UTF8PROC_CATEGORY_LL || c == UTF8PROC_CATEGORY_LT;
}

static bool case_ignorable(uint32_t cp)
{
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return cp == '\'' || cp == '.' || cp == ':' || cp == 0xb7 || cp == 0x2019 ||
           c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_ME || c == UTF8PROC_CATEGORY_CF ||
           c == UTF8PROC_CATEGORY_LM || c == UTF8PROC_CATEGORY_SK;
}

/* A capital sigma at the end of a word becomes ς. */
static bool final_sigma(cairn_str s, size_t at)
{
    uint32_t cp = 0;
    size_t i = at;
    bool before = false;

    while (i > 0) {
        i = back(s.ptr, i);
        decode(s.ptr + i, s.len - i, &cp);
        if (case_ignorable(cp)) continue;
        before = is_cased(cp);
        break;
    }
    for (i = at + 2; before && i < s.len;) {
        i += decode(s.ptr + i, s.len - i, &cp);
        if (!case_ignorable(cp)) return !is_cased(cp);
    }
    return before;
}

void jtext_case(cairn_str s, int how, buf *b)
{
    bool in_word = false;

    for (size_t i = 0; i < s.len;) {
        uint32_t cp;
        size_t k = decode(s.ptr + i, s.len - i, &cp);
        int to = how;
        if (how == CASE_CAPITAL) to = i ? CASE_LOWER : CASE_TITLE;
        if (how == CASE_TITLE) to = in_word ? CASE_LOWER : CASE_TITLE;
        if (how == CASE_SWAP) to = simple(cp, CASE_LOWER) != cp ? CASE_LOWER : CASE_UPPER;
        if (to == CASE_LOWER && cp == 0x3a3)
            put(final_sigma(s, i) ? 0x3c2 : 0x3c3, b);
        else
            put_case(cp, to, b);
        in_word = is_cased(cp);
        i += k;
    }
}

static bool is_alpha(utf8proc_category_t c)
{
    return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

/* Characters of category No with a digit value: superscripts, subscripts, circled and so on. */
static bool is_no_digit(uint32_t cp)
{
    return cp == 0xb2 || cp == 0xb3 || cp == 0xb9 || (cp >= 0x1369 && cp <= 0x1371) ||
           cp == 0x19da || cp == 0x2070 || (cp >= 0x2074 && cp <= 0x2079) ||
           (cp >= 0x2080 && cp <= 0x2089) || (cp >= 0x2460 && cp <= 0x2468) ||
           (cp >= 0x2474 && cp <= 0x247c) || (cp >= 0x2488 && cp <= 0x2490) || cp == 0x24ea ||
           (cp >= 0x24f5 && cp <= 0x24fd) || cp == 0x24ff || (cp >= 0x2776 && cp <= 0x277e) ||
           (cp >= 0x2780 && cp <= 0x2788) || (cp >= 0x278a && cp <= 0x2792) ||
           (cp >= 0x1f100 && cp <= 0x1f10a);
}

static bool is_one(uint32_t cp, int what)
{
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    bool decimal = c == UTF8PROC_CATEGORY_ND, digit = decimal || is_no_digit(cp);
    bool numeric = digit || c == UTF8PROC_CATEGORY_NO || c == UTF8PROC_CATEGORY_NL;

    switch (what) {
    case IS_ALPHA:
        return is_alpha(c);
    case IS_DECIMAL:
        return decimal;
    case IS_DIGIT:
        return digit;
    case IS_NUMERIC:
        return numeric;
    case IS_ALNUM:
        return is_alpha(c) || numeric;
    default:
        return is_space(cp);
    }
}

bool jtext_is(cairn_str s, int what)
{
    bool cased = false;

    for (size_t i = 0; i < s.len;) {
        uint32_t cp;
        i += decode(s.ptr + i, s.len - i, &cp);
        if (what == IS_UPPER || what == IS_LOWER) {
            utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
            bool upper = c == UTF8PROC_CATEGORY_LU, lower = c == UTF8PROC_CATEGORY_LL;
            if (c == UTF8PROC_CATEGORY_LT || (what == IS_UPPER ? lower : upper)) return false;
            cased |= upper || lower;
        } else if (!is_one(cp, what)) {
            return false;
        }
    }
    return what == IS_UPPER || what == IS_LOWER ? cased : s.len > 0;
}

size_t jtext_word(const char *p, size_t n)
{
    uint32_t cp;
    const size_t k = decode(p, n, &cp);
    return cp == '_' || is_one(cp, IS_ALNUM) ? k : 0;
}

static bool is_decimal(uint32_t cp)
{
    return utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_ND;
}

/* Digits lie in runs of ten from their zero on; the mathematical ones in five runs at once. */
static char digit_of(uint32_t cp)
{
    uint32_t n = 0;
    if (cp >= 0x1d7ce && cp <= 0x1d7ff) return (char)('0' + (cp - 0x1d7ce) % 10);
    while (n < 9 && is_decimal(cp - n - 1)) n++;
    return (char)('0' + n);
}

bool jtext_digits(jrun *r, cairn_str *s)
{
    size_t i = 0, n = 0;
    while (i < s->len && (unsigned char)s->ptr[i] < 0x80) i++;
    if (i == s->len) return true;
    char *z = jalloc(r, s->len);
    if (!z) return false;
    for (i = 0; i < s->len;) {
        uint32_t cp;
        const int k = utf8_decode(s->ptr + i, s->len - i, &cp);
        const size_t len = (size_t)(k > 0 ? k : 1);
        if (cp >= 0x80 && is_decimal(cp)) {
            z[n++] = digit_of(cp);
        } else {
            memcpy(z + n, s->ptr + i, len);
            n += len;
        }
        i += len;
    }
    *s = (cairn_str){z, n};
    return true;
}

bool jtext_printable(uint32_t cp)
{
    if (cp < 0x7f) return cp >= 0x20;
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c != UTF8PROC_CATEGORY_CN && c < UTF8PROC_CATEGORY_ZS;
}

static bool is_line_end(uint32_t cp)
{
    return (cp >= 10 && cp <= 13) || (cp >= 0x1c && cp <= 0x1e) || cp == 0x85 || cp == 0x2028 ||
           cp == 0x2029;
}

bool jtext_line(cairn_str s, size_t *pos, bool keep, cairn_str *line)
{
    size_t from = *pos, i = from;

    if (from >= s.len) return false;
    while (i < s.len) {
        uint32_t cp;
        size_t k = decode(s.ptr + i, s.len - i, &cp);
        if (!is_line_end(cp)) {
            i += k;
            continue;
        }
        if (cp == '\r' && i + 1 < s.len && s.ptr[i + 1] == '\n') k = 2;
        *line = str_sub(s, from, i - from + (keep ? k : 0));
        *pos = i + k;
        return true;
    }
    *line = str_sub(s, from, i - from);
    *pos = i;
    return true;
}

void jtext_escape(cairn_str s, buf *b)
{
    for (size_t i = 0; i < s.len; i++) {
        switch (s.ptr[i]) {
        case '&':
            buf_puts(b, "&amp;");
            break;
        case '<':
            buf_puts(b, "&lt;");
            break;
        case '>':
            buf_puts(b, "&gt;");
            break;
        case '\'':
            buf_puts(b, "&#39;");
            break;
        case '"':
            buf_puts(b, "&#34;");
            break;
        default:
            buf_byte(b, s.ptr[i]);
            break;
        }
    }
}
