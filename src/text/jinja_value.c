/* Makes values and asks them: truth, length, str() and repr() as Python prints them.  Owns the
   limit on a render's memory. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "text/jinja_big.h"
#include "text/jinja_run.h"

void *jalloc(jrun *r, size_t size)
{
    void *p = NULL;
    if (size > JINJA_MAX_MEMORY || r->a.used + size > JINJA_MAX_MEMORY)
        jfail_as(r, CAIRN_E_LIMIT, "more than %d bytes of memory", JINJA_MAX_MEMORY);
    else if (!(p = arena_alloc(&r->a, size ? size : 1)))
        jfail_as(r, CAIRN_E_NOMEM, "%zu bytes", size);
    return p;
}

bool jv_copy(jrun *r, cairn_str s, jv *out)
{
    char *p;
    if (s.len > JINJA_MAX_OUTPUT) return jfail_long(r, "a string");
    if (!(p = jalloc(r, s.len + 1))) return false;
    if (s.len) memcpy(p, s.ptr, s.len);
    *out = jv_str((cairn_str){p, s.len});
    return true;
}

bool jv_give(jrun *r, buf *b, bool ok, jv *out)
{
    if (ok && buf_status(b) != CAIRN_OK) ok = jfail_as(r, CAIRN_E_NOMEM, "a text");
    ok = ok && jv_copy(r, buf_view(b), out);
    buf_deinit(b);
    return ok;
}

bool jv_new_list(jrun *r, uint8_t t, size_t n, jv *out)
{
    jlist *l = jalloc(r, sizeof *l);
    if (!l || n > JINJA_MAX_MEMORY / sizeof(jv)) {
        return l ? jfail_as(r, CAIRN_E_LIMIT, "list of %zu items", n) : false;
    }
    *l = (jlist){.n = (uint32_t)n, .v = NULL};
    if (n && !(l->v = jalloc(r, n * sizeof(jv)))) return false;
    *out = (jv){.t = t, .u.list = l};
    return true;
}

bool jlist_push(jrun *r, jv *list, uint32_t *cap, jv x)
{
    jlist *l = list->u.list;
    if (l->n >= *cap) {
        uint32_t want = *cap ? *cap * 2 : 8;
        jv *v = jalloc(r, want * sizeof(jv));
        if (!v) return false;
        if (l->n) memcpy(v, l->v, l->n * sizeof(jv));
        l->v = v;
        *cap = want;
    }
    l->v[l->n++] = x;
    return true;
}

bool jv_new_dict(jrun *r, uint8_t t, size_t cap, jv *out)
{
    jdict *d = jalloc(r, sizeof *d);
    if (!d) return false;
    *d = (jdict){.cap = (uint32_t)cap};
    if (cap && !(d->kv = jalloc(r, cap * sizeof(jpair)))) return false;
    *out = (jv){.t = t, .u.dict = d};
    return true;
}

bool jdict_get_str(const jdict *d, cairn_str k, jv *out)
{
    for (uint32_t i = 0; i < d->n; i++) {
        if (d->kv[i].k.t != J_STR || !str_eq(jv_text(d->kv[i].k), k)) continue;
        *out = d->kv[i].v;
        return true;
    }
    return false;
}

static jpair *dict_find(jrun *r, const jdict *d, jv k)
{
    for (uint32_t i = 0; i < d->n; i++) {
        bool same = false;
        if (k.t == J_STR && d->kv[i].k.t == J_STR)
            same = str_eq(jv_text(k), jv_text(d->kv[i].k));
        else if (!jv_eq(r, k, d->kv[i].k, &same))
            return NULL;
        if (same) return &d->kv[i];
    }
    return NULL;
}

bool jdict_get(jrun *r, const jdict *d, jv k, jv *out)
{
    if (!jsteps(r, d->n / 4)) return false;
    const jpair *p = dict_find(r, d, k);
    if (p) *out = p->v;
    return p != NULL;
}

bool jdict_put(jrun *r, jdict *d, jv k, jv v)
{
    if (!jv_hashable(r, k) || !jsteps(r, d->n / 4)) return false;
    jpair *p = dict_find(r, d, k);
    if (r->st != CAIRN_OK) return false;
    if (p) {
        p->v = v;
        return true;
    }
    if (d->n == d->cap) {
        uint32_t cap = d->cap ? d->cap * 2 : 4;
        jpair *kv = jalloc(r, cap * sizeof *kv);
        if (!kv) return false;
        if (d->n) memcpy(kv, d->kv, d->n * sizeof *kv);
        d->kv = kv;
        d->cap = cap;
    }
    d->kv[d->n++] = (jpair){k, v};
    return true;
}

bool jv_hashable(jrun *r, jv v)
{
    if (v.t == J_LIST || v.t == J_DICT || (v.t == J_VIEW && !(v.flag & J_VALUES)))
        return jfail(r, "unhashable type: '%s'; expected a text, a number or a tuple",
                     jv_type_name(v));
    for (uint32_t i = 0; v.t == J_TUPLE && i < v.u.list->n; i++) {
        if (!jenter(r)) return false;
        bool ok = jv_hashable(r, v.u.list->v[i]);
        r->depth--;
        if (!ok) return false;
    }
    return true;
}

bool jv_undef(jrun *r, jv obj, jv name, jv *out)
{
    jundef *u = jalloc(r, sizeof *u);
    if (!u) return false;
    *u = (jundef){.obj = obj, .name = name};
    *out = (jv){.t = J_UNDEF, .u.undef = u};
    return true;
}

bool jv_undef_hint(jrun *r, const char *hint, jv *out)
{
    jundef *u = jalloc(r, sizeof *u);
    if (!u) return false;
    *u = (jundef){.hint = hint};
    *out = (jv){.t = J_UNDEF, .u.undef = u};
    return true;
}

bool jfail_undef(jrun *r, jv v)
{
    const jundef *u = v.u.undef;
    cairn_str name = STR_LIT("?");

    if (u->hint) return jfail(r, "%s", u->hint);
    if (!jv_to_text(r, u->name, &name)) return false;
    if (u->obj.t == J_MISSING) return jfail(r, "'%.*s' is undefined", STR_ARG(name));
    return jfail(r, "'%s%s' has no %s '%.*s'", jv_type_name(u->obj),
                 u->obj.t == J_NONE ? "" : " object", u->name.t == J_STR ? "attribute" : "element",
                 STR_ARG(name));
}

const char *jv_type_name(jv v)
{
    static const char *const names[] = {
        "missing",  "Undefined", "None",  "bool",        "int",       "int",    "float",
        "str",      "list",      "tuple", "dict",        "dict view", "range",  "Namespace",
        "function", "method",    "Macro", "LoopContext", "generator", "Cycler", "Joiner"};
    return names[v.t];
}

bool jv_truth(jv v)
{
    switch (v.t) {
    case J_MISSING:
    case J_UNDEF:
    case J_NONE:
        return false;
    case J_BOOL:
        return v.u.b;
    case J_INT:
        return v.u.i != 0;
    case J_FLOAT:
        return v.u.f < 0 || v.u.f > 0 || isnan(v.u.f);
    case J_STR:
        return v.len > 0;
    case J_LIST:
    case J_TUPLE:
    case J_VIEW:
        return v.u.list->n > 0;
    case J_DICT:
        return v.u.dict->n > 0;
    case J_RANGE:
        return v.u.range->n > 0;
    default:
        return true;
    }
}

double jv_as_num(jv v)
{
    return v.t == J_FLOAT ? v.u.f : v.t == J_BIG ? jbig_num(v.u.big) : (double)jv_as_int(v);
}

bool jv_to_num(jrun *r, jv v, double *out)
{
    *out = jv_as_num(v);
    return v.t != J_BIG || !isinf(*out) ||
           jfail(r, "int too large to convert to float; expected one below 2^1024");
}

bool jv_len(jrun *r, jv v, int64_t *out)
{
    jv n;
    switch (v.t) {
    case J_UNDEF:
        *out = 0;
        return true;
    case J_STR:
        *out = (int64_t)jtext_count(jv_text(v));
        return jsteps(r, v.len / 16);
    case J_LIST:
    case J_TUPLE:
    case J_VIEW:
        *out = v.u.list->n;
        return true;
    case J_DICT:
        *out = v.u.dict->n;
        return true;
    case J_RANGE:
        *out = v.u.range->n;
        return true;
    case J_LOOP:
        if (!jloop_attr(r, v.u.loop, STR_LIT("length"), &n)) return false;
        *out = n.u.i;
        return true;
    default:
        return jfail(r, "object of type '%s' has no len(); expected a list, a mapping or a string",
                     jv_type_name(v));
    }
}

/* Python's repr(float): the shortest digits that read back, with an exponent from 1e16 on and below
   1e-4. */
void jnum_repr(double x, buf *b)
{
    char z[40], digits[24];
    int prec = 0, n_digits = 0, exp10;

    if (isnan(x) || isinf(x)) {
        buf_puts(b, isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
        return;
    }
    do {
        snprintf(z, sizeof z, "%.*e", prec, x);
    } while (prec++ < 16 && strtod(z, NULL) != x);
    const char *p = z, *e = strchr(z, 'e');
    if (!e) return;
    if (*p == '-') {
        buf_byte(b, '-');
        p++;
    }
    for (; p < e; p++)
        if (*p != '.') digits[n_digits++] = *p;
    exp10 = atoi(e + 1);
    while (n_digits > 1 && digits[n_digits - 1] == '0') n_digits--;
    if (exp10 < -4 || exp10 >= 16) {
        buf_byte(b, digits[0]);
        if (n_digits > 1) {
            buf_byte(b, '.');
            buf_put(b, digits + 1, (size_t)n_digits - 1);
        }
        buf_printf(b, "e%c%02d", exp10 < 0 ? '-' : '+', exp10 < 0 ? -exp10 : exp10);
        return;
    }
    for (int i = exp10 < 0 ? exp10 : 0; i < n_digits || i <= exp10 + 1; i++) {
        if (i == exp10 + 1) buf_byte(b, '.');
        buf_byte(b, i < 0 || i >= n_digits ? '0' : digits[i]);
    }
}

static void int_repr(int64_t v, buf *b)
{
    char z[24];
    size_t n = sizeof z;
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do z[--n] = (char)('0' + u % 10);
    while (u /= 10);
    if (v < 0) z[--n] = '-';
    buf_put(b, z + n, sizeof z - n);
}

static void str_repr(cairn_str s, buf *b)
{
    bool single = s.len && memchr(s.ptr, '\'', s.len), twice = s.len && memchr(s.ptr, '"', s.len);
    char quote = single && !twice ? '"' : '\'';

    buf_byte(b, quote);
    for (size_t i = 0; i < s.len;) {
        uint32_t cp;
        int n = utf8_decode(s.ptr + i, s.len - i, &cp);
        size_t len = (size_t)(n > 0 ? n : 1);
        if (cp == '\n')
            buf_puts(b, "\\n");
        else if (cp == '\r')
            buf_puts(b, "\\r");
        else if (cp == '\t')
            buf_puts(b, "\\t");
        else if (cp == '\\')
            buf_puts(b, "\\\\");
        else if (cp == (uint32_t)quote)
            buf_printf(b, "\\%c", quote);
        else if (jtext_printable(cp))
            buf_put(b, s.ptr + i, len);
        else
            buf_printf(b,
                       cp < 0x100     ? "\\x%02x"
                       : cp < 0x10000 ? "\\u%04x"
                                      : "\\U%08x",
                       (unsigned)cp);
        i += len;
    }
    buf_byte(b, quote);
}

static bool seq_repr(jrun *r, const jlist *l, const char *open, const char *close, buf *b,
                     uint32_t depth)
{
    buf_puts(b, open);
    for (uint32_t i = 0; i < l->n; i++) {
        if (i) buf_puts(b, ", ");
        if (!jv_repr(r, l->v[i], b, depth + 1)) return false;
    }
    buf_puts(b, close);
    return true;
}

static bool dict_repr(jrun *r, const jdict *d, buf *b, uint32_t depth)
{
    buf_byte(b, '{');
    for (uint32_t i = 0; i < d->n; i++) {
        if (i) buf_puts(b, ", ");
        if (!jv_repr(r, d->kv[i].k, b, depth + 1)) return false;
        buf_puts(b, ": ");
        if (!jv_repr(r, d->kv[i].v, b, depth + 1)) return false;
    }
    buf_byte(b, '}');
    return true;
}

static bool range_repr(const jrange *g, buf *b)
{
    buf_printf(b, "range(%lld, %lld", (long long)g->start, (long long)g->stop);
    if (g->step != 1) buf_printf(b, ", %lld", (long long)g->step);
    buf_byte(b, ')');
    return true;
}

static bool macro_repr(jrun *r, jv v, buf *b)
{
    jv name = v.u.macro->node->x.block->name;
    buf_puts(b, "<Macro ");
    if (name.t != J_STR)
        buf_puts(b, "anonymous");
    else if (!jv_repr(r, name, b, 0))
        return false;
    buf_byte(b, '>');
    return true;
}

bool jv_repr(jrun *r, jv v, buf *b, uint32_t depth)
{
    enum { MAX_DEPTH = 500 };
    jv n;

    if (depth > MAX_DEPTH)
        return jfail_as(r, CAIRN_E_LIMIT, "value nested more than %d deep", MAX_DEPTH);
    if (b->len > JINJA_MAX_OUTPUT)
        return jfail_as(r, CAIRN_E_LIMIT, "text of more than %d bytes", JINJA_MAX_OUTPUT);
    if (!jsteps(r, 1)) return false;
    switch (v.t) {
    case J_UNDEF:
        buf_puts(b, "Undefined");
        return true;
    case J_NONE:
        buf_puts(b, "None");
        return true;
    case J_BOOL:
        buf_puts(b, v.u.b ? "True" : "False");
        return true;
    case J_INT:
        int_repr(v.u.i, b);
        return true;
    case J_BIG:
        if (v.u.big->neg) buf_byte(b, '-');
        return jbig_digits(r, v.u.big, 10, false, b);
    case J_FLOAT:
        jnum_repr(v.u.f, b);
        return true;
    case J_STR:
        if (v.flag & J_SAFE) buf_puts(b, "Markup(");
        str_repr(jv_text(v), b);
        if (v.flag & J_SAFE) buf_byte(b, ')');
        return jbytes(r, v.len);
    case J_LIST:
        return seq_repr(r, v.u.list, "[", "]", b, depth);
    case J_TUPLE:
        return seq_repr(r, v.u.list, "(", v.u.list->n == 1 ? ",)" : ")", b, depth);
    case J_VIEW:
        return seq_repr(r, v.u.list,
                        v.flag & J_KEYS     ? "dict_keys(["
                        : v.flag & J_VALUES ? "dict_values(["
                                            : "dict_items([",
                        "])", b, depth);
    case J_DICT:
        return dict_repr(r, v.u.dict, b, depth);
    case J_NS:
        buf_puts(b, "<Namespace ");
        if (!dict_repr(r, v.u.dict, b, depth)) return false;
        buf_byte(b, '>');
        return true;
    case J_RANGE:
        return range_repr(v.u.range, b);
    case J_MACRO:
        return macro_repr(r, v, b);
    case J_LOOP:
        if (!jloop_attr(r, v.u.loop, STR_LIT("length"), &n)) return false;
        buf_printf(b, "<LoopContext %lld/%lld>", (long long)v.u.loop->index0 + 1, (long long)n.u.i);
        return true;
    default:
        buf_printf(b, "<%s>", jv_type_name(v));
        return true;
    }
}

bool jv_print(jrun *r, jv v, buf *b)
{
    if (v.t == J_UNDEF) return true;
    if (v.t != J_STR) return jv_repr(r, v, b, 0);
    buf_str(b, jv_text(v));
    return true;
}

bool jv_to_text(jrun *r, jv v, cairn_str *out)
{
    jv made;

    if (v.t == J_STR || v.t == J_UNDEF || v.t == J_MISSING) {
        *out = v.t == J_STR ? jv_text(v) : STR_LIT("");
        return true;
    }
    if (v.t == J_NONE || v.t == J_BOOL) {
        *out = str_of(v.t == J_NONE ? "None" : v.u.b ? "True" : "False");
        return true;
    }
    buf b;
    buf_init(&b, MEM_TEXT);
    bool ok = jv_repr(r, v, &b, 0);
    if (ok && buf_status(&b) != CAIRN_OK) ok = jfail_as(r, CAIRN_E_NOMEM, "text of a value");
    ok = ok && jv_copy(r, buf_view(&b), &made);
    if (ok) *out = jv_text(made);
    buf_deinit(&b);
    return ok;
}
