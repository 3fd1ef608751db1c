/* Gives every name its place before anything runs: the slot, and how many activations up it lies.  Each
   scope is first visited whole (jinja_scope.c), then walked here; its loads are then known. */
#include "text/jinja_scope.h"

static bool place(jresolver *r, jframe *f, jnode *n, bool soft);

static bool place_name(jresolver *r, jframe *f, jnode *n)
{
    jframe *where;
    jentry *e = jscope_find(r, f, n->val, &where);
    if (!e) { /* cannot be: visited before */
        jparse_fail(r->p, CAIRN_E_INTERNAL, n->line, "name without a place");
        return false;
    }
    n->slot = e->slot;
    n->hops = (uint8_t)(f->fn->depth - where->fn->depth);
    n->x.undef = jparse_alloc(r->p, sizeof(jundef));
    if (!n->x.undef) return false;
    n->x.undef->name = n->val;
    return true;
}

static bool place_target(jresolver *r, jframe *f, jnode *n)
{
    if (n->kind == N_NSREF) return place_name(r, f, n->a);
    if (n->kind == N_NAME) {
        if (r->for_depth && str_is(jv_text(n->val), "loop")) {
            jparse_fail(r->p, CAIRN_E_CORRUPT, n->line,
                        "cannot assign to 'loop' inside a loop; expected another name");
            return false;
        }
        return place_name(r, f, n);
    }
    for (uint32_t i = 0; i < n->n; i++)
        if (!place_target(r, f, n->v[i])) return false;
    return true;
}

static bool scope_loads(jresolver *r, const jframe *f, jscope *out)
{
    out->loads = jparse_alloc(r->p, (f->n + 1) * sizeof(jload));
    if (!out->loads) return false;
    for (uint32_t i = 0; i < f->n; i++)
        if (f->e[i].ref && f->e[i].load.kind > LOAD_PARAM)
            out->loads[out->n_loads++] = f->e[i].load;
    return true;
}

static jframe inner(jframe *f)
{
    return (jframe){.parent = f, .fn = f->fn};
}

static bool new_func(jresolver *r, jframe *f, jfunc *fn, int32_t line)
{
    enum { MAX_FUNCS = 100 };
    *fn = (jfunc){.parent = f->fn, .depth = f->fn->depth + 1};
    if (fn->depth < MAX_FUNCS) return true;
    jparse_fail(r->p, CAIRN_E_LIMIT, line, "macros nested more than %d deep", MAX_FUNCS);
    return false;
}

static jnode *copy_target(jresolver *r, const jnode *n)
{
    jnode *c = jnode_new(r->p, n->kind, n->line);
    if (!c) return NULL;
    *c = *n;
    if (n->n && !(c->v = jparse_alloc(r->p, n->n * sizeof(jnode *)))) return NULL;
    for (uint32_t i = 0; i < n->n; i++)
        if (!(c->v[i] = copy_target(r, n->v[i]))) return NULL;
    return c;
}

static bool place_for_test(jresolver *r, jframe *outer, jnode *n)
{
    jblock *b = n->x.block;
    jframe f = inner(outer);

    return (b->test_target = copy_target(r, n->a)) &&
           jscope_visit_target(r, &f, b->test_target, true) && jscope_visit(r, &f, n->c) &&
           place_target(r, &f, b->test_target) && place(r, &f, n->c, false) &&
           scope_loads(r, &f, &b->test_scope);
}

static bool place_for(jresolver *r, jframe *f, jnode *n)
{
    jblock *b = n->x.block;
    jfunc own;
    jframe outer = *f, body, orelse;

    if (!place(r, f, n->b, false)) return false;
    if (b->recursive) { /* its scopes live in an activation of their own */
        if (!new_func(r, f, &own, n->line)) return false;
        outer = (jframe){.parent = f, .fn = &own};
    }
    jframe *parent = b->recursive ? &outer : f;
    r->for_depth++;
    if (n->c && !place_for_test(r, parent, n)) return false;
    body = inner(parent);
    orelse = inner(parent);
    jentry *loop = jscope_param(r, &body, jv_lit("loop"));
    if (!loop) return false;
    b->loop_slot = loop->slot;
    if (!jscope_visit_target(r, &body, n->a, true) || !jscope_visit(r, &body, b->body) ||
        !place_target(r, &body, n->a))
        return false;
    bool in_loop = parent->fn->in_loop;
    parent->fn->in_loop = true;
    if (!place(r, &body, b->body, false) || !scope_loads(r, &body, &b->scope)) return false;
    parent->fn->in_loop = in_loop;
    if (b->orelse &&
        (!jscope_visit(r, &orelse, b->orelse) || !place(r, &orelse, b->orelse, false) ||
         !scope_loads(r, &orelse, &b->else_scope)))
        return false;
    r->for_depth--;
    b->n_slots = b->recursive ? own.n_slots : 0;
    return true;
}

static bool reads_name(const jnode *n, const char *name);

static bool args_read(const jargs *a, const char *name)
{
    for (uint32_t i = 0; i < a->n_pos; i++)
        if (reads_name(a->pos[i], name)) return true;
    for (uint32_t i = 0; i < a->n_kw; i++)
        if (reads_name(a->kw[i], name)) return true;
    return (a->dyn_pos && reads_name(a->dyn_pos, name)) ||
           (a->dyn_kw && reads_name(a->dyn_kw, name));
}

static bool block_reads(const jnode *n, const char *name)
{
    const jblock *b = n->x.block;
    for (uint32_t i = 0; i < b->n_param; i++)
        if (b->dflt[i] && reads_name(b->dflt[i], name)) return true;
    return (b->body && reads_name(b->body, name)) || (b->orelse && reads_name(b->orelse, name)) ||
           (b->call && reads_name(b->call, name));
}

/* Whether a name is read anywhere below, nested macros included. */
static bool reads_name(const jnode *n, const char *name)
{
    if (n->kind == N_NAME) return str_is(jv_text(n->val), name);
    if ((n->a && n->kind != N_MACRO && n->kind != N_SETBLOCK && n->kind != N_SET &&
         n->kind != N_FOR && reads_name(n->a, name)) ||
        (n->b && reads_name(n->b, name)) || (n->c && reads_name(n->c, name)))
        return true;
    for (uint32_t i = n->kind == N_WITH ? 1 : 0; i < n->n; i += n->kind == N_WITH ? 2 : 1)
        if (reads_name(n->v[i], name)) return true;
    if (n->kind == N_CALL || n->kind == N_FILTER || n->kind == N_TEST)
        return args_read(n->x.args, name);
    return n->kind >= N_FOR && n->kind <= N_SCOPE && n->kind != N_IF && block_reads(n, name);
}

/* caller, kwargs and varargs are parameters where the body reads them. */
static bool special_param(jresolver *r, jframe *f, const jblock *b, const char *name, bool *used,
                          int32_t *slot)
{
    bool own = false;
    for (uint32_t i = 0; i < b->n_param; i++) own |= str_is(jv_text(b->param[i]->val), name);
    *used = !own && reads_name(b->body, name);
    if (!*used) return true;
    jentry *e = jscope_param(r, f, jv_lit(name));
    if (e) *slot = e->slot;
    return e != NULL;
}

static bool place_macro(jresolver *r, jframe *outer, jnode *n)
{
    jblock *b = n->x.block;
    jfunc own;
    if (!new_func(r, outer, &own, n->line)) return false;
    jframe f = {.parent = outer, .fn = &own};
    uint32_t for_depth = r->for_depth;

    for (uint32_t i = 0; i < b->n_param; i++) {
        if (!jscope_param(r, &f, b->param[i]->val)) return false;
        b->explicit_caller |= str_is(jv_text(b->param[i]->val), "caller");
    }
    if (!special_param(r, &f, b, "caller", &b->uses_caller, &b->caller_slot) ||
        !special_param(r, &f, b, "kwargs", &b->uses_kwargs, &b->kwargs_slot) ||
        !special_param(r, &f, b, "varargs", &b->uses_varargs, &b->varargs_slot))
        return false;
    for (uint32_t i = 0; i < b->n_param; i++)
        if (b->dflt[i] && !jscope_visit(r, &f, b->dflt[i])) return false;
    if (!jscope_visit(r, &f, b->body)) return false;
    for (uint32_t i = 0; i < b->n_param; i++) {
        if (!place_target(r, &f, b->param[i])) return false;
        if (b->dflt[i] && !place(r, &f, b->dflt[i], false)) return false;
        if (b->explicit_caller && !b->dflt[i] && str_is(jv_text(b->param[i]->val), "caller") &&
            reads_name(b->body, "caller")) {
            jparse_fail(r->p, CAIRN_E_CORRUPT, n->line, "the parameter 'caller' needs a default");
            return false;
        }
    }
    if (!place(r, &f, b->body, false) || !scope_loads(r, &f, &b->scope)) return false;
    r->for_depth = for_depth;
    b->n_slots = own.n_slots;
    return true;
}

/* A scope in the same activation. */
static bool place_block(jresolver *r, jframe *outer, jnode *n)
{
    jblock *b = n->x.block;
    jframe f = inner(outer);

    if (n->kind == N_WITH)
        for (uint32_t i = 0; i < n->n; i += 2)
            if (!jscope_visit_target(r, &f, n->v[i], true)) return false;
    if (n->kind == N_FILTERBLOCK && !jscope_visit(r, &f, n->b)) return false;
    if (!jscope_visit(r, &f, b->body) || !place(r, &f, b->body, false)) return false;
    if (n->kind == N_WITH)
        for (uint32_t i = 0; i < n->n; i += 2)
            if (!place_target(r, &f, n->v[i]) || !place(r, outer, n->v[i + 1], false)) return false;
    if (n->kind == N_FILTERBLOCK && !place(r, &f, n->b, false)) return false;
    if (n->kind == N_SETBLOCK) {
        if (n->b && (!jscope_visit(r, &f, n->b) || !place(r, &f, n->b, false))) return false;
        if (!place_target(r, outer, n->a)) return false;
    }
    return scope_loads(r, &f, &b->scope);
}

static bool place_args(jresolver *r, jframe *f, const jargs *a, bool soft)
{
    for (uint32_t i = 0; i < a->n_pos; i++)
        if (!place(r, f, a->pos[i], soft)) return false;
    for (uint32_t i = 0; i < a->n_kw; i++)
        if (!place(r, f, a->kw[i], soft)) return false;
    return (!a->dyn_pos || place(r, f, a->dyn_pos, soft)) &&
           (!a->dyn_kw || place(r, f, a->dyn_kw, soft));
}

static bool place_children(jresolver *r, jframe *f, jnode *n, bool soft)
{
    soft |= n->kind == N_IF || n->kind == N_COND;
    if ((n->kind == N_FILTER || n->kind == N_TEST) && !n->fn && !soft) {
        jparse_fail(r->p, CAIRN_E_CORRUPT, n->line,
                    "no %s named '%.*s'; expected one that is known",
                    n->kind == N_FILTER ? "filter" : "test", STR_ARG(jv_text(n->val)));
        return false;
    }
    if ((n->a && !place(r, f, n->a, soft)) || (n->b && !place(r, f, n->b, soft)) ||
        (n->c && !place(r, f, n->c, soft)))
        return false;
    for (uint32_t i = 0; i < n->n; i++)
        if (!place(r, f, n->v[i], soft)) return false;
    if (n->kind == N_CALL || n->kind == N_FILTER || n->kind == N_TEST)
        return place_args(r, f, n->x.args, soft);
    return true;
}

static bool place_kind(jresolver *r, jframe *f, jnode *n, bool soft)
{
    switch (n->kind) {
    case N_NAME:
        return place_name(r, f, n);
    case N_FOR:
        return place_for(r, f, n);
    case N_MACRO:
        return place_target(r, f, n->a) && place_macro(r, f, n);
    case N_CALLBLOCK:
        return place_macro(r, f, n) && place(r, f, n->x.block->call, soft);
    case N_GENERATION:
        return place_macro(r, f, n);
    case N_FILTERBLOCK:
    case N_WITH:
    case N_SCOPE:
    case N_SETBLOCK:
        return place_block(r, f, n);
    case N_SET:
        return place(r, f, n->b, soft) && place_target(r, f, n->a);
    case N_BREAK:
    case N_CONTINUE:
        if (f->fn->in_loop) return true;
        jparse_fail(r->p, CAIRN_E_CORRUPT, n->line, "'%s' outside of a loop; expected it in one",
                    n->kind == N_BREAK ? "break" : "continue");
        return false;
    default:
        return place_children(r, f, n, soft);
    }
}

static bool place(jresolver *r, jframe *f, jnode *n, bool soft)
{
    if (!jscope_descend(r, n)) return false;
    bool ok = place_kind(r, f, n, soft);
    r->depth--;
    return ok;
}

cairn_status jresolve(jparse *p, jinja *t)
{
    jresolver r = {.p = p};
    jfunc fn = {0};
    jframe top = {.fn = &fn};

    if (!jscope_visit(&r, &top, t->root) || !place(&r, &top, t->root, false) ||
        !scope_loads(&r, &top, &t->top.scope))
        return p->st;
    t->top.n_slots = fn.n_slots;
    t->ctx_names = r.ctx;
    t->n_ctx = r.n_ctx;
    return CAIRN_OK;
}
