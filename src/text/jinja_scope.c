/* What each scope reads and stores, by the rules of Jinja2's compiler: a loop body, macro, with, set
   block, filter block or call block is a scope; `if` is not.  A scope's names are slots of an activation
   (one a template, macro, call block or recursive loop); entering a scope sets each slot from the
   context, from an outer scope's slot of that name, or to nothing. */
#include "text/jinja_scope.h"

static jentry *entry_of(jresolver *r, jframe *f, jv name, bool make)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (str_eq(jv_text(f->e[i].name), jv_text(name))) return &f->e[i];
    if (!make) return NULL;
    if (f->n == f->cap) {
        uint32_t cap = f->cap ? f->cap * 2 : 8;
        jentry *e = jparse_alloc(r->p, cap * sizeof *e);
        if (!e) return NULL;
        if (f->n) memcpy(e, f->e, f->n * sizeof *e);
        f->e = e;
        f->cap = cap;
    }
    f->e[f->n] = (jentry){.name = name, .slot = (int32_t)f->fn->n_slots++};
    return &f->e[f->n++];
}

/* The innermost scope that knows the name. */
jentry *jscope_find(jresolver *r, jframe *f, jv name, jframe **where)
{
    for (; f; f = f->parent) {
        jentry *e = entry_of(r, f, name, false);
        if (e && e->ref) {
            *where = f;
            return e;
        }
    }
    return NULL;
}

static int32_t context_name(jresolver *r, jv name)
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
static bool set_load(jresolver *r, jframe *f, jentry *e, int otherwise)
{
    jframe *outer;
    jentry *o = f->parent ? jscope_find(r, f->parent, e->name, &outer) : NULL;

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

static bool name_load(jresolver *r, jframe *f, jv name)
{
    jframe *where;
    if (jscope_find(r, f, name, &where)) return true;
    jentry *e = entry_of(r, f, name, true);
    if (!e) return false;
    e->ref = true;
    return set_load(r, f, e, LOAD_RESOLVE);
}

static bool name_store(jresolver *r, jframe *f, jv name)
{
    jentry *e = entry_of(r, f, name, true);
    if (!e) return false;
    e->store = true;
    if (e->ref) return true;
    e->ref = true;
    return set_load(r, f, e, LOAD_UNDEF);
}

jentry *jscope_param(jresolver *r, jframe *f, jv name)
{
    jentry *e = entry_of(r, f, name, true);
    if (!e) return NULL;
    e->store = e->ref = true;
    e->load = (jload){.kind = LOAD_PARAM, .slot = e->slot};
    return e;
}

bool jscope_visit_target(jresolver *r, jframe *f, jnode *n, bool param)
{
    if (n->kind == N_NAME)
        return param ? jscope_param(r, f, n->val) != NULL : name_store(r, f, n->val);
    if (n->kind == N_NSREF) return name_load(r, f, n->a->val);
    for (uint32_t i = 0; i < n->n; i++)
        if (!jscope_visit_target(r, f, n->v[i], param)) return false;
    return true;
}

/* The branches of an if see the same scope apart from each other; what one of them stores is looked
   up outside first. */
static bool visit_branches(jresolver *r, jframe *f, jnode *const *branch, size_t n_branch)
{
    jframe b[2];

    for (size_t i = 0; i < n_branch; i++) {
        b[i] = *f;
        b[i].e = jparse_alloc(r->p, (f->n + 8) * sizeof(jentry));
        if (!b[i].e) return false;
        if (f->n) memcpy(b[i].e, f->e, f->n * sizeof(jentry));
        b[i].cap = f->n + 8;
        if (branch[i] && !jscope_visit(r, &b[i], branch[i])) return false;
    }
    for (size_t i = 0; i < n_branch; i++) {
        for (uint32_t k = 0; k < b[i].n; k++) {
            jentry *from = &b[i].e[k], *e = entry_of(r, f, from->name, true);
            if (!e) return false;
            if (!from->ref) continue;
            e->ref = true;
            e->load = from->load;
            e->load.slot = e->slot;
        }
    }
    for (size_t i = 0; i < n_branch; i++) {
        for (uint32_t k = 0; k < b[i].n; k++) {
            jentry *e = entry_of(r, f, b[i].e[k].name, false);
            if (!b[i].e[k].store || !e || e->store) continue;
            e->store = true;
            if (!set_load(r, f, e, LOAD_RESOLVE)) return false;
        }
    }
    return true;
}

static bool visit_if(jresolver *r, jframe *f, jnode *n)
{
    jnode *const branch[2] = {n->b, n->c};
    return jscope_visit(r, f, n->a) && visit_branches(r, f, branch, 2);
}

static bool visit_args(jresolver *r, jframe *f, const jargs *a)
{
    for (uint32_t i = 0; i < a->n_pos; i++)
        if (!jscope_visit(r, f, a->pos[i])) return false;
    for (uint32_t i = 0; i < a->n_kw; i++)
        if (!jscope_visit(r, f, a->kw[i])) return false;
    return (!a->dyn_pos || jscope_visit(r, f, a->dyn_pos)) &&
           (!a->dyn_kw || jscope_visit(r, f, a->dyn_kw));
}

static bool visit_children(jresolver *r, jframe *f, jnode *n)
{
    if ((n->a && !jscope_visit(r, f, n->a)) || (n->b && !jscope_visit(r, f, n->b)) ||
        (n->c && !jscope_visit(r, f, n->c)))
        return false;
    for (uint32_t i = 0; i < n->n; i++)
        if (!jscope_visit(r, f, n->v[i])) return false;
    if (n->kind == N_CALL || n->kind == N_FILTER || n->kind == N_TEST)
        return visit_args(r, f, n->x.args);
    return true;
}

bool jscope_descend(jresolver *r, const jnode *n)
{
    enum { MAX_TREE = 1000 }; /* chains like a + b + … lean to the left */
    if (++r->depth <= MAX_TREE) return true;
    jparse_fail(r->p, CAIRN_E_LIMIT, n->line, "nested more than %d deep", MAX_TREE);
    return false;
}

static bool visit_kind(jresolver *r, jframe *f, jnode *n)
{
    switch (n->kind) {
    case N_NAME:
        return name_load(r, f, n->val);
    case N_IF:
        return visit_if(r, f, n);
    case N_FOR:
        return jscope_visit(r, f, n->b);
    case N_MACRO:
        return name_store(r, f, n->a->val);
    case N_CALLBLOCK:
        return jscope_visit(r, f, n->x.block->call);
    case N_FILTERBLOCK:
        return jscope_visit(r, f, n->b);
    case N_WITH:
        for (uint32_t i = 1; i < n->n; i += 2)
            if (!jscope_visit(r, f, n->v[i])) return false;
        return true;
    case N_SET:
        return jscope_visit(r, f, n->b) && jscope_visit_target(r, f, n->a, false);
    case N_SETBLOCK:
        return jscope_visit_target(r, f, n->a, false);
    case N_SCOPE:
    case N_GENERATION:
    case N_DATA:
        return true;
    default:
        return visit_children(r, f, n);
    }
}

bool jscope_visit(jresolver *r, jframe *f, jnode *n)
{
    if (!jscope_descend(r, n)) return false;
    bool ok = visit_kind(r, f, n);
    r->depth--;
    return ok;
}
