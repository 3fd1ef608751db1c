/* The other methods: case, classes, padding and format of str; list and tuple; dict. */
#include "text/jinja_run.h"

static bool cased(jrun *r, jv self, int how, jv *out)
{
    buf b;
    if (!jsteps(r, self.len / 16)) return false;
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
        (void)r, (void)arg;                                                                        \
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
        return jfail_as(r, CAIRN_E_LIMIT, "padding of %zu characters", n_left + n_right);
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

const jfn jmethods_str2[] = {{"upper", m_upper, NULL, ""},
                             {"lower", m_lower, NULL, ""},
                             {"casefold", NULL, NULL, NULL},
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
                             {"istitle", NULL, NULL, NULL},
                             {"isidentifier", NULL, NULL, NULL},
                             {"isprintable", NULL, NULL, NULL},
                             {"ljust", m_ljust, NULL, "width fillchar?"},
                             {"rjust", m_rjust, NULL, "width fillchar?"},
                             {"center", m_center, NULL, "width fillchar?"},
                             {"zfill", m_zfill, NULL, "width"},
                             {"format", NULL, m_format, NULL},
                             {"format_map", m_format_map, NULL, "mapping"},
                             {"encode", NULL, NULL, NULL},
                             {"expandtabs", NULL, NULL, NULL},
                             {"translate", NULL, NULL, NULL},
                             {"maketrans", NULL, NULL, NULL},
                             {0}};

/* --- list --- */

static bool m_list_index(jrun *r, jv self, const jv *arg, jv *out)
{
    const jlist *l = self.u.list;
    int64_t lo = 0, hi = l->n;

    for (int i = 1; i < 3; i++) {
        if (arg[i].t == J_MISSING) continue;
        if (!jv_is_int(arg[i])) return jfail(r, "slice indices must be integers");
        int64_t v = jv_as_int(arg[i]);
        if (v < 0) v = v + l->n < 0 ? 0 : v + l->n;
        if (i == 1)
            lo = v;
        else
            hi = v < hi ? v : hi;
    }
    for (int64_t i = lo; i < hi; i++) {
        bool same;
        if (!jv_eq(r, l->v[i], arg[0], &same)) return false;
        if (!same) continue;
        *out = jv_int(i);
        return true;
    }
    return jfail(r, "the value is not in the list");
}

static bool m_list_count(jrun *r, jv self, const jv *arg, jv *out)
{
    int64_t n = 0;
    for (uint32_t i = 0; i < self.u.list->n; i++) {
        bool same;
        if (!jv_eq(r, self.u.list->v[i], arg[0], &same)) return false;
        n += same;
    }
    *out = jv_int(n);
    return true;
}

static bool m_copy(jrun *r, jv self, const jv *arg, jv *out)
{
    (void)r, (void)arg;
    *out = self; /* nothing can change it */
    return true;
}

const jfn jmethods_list[] = {{"index", m_list_index, NULL, "value start? stop?"},
                             {"count", m_list_count, NULL, "value"},
                             {"copy", m_copy, NULL, ""},
                             {"append", NULL, NULL, NULL},
                             {"clear", NULL, NULL, NULL},
                             {"extend", NULL, NULL, NULL},
                             {"insert", NULL, NULL, NULL},
                             {"pop", NULL, NULL, NULL},
                             {"remove", NULL, NULL, NULL},
                             {"reverse", NULL, NULL, NULL},
                             {"sort", NULL, NULL, NULL},
                             {0}};

/* --- dict --- */

static bool m_get(jrun *r, jv self, const jv *arg, jv *out)
{
    if (!jv_hashable(r, arg[0])) return false;
    if (jdict_get(r, self.u.dict, arg[0], out)) return true;
    *out = arg[1].t == J_MISSING ? jv_none() : arg[1];
    return r->st == CAIRN_OK;
}

static bool view(jrun *r, jv self, uint8_t which, jv *out)
{
    const jdict *d = self.u.dict;
    jlist *pair = NULL;
    jv *kv = NULL;

    if (!jv_new_list(r, J_VIEW, d->n, out) || !jsteps(r, d->n)) return false;
    out->flag = which;
    if (which == J_ITEMS && d->n) {
        pair = jalloc(r, d->n * sizeof *pair);
        kv = jalloc(r, 2 * (size_t)d->n * sizeof *kv);
        if (!pair || !kv) return false;
    }
    for (uint32_t i = 0; i < d->n; i++) {
        jv *to = &out->u.list->v[i];
        if (pair) {
            kv[2 * i] = d->kv[i].k;
            kv[2 * i + 1] = d->kv[i].v;
            pair[i] = (jlist){.n = 2, .v = kv + 2 * i};
            *to = (jv){.t = J_TUPLE, .u.list = &pair[i]};
        } else {
            *to = which == J_KEYS ? d->kv[i].k : d->kv[i].v;
        }
    }
    return true;
}

static bool m_items(jrun *r, jv self, const jv *arg, jv *out)
{
    (void)arg;
    return view(r, self, J_ITEMS, out);
}
static bool m_keys(jrun *r, jv self, const jv *arg, jv *out)
{
    (void)arg;
    return view(r, self, J_KEYS, out);
}
static bool m_values(jrun *r, jv self, const jv *arg, jv *out)
{
    (void)arg;
    return view(r, self, J_VALUES, out);
}

static bool m_fromkeys(jrun *r, jv self, const jv *arg, jv *out)
{
    jiter it;
    jv k;
    int got;

    (void)self;
    if (!jiter_init(r, arg[0], &it) || !jv_new_dict(r, J_DICT, 0, out)) return false;
    while ((got = jiter_next(r, &it, &k)) > 0)
        if (!jdict_put(r, out->u.dict, k, arg[1].t == J_MISSING ? jv_none() : arg[1])) return false;
    return got == 0;
}

const jfn jmethods_dict[] = {
    {"get", m_get, NULL, "key default?"}, {"items", m_items, NULL, ""},
    {"keys", m_keys, NULL, ""},           {"values", m_values, NULL, ""},
    {"copy", m_copy, NULL, ""},           {"fromkeys", m_fromkeys, NULL, "keys value?"},
    {"clear", NULL, NULL, NULL},          {"pop", NULL, NULL, NULL},
    {"popitem", NULL, NULL, NULL},        {"setdefault", NULL, NULL, NULL},
    {"update", NULL, NULL, NULL},         {0}};
