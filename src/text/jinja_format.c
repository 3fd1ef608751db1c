/* Text formatting: `"…" % values` and "…".format(…), with Python's specifications for strings and
   numbers. */
#include <math.h>
#include <stdio.h>

#include "text/jinja_run.h"

enum { MAX_WIDTH = 1 << 20, MAX_PRECISION = 300 };

typedef struct spec {
    char type, sign, align, fill[4];
    size_t fill_len;
    bool alt, zero, comma;
    int64_t width, prec; /* prec -1: none */
} spec;

static void group_digits(const char *s, size_t n, bool comma, buf *b)
{
    size_t whole = 0;
    while (whole < n && str_is_digit(s[whole])) whole++;
    for (size_t i = 0; i < n; i++) {
        if (comma && i && i < whole && (whole - i) % 3 == 0) buf_byte(b, ',');
        buf_byte(b, s[i]);
    }
}

/* Pads `s` (sign and prefix: its first n_sign bytes) to the width. */
static void pad(const spec *sp, cairn_str s, size_t n_sign, char align, buf *b)
{
    size_t len = jtext_count(s), width = (size_t)sp->width, n = width > len ? width - len : 0;
    size_t left = align == '<' ? 0 : align == '^' ? n / 2 : n;

    if (align == '=') {
        buf_put(b, s.ptr, n_sign);
        for (size_t i = 0; i < n; i++) buf_put(b, sp->fill, sp->fill_len);
        buf_put(b, s.ptr + n_sign, s.len - n_sign);
        return;
    }
    for (size_t i = 0; i < left; i++) buf_put(b, sp->fill, sp->fill_len);
    buf_str(b, s);
    for (size_t i = left; i < n; i++) buf_put(b, sp->fill, sp->fill_len);
}

/* A failure of a part is one of the whole. */
static void drop(buf *part, buf *b)
{
    b->no_memory |= part->no_memory;
    buf_deinit(part);
}

static void put_number(const spec *sp, bool negative, const char *prefix, cairn_str digits, buf *b)
{
    buf n;
    buf_init(&n, MEM_TEXT);
    if (negative)
        buf_byte(&n, '-');
    else if (sp->sign == '+' || sp->sign == ' ')
        buf_byte(&n, sp->sign);
    buf_puts(&n, prefix);
    size_t n_sign = n.len;
    group_digits(digits.ptr, digits.len, sp->comma, &n);
    pad(sp, buf_view(&n), n_sign, sp->align ? sp->align : sp->zero ? '=' : '>', b);
    drop(&n, b);
}

static void put_int(const spec *sp, int64_t v, buf *b)
{
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    char z[72];
    size_t n = sizeof z;
    unsigned base = sp->type == 'x' || sp->type == 'X' ? 16
                    : sp->type == 'o'                  ? 8
                    : sp->type == 'b'                  ? 2
                                                       : 10;
    const char *digit = sp->type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    const char *prefix = !sp->alt || base == 10 ? ""
                         : sp->type == 'X'      ? "0X"
                         : base == 16           ? "0x"
                         : base == 8            ? "0o"
                                                : "0b";

    do {
        z[--n] = digit[u % base];
        u /= base;
    } while (u);
    put_number(sp, v < 0, prefix, (cairn_str){z + n, sizeof z - n}, b);
}

static void put_float(const spec *sp, double x, buf *b)
{
    char z[700];
    char type = sp->type ? sp->type : 'g';
    int prec = sp->prec < 0 ? 6 : (int)sp->prec;
    double a = fabs(type == '%' ? x * 100 : x);

    if (isnan(x) || isinf(x))
        snprintf(z, sizeof z, "%s", isnan(x) ? "nan" : "inf");
    else if (type == 'e' || type == 'E')
        snprintf(z, sizeof z, type == 'e' ? "%.*e" : "%.*E", prec, a);
    else if (type == 'g' || type == 'G' || type == 'n')
        snprintf(z, sizeof z, type == 'G' ? "%.*G" : "%.*g", prec, a);
    else
        snprintf(z, sizeof z, type == '%' ? "%.*f%%" : "%.*f", prec, a);
    put_number(sp, signbit(x) != 0 && !isnan(x), "", str_of(z), b);
}

static void put_text(const spec *sp, cairn_str s, char align, buf *b)
{
    if (sp->prec >= 0) s.len = jtext_offset(s, (size_t)sp->prec);
    pad(sp, s, 0, align, b);
}

static bool digits(cairn_str f, size_t *i, int64_t limit, int64_t *out)
{
    *out = 0;
    while (*i < f.len && str_is_digit(f.ptr[*i])) {
        *out = *out * 10 + (f.ptr[(*i)++] - '0');
        if (*out > limit) return false;
    }
    return true;
}

static bool number_fails(jrun *r)
{
    return jfail_as(r, CAIRN_E_LIMIT, "format width or precision too large");
}

typedef struct percent {
    jv args;
    const jlist *list; /* of a tuple; NULL: one value */
    uint32_t used;
} percent;

static bool next_arg(jrun *r, percent *p, jv *out)
{
    if (p->list ? p->used >= p->list->n : p->used > 0)
        return jfail(r, "not enough arguments for format string");
    *out = p->list ? p->list->v[p->used] : p->args;
    p->used++;
    return true;
}

static bool percent_spec(jrun *r, percent *p, cairn_str f, size_t *i, spec *s)
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
            if (!part && *to < 0 && *to >= -MAX_WIDTH) s->align = '<', *to = -*to;
            if (*to < 0 || *to > (part ? MAX_PRECISION : MAX_WIDTH)) return number_fails(r);
        } else if (!digits(f, i, part ? MAX_PRECISION : MAX_WIDTH, to)) {
            return number_fails(r);
        }
    }
    while (*i < f.len && (f.ptr[*i] == 'l' || f.ptr[*i] == 'h' || f.ptr[*i] == 'L')) (*i)++;
    if (*i >= f.len) return jfail(r, "incomplete format");
    s->type = f.ptr[(*i)++];
    return true;
}

static bool percent_text(jrun *r, const spec *s, jv v, buf *b)
{
    buf t;
    buf_init(&t, MEM_TEXT);
    bool ok = s->type == 's' ? jv_print(r, v, &t) : jv_repr(r, v, &t, 0);
    if (ok) put_text(s, buf_view(&t), s->align ? s->align : '>', b);
    drop(&t, b);
    return ok;
}

static bool percent_char(jrun *r, const spec *s, jv v, buf *b)
{
    if (v.t == J_STR && jtext_count(jv_text(v)) == 1) {
        put_text(s, jv_text(v), s->align ? s->align : '>', b);
        return true;
    }
    if (!jv_is_int(v) || jv_as_int(v) < 0 || jv_as_int(v) > 127)
        return jfail(r, "%%c requires an ASCII code or a character");
    char c = (char)jv_as_int(v);
    put_text(s, (cairn_str){&c, 1}, s->align ? s->align : '>', b);
    return true;
}

static bool percent_put(jrun *r, spec *s, jv v, buf *b)
{
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
        if (v.t == J_FLOAT && fabs(v.u.f) < 9e18 && strchr("diu", s->type))
            v = jv_int((int64_t)v.u.f);
        if (!jv_is_int(v))
            return jfail(r, "%%%c format: a number is required, not %s", s->type, jv_type_name(v));
        put_int(s, jv_as_int(v), b);
        return true;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
        if (s->align == '<') s->zero = false;
        if (s->zero) s->fill[0] = '0';
        if (!jv_is_num(v)) return jfail(r, "must be real number, not %s", jv_type_name(v));
        put_float(s, jv_as_num(v), b);
        return true;
    default:
        return jfail(r, "unsupported format character '%c'", s->type);
    }
}

static bool percent_one(jrun *r, percent *p, cairn_str f, size_t *i, buf *b)
{
    spec s = {.prec = -1, .fill = " ", .fill_len = 1};
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
            return jfail(r, "no key '%.*s' for the format", STR_ARG(key));
        *i = (size_t)(end - f.ptr) + 1;
    }
    if (!percent_spec(r, p, f, i, &s)) return false;
    if (s.type == '%') {
        buf_byte(b, '%');
        return true;
    }
    return (v.t != J_MISSING || next_arg(r, p, &v)) && percent_put(r, &s, v, b);
}

static bool finish(jrun *r, bool ok, buf *b, jv *out)
{
    if (ok && buf_status(b) != CAIRN_OK) ok = jfail_as(r, CAIRN_E_NOMEM, "formatted text");
    ok = ok && jv_copy(r, buf_view(b), out);
    buf_deinit(b);
    return ok;
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
        if (b.len > JINJA_MAX_OUTPUT) ok = jfail_as(r, CAIRN_E_LIMIT, "formatted text too long");
    }
    bool all = p.list ? p.used >= p.list->n : p.used || args.t == J_DICT || args.t == J_LIST;
    if (ok && !all) ok = jfail(r, "not all arguments converted during string formatting");
    return finish(r, ok, &b, out);
}

static bool brace_spec(jrun *r, cairn_str f, spec *s)
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
    if (!digits(f, &i, MAX_WIDTH, &s->width)) return number_fails(r);
    if (i < f.len && f.ptr[i] == ',') s->comma = true, i++;
    if (i + 1 < f.len && f.ptr[i] == '.') {
        i++;
        if (!digits(f, &i, MAX_PRECISION, &s->prec)) return number_fails(r);
    }
    if (i < f.len) s->type = f.ptr[i++];
    return i == f.len || jfail(r, "invalid format specifier '%.*s'", STR_ARG(f));
}

static bool brace_float(jrun *r, const spec *s, jv v, buf *b)
{
    buf t;

    if (s->type && !strchr("eEfFgGn%", s->type))
        return jfail(r, "unknown format code '%c'", s->type);
    if (s->type || s->prec >= 0 || v.t != J_FLOAT) {
        put_float(s, jv_as_num(v), b);
        return true;
    }
    buf_init(&t, MEM_TEXT);
    jnum_repr(fabs(v.u.f), &t);
    put_number(s, signbit(v.u.f) != 0, "", buf_view(&t), b);
    drop(&t, b);
    return true;
}

static bool brace_put(jrun *r, jv v, cairn_str f, buf *b)
{
    spec s = {.prec = -1, .fill = " ", .fill_len = 1};
    cairn_str text;

    if (!f.len) return jv_print(r, v, b);
    if (!brace_spec(r, f, &s)) return false;
    if (v.t == J_STR || (v.t == J_BOOL && (!s.type || s.type == 's'))) {
        if (s.type && s.type != 's')
            return jfail(r, "unknown format code '%c' for a string", s.type);
        if (!jv_to_text(r, v, &text)) return false;
        put_text(&s, text, s.align && s.align != '=' ? s.align : '<', b);
        return true;
    }
    if (jv_is_int(v) && (!s.type || strchr("dxXobn", s.type))) {
        if (s.prec >= 0) return jfail(r, "precision not allowed in integer format");
        put_int(&s, jv_as_int(v), b);
        return true;
    }
    if (jv_is_num(v)) return brace_float(r, &s, v, b);
    return jfail(r, "unsupported format string for %s", jv_type_name(v));
}

/* "name.attr[item]…" */
static bool brace_field(jrun *r, cairn_str f, const jcall *c, uint32_t *next, jv *out)
{
    size_t i = 0, from;
    int64_t n;

    while (i < f.len && f.ptr[i] != '.' && f.ptr[i] != '[') i++;
    cairn_str name = str_sub(f, 0, i);
    from = 0;
    *out = jv_of(J_MISSING);
    if (!name.len) {
        n = (*next)++;
    } else if (!digits(name, &from, INT32_MAX, &n) || from < name.len) {
        n = INT64_MAX;
        for (uint32_t k = 0; k < c->n_kw; k++)
            if (str_eq(jv_text(c->kw_name[k]), name)) *out = c->kw[k];
    }
    if (n < (int64_t)c->n_pos) *out = c->pos[n];
    if (out->t == J_MISSING) return jfail(r, "no argument '%.*s' for the format", STR_ARG(name));
    while (i < f.len) {
        bool attr = f.ptr[i++] == '.';
        from = i;
        while (i < f.len && (attr ? f.ptr[i] != '.' && f.ptr[i] != '[' : f.ptr[i] != ']')) i++;
        jv key = jv_str(str_sub(f, from, i - from));
        size_t k = 0;
        if (!attr && key.len && digits(jv_text(key), &k, INT32_MAX, &n) && k == key.len)
            key = jv_int(n);
        if (!attr) i++;
        if (!(attr ? jv_getattr(r, *out, key, NULL, out) : jv_getitem(r, *out, key, out)))
            return false;
    }
    return true;
}

static bool brace_one(jrun *r, cairn_str f, const jcall *c, uint32_t *next, buf *b)
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
    if (!brace_field(r, name, c, next, &v)) return false;
    if (!conversion) return brace_put(r, v, text, b);
    if (!strchr("rsa", conversion)) return jfail(r, "unknown conversion '%c'", conversion);
    buf t;
    buf_init(&t, MEM_TEXT);
    bool ok = conversion == 's' ? jv_print(r, v, &t) : jv_repr(r, v, &t, 0);
    ok = ok && buf_status(&t) == CAIRN_OK && jv_copy(r, buf_view(&t), &v) &&
         brace_put(r, v, text, b);
    drop(&t, b);
    return ok;
}

bool jformat_braces(jrun *r, cairn_str f, const jcall *c, jv *out)
{
    bool ok = true;
    uint32_t next = 0;
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
            ok = jfail(r, "single '%c' encountered in format string", ch);
        else if (memchr(f.ptr + i, '{', len ? len : 1) && f.ptr[i] != '}')
            ok = jfail_as(r, CAIRN_E_UNSUPPORTED, "nested fields in a format are not supported");
        else
            ok = jsteps(r, 1) && brace_one(r, str_sub(f, i, len), c, &next, &b);
        i += len + 1;
        if (b.len > JINJA_MAX_OUTPUT) ok = jfail_as(r, CAIRN_E_LIMIT, "formatted text too long");
    }
    return finish(r, ok, &b, out);
}
