/* Filters that make or change numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "text/jinja_big.h"
#include "text/jinja_run.h"

static bool f_abs(jrun *r, jv in, const jv *arg, jv *out)
{
    (void)arg;
    if (in.t == J_UNDEF) return jfail_undef(r, in);
    if (!jv_is_num(in))
        return jfail(r, "bad operand type for abs(): '%s'; expected a number", jv_type_name(in));
    if (in.t == J_FLOAT) {
        *out = jv_float(fabs(in.u.f));
        return true;
    }
    const bool minus = in.t == J_BIG ? in.u.big->neg : jv_as_int(in) < 0;
    return jv_unary(r, minus ? TK_SUB : TK_ADD, in, out);
}

/* Python's int(text, base): blanks around, a sign, single underscores between digits. */
static bool parse_int(jrun *r, cairn_str s, int64_t base, bool *valid, jv *out)
{
    size_t i = 0, from;
    bool negative = false, digit = false;
    int64_t v = 0;
    bool over = false;

    s = jtext_strip(s, NULL, true, true);
    *valid = false;
    if (!jtext_digits(r, &s)) return false;
    if (i < s.len && (s.ptr[i] == '-' || s.ptr[i] == '+')) negative = s.ptr[i++] == '-';
    if (i + 1 < s.len && s.ptr[i] == '0') {
        char c = (char)(s.ptr[i + 1] | 32);
        int64_t is = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
        if (is && (base == is || base == 0)) base = is, i += 2;
    }
    if (base == 0) base = 10;
    from = i;
    for (; i < s.len; i++) {
        char c = s.ptr[i], low = (char)(c | 32);
        if (c == '_' && digit && i + 1 < s.len && s.ptr[i + 1] != '_') continue;
        int64_t d = str_is_digit(c) ? c - '0' : low >= 'a' && low <= 'z' ? low - 'a' + 10 : 99;
        if (d >= base) return true;
        digit = true;
        over = over || __builtin_mul_overflow(v, base, &v) || __builtin_sub_overflow(v, d, &v);
    }
    *valid = digit;
    if (!over && (negative || v != INT64_MIN)) {
        *out = jv_int(negative ? v : -v);
        return true;
    }
    if (s.len - from > JBIG_MAX_DIGITS)
        return jfail(r, "int: a text of more than %d digits", JBIG_MAX_DIGITS);
    const jbig *big =
        jsteps(r, s.len * s.len / 64)
            ? jbig_read(&r->a, str_sub(s, from, s.len - from), (unsigned)base, negative)
            : NULL;
    if (big) *out = jbig_value(big);
    return big || jfail_as(r, CAIRN_E_NOMEM, "a long integer");
}

/* Python's float(text); false: not a number. */
static bool parse_float(jrun *r, cairn_str s, double *out)
{
    char z[512];
    size_t n = 0;

    s = jtext_strip(s, NULL, true, true);
    if (!jtext_digits(r, &s)) return false;
    if (!s.len || s.len >= sizeof z) return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool between =
            i && i + 1 < s.len && str_is_digit(s.ptr[i - 1]) && str_is_digit(s.ptr[i + 1]);
        if (c == '_' && between) continue;
        if (c == 'x' || c == 'X' || c == '(' || !c || c == '_') return false;
        z[n++] = c;
    }
    z[n] = 0;
    char *end;
    *out = strtod(z, &end);
    return end == z + n;
}

static bool from_float(jrun *r, double x, jv otherwise, bool inf_fails, jv *out)
{
    if (isnan(x) || isinf(x)) {
        if (inf_fails && isinf(x))
            return jfail(r, "cannot convert float infinity to integer; expected a finite number");
        *out = otherwise;
        return true;
    }
    if (fabs(x) >= 9.2e18) return jbig_from_num(r, x, out);
    *out = jv_int((int64_t)x);
    return true;
}

static bool f_int(jrun *r, jv in, const jv *arg, jv *out)
{
    jv otherwise = arg[0].t == J_MISSING ? jv_int(0) : arg[0];
    int64_t base = arg[1].t == J_MISSING ? 10 : jv_as_int(arg[1]);
    double x;
    jv v;
    bool valid;

    const bool bad_base =
        arg[1].t != J_MISSING && (!jv_is_int(arg[1]) || base < 0 || base > 36 || base == 1);
    if (in.t == J_UNDEF) return jfail_undef(r, in);
    if (jv_is_int(in)) {
        *out = jv_int(jv_as_int(in));
        return true;
    }
    if (in.t == J_BIG) {
        *out = in;
        return true;
    }
    if (in.t == J_FLOAT) return from_float(r, in.u.f, otherwise, false, out);
    *out = otherwise;
    if (in.t != J_STR) return true;
    valid = false;
    if (!bad_base && !parse_int(r, jv_text(in), base, &valid, &v)) return false;
    if (valid)
        *out = v;
    else if (parse_float(r, jv_text(in), &x))
        return from_float(r, x, otherwise, false, out);
    return true;
}

static bool f_float(jrun *r, jv in, const jv *arg, jv *out)
{
    double x;
    if (in.t == J_UNDEF) return jfail_undef(r, in);
    if (in.t == J_BIG && isinf(jv_as_num(in)))
        return jfail(r, "int too large to convert to float; expected one below 2^1024");
    if (jv_is_num(in))
        *out = jv_float(jv_as_num(in));
    else if (in.t == J_STR && parse_float(r, jv_text(in), &x))
        *out = jv_float(x);
    else
        *out = arg[0].t == J_MISSING ? jv_float(0) : arg[0];
    return true;
}

/* round(int, -n): half to even. */
static bool round_int(int64_t v, int64_t digits, jv *out)
{
    int64_t unit = 1;
    for (int64_t i = digits; i < 0; i++)
        if (__builtin_mul_overflow(unit, (int64_t)10, &unit)) {
            *out = jv_int(0);
            return true;
        }
    int64_t rest = v % unit, down = v - rest;
    if (rest < 0) rest += unit, down -= unit;
    bool up = rest > unit - rest || (rest == unit - rest && (down / unit) % 2);
    *out = jv_int(up ? down + unit : down);
    return true;
}

static bool round_big(jrun *r, jv in, int64_t digits, jv *out)
{
    jv unit, half, down, rest, odd;
    if (digits < -JBIG_MAX_DIGITS) digits = -JBIG_MAX_DIGITS;
    if (!jv_binary(r, TK_POW, jv_int(10), jv_int(-digits), &unit) ||
        !jv_binary(r, TK_FLOORDIV, in, unit, &down) || !jv_binary(r, TK_MOD, in, unit, &rest) ||
        !jv_binary(r, TK_MUL, rest, jv_int(2), &half) ||
        !jv_binary(r, TK_MOD, down, jv_int(2), &odd))
        return false;
    const int c = jbig_cmp(half, unit);
    if ((c > 0 || (c == 0 && jv_truth(odd))) && !jv_binary(r, TK_ADD, down, jv_int(1), &down))
        return false;
    return jv_binary(r, TK_MUL, down, unit, out);
}

static bool round_half(jrun *r, jv in, int64_t digits, jv *out)
{
    char z[700];

    if (in.t == J_BIG) {
        *out = in;
        return digits >= 0 || round_big(r, in, digits, out);
    }
    if (jv_is_int(in)) return round_int(jv_as_int(in), digits, out);
    double x = in.u.f;
    if (digits > 300 || isnan(x) || isinf(x)) {
        *out = in;
        return true;
    }
    if (digits < 0) {
        double unit = pow(10, (double)-digits);
        *out = jv_float(isinf(unit) ? copysign(0, x) : rint(x / unit) * unit);
        return true;
    }
    snprintf(z, sizeof z, "%.*f", (int)digits, x); /* exact, half to even */
    x = strtod(z, NULL);
    if (isinf(x))
        return jfail(r, "rounded value too large to represent; expected one below 2^1024");
    *out = jv_float(x);
    return true;
}

static bool f_round(jrun *r, jv in, const jv *arg, jv *out)
{
    jv digits = arg[0].t == J_MISSING ? jv_int(0) : arg[0];
    jv method = arg[1].t == J_MISSING ? jv_lit("common") : arg[1];
    jv unit, x;
    const bool ceiling = jv_is_str(method, "ceil"), common = jv_is_str(method, "common");

    if (in.t == J_UNDEF) return jfail_undef(r, in);
    if (!ceiling && !jv_is_str(method, "floor") && !common)
        return jfail(r, "round: method must be common, ceil or floor");
    if (digits.t == J_BIG) digits = jv_int(digits.u.big->neg ? -JBIG_MAX_DIGITS : JBIG_MAX_DIGITS);
    if (!jv_is_num(in) || !(common ? jv_is_int(digits) : jv_is_num(digits)))
        return jfail(r, "round: expected numbers, got %s", jv_type_name(in));
    if (common) return round_half(r, in, jv_as_int(digits), out);
    if (!jv_binary(r, TK_POW, jv_int(10), digits, &unit) || !jv_binary(r, TK_MUL, in, unit, &x))
        return false;
    if (x.t == J_FLOAT && !from_float(r, ceiling ? ceil(x.u.f) : floor(x.u.f), jv_none(), true, &x))
        return false;
    if (x.t == J_NONE)
        return jfail(r, "cannot convert float NaN to integer; expected a finite number");
    return jv_binary(r, TK_DIV, x, unit, out);
}

static bool f_filesizeformat(jrun *r, jv in, const jv *arg, jv *out)
{
    static const char *const prefix[] = {"k", "M", "G", "T", "P", "E", "Z", "Y"};
    bool binary = jv_truth(arg[0]);
    double base = binary ? 1024 : 1000, unit = base * base, x = 0;
    char z[400];
    int i = 0;

    if (in.t == J_UNDEF) return jfail_undef(r, in);
    if (jv_is_num(in))
        x = jv_as_num(in);
    else if (in.t != J_STR || !parse_float(r, jv_text(in), &x))
        return jfail(r, "filesizeformat: expected a number, got %s", jv_type_name(in));
    for (; i < 7 && x >= unit; i++) unit *= base;
    if (x >= 1 && x <= 1)
        snprintf(z, sizeof z, "1 Byte");
    else if (x < base)
        snprintf(z, sizeof z, "%.0f Bytes", trunc(x) + 0.0);
    else
        snprintf(z, sizeof z, "%.1f %s%s", base * x / unit, binary && !i ? "K" : prefix[i],
                 binary ? "iB" : "B");
    return jv_copy(r, str_of(z), out);
}

const jfn jfilters_num[] = {{"abs", f_abs, NULL, ""},
                            {"int", f_int, NULL, "default? base?"},
                            {"float", f_float, NULL, "default?"},
                            {"round", f_round, NULL, "precision? method?"},
                            {"filesizeformat", f_filesizeformat, NULL, "binary?"},
                            {0}};
