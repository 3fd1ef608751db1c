/* Methods of str that few templates call: istitle, isidentifier, isprintable, casefold, expandtabs.
   What a character is comes from utf8proc, as in jinja_text.c. */
#include <utf8proc.h>

#include "base/utf8.h"
#include "text/jinja_run.h"

/* The character at *i, which moves behind it. */
static uint32_t next_char(cairn_str s, size_t *i)
{
    uint32_t cp = 0;
    const int n = utf8_decode(s.ptr + *i, s.len - *i, &cp);
    *i += (size_t)(n > 0 ? n : 1);
    return cp;
}

/* Upper case begins a word, lower case goes on with one, and there is a letter. */
static bool m_istitle(jrun *r, jv self, const jv *arg, jv *out)
{
    bool inside = false, yes = true, any = false;
    (void)arg;
    if (!jbytes(r, self.len)) return false;
    for (size_t i = 0; i < self.len && yes;) {
        const utf8proc_category_t c =
            utf8proc_category((utf8proc_int32_t)next_char(jv_text(self), &i));
        const bool upper = c == UTF8PROC_CATEGORY_LU || c == UTF8PROC_CATEGORY_LT;
        const bool lower = c == UTF8PROC_CATEGORY_LL;
        yes = !(upper && inside) && !(lower && !inside);
        inside = upper || lower;
        any |= inside;
    }
    *out = jv_bool(yes && any);
    return true;
}

static bool m_isidentifier(jrun *r, jv self, const jv *arg, jv *out)
{
    bool yes = self.len > 0;
    (void)arg;
    if (!jbytes(r, self.len)) return false;
    for (size_t i = 0; i < self.len && yes;) {
        const bool first = i == 0;
        const uint32_t cp = next_char(jv_text(self), &i);
        const utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
        const bool letter = cp == '_' || (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO) ||
                            c == UTF8PROC_CATEGORY_NL;
        yes = letter || (!first && (c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC ||
                                    c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_PC));
    }
    *out = jv_bool(yes);
    return true;
}

static bool m_isprintable(jrun *r, jv self, const jv *arg, jv *out)
{
    bool yes = true;
    (void)arg;
    if (!jbytes(r, self.len)) return false;
    for (size_t i = 0; i < self.len && yes;) yes = jtext_printable(next_char(jv_text(self), &i));
    *out = jv_bool(yes);
    return true;
}

static bool m_casefold(jrun *r, jv self, const jv *arg, jv *out)
{
    utf8proc_int32_t to[8];
    int boundary = 0;
    char z[4];
    buf b;

    (void)arg;
    if (!jbytes(r, self.len)) return false;
    buf_init(&b, MEM_TEXT);
    for (size_t i = 0; i < self.len;) {
        const uint32_t cp = next_char(jv_text(self), &i);
        const utf8proc_ssize_t n = utf8proc_decompose_char(
            (utf8proc_int32_t)cp, to, sizeof to / sizeof to[0], UTF8PROC_CASEFOLD, &boundary);
        for (utf8proc_ssize_t k = 0; k < n; k++)
            buf_put(&b, z, (size_t)utf8proc_encode_char(to[k], (utf8proc_uint8_t *)z));
    }
    return jv_give(r, &b, true, out);
}

static bool m_expandtabs(jrun *r, jv self, const jv *arg, jv *out)
{
    const jv size = arg[0].t == J_MISSING ? jv_int(8) : arg[0];
    int64_t column = 0;
    buf b;

    if (!jv_is_int(size)) return jfail(r, "expandtabs: the size must be an integer");
    const int64_t tab = jv_as_int(size);
    if (tab > JINJA_MAX_STEPS)
        return jfail_as(r, CAIRN_E_LIMIT, "expandtabs: tabs of %lld; expected at most %d",
                        (long long)tab, JINJA_MAX_STEPS);
    buf_init(&b, MEM_TEXT);
    for (size_t i = 0; i < self.len && b.len <= JINJA_MAX_OUTPUT; i++) {
        const char c = self.u.s[i];
        if (c == '\t') {
            for (int64_t n = tab > 0 ? tab - column % tab : 0; n > 0; n--, column++)
                buf_byte(&b, ' ');
            continue;
        }
        buf_byte(&b, c);
        if (((unsigned char)c & 0xc0) != 0x80) column++;
        if (c == '\n' || c == '\r') column = 0;
    }
    return jsteps(r, b.len / 16) ? jv_give(r, &b, true, out) : (buf_deinit(&b), false);
}

const jfn jmethods_str_ask[] = {{"istitle", m_istitle, NULL, ""},
                                {"isidentifier", m_isidentifier, NULL, ""},
                                {"isprintable", m_isprintable, NULL, ""},
                                {"casefold", m_casefold, NULL, ""},
                                {"expandtabs", m_expandtabs, NULL, "tabsize?"},
                                {0}};
