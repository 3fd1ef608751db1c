/* Methods of str that give it another form: case, padding, format; and those that ask what it is made of.
   Finding and cutting are jinja_method_cut.c's. */
#include "text/jinja_run.h"

static bool cased(jrun *r, jv self, int how, jv *out)
{
    buf b;
    if (!jbytes(r, self.len)) return false;
    buf_init(&b, MEM_TEXT);
    jtext_case(jv_text(self), how, &b);
    bool ok = buf_status(&b) == CAIRN_OK || jfail_as(r, CAIRN_E_NOMEM, "changed case");
    ok = ok && jv_copy(r, buf_view(&b), out);
    buf_deinit(&b);
    return ok;
}

#define CASE_METHOD(name, how)                                                                     \
    static bool name(jrun *r, jv self, const jv *arg, jv *out)                                     \
    {                                                                                              \
        (void)arg;                                                                                 \
        return cased(r, self, how, out);                                                           \
    }
CASE_METHOD(m_upper, CASE_UPPER)
CASE_METHOD(m_lower, CASE_LOWER)
CASE_METHOD(m_title, CASE_TITLE)
CASE_METHOD(m_capitalize, CASE_CAPITAL)
CASE_METHOD(m_swapcase, CASE_SWAP)

#define IS_METHOD(name, what)                                                                      \
    static bool name(jrun *r, jv self, const jv *arg, jv *out)                                     \
    {                                                                                              \
        (void)arg;                                                                                 \
        if (!jbytes(r, self.len)) return false;                                                    \
        *out = jv_bool(jtext_is(jv_text(self), what));                                             \
        return true;                                                                               \
    }
IS_METHOD(m_isalpha, IS_ALPHA)
IS_METHOD(m_isdigit, IS_DIGIT)
IS_METHOD(m_isdecimal, IS_DECIMAL)
IS_METHOD(m_isnumeric, IS_NUMERIC)
IS_METHOD(m_isalnum, IS_ALNUM)
IS_METHOD(m_isspace, IS_SPACE)
IS_METHOD(m_isupper, IS_UPPER)
IS_METHOD(m_islower, IS_LOWER)

static bool m_isascii(jrun *r, jv self, const jv *arg, jv *out)
{
    bool ascii = true;
    (void)r, (void)arg;
    for (uint32_t i = 0; i < self.len && ascii; i++) ascii = (unsigned char)self.u.s[i] < 0x80;
    *out = jv_bool(ascii);
    return true;
}

/* n_left and n_right copies of the fill around the text. */
static bool padded(jrun *r, jv self, size_t n_left, size_t n_right, jv fill, jv *out)
{
    size_t n = (n_left + n_right) * fill.len, len = n + self.len, at = 0;
    char *s;

    if (n_left + n_right > JINJA_MAX_OUTPUT || len > JINJA_MAX_OUTPUT)
        return jfail_long(r, "padding");
    if (!(s = jalloc(r, len + 1))) return false;
    for (size_t i = 0; i < n_left + n_right + 1; i++) {
        jv part = i == n_left ? self : fill;
        if (part.len) memcpy(s + at, part.u.s, part.len);
        at += part.len;
    }
    *out = jv_str((cairn_str){s, len});
    return jsteps(r, n / 4);
}

static bool justify(jrun *r, jv self, const jv *arg, int where, jv *out)
{
    jv fill = arg[1].t == J_MISSING ? jv_lit(" ") : arg[1];
    int64_t len = (int64_t)jtext_count(jv_text(self));

    if (!jv_is_int(arg[0])) return jfail(r, "width must be an integer");
    if (fill.t != J_STR || jtext_count(jv_text(fill)) != 1)
        return jfail(r, "the fill character must be exactly one character long");
    int64_t width = jv_as_int(arg[0]), gap = width > len ? width - len : 0;
    int64_t left = where == '<' ? 0 : where == '>' ? gap : gap / 2 + (gap & width & 1);
    return padded(r, self, (size_t)left, (size_t)(gap - left), fill, out);
}

static bool m_ljust(jrun *r, jv self, const jv *arg, jv *out)
{
    return justify(r, self, arg, '<', out);
}
static bool m_rjust(jrun *r, jv self, const jv *arg, jv *out)
{
    return justify(r, self, arg, '>', out);
}
static bool m_center(jrun *r, jv self, const jv *arg, jv *out)
{
    return justify(r, self, arg, '^', out);
}

static bool m_zfill(jrun *r, jv self, const jv *arg, jv *out)
{
    bool sign = self.len && (self.u.s[0] == '-' || self.u.s[0] == '+');
    int64_t len = (int64_t)jtext_count(jv_text(self));

    if (!jv_is_int(arg[0])) return jfail(r, "width must be an integer");
    size_t gap = jv_as_int(arg[0]) > len ? (size_t)(jv_as_int(arg[0]) - len) : 0;
    jv body = jv_str(str_sub(jv_text(self), sign, self.len - sign));
    if (!padded(r, body, gap, 0, jv_lit("0"), out)) return false;
    return !sign || jv_binary(r, TK_ADD, jv_str(str_sub(jv_text(self), 0, 1)), *out, out);
}

static bool m_format(jrun *r, jv self, const jcall *c, jv *out)
{
    return jformat_braces(r, jv_text(self), c, out);
}

static bool m_format_map(jrun *r, jv self, const jv *arg, jv *out)
{
    jcall c = {0};

    if (arg[0].t != J_DICT) return jfail(r, "format_map needs a dict");
    uint32_t n = arg[0].u.dict->n;
    if (!(c.kw_name = jalloc(r, 2 * (size_t)n * sizeof(jv)))) return false;
    c.kw = c.kw_name + n;
    for (uint32_t i = 0; i < n; i++) {
        if (arg[0].u.dict->kv[i].k.t != J_STR) continue;
        c.kw_name[c.n_kw] = arg[0].u.dict->kv[i].k;
        c.kw[c.n_kw++] = arg[0].u.dict->kv[i].v;
    }
    return jformat_braces(r, jv_text(self), &c, out);
}

const jfn jmethods_str_form[] = {{"upper", m_upper, NULL, ""},
                                 {"lower", m_lower, NULL, ""},
                                 {"title", m_title, NULL, ""},
                                 {"capitalize", m_capitalize, NULL, ""},
                                 {"swapcase", m_swapcase, NULL, ""},
                                 {"isalpha", m_isalpha, NULL, ""},
                                 {"isdigit", m_isdigit, NULL, ""},
                                 {"isdecimal", m_isdecimal, NULL, ""},
                                 {"isnumeric", m_isnumeric, NULL, ""},
                                 {"isalnum", m_isalnum, NULL, ""},
                                 {"isspace", m_isspace, NULL, ""},
                                 {"isupper", m_isupper, NULL, ""},
                                 {"islower", m_islower, NULL, ""},
                                 {"isascii", m_isascii, NULL, ""},
                                 {"ljust", m_ljust, NULL, "width fillchar?"},
                                 {"rjust", m_rjust, NULL, "width fillchar?"},
                                 {"center", m_center, NULL, "width fillchar?"},
                                 {"zfill", m_zfill, NULL, "width"},
                                 {"format", NULL, m_format, NULL},
                                 {"format_map", m_format_map, NULL, "mapping"},
                                 {"encode", NULL, NULL, NULL},
                                 {"translate", NULL, NULL, NULL},
                                 {"maketrans", NULL, NULL, NULL},
                                 {0}};
