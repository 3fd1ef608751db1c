/* Operators with Python's meaning: equality, order, membership, arithmetic.  What does
   not fit 64 bits is jinja_big.c's. */
#include <math.h>

#include "text/jinja_big.h"
#include "text/jinja_run.h"

static bool seq_eq(jrun *r, const jlist *a, const jlist *b, bool *out)
{
    *out = a->n == b->n;
    for (uint32_t i = 0; *out && i < a->n; i++)
        if (!jv_eq(r, a->v[i], b->v[i], out)) return false;
    return true;
}

static bool dict_eq(jrun *r, const jdict *a, const jdict *b, bool *out)
{
    *out = a->n == b->n;
    for (uint32_t i = 0; *out && i < a->n; i++) {
        jv v;
        *out = jdict_get(r, b, a->kv[i].k, &v);
        if (r->st != CAIRN_OK) return false;
        if (*out && !jv_eq(r, a->kv[i].v, v, out)) return false;
    }
    return true;
}

/* Keys and items views are sets; values views are themselves only. */
static bool view_eq(jrun *r, jv a, jv b, bool *out)
{
    *out = !((a.flag | b.flag) & J_VALUES) && a.u.list->n == b.u.list->n;
    for (uint32_t i = 0; *out && i < a.u.list->n; i++)
        if (!jv_contains(r, a.u.list->v[i], b, out)) return false;
    return true;
}

static bool range_eq(const jrange *a, const jrange *b)
{
    return a->n == b->n && (!a->n || (a->start == b->start && (a->n == 1 || a->step == b->step)));
}

static bool num_eq(jv a, jv b)
{
    if (jv_is_int(a) && jv_is_int(b)) return jv_as_int(a) == jv_as_int(b);
    if (jv_is_whole(a) && jv_is_whole(b)) return jbig_cmp(a, b) == 0;
    if (a.t != b.t && isfinite(jv_as_num(a.t == J_FLOAT ? a : b)))
        return jbig_cmp_num(a.t == J_FLOAT ? b : a, a.t == J_FLOAT ? a.u.f : b.u.f) == 0;
    return !(jv_as_num(a) < jv_as_num(b)) && !(jv_as_num(a) > jv_as_num(b)) &&
           !isnan(jv_as_num(a)) && !isnan(jv_as_num(b));
}

static bool eq_kinds(jrun *r, jv a, jv b, bool *out)
{
    *out = false;
    if (jv_is_num(a) && jv_is_num(b)) {
        *out = num_eq(a, b);
        return true;
    }
    if (a.t != b.t) return true;
    switch (a.t) {
    case J_UNDEF:
    case J_NONE:
        *out = true;
        return true;
    case J_STR:
        *out = str_eq(jv_text(a), jv_text(b));
        return jsteps(r, a.len / 64);
    case J_LIST:
    case J_TUPLE:
        return seq_eq(r, a.u.list, b.u.list, out);
    case J_DICT:
        return dict_eq(r, a.u.dict, b.u.dict, out);
    case J_VIEW:
        if (a.u.list != b.u.list) return view_eq(r, a, b, out);
        *out = true;
        return true;
    case J_RANGE:
        *out = range_eq(a.u.range, b.u.range);
        return true;
    default:
        *out = a.u.ptr == b.u.ptr;
        return true;
    }
}

bool jv_eq(jrun *r, jv a, jv b, bool *out)
{
    if (!jenter(r) || !jsteps(r, 1)) return false;
    bool ok = eq_kinds(r, a, b, out);
    r->depth--;
    return ok;
}

bool jv_is_same(jv a, jv b)
{
    if (a.t != b.t) return false;
    switch (a.t) {
    case J_NONE:
        return true;
    case J_BOOL:
        return a.u.b == b.u.b;
    case J_INT:
        return a.u.i == b.u.i;
    case J_BIG:
    case J_FLOAT:
        return num_eq(a, b);
    case J_STR:
        return str_eq(jv_text(a), jv_text(b));
    default:
        return a.u.ptr == b.u.ptr;
    }
}

static bool ordered(int op, int c)
{
    return op == TK_LT ? c < 0 : op == TK_LE ? c <= 0 : op == TK_GT ? c > 0 : c >= 0;
}

static bool num_ordered(int op, jv a, jv b)
{
    if (jv_is_int(a) && jv_is_int(b)) {
        int64_t x = jv_as_int(a), y = jv_as_int(b);
        return ordered(op, x < y ? -1 : x > y);
    }
    if (jv_is_whole(a) && jv_is_whole(b)) return ordered(op, jbig_cmp(a, b));
    if (a.t != b.t && isfinite(a.t == J_FLOAT ? a.u.f : b.u.f)) /* exact, as in Python */
        return ordered(op, a.t == J_FLOAT ? -jbig_cmp_num(b, a.u.f) : jbig_cmp_num(a, b.u.f));
    double x = jv_as_num(a), y = jv_as_num(b);
    return op == TK_LT ? x < y : op == TK_LE ? x <= y : op == TK_GT ? x > y : x >= y;
}

/* Lists and tuples: the first place where they differ decides. */
static bool seq_ordered(jrun *r, int op, const jlist *a, const jlist *b, bool *out)
{
    for (uint32_t i = 0; i < a->n && i < b->n; i++) {
        bool same;
        if (!jv_eq(r, a->v[i], b->v[i], &same)) return false;
        if (!same) return jv_cmp(r, a->v[i], b->v[i], op, out);
    }
    *out = ordered(op, a->n < b->n ? -1 : a->n > b->n);
    return true;
}

bool jv_cmp(jrun *r, jv a, jv b, int op, bool *out)
{
    if (op == TK_EQ || op == TK_NE) {
        if (!jv_eq(r, a, b, out)) return false;
        *out ^= op == TK_NE;
        return true;
    }
    if (a.t == J_UNDEF || b.t == J_UNDEF) return jfail_undef(r, a.t == J_UNDEF ? a : b);
    if (jv_is_num(a) && jv_is_num(b)) {
        *out = num_ordered(op, a, b);
        return true;
    }
    if (a.t == J_STR && b.t == J_STR) {
        *out = ordered(op, str_cmp(jv_text(a), jv_text(b)));
        return jsteps(r, a.len / 64);
    }
    if (a.t == b.t && (a.t == J_LIST || a.t == J_TUPLE)) {
        if (!jenter(r)) return false;
        bool ok = seq_ordered(r, op, a.u.list, b.u.list, out);
        r->depth--;
        return ok;
    }
    return jfail(r, "'%s' not supported between '%s' and '%s'; expected two of one kind",
                 jtoken_name(op), jv_type_name(a), jv_type_name(b));
}

static bool range_contains(const jrange *g, jv x)
{
    if (!jv_is_num(x)) return false;
    double f = jv_as_num(x);
    if (floor(f) < f || isnan(f) || fabs(f) > 9e18) return false;
    int64_t v = x.t == J_FLOAT ? (int64_t)f : jv_as_int(x);
    for (int64_t i = 0; i < g->n; i++)
        if (g->start + g->step * i == v) return true;
    return false;
}

bool jv_contains(jrun *r, jv item, jv in, bool *out)
{
    jiter it;
    jv x;
    int got;

    *out = false;
    switch (in.t) {
    case J_STR:
        if (item.t == J_UNDEF) return jfail(r, "'in <string>' requires a string, not Undefined");
        if (item.t != J_STR)
            return jfail(r, "'in <string>' requires a string, not %s", jv_type_name(item));
        *out = str_find(jv_text(in), jv_text(item), 0) != SIZE_MAX;
        return jsteps(r, in.len / 16);
    case J_DICT:
        if (!jv_hashable(r, item)) return false;
        *out = jdict_get(r, in.u.dict, item, &x);
        return r->st == CAIRN_OK;
    case J_RANGE:
        *out = range_contains(in.u.range, item);
        return jsteps(r, (uint64_t)in.u.range->n / 16);
    case J_VIEW: /* of keys: they are looked up, like a dict's */
        if (in.flag & J_KEYS && !jv_hashable(r, item)) return false;
        break;
    default:
        break;
    }
    if (!jv_can_iter(in))
        return jfail(
            r, "argument of type '%s' is not iterable; expected a list, a mapping or a string",
            jv_type_name(in));
    if (!jiter_init(r, in, &it)) return false;
    while ((got = jiter_next(r, &it, &x)) > 0) {
        if (!jv_eq(r, item, x, out)) return false;
        if (*out) return true;
    }
    return got == 0;
}

static bool int_pow(jrun *r, int64_t base, int64_t e, jv *out)
{
    int64_t v = 1;
    const jv x = jv_int(base), y = jv_int(e);
    if (e < 0) {
        if (!base)
            return jfail(
                r, "zero cannot be raised to a negative power; expected an exponent of 0 or more");
        *out = jv_float(pow((double)base, (double)e));
        return true;
    }
    if (base == 0 || base == 1 || base == -1) e = e > 2 ? 2 + (e & 1) : e;
    for (int64_t i = 0; i < e; i++)
        if (__builtin_mul_overflow(v, base, &v)) return jbig_op(r, TK_POW, x, y, out);
    *out = jv_int(v);
    return true;
}

/* Python's // and %: towards minus infinity, the sign of the divisor. */
static bool int_divmod(jrun *r, int op, int64_t a, int64_t b, jv *out)
{
    if (!b) return jfail(r, "integer division or modulo by zero; expected another divisor");
    if (b == -1) {
        if (op == TK_FLOORDIV && a == INT64_MIN) return jbig_neg(r, jv_int(a), out);
        *out = jv_int(op == TK_FLOORDIV ? -a : 0);
        return true;
    }
    int64_t q = a / b, m = a % b;
    if (m && (m < 0) != (b < 0)) q--, m += b;
    *out = jv_int(op == TK_FLOORDIV ? q : m);
    return true;
}

static bool int_op(jrun *r, int op, int64_t a, int64_t b, jv *out)
{
    int64_t v = 0;
    bool over;

    switch (op) {
    case TK_ADD:
        over = __builtin_add_overflow(a, b, &v);
        break;
    case TK_SUB:
        over = __builtin_sub_overflow(a, b, &v);
        break;
    case TK_MUL:
        over = __builtin_mul_overflow(a, b, &v);
        break;
    case TK_POW:
        return int_pow(r, a, b, out);
    case TK_DIV:
        if (!b) return jfail(r, "division by zero; expected another divisor");
        if (a > INT64_C(1) << 53 || a < -(INT64_C(1) << 53) || b > INT64_C(1) << 53 ||
            b < -(INT64_C(1) << 53))
            return jbig_op(r, op, jv_int(a), jv_int(b), out);
        *out = jv_float((double)a / (double)b);
        return true;
    default:
        return int_divmod(r, op, a, b, out);
    }
    if (over) return jbig_op(r, op, jv_int(a), jv_int(b), out);
    *out = jv_int(v);
    return true;
}

static bool float_op(jrun *r, int op, double a, double b, jv *out)
{
    double v, zero = 0;

    if ((op == TK_DIV || op == TK_FLOORDIV || op == TK_MOD) && !(b < zero) && !(b > zero) &&
        !isnan(b))
        return jfail(r, "float division by zero; expected another divisor");
    switch (op) {
    case TK_ADD:
        v = a + b;
        break;
    case TK_SUB:
        v = a - b;
        break;
    case TK_MUL:
        v = a * b;
        break;
    case TK_DIV:
        v = a / b;
        break;
    case TK_POW:
        if (a < zero && floor(b) < b)
            return jfail(r,
                         "a negative number to a fraction is complex; expected a whole exponent");
        if (!(a < zero) && !(a > zero) && b < zero)
            return jfail(
                r, "zero cannot be raised to a negative power; expected an exponent of 0 or more");
        v = pow(a, b);
        if (isinf(v) && !isinf(a) && !isinf(b))
            return jfail(r, "result too large for a float; expected one below 2^1024");
        break;
    default:
        v = fmod(a, b);
        if (isnan(v)) break; /* of infinity, or of what is no number */
        if (v < zero || v > zero) {
            if ((b < zero) != (v < zero)) v += b;
        } else {
            v = copysign(zero, b);
        }
        if (op == TK_FLOORDIV) {
            double q = (a - v) / b, f = floor(q);
            v = q < zero || q > zero ? (q - f > 0.5 ? f + 1 : f) : copysign(zero, a / b);
        }
        break;
    }
    *out = jv_float(v);
    return true;
}

static bool repeat(jrun *r, jv a, int64_t n, jv *out)
{
    if (n < 0) n = 0;
    size_t unit = a.t == J_STR ? a.len : a.u.list->n, total;
    if (__builtin_mul_overflow(unit, (size_t)n, &total) || total > JINJA_MAX_OUTPUT)
        return jfail_as(r, CAIRN_E_LIMIT,
                        "repeated %lld times; expected at most %d bytes or items in all",
                        (long long)n, JINJA_MAX_OUTPUT);
    if (a.t != J_STR) {
        if (!jv_new_list(r, a.t, total, out)) return false;
        for (size_t i = 0; i < total; i++) out->u.list->v[i] = a.u.list->v[i % unit];
        return jsteps(r, total / 4);
    }
    char *s = jalloc(r, total + 1);
    if (!s) return false;
    for (size_t i = 0; i < total; i += unit) memcpy(s + i, a.u.s, unit);
    *out = jv_str((cairn_str){s, total});
    out->flag = a.flag & J_SAFE;
    return jsteps(r, (unit ? (uint64_t)n : 0) / 4);
}

static bool add_text(jrun *r, jv a, jv b, jv *out)
{
    buf b1;
    size_t len = (size_t)a.len + b.len;
    char *s;

    if ((a.flag ^ b.flag) & J_SAFE) { /* the plain side is escaped */
        jv *plain = a.flag & J_SAFE ? &b : &a;
        buf_init(&b1, MEM_TEXT);
        jtext_escape(jv_text(*plain), &b1);
        bool ok = buf_status(&b1) == CAIRN_OK && jv_copy(r, buf_view(&b1), plain);
        buf_deinit(&b1);
        if (!ok) return jfail_as(r, CAIRN_E_NOMEM, "escaped text");
        plain->flag = J_SAFE;
        return add_text(r, a, b, out);
    }
    if (len > JINJA_MAX_OUTPUT) return jfail_long(r, "a string");
    if (!(s = jalloc(r, len + 1))) return false;
    if (a.len) memcpy(s, a.u.s, a.len);
    if (b.len) memcpy(s + a.len, b.u.s, b.len);
    *out = jv_str((cairn_str){s, len});
    out->flag = a.flag & J_SAFE;
    return true;
}

static bool add_lists(jrun *r, jv a, jv b, jv *out)
{
    const jlist *x = a.u.list, *y = b.u.list;
    if (!jv_new_list(r, a.t, (size_t)x->n + y->n, out)) return false;
    if (x->n) memcpy(out->u.list->v, x->v, x->n * sizeof(jv));
    if (y->n) memcpy(out->u.list->v + x->n, y->v, y->n * sizeof(jv));
    return jsteps(r, out->u.list->n / 16);
}

static bool can_repeat(jv v)
{
    return v.t == J_STR || v.t == J_LIST || v.t == J_TUPLE;
}

bool jv_binary(jrun *r, int op, jv a, jv b, jv *out)
{
    if (jv_is_int(a) && jv_is_int(b)) return int_op(r, op, jv_as_int(a), jv_as_int(b), out);
    if (jv_is_whole(a) && jv_is_whole(b) && (op != TK_POW || jbig_cmp(b, jv_int(0)) >= 0))
        return jbig_op(r, op, a, b, out);
    if (jv_is_num(a) && jv_is_num(b)) {
        double x, y;
        return jv_to_num(r, a, &x) && jv_to_num(r, b, &y) && float_op(r, op, x, y, out);
    }
    if (op == TK_MOD && a.t == J_STR) return jformat_percent(r, jv_text(a), b, out);
    if (a.t == J_UNDEF || b.t == J_UNDEF) return jfail_undef(r, a.t == J_UNDEF ? a : b);
    if (op == TK_ADD && a.t == b.t) {
        if (a.t == J_STR) return add_text(r, a, b, out);
        if (a.t == J_LIST || a.t == J_TUPLE) return add_lists(r, a, b, out);
    }
    if (op == TK_MUL && can_repeat(a) && jv_is_int(b)) return repeat(r, a, jv_as_int(b), out);
    if (op == TK_MUL && can_repeat(b) && jv_is_int(a)) return repeat(r, b, jv_as_int(a), out);
    return jfail(r,
                 "unsupported operand types for %s: '%s' and '%s'; expected two that go together",
                 jtoken_name(op), jv_type_name(a), jv_type_name(b));
}

bool jv_unary(jrun *r, int op, jv a, jv *out)
{
    if (a.t == J_UNDEF) return jfail_undef(r, a);
    if (jv_is_int(a)) {
        int64_t v = jv_as_int(a);
        if (op == TK_SUB && v == INT64_MIN) return jbig_neg(r, a, out);
        *out = jv_int(op == TK_SUB ? -v : v);
        return true;
    }
    if (a.t == J_BIG) {
        *out = a;
        return op != TK_SUB || jbig_neg(r, a, out);
    }
    if (a.t != J_FLOAT)
        return jfail(r, "bad operand type for unary %s: '%s'; expected a number", jtoken_name(op),
                     jv_type_name(a));
    *out = jv_float(op == TK_SUB ? -a.u.f : a.u.f);
    return true;
}
