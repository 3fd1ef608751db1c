/* Arithmetic on integers past 64 bits: schoolbook, since templates meet them as identifiers in tool
   arguments and hardly ever compute with them.  Work counts as steps. */
#include "text/jinja_big.h"

#include <math.h>

#include "text/jinja_run.h"

/* A view of any whole number: of an int64 its two words lie in `small`. */
typedef struct whole {
    bool neg;
    uint32_t n, small[2];
    const uint32_t *big;
} whole;

static whole whole_of(jv v)
{
    if (v.t == J_BIG) return (whole){.neg = v.u.big->neg, .n = v.u.big->n, .big = v.u.big->d};
    const int64_t i = jv_as_int(v);
    const uint64_t u = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    whole w = {.neg = i < 0, .small = {(uint32_t)u, (uint32_t)(u >> 32)}};
    w.n = w.small[1] ? 2 : w.small[0] ? 1 : 0;
    return w;
}

static const uint32_t *words(const whole *w)
{
    return w->big ? w->big : w->small;
}

static jbig *make(jrun *r, size_t n)
{
    if (n > JBIG_MAX_WORDS) {
        jfail_as(r, CAIRN_E_LIMIT, "integer of more than %d bits", JBIG_MAX_WORDS * 32);
        return NULL;
    }
    jbig *x = jalloc(r, sizeof *x + n * sizeof x->d[0]);
    if (x) {
        x->neg = false;
        x->n = (uint32_t)n;
        memset(x->d, 0, n * sizeof x->d[0]);
    }
    return x;
}

static void trim(jbig *x)
{
    while (x->n && !x->d[x->n - 1]) x->n--;
    if (!x->n) x->neg = false;
}

bool jbig_fits(const jbig *x, int64_t *out)
{
    const uint64_t u = (x->n > 0 ? x->d[0] : 0) | (uint64_t)(x->n > 1 ? x->d[1] : 0) << 32;
    if (x->n > 2 || u > (uint64_t)INT64_MAX + x->neg) return false;
    *out = x->neg ? (int64_t)(0 - u) : (int64_t)u;
    return true;
}

jv jbig_value(const jbig *x)
{
    int64_t i;
    return jbig_fits(x, &i) ? jv_int(i) : (jv){.t = J_BIG, .u.big = x};
}

static int cmp_words(const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b)
{
    if (n_a != n_b) return n_a < n_b ? -1 : 1;
    for (uint32_t i = n_a; i-- > 0;)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return 0;
}

int jbig_cmp(jv a, jv b)
{
    const whole x = whole_of(a), y = whole_of(b);
    if (x.neg != y.neg) return x.neg ? -1 : 1;
    const int c = cmp_words(words(&x), x.n, words(&y), y.n);
    return x.neg ? -c : c;
}

jbig *jbig_read(arena *a, cairn_str s, unsigned base, bool neg)
{
    const size_t n = s.len * 6 / 32 + 2; /* a digit of base 36 has less than 6 bits */
    if (n > JBIG_MAX_WORDS) return NULL;
    jbig *x = arena_calloc(a, 1, sizeof *x + n * sizeof x->d[0]);
    if (!x) return NULL;
    x->neg = neg;
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i], low = (char)(c | 32);
        if (c == '_') continue;
        uint64_t carry = (uint64_t)(str_is_digit(c) ? c - '0' : low - 'a' + 10);
        for (uint32_t k = 0; k < x->n; k++) {
            carry += (uint64_t)x->d[k] * base;
            x->d[k] = (uint32_t)carry;
            carry >>= 32;
        }
        if (carry) x->d[x->n++] = (uint32_t)carry;
    }
    trim(x);
    return x;
}

static jbig *add_abs(jrun *r, const whole *a, const whole *b)
{
    const uint32_t n = (a->n > b->n ? a->n : b->n) + 1;
    jbig *x = make(r, n);
    uint64_t carry = 0;
    for (uint32_t i = 0; x && i < n; i++) {
        carry += (i < a->n ? words(a)[i] : 0) + (uint64_t)(i < b->n ? words(b)[i] : 0);
        x->d[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return x;
}

/* |a| >= |b| */
static jbig *sub_abs(jrun *r, const whole *a, const whole *b)
{
    jbig *x = make(r, a->n);
    uint64_t borrow = 0;
    for (uint32_t i = 0; x && i < a->n; i++) {
        const uint64_t v = (uint64_t)words(a)[i] - (i < b->n ? words(b)[i] : 0) - borrow;
        x->d[i] = (uint32_t)v;
        borrow = v >> 63;
    }
    return x;
}

static jbig *add(jrun *r, whole a, whole b, bool minus)
{
    jbig *x;
    b.neg ^= minus;
    if (a.neg == b.neg) {
        if ((x = add_abs(r, &a, &b))) x->neg = a.neg;
    } else if (cmp_words(words(&a), a.n, words(&b), b.n) >= 0) {
        if ((x = sub_abs(r, &a, &b))) x->neg = a.neg;
    } else if ((x = sub_abs(r, &b, &a))) {
        x->neg = b.neg;
    }
    if (x) trim(x);
    return x;
}

static jbig *mul(jrun *r, const whole *a, const whole *b)
{
    if (!jsteps(r, (uint64_t)a->n * b->n / 16)) return NULL;
    jbig *x = make(r, (size_t)a->n + b->n);
    for (uint32_t i = 0; x && i < a->n; i++) {
        uint64_t carry = 0;
        for (uint32_t k = 0; k < b->n; k++) {
            carry += (uint64_t)words(a)[i] * words(b)[k] + x->d[i + k];
            x->d[i + k] = (uint32_t)carry;
            carry >>= 32;
        }
        x->d[i + b->n] = (uint32_t)carry;
    }
    if (!x) return NULL;
    x->neg = a->neg != b->neg;
    trim(x);
    return x;
}

/* |a| / |b| bit by bit: q and rest get a's size; b is not 0. */
static bool div_abs(jrun *r, const whole *a, const whole *b, jbig **q, jbig **rest)
{
    if (!jsteps(r, (uint64_t)a->n * (b->n + 1) * 2)) return false;
    if (!(*q = make(r, a->n)) || !(*rest = make(r, (size_t)b->n + 1))) return false;
    uint32_t *m = (*rest)->d;
    for (uint32_t i = a->n * 32; i-- > 0;) {
        uint32_t bit = words(a)[i / 32] >> (i % 32) & 1;
        for (uint32_t k = 0; k <= b->n; k++) {
            const uint32_t high = m[k] >> 31;
            m[k] = m[k] << 1 | bit;
            bit = high;
        }
        uint32_t n = b->n + 1;
        while (n && !m[n - 1]) n--;
        if (cmp_words(m, n, words(b), b->n) < 0) continue;
        uint64_t borrow = 0;
        for (uint32_t k = 0; k <= b->n; k++) {
            const uint64_t v = (uint64_t)m[k] - (k < b->n ? words(b)[k] : 0) - borrow;
            m[k] = (uint32_t)v;
            borrow = v >> 63;
        }
        (*q)->d[i / 32] |= UINT32_C(1) << (i % 32);
    }
    trim(*q);
    trim(*rest);
    return true;
}

static bool floor_div(jrun *r, int op, jv a, jv b, jv *out)
{
    const whole x = whole_of(a), y = whole_of(b);
    jbig *q, *m;
    if (!y.n) return jfail(r, "integer division or modulo by zero; expected another divisor");
    if (!div_abs(r, &x, &y, &q, &m)) return false;
    const bool down = m->n && x.neg != y.neg;
    q->neg = x.neg != y.neg && q->n;
    m->neg = x.neg && m->n;
    jv qv = jbig_value(q), mv = jbig_value(m);
    if (op == TK_FLOORDIV) {
        *out = qv;
        return !down || jbig_op(r, TK_SUB, qv, jv_int(1), out);
    }
    *out = mv;
    return !down || jbig_op(r, TK_ADD, mv, b, out);
}

static bool pow_of(jrun *r, jv a, jv b, jv *out)
{
    int64_t e = jv_as_int(b);
    jv v = jv_int(1), square = a;
    if (b.t == J_BIG || e > JBIG_MAX_WORDS * 32)
        return jfail_as(r, CAIRN_E_LIMIT, "integer of more than %d bits", JBIG_MAX_WORDS * 32);
    for (; e; e >>= 1) {
        if (e & 1 && !jbig_op(r, TK_MUL, v, square, &v)) return false;
        if (e > 1 && !jbig_op(r, TK_MUL, square, square, &square)) return false;
    }
    *out = v;
    return true;
}

static uint32_t bits_of(const whole *x)
{
    return x->n ? x->n * 32 - (uint32_t)__builtin_clz(words(x)[x->n - 1]) : 0;
}

static double num_of(const whole *x)
{
    uint64_t top = 0;
    const uint32_t bits = bits_of(x), drop = bits > 64 ? bits - 64 : 0;
    bool rest = false;
    for (uint32_t i = 0; i < bits; i++) {
        const uint64_t bit = words(x)[i / 32] >> (i % 32) & 1;
        if (i < drop)
            rest |= bit != 0;
        else
            top |= bit << (i - drop);
    }
    top |= rest; /* 64 bits have 11 more than a double: the lowest is only sticky */
    const double v = ldexp((double)top, (int)drop);
    return x->neg ? -v : v;
}

double jbig_num(const jbig *x)
{
    const whole w = whole_of((jv){.t = J_BIG, .u.big = x});
    return num_of(&w);
}

static bool true_div(jrun *r, jv a, jv b, jv *out)
{
    whole x = whole_of(a);
    const whole y = whole_of(b);
    jbig *q, *m, *wide;
    if (!y.n) return jfail(r, "division by zero; expected another divisor");
    /* A quotient of at least 66 bits, so that the rest is only sticky. */
    const int64_t more = (int64_t)bits_of(&y) + 66 - (int64_t)bits_of(&x);
    const uint32_t shift = more > 0 ? (uint32_t)(more + 31) / 32 : 0;
    if (!(wide = make(r, x.n + shift))) return false;
    if (x.n) memcpy(wide->d + shift, words(&x), x.n * sizeof(uint32_t));
    trim(wide);
    const whole w = {.n = wide->n, .big = wide->d};
    if (!div_abs(r, &w, &y, &q, &m)) return false;
    if (q->n && m->n) q->d[0] |= 1;
    double v = ldexp(jbig_num(q), -(int)(shift * 32));
    if (isinf(v))
        return jfail(r, "integer division result too large for a float; expected one below 2^1024");
    *out = jv_float(x.neg != y.neg ? -v : v);
    return true;
}

bool jbig_op(jrun *r, int op, jv a, jv b, jv *out)
{
    const whole x = whole_of(a), y = whole_of(b);
    jbig *v = NULL;
    switch (op) {
    case TK_ADD:
    case TK_SUB:
        v = add(r, x, y, op == TK_SUB);
        break;
    case TK_MUL:
        v = mul(r, &x, &y);
        break;
    case TK_POW:
        return pow_of(r, a, b, out);
    case TK_DIV:
        return true_div(r, a, b, out);
    default:
        return floor_div(r, op, a, b, out);
    }
    if (v) *out = jbig_value(v);
    return v != NULL;
}

bool jbig_neg(jrun *r, jv a, jv *out)
{
    return jbig_op(r, TK_SUB, jv_int(0), a, out);
}

int jbig_cmp_num(jv v, double f)
{
    uint32_t d[34]; /* a double has 1,024 bits before the point at most */
    double whole_part = trunc(fabs(f)), rest = fabs(f) - whole_part;
    const whole x = whole_of(v);
    uint32_t n = 0;
    int c;
    if (x.neg != (f < 0) || !x.n) {
        if (!x.n) return f > 0 ? -1 : f < 0;
        return x.neg ? -1 : 1;
    }
    while (whole_part > 0 && n < 34) {
        const double high = floor(whole_part / 4294967296.0);
        d[n++] = (uint32_t)(whole_part - high * 4294967296.0);
        whole_part = high;
    }
    c = cmp_words(words(&x), x.n, d, n);
    if (!c && rest > 0) c = -1;
    return x.neg ? -c : c;
}

bool jbig_from_num(jrun *r, double f, jv *out)
{
    double left = trunc(fabs(f));
    jbig *x = make(r, 34);
    if (!x) return false;
    for (uint32_t i = 0; i < 34; i++) {
        const double high = floor(left / 4294967296.0);
        x->d[i] = (uint32_t)(left - high * 4294967296.0);
        left = high;
    }
    x->neg = f < 0;
    trim(x);
    *out = jbig_value(x);
    return true;
}

bool jbig_digits(jrun *r, const jbig *x, unsigned base, bool upper, buf *b)
{
    const char *const digit = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    const size_t most = (size_t)x->n * (base == 10 ? 10 : base == 16 ? 8 : base == 8 ? 11 : 32) + 1;
    uint32_t *d = jalloc(r, x->n * sizeof *d + 1), n = x->n;
    char *z = jalloc(r, most);
    size_t at = most;
    if (!d || !z || !jsteps(r, (uint64_t)n * n)) return false;
    memcpy(d, x->d, n * sizeof *d);
    while (n) {
        uint64_t rest = 0;
        for (uint32_t i = n; i-- > 0;) {
            rest = rest << 32 | d[i];
            d[i] = (uint32_t)(rest / base);
            rest %= base;
        }
        z[--at] = digit[rest];
        while (n && !d[n - 1]) n--;
    }
    if (base == 10 && most - at > JBIG_MAX_DIGITS)
        return jfail(r, "exceeds the limit (%d digits) for integer string conversion",
                     JBIG_MAX_DIGITS);
    buf_put(b, z + at, most - at);
    return true;
}
