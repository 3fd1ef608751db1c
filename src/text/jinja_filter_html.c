/* Filters that web pages use and templates of prompts may: striptags, xmlattr, random.  urlize has a
   file of its own. */
#include "base/clock.h"
#include "base/utf8.h"
#include "text/jinja_run.h"

/* Without comments and tags; what is never closed stays. */
static void drop_tags(cairn_str s, buf *b)
{
    size_t pos = 0, at;
    while ((at = str_find(s, STR_LIT("<"), pos)) != SIZE_MAX) {
        const bool comment = str_starts(str_sub(s, at, s.len - at), STR_LIT("<!--"));
        size_t end = comment ? str_find(s, STR_LIT("-->"), at + 4) : str_find(s, STR_LIT(">"), at);
        if (end == SIZE_MAX) break;
        buf_put(b, s.ptr + pos, at - pos);
        pos = end + (comment ? 3 : 1);
    }
    if (pos < s.len) buf_put(b, s.ptr + pos, s.len - pos);
}

static void put_char(uint32_t cp, buf *b)
{
    char z[4];
    const bool bad = cp == 0 || cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000);
    buf_put(b, z, (size_t)utf8_encode(bad ? 0xfffd : cp, z));
}

/* "&name;" or "&#12;" at s[i]; answers its bytes, 0 for one that is not known here. */
static size_t entity(cairn_str s, size_t i, buf *b)
{
    static const struct {
        const char *name;
        uint32_t cp;
    } names[] = {{"amp", '&'},      {"lt", '<'},       {"gt", '>'},       {"quot", '"'},
                 {"apos", '\''},    {"nbsp", 0xa0},    {"copy", 0xa9},    {"reg", 0xae},
                 {"laquo", 0xab},   {"raquo", 0xbb},   {"middot", 0xb7},  {"hellip", 0x2026},
                 {"ndash", 0x2013}, {"mdash", 0x2014}, {"lsquo", 0x2018}, {"rsquo", 0x2019},
                 {"ldquo", 0x201c}, {"rdquo", 0x201d}, {"bull", 0x2022},  {"euro", 0x20ac}};
    size_t end = i + 1;
    while (end < s.len && end < i + 12 && s.ptr[end] != ';') end++;
    if (end >= s.len || s.ptr[end] != ';') return 0;
    const cairn_str name = str_sub(s, i + 1, end - i - 1);
    if (name.len > 1 && name.ptr[0] == '#') {
        const bool hex = (name.ptr[1] | 32) == 'x';
        uint32_t cp = 0;
        if (name.len == 1u + hex) return 0;
        for (size_t k = 1u + hex; k < name.len; k++) {
            const char c = name.ptr[k], low = (char)(c | 32);
            const bool letter = hex && low >= 'a' && low <= 'f';
            if (!str_is_digit(c) && !letter) return 0;
            if (cp <= 0x10ffff)
                cp = cp * (hex ? 16 : 10) + (uint32_t)(letter ? low - 'a' + 10 : c - '0');
        }
        put_char(cp, b);
        return name.len + 2;
    }
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        if (!str_is(name, names[k].name)) continue;
        put_char(names[k].cp, b);
        return name.len + 2;
    }
    return 0;
}

/* Tags away, runs of white space to one blank, entities to characters. */
static bool f_striptags(jrun *r, jv in, const jv *arg, jv *out)
{
    cairn_str s, t;
    buf plain, tidy;
    bool gap = false;

    (void)arg;
    if (!jv_to_text(r, in, &s) || !jsteps(r, s.len)) return false;
    buf_init(&plain, MEM_TEXT);
    buf_init(&tidy, MEM_TEXT);
    drop_tags(s, &plain);
    t = jtext_strip(buf_view(&plain), NULL, true, true);
    for (size_t i = 0, n; i < t.len; i += n) {
        if ((n = jtext_space(t.ptr + i, t.len - i)) > 0) {
            gap = true;
            continue;
        }
        if (gap) buf_byte(&tidy, ' ');
        gap = false;
        n = t.ptr[i] == '&' ? entity(t, i, &tidy) : 0;
        if (n) continue;
        n = 1;
        buf_byte(&tidy, t.ptr[i]);
    }
    const bool memory = buf_status(&plain) == CAIRN_OK || jfail_as(r, CAIRN_E_NOMEM, "striptags");
    buf_deinit(&plain);
    return jv_give(r, &tidy, memory, out);
}

bool jv_put_escaped(jrun *r, jv v, buf *b)
{
    cairn_str s;
    if (!jv_to_text(r, v, &s)) return false;
    if (v.t == J_STR && v.flag & J_SAFE)
        buf_str(b, s);
    else
        jtext_escape(s, b);
    return true;
}

static bool f_xmlattr(jrun *r, jv in, const jv *arg, jv *out)
{
    bool ok = true, any = false;
    buf b;

    if (in.t == J_UNDEF) return jfail_undef(r, in);
    if (in.t != J_DICT)
        return jfail(r, "xmlattr: '%s' object has no attribute 'items'; expected a mapping",
                     jv_type_name(in));
    buf_init(&b, MEM_TEXT);
    for (uint32_t i = 0; ok && i < in.u.dict->n; i++) {
        const jpair *p = &in.u.dict->kv[i];
        if (p->v.t == J_NONE || p->v.t == J_UNDEF) continue;
        if (p->k.t != J_STR) ok = jfail(r, "xmlattr: expected string keys");
        for (size_t k = 0; ok && k < p->k.len; k++)
            if (strchr("/>=", p->k.u.s[k]) || jtext_space(p->k.u.s + k, p->k.len - k))
                ok = jfail(r,
                           "invalid character in an attribute name; expected none of space / > =");
        if (any || arg[0].t == J_MISSING || jv_truth(arg[0])) buf_byte(&b, ' ');
        any = true;
        ok = ok && jv_put_escaped(r, p->k, &b);
        buf_puts(&b, "=\"");
        ok = ok && jv_put_escaped(r, p->v, &b);
        buf_byte(&b, '"');
    }
    return jv_give(r, &b, ok, out);
}

/* The only filter whose answer differs from render to render. */
static bool f_random(jrun *r, jv in, const jv *arg, jv *out)
{
    int64_t n;
    (void)arg;
    if (!jv_len(r, in, &n)) return false;
    if (!n) return jv_undef_hint(r, "no random item, sequence was empty", out);
    const uint64_t mix = (uint64_t)clock_ns() * UINT64_C(0x9e3779b97f4a7c15);
    if (in.t == J_DICT) return jfail(r, "random: expected a sequence, got dict");
    return jv_getitem(r, in, jv_int((int64_t)((mix >> 32) % (uint64_t)n)), out);
}

const jfn jfilters_html[] = {
    {"striptags", f_striptags, NULL, ""},
    {"xmlattr", f_xmlattr, NULL, "autospace?"},
    {"random", f_random, NULL, ""},
    {"urlize", jv_urlize, NULL, "trim_url_limit? nofollow? target? rel? extra_schemes?"},
    {0}};
