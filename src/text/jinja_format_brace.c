/* "…".format(…): fields in braces with their lookups, and the specification behind a colon. */
#include <math.h>
#include <stdio.h>

#include "text/jinja_format.h"

static bool brace_spec(jrun *r, cairn_str f, jspec *s)
{
    size_t i = 0, first = f.len ? jtext_offset(f, 1) : 0;

    if (first < f.len && strchr("<>=^", f.ptr[first])) {
        memcpy(s->fill, f.ptr, first);
        s->fill_len = first;
        s->align = f.ptr[first];
        i = first + 1;
    } else if (f.len && strchr("<>=^", f.ptr[0])) {
        s->align = f.ptr[i++];
    }
    if (i < f.len && strchr("+- ", f.ptr[i])) s->sign = f.ptr[i++];
    if (i < f.len && f.ptr[i] == '#') s->alt = true, i++;
    if (i < f.len && f.ptr[i] == '0') {
        s->zero = true;
        if (!s->align) s->fill[0] = '0', s->fill_len = 1;
        i++;
    }
    if (!jformat_digits(f, &i, JFORMAT_MAX_WIDTH, &s->width)) return jformat_too_large(r);
    if (i < f.len && (f.ptr[i] == ',' || f.ptr[i] == '_')) s->comma = f.ptr[i++];
    if (i + 1 < f.len && f.ptr[i] == '.') {
        i++;
        if (!jformat_digits(f, &i, JFORMAT_MAX_PRECISION, &s->prec)) return jformat_too_large(r);
    }
    if (i < f.len) s->type = f.ptr[i++];
    return i == f.len || jfail(r,
                               "invalid format specifier '%.*s'; expected fill, align, sign, #, 0, "
                               "width, comma, precision, type",
                               STR_ARG(f));
}

static bool brace_float(jrun *r, const jspec *s, jv v, buf *b)
{
    buf t;

    if (s->type && !strchr("eEfFgGn%", s->type))
        return jfail(r, "unknown format code '%c' for a number; expected one of eEfFgGn%%",
                     s->type);
    if (s->type || s->prec >= 0 || v.t != J_FLOAT) {
        double x;
        if (!jv_to_num(r, v, &x)) return false;
        jformat_float(s, x, b);
        return true;
    }
    buf_init(&t, MEM_TEXT);
    jnum_repr(fabs(v.u.f), &t);
    jformat_number(s, signbit(v.u.f) != 0, "", buf_view(&t), b);
    jformat_drop(&t, b);
    return true;
}

static bool brace_put(jrun *r, jv v, cairn_str f, buf *b)
{
    jspec s = {.prec = -1, .fill = " ", .fill_len = 1};
    cairn_str text;

    if (!f.len) return jv_print(r, v, b);
    if (!brace_spec(r, f, &s)) return false;
    if (v.t == J_STR) {
        if (s.type && s.type != 's')
            return jfail(r, "unknown format code '%c' for a string; expected s", s.type);
        if (s.sign || s.alt || s.align == '=')
            return jfail(r, "a sign, '#' or '=' in a string's format; expected none");
        if (s.comma) return jfail(r, "cannot specify '%c' with 's'; expected none", s.comma);
        if (!jv_to_text(r, v, &text)) return false;
        jformat_text(&s, text, s.align && s.align != '=' ? s.align : '<', b);
        return true;
    }
    if (jv_is_whole(v) && (!s.type || strchr("dxXobn", s.type))) {
        if (s.prec >= 0) return jfail(r, "precision not allowed in integer format; expected none");
        return jformat_int(r, &s, v, b);
    }
    if (jv_is_num(v)) return brace_float(r, &s, v, b);
    return jfail(r, "unsupported format string for %s; expected none", jv_type_name(v));
}

typedef struct numbering { /* "{}" counts, "{0}" says: not both */
    uint32_t next;
    bool automatic, manual;
} numbering;

/* "name.attr[item]…" */
static bool brace_field(jrun *r, cairn_str f, const jcall *c, numbering *nr, jv *out)
{
    size_t i = 0, from;
    int64_t n;

    while (i < f.len && f.ptr[i] != '.' && f.ptr[i] != '[') i++;
    cairn_str name = str_sub(f, 0, i);
    from = 0;
    *out = jv_of(J_MISSING);
    if (!f.len) {
        nr->automatic = true;
        n = nr->next++;
    } else if (!name.len) {
        n = nr->next++;
    } else if (!jformat_digits(name, &from, INT32_MAX, &n) || from < name.len) {
        n = INT64_MAX;
        for (uint32_t k = 0; k < c->n_kw; k++)
            if (str_eq(jv_text(c->kw_name[k]), name)) *out = c->kw[k];
    } else {
        nr->manual |= name.len == f.len; /* the reference looks at whole fields */
    }
    if (nr->automatic && nr->manual)
        return jfail(r, "fields with numbers and without in one format; expected one kind");
    if (n < (int64_t)c->n_pos) *out = c->pos[n];
    if (out->t == J_MISSING)
        return jfail(r, "no argument '%.*s' for the format; expected it in the call",
                     STR_ARG(name));
    while (i < f.len) {
        bool attr = f.ptr[i++] == '.';
        from = i;
        while (i < f.len && (attr ? f.ptr[i] != '.' && f.ptr[i] != '[' : f.ptr[i] != ']')) i++;
        jv key = jv_str(str_sub(f, from, i - from));
        size_t k = 0;
        if (!attr && key.len && jformat_digits(jv_text(key), &k, INT32_MAX, &n) && k == key.len)
            key = jv_int(n);
        if (!attr) i++;
        if (!(attr ? jv_getattr(r, *out, key, NULL, out) : jv_getitem(r, *out, key, out)))
            return false;
    }
    return true;
}

static bool brace_one(jrun *r, cairn_str f, const jcall *c, numbering *nr, buf *b)
{
    cairn_str name = f, text = {0};
    char conversion = 0;
    const char *colon = f.len ? memchr(f.ptr, ':', f.len) : NULL;
    jv v;

    if (colon) {
        name.len = (size_t)(colon - f.ptr);
        text = str_sub(f, name.len + 1, f.len - name.len - 1);
    }
    if (name.len >= 2 && name.ptr[name.len - 2] == '!') {
        conversion = name.ptr[name.len - 1];
        name.len -= 2;
    }
    if (!brace_field(r, name, c, nr, &v)) return false;
    if (!conversion) return brace_put(r, v, text, b);
    if (!strchr("rsa", conversion))
        return jfail(r, "unknown conversion '%c'; expected r, s or a", conversion);
    buf t;
    buf_init(&t, MEM_TEXT);
    const bool ok = jformat_as(r, conversion, v, &t) && buf_status(&t) == CAIRN_OK &&
                    jv_copy(r, buf_view(&t), &v) && brace_put(r, v, text, b);
    jformat_drop(&t, b);
    return ok;
}

bool jformat_braces(jrun *r, cairn_str f, const jcall *c, jv *out)
{
    bool ok = true;
    numbering nr = {0};
    buf b;

    buf_init(&b, MEM_TEXT);
    for (size_t i = 0; ok && i < f.len;) {
        char ch = f.ptr[i++];
        bool brace = ch == '{' || ch == '}', twice = brace && i < f.len && f.ptr[i] == ch;
        if (!brace || twice) {
            buf_byte(&b, ch);
            i += twice;
            continue;
        }
        const char *end = ch == '{' && i < f.len ? memchr(f.ptr + i, '}', f.len - i) : NULL;
        size_t len = end ? (size_t)(end - f.ptr) - i : 0;
        if (!end)
            ok = jfail(r,
                       "single '%c' encountered in format string; expected a field, or two for one",
                       ch);
        else if (memchr(f.ptr + i, '{', len ? len : 1) && f.ptr[i] != '}')
            ok = jfail_as(r, CAIRN_E_UNSUPPORTED,
                          "nested fields in a format are not supported; expected plain ones");
        else
            ok = jsteps(r, 1) && brace_one(r, str_sub(f, i, len), c, &nr, &b);
        i += len + 1;
        if (b.len > JINJA_MAX_OUTPUT) ok = jfail_long(r, "format");
    }
    return jformat_finish(r, ok, &b, out);
}
