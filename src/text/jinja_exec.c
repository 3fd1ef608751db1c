/* Runs statements.  Output goes to one buffer; what a macro, set, filter or call block writes is cut
   off its end again as a string.  Owns activations, scopes, loops and assignment. */
#include "text/jinja_run.h"

jact *jact_new(jrun *r, jact *parent, uint32_t n_slots)
{
    jact *a = jalloc(r, sizeof *a + n_slots * sizeof(jv));
    if (!a) return NULL;
    a->parent = parent;
    for (uint32_t i = 0; i < n_slots; i++) a->slot[i] = jv_of(J_MISSING);
    return a;
}

static jact *act_up(jrun *r, uint32_t hops)
{
    jact *a = r->act;
    while (hops--) a = a->parent;
    return a;
}

void jscope_enter(jrun *r, const jscope *s)
{
    for (uint32_t i = 0; i < s->n_loads; i++) {
        const jload *l = &s->loads[i];
        jv *to = &r->act->slot[l->slot];
        if (l->kind == LOAD_RESOLVE)
            *to = r->ctx[l->from];
        else if (l->kind == LOAD_ALIAS)
            *to = act_up(r, l->hops)->slot[l->from];
        else
            *to = jv_of(J_MISSING);
    }
}

bool jcapture(jrun *r, size_t from, jv *out)
{
    if (buf_status(r->out) != CAIRN_OK) return jfail_as(r, CAIRN_E_NOMEM, "output");
    cairn_str s =
        from < r->out->len ? (cairn_str){r->out->ptr + from, r->out->len - from} : (cairn_str){0};
    if (!jv_copy(r, s, out)) return false;
    buf_cut(r->out, from);
    return true;
}

static bool emit(jrun *r, cairn_str s)
{
    if (r->out->len - r->out_base + s.len > JINJA_MAX_OUTPUT) return jfail_long(r, "output");
    buf_str(r->out, s);
    if (r->out->no_memory || r->out->over_limit)
        return jfail_as(r, buf_status(r->out), "output of %zu bytes", r->out->len);
    return true;
}

static bool print(jrun *r, jv v)
{
    cairn_str s;
    if (v.t == J_STR) return emit(r, jv_text(v));
    if (v.t == J_INT) return jv_repr(r, v, r->out, 0) && emit(r, (cairn_str){0});
    return jv_to_text(r, v, &s) && emit(r, s);
}

static bool assign_ns(jrun *r, const jnode *t, jv v)
{
    jv ns = act_up(r, t->a->hops)->slot[t->a->slot];
    if (ns.t != J_NS)
        return jfail(r, "cannot assign attribute on non-namespace object; expected a namespace");
    if (t->val.len && t->val.u.s[0] == '_')
        return jfail(r, "namespace attribute '%.*s' begins with an underscore; expected a letter",
                     STR_ARG(jv_text(t->val)));
    return jdict_put(r, ns.u.dict, t->val, v);
}

static bool assign(jrun *r, const jnode *t, jv v);

static bool assign_tuple(jrun *r, const jnode *t, jv v)
{
    jiter it;
    jv x;
    int got;

    if (!jiter_init(r, v, &it)) return false;
    for (uint32_t i = 0; i < t->n; i++) {
        got = jiter_next(r, &it, &x);
        if (got < 0) return false;
        if (!got) return jfail(r, "not enough values to unpack (expected %u, got %u)", t->n, i);
        if (!assign(r, t->v[i], x)) return false;
    }
    got = jiter_next(r, &it, &x);
    if (got < 0) return false;
    return !got || jfail(r, "too many values to unpack (expected %u)", t->n);
}

static bool assign(jrun *r, const jnode *t, jv v)
{
    if (t->kind == N_TUPLE) return assign_tuple(r, t, v);
    if (t->kind == N_NSREF) return assign_ns(r, t, v);
    act_up(r, t->hops)->slot[t->slot] = v;
    return true;
}

/* All namespaces named in a target are checked before the value is computed. */
static bool check_targets(jrun *r, const jnode *t)
{
    if (t->kind == N_NSREF && act_up(r, t->a->hops)->slot[t->a->slot].t != J_NS)
        return jfail(r, "cannot assign attribute on non-namespace object; expected a namespace");
    for (uint32_t i = 0; t->kind == N_TUPLE && i < t->n; i++)
        if (!check_targets(r, t->v[i])) return false;
    return true;
}

static bool exec_set(jrun *r, const jnode *n)
{
    jv v;
    return check_targets(r, n->a) && jeval(r, n->b, &v) && assign(r, n->a, v);
}

/* Body → string → filters, whose innermost node has no operand. */
static int captured(jrun *r, const jnode *n, jv *out)
{
    size_t from = r->out->len;

    jscope_enter(r, &n->x.block->scope);
    const size_t held = jhold(r);
    int e = jexec(r, n->x.block->body);
    r->yielded = held;
    if (e != EXEC_OK) {
        if (e != EXEC_FAILED) buf_cut(r->out, from);
        return e;
    }
    if (!jcapture(r, from, out)) return EXEC_FAILED;
    if (!n->b) return EXEC_OK;
    r->captured = *out; /* read by the innermost filter */
    return jeval(r, n->b, out) ? EXEC_OK : EXEC_FAILED;
}

static int exec_capture(jrun *r, const jnode *n)
{
    jv v;
    int e = captured(r, n, &v);
    if (e != EXEC_OK) return e;
    if (n->kind == N_FILTERBLOCK && v.t != J_STR) /* the reference joins its output's parts */
        return jfail(r, "a filter block gave %s, not a string", jv_type_name(v)), EXEC_FAILED;
    bool ok = n->kind == N_SETBLOCK ? check_targets(r, n->a) && assign(r, n->a, v) : print(r, v);
    return ok ? EXEC_OK : EXEC_FAILED;
}

static int exec_with(jrun *r, const jnode *n)
{
    jscope_enter(r, &n->x.block->scope);
    for (uint32_t i = 0; i < n->n; i += 2) {
        jv v;
        if (!jeval(r, n->v[i + 1], &v) || !assign(r, n->v[i], v)) return EXEC_FAILED;
    }
    return jexec(r, n->x.block->body);
}

static bool new_macro(jrun *r, const jnode *n, jv *out)
{
    jmacro *m = jalloc(r, sizeof *m);
    if (!m) return false;
    *m = (jmacro){.node = n, .outer = r->act};
    *out = (jv){.t = J_MACRO, .u.macro = m};
    return true;
}

static bool exec_call_block(jrun *r, const jnode *n)
{
    jv caller, v;
    if (!new_macro(r, n, &caller) || !jeval_call(r, n->x.block->call, caller, &v)) return false;
    if (v.t != J_STR) return jfail(r, "a call block's call gave %s, not a string", jv_type_name(v));
    return emit(r, jv_text(v));
}

static int exec_generation(jrun *r, const jnode *n)
{
    jact *outer = r->act;
    const size_t from = r->out->len;
    if (!(r->act = jact_new(r, outer, n->x.block->n_slots))) {
        r->act = outer;
        return EXEC_FAILED;
    }
    jscope_enter(r, &n->x.block->scope);
    const size_t held = jhold(r), start = r->yielded - r->out_base;
    int e = jexec(r, n->x.block->body);
    r->yielded = held;
    r->act = outer;
    if (r->spans && e != EXEC_FAILED) {
        const jinja_span s = {start, start + r->out->len - from};
        buf_put(r->spans, &s, sizeof s);
    }
    return e;
}

static int filtered_next(jrun *r, jloop *l, jv *out)
{
    const jnode *n = l->node;
    for (;;) {
        int got = jiter_next(r, &l->it, out);
        if (got <= 0 || !n->c || l->filtered) return got;
        jact *at = r->act;
        jv yes;
        r->act = l->act;
        bool ok = assign(r, n->x.block->test_target, *out) && jeval(r, n->c, &yes);
        r->act = at;
        if (!ok) return -1;
        if (jv_truth(yes)) return 1;
    }
}

static int peek(jrun *r, jloop *l)
{
    if (l->next.t != J_MISSING) return 1;
    if (l->it.kind == IT_END) return 0;
    int got = filtered_next(r, l, &l->next);
    if (got <= 0) l->next = jv_of(J_MISSING); /* it may hold one that the condition refused */
    if (got == 0) l->it.kind = IT_END;
    return got;
}

int jloop_next(jrun *r, jloop *l, jv *out)
{
    int got = peek(r, l);
    if (got <= 0) return got;
    l->prev = l->cur;
    *out = l->cur = l->next;
    l->next = jv_of(J_MISSING);
    l->index0++;
    return 1;
}

/* Items whose number is not known ahead are all pulled now. */
static bool loop_length(jrun *r, jloop *l)
{
    jv rest, x;
    uint32_t cap = 0;
    int got;

    if (l->length >= 0) return true;
    if (!l->node->c && l->it.src.t != J_ITER) return jv_len(r, l->it.src, &l->length);
    if (!jv_new_list(r, J_LIST, 0, &rest)) return false;
    if (l->next.t != J_MISSING && !jlist_push(r, &rest, &cap, l->next)) return false;
    while (l->it.kind != IT_END && (got = filtered_next(r, l, &x)) != 0)
        if (got < 0 || !jlist_push(r, &rest, &cap, x)) return false;
    l->next = jv_of(J_MISSING);
    l->length = l->index0 + 1 + rest.u.list->n;
    l->it = (jiter){.kind = IT_SEQ, .src = rest};
    l->filtered = true;
    return true;
}

static bool loop_count(jrun *r, jloop *l, int64_t minus, jv *out)
{
    if (!loop_length(r, l)) return false;
    *out = jv_int(l->length - minus);
    return true;
}

static bool loop_next_item(jrun *r, jloop *l, bool want_last, jv *out)
{
    int got = peek(r, l);
    if (got < 0) return false;
    if (want_last)
        *out = jv_bool(got == 0);
    else if (got)
        *out = l->next;
    else
        return jv_undef_hint(r, "there is no next item", out);
    return true;
}

bool jloop_attr(jrun *r, jloop *l, cairn_str name, jv *out)
{
    if (str_is(name, "index"))
        *out = jv_int(l->index0 + 1);
    else if (str_is(name, "index0"))
        *out = jv_int(l->index0);
    else if (str_is(name, "first"))
        *out = jv_bool(l->index0 == 0);
    else if (str_is(name, "last"))
        return loop_next_item(r, l, true, out);
    else if (str_is(name, "length"))
        return loop_count(r, l, 0, out);
    else if (str_is(name, "revindex"))
        return loop_count(r, l, l->index0, out);
    else if (str_is(name, "revindex0"))
        return loop_count(r, l, l->index0 + 1, out);
    else if (str_is(name, "depth"))
        *out = jv_int(l->depth0 + 1);
    else if (str_is(name, "depth0"))
        *out = jv_int(l->depth0);
    else if (str_is(name, "nextitem"))
        return loop_next_item(r, l, false, out);
    else if (str_is(name, "previtem") && l->index0 > 0)
        *out = l->prev;
    else if (str_is(name, "previtem"))
        return jv_undef_hint(r, "there is no previous item", out);
    else
        return jfail_as(r, CAIRN_E_INTERNAL, "loop attribute");
    return true;
}

static int loop_body(jrun *r, const jnode *n, jloop *l, bool *any)
{
    jblock *b = n->x.block;
    jv x;
    int got;

    while ((got = jloop_next(r, l, &x)) > 0) {
        if (!jsteps(r, 1)) return EXEC_FAILED;
        if (!assign(r, n->a, x)) return EXEC_FAILED;
        r->act->slot[b->loop_slot] = (jv){.t = J_LOOP, .u.loop = l};
        jscope_enter(r, &b->scope);
        int e = jexec(r, b->body);
        if (e == EXEC_FAILED) return e;
        if (e == EXEC_BREAK) break;
        *any |= e == EXEC_OK; /* one that break or continue cut short does not count */
    }
    return got < 0 ? EXEC_FAILED : EXEC_OK;
}

int jfor_run(jrun *r, const jnode *n, jv items, int64_t depth0)
{
    jblock *b = n->x.block;
    jloop *l = jalloc(r, sizeof *l);
    bool any = false;

    if (!l) return EXEC_FAILED;
    *l = (jloop){.node = n, .act = r->act, .index0 = -1, .length = -1, .depth0 = depth0};
    if (!jiter_init(r, items, &l->it)) return EXEC_FAILED;
    if (n->c) jscope_enter(r, &b->test_scope);
    int e = loop_body(r, n, l, &any);
    if (e != EXEC_OK || any || !b->orelse) return e;
    jscope_enter(r, &b->else_scope);
    return jexec(r, b->orelse);
}

static int exec_for(jrun *r, const jnode *n)
{
    jv items;
    jact *outer = r->act;

    if (!jeval(r, n->b, &items)) return EXEC_FAILED;
    if (!n->x.block->recursive) return jfor_run(r, n, items, 0);
    jact *own = jact_new(r, outer, n->x.block->n_slots);
    if (!own) return EXEC_FAILED;
    r->act = own;
    int e = jfor_run(r, n, items, 0);
    r->act = outer;
    return e;
}

static int exec_if(jrun *r, const jnode *n)
{
    for (; n; n = n->c) {
        jv v;
        if (n->kind != N_IF) return jexec(r, n);
        r->line = n->line;
        if (!jeval(r, n->a, &v)) return EXEC_FAILED;
        if (jv_truth(v)) return jexec(r, n->b);
    }
    return EXEC_OK;
}

static bool exec_print(jrun *r, const jnode *n)
{
    jv v;
    r->printing = n->a;
    bool ok = jeval(r, n->a, &v);
    r->printing = NULL;
    return ok && print(r, v);
}

static int exec_one(jrun *r, const jnode *n)
{
    bool ok = true;

    r->line = n->line;
    switch (n->kind) {
    case N_DATA:
        ok = emit(r, jv_text(n->val));
        break;
    case N_PRINT:
        ok = exec_print(r, n);
        break;
    case N_SET:
        ok = exec_set(r, n);
        break;
    case N_IF:
        return exec_if(r, n);
    case N_FOR:
        return exec_for(r, n);
    case N_BODY:
        return jexec(r, n);
    case N_MACRO:
        ok = new_macro(r, n, &r->act->slot[n->a->slot]);
        break;
    case N_CALLBLOCK:
        ok = exec_call_block(r, n);
        break;
    case N_GENERATION:
        return exec_generation(r, n);
    case N_FILTERBLOCK:
    case N_SETBLOCK:
        return exec_capture(r, n);
    case N_WITH:
        return exec_with(r, n);
    case N_SCOPE:
        jscope_enter(r, &n->x.block->scope);
        return jexec(r, n->x.block->body);
    case N_BREAK:
        return EXEC_BREAK;
    case N_CONTINUE:
        return EXEC_CONTINUE;
    default:
        ok = jfail_as(r, CAIRN_E_INTERNAL, "statement of kind %d", n->kind);
        break;
    }
    return ok ? EXEC_OK : EXEC_FAILED;
}

int jexec(jrun *r, const jnode *body)
{
    int e = EXEC_OK;

    if (!jenter(r)) return EXEC_FAILED;
    if (body->kind != N_BODY) {
        e = exec_one(r, body);
    } else {
        for (uint32_t i = 0; i < body->n && e == EXEC_OK; i++) e = exec_one(r, body->v[i]);
    }
    r->depth--;
    return e;
}
