/* "…" % values: the older formatting of Python's str. */
#include <math.h>

#include "base/utf8.h"
#include "text/jinja_big.h"
#include "text/jinja_format.h"

typedef struct percent {
    jv args;
    const jlist *list; /* of a tuple; NULL: one value */
    uint32_t used;
} percent;

static bool next_arg(jrun *r, percent *p, jv *out)
{
    if (p->list ? p->used >= p->list->n : p->used > 0)
        return jfail(r, "not enough arguments for format string; expected one for each field");
    *out = p->list ? p->list->v[p->used] : p->args;
    p->used++;
    return true;
}

static bool percent_spec(jrun *r, percent *p, cairn_str f, size_t *i, jspec *s)
{
    for (; *i < f.len; (*i)++) {
        char c = f.ptr[*i];
        if (c == '-')
            s->align = '<';
        else if (c == '0')
            s->zero = true;
        else if (c == '+' || (c == ' ' && s->sign != '+'))
            s->sign = c;
        else if (c == '#')
            s->alt = true;
        else
            break;
    }
    for (int part = 0; part < 2; part++) {
        int64_t *to = part ? &s->prec : &s->width;
        if (part) {
            if (*i >= f.len || f.ptr[*i] != '.') break;
            (*i)++;
        }
        if (*i < f.len && f.ptr[*i] == '*') {
            jv v;
            (*i)++;
            if (!next_arg(r, p, &v)) return false;
            if (!jv_is_int(v)) return jfail(r, "* wants int");
            *to = jv_as_int(v);
            if (!part && *to < 0 && *to >= -JFORMAT_MAX_WIDTH) s->align = '<', *to = -*to;
            if (*to < 0 || *to > (part ? JFORMAT_MAX_PRECISION : JFORMAT_MAX_WIDTH))
                return jformat_too_large(r);
        } else if (!jformat_digits(f, i, part ? JFORMAT_MAX_PRECISION : JFORMAT_MAX_WIDTH, to)) {
            return jformat_too_large(r);
        }
    }
    while (*i < f.len && (f.ptr[*i] == 'l' || f.ptr[*i] == 'h' || f.ptr[*i] == 'L')) (*i)++;
    if (*i >= f.len) return jfail(r, "incomplete format; expected a letter at its end");
    s->type = f.ptr[(*i)++];
    return true;
}

static bool percent_text(jrun *r, const jspec *s, jv v, buf *b)
{
    buf t;
    buf_init(&t, MEM_TEXT);
    const bool ok = jformat_as(r, s->type, v, &t);
    if (ok) jformat_text(s, buf_view(&t), s->align ? s->align : '>', b);
    jformat_drop(&t, b);
    return ok;
}

static bool percent_char(jrun *r, const jspec *s, jv v, buf *b)
{
    if (v.t == J_STR && jtext_count(jv_text(v)) == 1) {
        jformat_text(s, jv_text(v), s->align ? s->align : '>', b);
        return true;
    }
    const int64_t cp = jv_is_int(v) ? jv_as_int(v) : -1;
    if (cp < 0 || cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000))
        return jfail(r, "%%c requires a character's code or a character");
    char z[4];
    const int n = utf8_encode((uint32_t)cp, z);
    jformat_text(s, (cairn_str){z, (size_t)n}, s->align ? s->align : '>', b);
    return true;
}

static bool percent_put(jrun *r, jspec *s, jv v, buf *b)
{
    double x;

    switch (s->type) {
    case 's':
    case 'r':
    case 'a':
        return percent_text(r, s, v, b);
    case 'c':
        return percent_char(r, s, v, b);
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        if (s->align == '<') s->zero = false;
        if (s->zero) s->fill[0] = '0';
        if (v.t == J_FLOAT && isfinite(v.u.f) && strchr("diu", s->type) &&
            !jbig_from_num(r, v.u.f, &v))
            return false;
        if (!jv_is_whole(v))
            return jfail(r, "%%%c format: a number is required, not %s", s->type, jv_type_name(v));
        return jformat_int(r, s, v, b);
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
        if (s->align == '<') s->zero = false;
        if (s->zero) s->fill[0] = '0';
        if (!jv_is_num(v)) return jfail(r, "must be real number, not %s", jv_type_name(v));
        if (!jv_to_num(r, v, &x)) return false;
        jformat_float(s, x, b);
        return true;
    default:
        return jfail(r, "unsupported format character '%c'; expected one of acdeEfFgGiorsuxX",
                     s->type);
    }
}

static bool percent_one(jrun *r, percent *p, cairn_str f, size_t *i, buf *b)
{
    jspec s = {.prec = -1, .fill = " ", .fill_len = 1};
    jv v = jv_of(J_MISSING);

    if (*i < f.len && f.ptr[*i] == '%') {
        (*i)++;
        buf_byte(b, '%');
        return true;
    }
    if (*i < f.len && f.ptr[*i] == '(') {
        const char *end = memchr(f.ptr + *i, ')', f.len - *i);
        if (!end || p->args.t != J_DICT) return jfail(r, "format requires a mapping");
        cairn_str key = {f.ptr + *i + 1, (size_t)(end - f.ptr) - *i - 1};
        if (!jdict_get_str(p->args.u.dict, key, &v))
            return jfail(r, "no key '%.*s' for the format; expected it in the mapping",
                         STR_ARG(key));
        *i = (size_t)(end - f.ptr) + 1;
    }
    if (!percent_spec(r, p, f, i, &s)) return false;
    if (s.type == '%') {
        buf_byte(b, '%');
        return true;
    }
    return (v.t != J_MISSING || next_arg(r, p, &v)) && percent_put(r, &s, v, b);
}

bool jformat_percent(jrun *r, cairn_str f, jv args, jv *out)
{
    percent p = {.args = args, .list = args.t == J_TUPLE ? args.u.list : NULL};
    bool ok = true;
    buf b;

    buf_init(&b, MEM_TEXT);
    for (size_t i = 0; ok && i < f.len;) {
        char c = f.ptr[i++];
        if (c != '%')
            buf_byte(&b, c);
        else
            ok = jsteps(r, 1) && percent_one(r, &p, f, &i, &b);
        if (b.len > JINJA_MAX_OUTPUT) ok = jfail_long(r, "format");
    }
    ok = ok && jsteps(r, f.len / 4);
    bool all = p.list ? p.used >= p.list->n
                      : p.used || args.t == J_DICT || args.t == J_LIST || args.t == J_UNDEF ||
                            args.t == J_RANGE;
    if (ok && !all)
        ok = jfail(
            r, "not all arguments converted during string formatting; expected a field for each");
    return jformat_finish(r, ok, &b, out);
}
