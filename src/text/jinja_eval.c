/* Evaluates expressions.  Calls and their arguments are jinja_call.c's, operators jinja_op.c's,
   attributes and subscripts jinja_attr.c's. */
#include <stdarg.h>
#include <stdio.h>

#include "base/diag.h"
#include "text/jinja_run.h"

__attribute__((format(printf, 3, 0))) static bool vfail(jrun *r, cairn_status st, const char *fmt,
                                                        va_list ap)
{
    char msg[400];

    if (r->st != CAIRN_OK) return false;
    vsnprintf(msg, sizeof msg, fmt, ap);
    r->st = diag_set(r->dg, st, "%s, line %d: %s", r->t->where, (int)r->line, msg);
    return false;
}

bool jfail(jrun *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vfail(r, CAIRN_E_ARG, fmt, ap);
    va_end(ap);
    return false;
}

bool jfail_as(jrun *r, cairn_status st, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vfail(r, st, fmt, ap);
    va_end(ap);
    return false;
}

bool jfail_long(jrun *r, const char *what)
{
    return jfail_as(r, CAIRN_E_LIMIT, "%s: too much text; expected at most %d bytes", what,
                    JINJA_MAX_OUTPUT);
}

bool jsteps(jrun *r, uint64_t n)
{
    r->steps += n;
    return r->steps <= r->max_steps ||
           jfail_as(r, CAIRN_E_LIMIT, "more than %llu steps", (unsigned long long)r->max_steps);
}

bool jenter(jrun *r)
{
    if (++r->depth <= JINJA_MAX_DEPTH) return true;
    return jfail_as(r, CAIRN_E_LIMIT, "evaluation more than %d deep", JINJA_MAX_DEPTH);
}

static bool eval_name(jrun *r, const jnode *n, jv *out)
{
    const jact *a = r->act;
    for (uint32_t i = n->hops; i; i--) a = a->parent;
    *out = a->slot[n->slot];
    if (out->t == J_MISSING) *out = (jv){.t = J_UNDEF, .u.undef = n->x.undef};
    return true;
}

static bool eval_seq(jrun *r, const jnode *n, jv *out)
{
    if (!jv_new_list(r, n->kind == N_LIST ? J_LIST : J_TUPLE, n->n, out)) return false;
    for (uint32_t i = 0; i < n->n; i++)
        if (!jeval(r, n->v[i], &out->u.list->v[i])) return false;
    return true;
}

static bool eval_dict(jrun *r, const jnode *n, jv *out)
{
    if (!jv_new_dict(r, J_DICT, n->n / 2, out)) return false;
    for (uint32_t i = 0; i < n->n; i += 2) {
        jv k, v;
        if (!jeval(r, n->v[i], &k) || !jeval(r, n->v[i + 1], &v)) return false;
        if (!jdict_put(r, out->u.dict, k, v)) return false;
    }
    return true;
}

/* a ~ b ~ …: all operands, then their texts together. */
static bool eval_concat(jrun *r, const jnode *n, jv *out)
{
    cairn_str *part = jalloc(r, n->n * sizeof *part);
    size_t len = 0;

    if (!part) return false;
    for (uint32_t i = 0; i < n->n; i++) {
        jv v;
        if (!jeval(r, n->v[i], &v) || !jv_to_text(r, v, &part[i])) return false;
        len += part[i].len;
    }
    if (len > JINJA_MAX_OUTPUT) return jfail_long(r, "a string");
    char *s = jalloc(r, len + 1);
    if (!s) return false;
    *out = jv_str((cairn_str){s, len});
    for (uint32_t i = 0; i < n->n; i++) {
        if (part[i].len) memcpy(s, part[i].ptr, part[i].len);
        s += part[i].len;
    }
    return true;
}

static bool eval_compare(jrun *r, const jnode *n, jv *out)
{
    jv left;

    if (!jeval(r, n->a, &left)) return false;
    for (uint32_t i = 0; i < n->n; i++) {
        const jnode *o = n->v[i];
        jv right;
        bool yes;
        if (!jeval(r, o->a, &right)) return false;
        bool in = o->op == TK_IN || o->op == TK_NOT_IN;
        bool ok = in ? jv_contains(r, left, right, &yes) : jv_cmp(r, left, right, o->op, &yes);
        if (!ok) return false;
        if (o->op == TK_NOT_IN) yes = !yes;
        *out = jv_bool(yes);
        if (!yes) break;
        left = right;
    }
    return true;
}

/* What the reference computes while it compiles, if all that is printed is of this kind; slices are
   subscripts then, which do not fail. */
static bool is_constant(const jnode *n)
{
    bool all = true;
    switch (n->kind) {
    case N_CONST:
        return true;
    case N_GETITEM:
    case N_GETATTR:
        return is_constant(n->a) && (!n->b || is_constant(n->b));
    case N_SLICE:
        return (!n->a || is_constant(n->a)) && (!n->b || is_constant(n->b)) &&
               (!n->c || is_constant(n->c));
    case N_TUPLE:
    case N_LIST:
    case N_DICT:
    case N_CONCAT:
        for (uint32_t i = 0; i < n->n && all; i++) all = is_constant(n->v[i]);
        return all;
    case N_COMPARE:
        for (uint32_t i = 0; i < n->n && all; i++) all = is_constant(n->v[i]->a);
        return all && is_constant(n->a);
    case N_UNARY:
    case N_NOT:
        return is_constant(n->a);
    case N_BINARY:
    case N_AND:
    case N_OR:
        return is_constant(n->a) && is_constant(n->b);
    case N_COND:
        return is_constant(n->a) && is_constant(n->b) && n->c && is_constant(n->c);
    case N_FILTER:
    case N_TEST:
        for (uint32_t i = 0; n->a && i < n->x.args->n_pos && all; i++)
            all = is_constant(n->x.args->pos[i]);
        return all && n->a && is_constant(n->a);
    default:
        return false;
    }
}

static bool eval_item(jrun *r, const jnode *n, jv *out)
{
    const jnode *k = n->b;
    jv obj, lo, hi, step;

    if (!jeval(r, n->a, &obj)) return false;
    if (k->kind != N_SLICE) return jeval(r, k, &lo) && jv_getitem(r, obj, lo, out);
    lo = hi = step = jv_none();
    if ((k->a && !jeval(r, k->a, &lo)) || (k->b && !jeval(r, k->b, &hi)) ||
        (k->c && !jeval(r, k->c, &step)))
        return false;
    if (!jv_can_slice(obj) && obj.t != J_UNDEF && obj.t != J_ITER && r->printing &&
        is_constant(r->printing))
        return jv_undef(r, obj, jv_lit("slice"), out);
    return jv_slice(r, obj, lo, hi, step, out);
}

/* Filters and tests: the operand, then arguments. */
static bool eval_applied(jrun *r, const jnode *n, jv *out)
{
    const char *what = n->kind == N_FILTER ? "filter" : "test";
    jv in = r->captured;
    jcall c;

    if (n->a && !jeval(r, n->a, &in)) return false;
    if (!n->fn)
        return jfail(r, "no %s named '%.*s'; expected one that is known", what,
                     STR_ARG(jv_text(n->val)));
    if (!jeval_args(r, n->x.args, jv_of(J_MISSING), &c)) return false;
    r->line = n->line;
    return jfn_call(r, n->fn, what, in, &c, out);
}

static bool eval_cond(jrun *r, const jnode *n, jv *out)
{
    jv test;

    if (!jeval(r, n->a, &test)) return false;
    if (jv_truth(test)) return jeval(r, n->b, out);
    if (n->c) return jeval(r, n->c, out);
    return jv_undef_hint(r, "the inline if-expression evaluated to false and has no else", out);
}

static bool eval_getattr(jrun *r, const jnode *n, jv *out)
{
    jv obj;
    if (!jeval(r, n->a, &obj)) return false;
    r->line = n->line;
    return jv_getattr(r, obj, n->val, n->x.known, out);
}

static bool eval_kind(jrun *r, const jnode *n, jv *out)
{
    jv a, b;

    switch (n->kind) {
    case N_TUPLE:
    case N_LIST:
        return eval_seq(r, n, out);
    case N_DICT:
        return eval_dict(r, n, out);
    case N_UNARY:
        return jeval(r, n->a, &a) && jv_unary(r, n->op, a, out);
    case N_NOT:
        if (!jeval(r, n->a, &a)) return false;
        *out = jv_bool(!jv_truth(a));
        return true;
    case N_BINARY:
        return jeval(r, n->a, &a) && jeval(r, n->b, &b) && jv_binary(r, n->op, a, b, out);
    case N_AND:
    case N_OR:
        if (!jeval(r, n->a, out)) return false;
        return jv_truth(*out) == (n->kind == N_OR) || jeval(r, n->b, out);
    case N_CONCAT:
        return eval_concat(r, n, out);
    case N_COMPARE:
        return eval_compare(r, n, out);
    case N_GETATTR:
        return eval_getattr(r, n, out);
    case N_GETITEM:
        return eval_item(r, n, out);
    case N_CALL:
        return jeval_call(r, n, jv_of(J_MISSING), out);
    case N_FILTER:
    case N_TEST:
        return eval_applied(r, n, out);
    case N_COND:
        return eval_cond(r, n, out);
    default:
        return jfail_as(r, CAIRN_E_INTERNAL, "expression of kind %d", n->kind);
    }
}

bool jeval(jrun *r, const jnode *n, jv *out)
{
    if (n->kind == N_CONST) {
        *out = n->val;
        return true;
    }
    if (n->kind == N_NAME) return eval_name(r, n, out);
    if (!jenter(r) || !jsteps(r, 1)) return false;
    bool ok = eval_kind(r, n, out);
    r->depth--;
    return ok;
}
