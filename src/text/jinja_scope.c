/* Gives every name its place before anything runs, by the rules of Jinja2's compiler: a loop body,
   macro, with, set block, filter block or call block is a scope; `if` is not.  A scope's names are
   slots of an activation (one a template, macro, call block or recursive loop); entering a scope
   sets each slot from the context, from an outer scope's slot of that name, or to nothing.
   First `visit` collects what a scope reads and stores, then `place` walks it with the result. */
#include "text/jinja_ast.h"

typedef struct entry {
    jv name;
    int32_t slot;
    bool ref, store;
    jload load;
} entry;

typedef struct func { /* what has an activation of its own */
    struct func *parent;
    uint32_t depth, n_slots;
    bool in_loop;
} func;

typedef struct frame {
    struct frame *parent;
    func *fn;
    entry *e;
    uint32_t n, cap;
} frame;

typedef struct resolver {
    jparse *p;
    cairn_str *ctx;
    uint32_t n_ctx, cap_ctx, depth, for_depth;
} resolver;

static bool visit(resolver *r, frame *f, jnode *n);
static bool place(resolver *r, frame *f, jnode *n, bool soft);

static entry *entry_of(resolver *r, frame *f, jv name, bool make)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (str_eq(jv_text(f->e[i].name), jv_text(name))) return &f->e[i];
    if (!make) return NULL;
    if (f->n == f->cap) {
        uint32_t cap = f->cap ? f->cap * 2 : 8;
        entry *e = jparse_alloc(r->p, cap * sizeof *e);
        if (!e) return NULL;
        if (f->n) memcpy(e, f->e, f->n * sizeof *e);
        f->e = e;
        f->cap = cap;
    }
    f->e[f->n] = (entry){.name = name, .slot = (int32_t)f->fn->n_slots++};
    return &f->e[f->n++];
}

/* The innermost scope that knows the name. */
static entry *find_ref(resolver *r, frame *f, jv name, frame **where)
{
    for (; f; f = f->parent) {
        entry *e = entry_of(r, f, name, false);
        if (e && e->ref) {
            *where = f;
            return e;
        }
    }
    return NULL;
}

static int32_t context_name(resolver *r, jv name)
{
    for (uint32_t i = 0; i < r->n_ctx; i++)
        if (str_eq(r->ctx[i], jv_text(name))) return (int32_t)i;
    if (r->n_ctx == r->cap_ctx) {
        uint32_t cap = r->cap_ctx ? r->cap_ctx * 2 : 16;
        cairn_str *c = jparse_alloc(r->p, cap * sizeof *c);
        if (!c) return -1;
        if (r->n_ctx) memcpy(c, r->ctx, r->n_ctx * sizeof *c);
        r->ctx = c;
        r->cap_ctx = cap;
    }
    r->ctx[r->n_ctx] = jv_text(name);
    return (int32_t)r->n_ctx++;
}

/* From the outer scope where that knows the name, else as `otherwise`. */
static bool set_load(resolver *r, frame *f, entry *e, int otherwise)
{
    frame *outer;
    entry *o = f->parent ? find_ref(r, f->parent, e->name, &outer) : NULL;

    e->load = (jload){.kind = (uint8_t)otherwise, .slot = e->slot};
    if (o) {
        e->load.kind = LOAD_ALIAS;
        e->load.hops = (uint8_t)(f->fn->depth - outer->fn->depth);
        e->load.from = o->slot;
    } else if (otherwise == LOAD_RESOLVE) {
        e->load.from = context_name(r, e->name);
    }
    return e->load.from >= 0;
}

static bool name_load(resolver *r, frame *f, jv name)
{
    frame *where;
    if (find_ref(r, f, name, &where)) return true;
    entry *e = entry_of(r, f, name, true);
    if (!e) return false;
    e->ref = true;
    return set_load(r, f, e, LOAD_RESOLVE);
}

static bool name_store(resolver *r, frame *f, jv name)
{
    entry *e = entry_of(r, f, name, true);
    if (!e) return false;
    e->store = true;
    if (e->ref) return true;
    e->ref = true;
    return set_load(r, f, e, LOAD_UNDEF);
}

static entry *name_param(resolver *r, frame *f, jv name)
{
    entry *e = entry_of(r, f, name, true);
    if (!e) return NULL;
    e->store = e->ref = true;
    e->load = (jload){.kind = LOAD_PARAM, .slot = e->slot};
    return e;
}

static bool visit_target(resolver *r, frame *f, jnode *n, bool param)
{
    if (n->kind == N_NAME)
        return param ? name_param(r, f, n->val) != NULL : name_store(r, f, n->val);
    if (n->kind == N_NSREF) return name_load(r, f, n->a->val);
    for (uint32_t i = 0; i < n->n; i++)
        if (!visit_target(r, f, n->v[i], param)) return false;
    return true;
}

/* The branches of an if see the same scope apart from each other; what one of them stores is looked
   up outside first. */
static bool visit_branches(resolver *r, frame *f, jnode *const *branch, size_t n_branch)
{
    frame b[2];

    for (size_t i = 0; i < n_branch; i++) {
        b[i] = *f;
        b[i].e = jparse_alloc(r->p, (f->n + 8) * sizeof(entry));
        if (!b[i].e) return false;
        if (f->n) memcpy(b[i].e, f->e, f->n * sizeof(entry));
        b[i].cap = f->n + 8;
        if (branch[i] && !visit(r, &b[i], branch[i])) return false;
    }
    for (size_t i = 0; i < n_branch; i++) {
        for (uint32_t k = 0; k < b[i].n; k++) {
            entry *from = &b[i].e[k], *e = entry_of(r, f, from->name, true);
            if (!e) return false;
            if (!from->ref) continue;
            e->ref = true;
            e->load = from->load;
            e->load.slot = e->slot;
        }
    }
    for (size_t i = 0; i < n_branch; i++) {
        for (uint32_t k = 0; k < b[i].n; k++) {
            entry *e = entry_of(r, f, b[i].e[k].name, false);
            if (!b[i].e[k].store || !e || e->store) continue;
            e->store = true;
            if (!set_load(r, f, e, LOAD_RESOLVE)) return false;
        }
    }
    return true;
}

static bool visit_if(resolver *r, frame *f, jnode *n)
{
    jnode *const branch[2] = {n->b, n->c};
    return visit(r, f, n->a) && visit_branches(r, f, branch, 2);
}

static bool visit_args(resolver *r, frame *f, const jargs *a)
{
    for (uint32_t i = 0; i < a->n_pos; i++)
        if (!visit(r, f, a->pos[i])) return false;
    for (uint32_t i = 0; i < a->n_kw; i++)
        if (!visit(r, f, a->kw[i])) return false;
    return (!a->dyn_pos || visit(r, f, a->dyn_pos)) && (!a->dyn_kw || visit(r, f, a->dyn_kw));
}

static bool visit_children(resolver *r, frame *f, jnode *n)
{
    if ((n->a && !visit(r, f, n->a)) || (n->b && !visit(r, f, n->b)) ||
        (n->c && !visit(r, f, n->c)))
        return false;
    for (uint32_t i = 0; i < n->n; i++)
        if (!visit(r, f, n->v[i])) return false;
    if (n->kind == N_CALL || n->kind == N_FILTER || n->kind == N_TEST)
        return visit_args(r, f, n->x.args);
    return true;
}

static bool enter(resolver *r, const jnode *n)
{
    enum { MAX_TREE = 1000 }; /* chains like a + b + … lean to the left */
    if (++r->depth <= MAX_TREE) return true;
    jparse_fail(r->p, CAIRN_E_LIMIT, n->line, "nested more than %d deep", MAX_TREE);
    return false;
}

static bool visit_kind(resolver *r, frame *f, jnode *n)
{
    switch (n->kind) {
    case N_NAME:
        return name_load(r, f, n->val);
    case N_IF:
        return visit_if(r, f, n);
    case N_FOR:
        return visit(r, f, n->b);
    case N_MACRO:
        return name_store(r, f, n->a->val);
    case N_CALLBLOCK:
        return visit(r, f, n->x.block->call);
    case N_FILTERBLOCK:
        return visit(r, f, n->b);
    case N_WITH:
        for (uint32_t i = 1; i < n->n; i += 2)
            if (!visit(r, f, n->v[i])) return false;
        return true;
    case N_SET:
        return visit(r, f, n->b) && visit_target(r, f, n->a, false);
    case N_SETBLOCK:
        return visit_target(r, f, n->a, false);
    case N_SCOPE:
    case N_GENERATION:
    case N_DATA:
        return true;
    default:
        return visit_children(r, f, n);
    }
}

static bool visit(resolver *r, frame *f, jnode *n)
{
    if (!enter(r, n)) return false;
    bool ok = visit_kind(r, f, n);
    r->depth--;
    return ok;
}

/* --- placing --- */

static bool place_name(resolver *r, frame *f, jnode *n)
{
    frame *where;
    entry *e = find_ref(r, f, n->val, &where);
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

static bool place_target(resolver *r, frame *f, jnode *n)
{
    if (n->kind == N_NSREF) return place_name(r, f, n->a);
    if (n->kind == N_NAME) {
        if (r->for_depth && str_is(jv_text(n->val), "loop")) {
            jparse_fail(r->p, CAIRN_E_CORRUPT, n->line, "cannot assign to 'loop' inside a loop");
            return false;
        }
        return place_name(r, f, n);
    }
    for (uint32_t i = 0; i < n->n; i++)
        if (!place_target(r, f, n->v[i])) return false;
    return true;
}

static bool scope_loads(resolver *r, const frame *f, jscope *out)
{
    out->loads = jparse_alloc(r->p, (f->n + 1) * sizeof(jload));
    if (!out->loads) return false;
    for (uint32_t i = 0; i < f->n; i++)
        if (f->e[i].ref && f->e[i].load.kind > LOAD_PARAM)
            out->loads[out->n_loads++] = f->e[i].load;
    return true;
}

static frame inner(frame *f)
{
    return (frame){.parent = f, .fn = f->fn};
}

static bool new_func(resolver *r, frame *f, func *fn, int32_t line)
{
    enum { MAX_FUNCS = 100 };
    *fn = (func){.parent = f->fn, .depth = f->fn->depth + 1};
    if (fn->depth < MAX_FUNCS) return true;
    jparse_fail(r->p, CAIRN_E_LIMIT, line, "macros nested more than %d deep", MAX_FUNCS);
    return false;
}

static jnode *copy_target(resolver *r, const jnode *n)
{
    jnode *c = jnode_new(r->p, n->kind, n->line);
    if (!c) return NULL;
    *c = *n;
    if (n->n && !(c->v = jparse_alloc(r->p, n->n * sizeof(jnode *)))) return NULL;
    for (uint32_t i = 0; i < n->n; i++)
        if (!(c->v[i] = copy_target(r, n->v[i]))) return NULL;
    return c;
}

static bool place_for_test(resolver *r, frame *outer, jnode *n)
{
    jblock *b = n->x.block;
    frame f = inner(outer);

    return (b->test_target = copy_target(r, n->a)) && visit_target(r, &f, b->test_target, true) &&
           visit(r, &f, n->c) && place_target(r, &f, b->test_target) && place(r, &f, n->c, false) &&
           scope_loads(r, &f, &b->test_scope);
}

static bool place_for(resolver *r, frame *f, jnode *n)
{
    jblock *b = n->x.block;
    func own;
    frame outer = *f, body, orelse;

    if (!place(r, f, n->b, false)) return false;
    if (b->recursive) { /* its scopes live in an activation of their own */
        if (!new_func(r, f, &own, n->line)) return false;
        outer = (frame){.parent = f, .fn = &own};
    }
    frame *parent = b->recursive ? &outer : f;
    r->for_depth++;
    if (n->c && !place_for_test(r, parent, n)) return false;
    body = inner(parent);
    orelse = inner(parent);
    entry *loop = name_param(r, &body, jv_lit("loop"));
    if (!loop) return false;
    b->loop_slot = loop->slot;
    if (!visit_target(r, &body, n->a, true) || !visit(r, &body, b->body) ||
        !place_target(r, &body, n->a))
        return false;
    bool in_loop = parent->fn->in_loop;
    parent->fn->in_loop = true;
    if (!place(r, &body, b->body, false) || !scope_loads(r, &body, &b->scope)) return false;
    parent->fn->in_loop = in_loop;
    if (b->orelse && (!visit(r, &orelse, b->orelse) || !place(r, &orelse, b->orelse, false) ||
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
static bool special_param(resolver *r, frame *f, const jblock *b, const char *name, bool *used,
                          int32_t *slot)
{
    bool own = false;
    for (uint32_t i = 0; i < b->n_param; i++) own |= str_is(jv_text(b->param[i]->val), name);
    *used = !own && reads_name(b->body, name);
    if (!*used) return true;
    entry *e = name_param(r, f, jv_lit(name));
    if (e) *slot = e->slot;
    return e != NULL;
}

static bool place_macro(resolver *r, frame *outer, jnode *n)
{
    jblock *b = n->x.block;
    func own;
    if (!new_func(r, outer, &own, n->line)) return false;
    frame f = {.parent = outer, .fn = &own};
    uint32_t for_depth = r->for_depth;

    for (uint32_t i = 0; i < b->n_param; i++) {
        if (!name_param(r, &f, b->param[i]->val)) return false;
        b->explicit_caller |= str_is(jv_text(b->param[i]->val), "caller");
    }
    if (!special_param(r, &f, b, "caller", &b->uses_caller, &b->caller_slot) ||
        !special_param(r, &f, b, "kwargs", &b->uses_kwargs, &b->kwargs_slot) ||
        !special_param(r, &f, b, "varargs", &b->uses_varargs, &b->varargs_slot))
        return false;
    for (uint32_t i = 0; i < b->n_param; i++)
        if (b->dflt[i] && !visit(r, &f, b->dflt[i])) return false;
    if (!visit(r, &f, b->body)) return false;
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
static bool place_block(resolver *r, frame *outer, jnode *n)
{
    jblock *b = n->x.block;
    frame f = inner(outer);

    if (n->kind == N_WITH)
        for (uint32_t i = 0; i < n->n; i += 2)
            if (!visit_target(r, &f, n->v[i], true)) return false;
    if (n->kind == N_FILTERBLOCK && !visit(r, &f, n->b)) return false;
    if (!visit(r, &f, b->body) || !place(r, &f, b->body, false)) return false;
    if (n->kind == N_WITH)
        for (uint32_t i = 0; i < n->n; i += 2)
            if (!place_target(r, &f, n->v[i]) || !place(r, outer, n->v[i + 1], false)) return false;
    if (n->kind == N_FILTERBLOCK && !place(r, &f, n->b, false)) return false;
    if (n->kind == N_SETBLOCK) {
        if (n->b && (!visit(r, &f, n->b) || !place(r, &f, n->b, false))) return false;
        if (!place_target(r, outer, n->a)) return false;
    }
    return scope_loads(r, &f, &b->scope);
}

static bool place_args(resolver *r, frame *f, const jargs *a, bool soft)
{
    for (uint32_t i = 0; i < a->n_pos; i++)
        if (!place(r, f, a->pos[i], soft)) return false;
    for (uint32_t i = 0; i < a->n_kw; i++)
        if (!place(r, f, a->kw[i], soft)) return false;
    return (!a->dyn_pos || place(r, f, a->dyn_pos, soft)) &&
           (!a->dyn_kw || place(r, f, a->dyn_kw, soft));
}

static bool place_children(resolver *r, frame *f, jnode *n, bool soft)
{
    soft |= n->kind == N_IF || n->kind == N_COND;
    if ((n->kind == N_FILTER || n->kind == N_TEST) && !n->fn && !soft) {
        jparse_fail(r->p, CAIRN_E_CORRUPT, n->line, "no %s named '%.*s'",
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

static bool place_kind(resolver *r, frame *f, jnode *n, bool soft)
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
        jparse_fail(r->p, CAIRN_E_CORRUPT, n->line, "'%s' outside of a loop",
                    n->kind == N_BREAK ? "break" : "continue");
        return false;
    default:
        return place_children(r, f, n, soft);
    }
}

static bool place(resolver *r, frame *f, jnode *n, bool soft)
{
    if (!enter(r, n)) return false;
    bool ok = place_kind(r, f, n, soft);
    r->depth--;
    return ok;
}

cairn_status jresolve(jparse *p, jinja *t)
{
    resolver r = {.p = p};
    func fn = {0};
    frame top = {.fn = &fn};

    if (!visit(&r, &top, t->root) || !place(&r, &top, t->root, false) ||
        !scope_loads(&r, &top, &t->top.scope))
        return p->st;
    t->top.n_slots = fn.n_slots;
    t->ctx_names = r.ctx;
    t->n_ctx = r.n_ctx;
    return CAIRN_OK;
}
