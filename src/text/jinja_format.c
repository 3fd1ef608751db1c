/* Numbers and text by Python's specifications: width, fill, alignment, sign, grouping, precision. */
#include "text/jinja_format.h"

#include <math.h>
#include <stdio.h>

#include "base/utf8.h"
#include "text/jinja_big.h"

static void group_digits(const char *s, size_t n, char comma, size_t every, buf *b)
{
    size_t whole = 0;
    while (whole < n && (every == 4 || str_is_digit(s[whole]))) whole++;
    for (size_t i = 0; i < n; i++) {
        if (comma && i && i < whole && (whole - i) % every == 0) buf_byte(b, comma);
        buf_byte(b, s[i]);
    }
}

/* Pads `s` (sign and prefix: its first n_sign bytes) to the width. */
static void pad(const jspec *sp, cairn_str s, size_t n_sign, char align, buf *b)
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

void jformat_drop(buf *part, buf *b)
{
    b->no_memory |= part->no_memory;
    buf_deinit(part);
}

static void put_ascii(cairn_str s, buf *b)
{
    uint32_t cp;
    for (size_t i = 0; i < s.len;) {
        const int k = utf8_decode(s.ptr + i, s.len - i, &cp);
        i += (size_t)(k > 0 ? k : 1);
        if (cp < 0x80)
            buf_byte(b, (char)cp);
        else
            buf_printf(b, cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x", cp);
    }
}

bool jformat_as(jrun *r, char how, jv v, buf *b)
{
    if (how == 's') return jv_print(r, v, b);
    if (how == 'r') return jv_repr(r, v, b, 0);
    buf t;
    buf_init(&t, MEM_TEXT);
    const bool ok = jv_repr(r, v, &t, 0);
    if (ok) put_ascii(buf_view(&t), b);
    jformat_drop(&t, b);
    return ok;
}

void jformat_number(const jspec *sp, bool negative, const char *prefix, cairn_str digits, buf *b)
{
    buf n;
    buf_init(&n, MEM_TEXT);
    if (negative)
        buf_byte(&n, '-');
    else if (sp->sign == '+' || sp->sign == ' ')
        buf_byte(&n, sp->sign);
    buf_puts(&n, prefix);
    size_t n_sign = n.len;
    group_digits(digits.ptr, digits.len, sp->comma, sp->type && strchr("xXob", sp->type) ? 4 : 3,
                 &n);
    pad(sp, buf_view(&n), n_sign, sp->align ? sp->align : sp->zero ? '=' : '>', b);
    jformat_drop(&n, b);
}

bool jformat_int(jrun *r, const jspec *sp, jv v, buf *b)
{
    const int64_t i = v.t == J_BIG ? 0 : jv_as_int(v);
    uint64_t u = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
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

    if (v.t == J_BIG) {
        buf d;
        buf_init(&d, MEM_TEXT);
        const bool ok = jbig_digits(r, v.u.big, base, sp->type == 'X', &d);
        if (ok) jformat_number(sp, v.u.big->neg, prefix, buf_view(&d), b);
        jformat_drop(&d, b);
        return ok;
    }
    do {
        z[--n] = digit[u % base];
        u /= base;
    } while (u);
    jformat_number(sp, i < 0, prefix, (cairn_str){z + n, sizeof z - n}, b);
    return true;
}

void jformat_float(const jspec *sp, double x, buf *b)
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
    jformat_number(sp, signbit(x) != 0 && !isnan(x), "", str_of(z), b);
}

void jformat_text(const jspec *sp, cairn_str s, char align, buf *b)
{
    if (sp->prec >= 0) s.len = jtext_offset(s, (size_t)sp->prec);
    pad(sp, s, 0, align, b);
}

bool jformat_digits(cairn_str f, size_t *i, int64_t limit, int64_t *out)
{
    *out = 0;
    while (*i < f.len && str_is_digit(f.ptr[*i])) {
        *out = *out * 10 + (f.ptr[(*i)++] - '0');
        if (*out > limit) return false;
    }
    return true;
}

bool jformat_too_large(jrun *r)
{
    return jfail_as(r, CAIRN_E_LIMIT,
                    "format width or precision too large; expected at most %d and %d",
                    JFORMAT_MAX_WIDTH, JFORMAT_MAX_PRECISION);
}

bool jformat_finish(jrun *r, bool ok, buf *b, jv *out)
{
    if (ok && buf_status(b) != CAIRN_OK) ok = jfail_as(r, CAIRN_E_NOMEM, "formatted text");
    ok = ok && jv_copy(r, buf_view(b), out);
    buf_deinit(b);
    return ok;
}
