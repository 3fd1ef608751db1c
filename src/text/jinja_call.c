/* Calls: arguments, their binding to parameters, macros, and everything else that can be called.  What a
   template may call by name is jinja_global.c's. */
#include "text/jinja_run.h"

bool jeval_args(jrun *r, const jargs *a, jv caller, jcall *c)
{
    uint32_t n_pos = a->n_pos, n_kw = a->n_kw + (caller.t != J_MISSING);
    jv more = jv_of(J_MISSING), more_kw = jv_of(J_MISSING);

    *c = (jcall){0};
    if (a->dyn_pos) {
        if (!jeval(r, a->dyn_pos, &more) || !jv_to_list(r, more, J_LIST, &more)) return false;
        n_pos += more.u.list->n;
    }
    if (a->dyn_kw) {
        if (!jeval(r, a->dyn_kw, &more_kw)) return false;
        if (more_kw.t != J_DICT)
            return jfail(r, "argument after ** must be a mapping, not %s", jv_type_name(more_kw));
        n_kw += more_kw.u.dict->n;
    }
    if (!n_pos && !n_kw) return true;
    c->pos = jalloc(r, (n_pos + 2 * (size_t)n_kw) * sizeof(jv));
    if (!c->pos) return false;
    c->kw_name = c->pos + n_pos;
    c->kw = c->kw_name + n_kw;
    for (uint32_t i = 0; i < a->n_pos; i++)
        if (!jeval(r, a->pos[i], &c->pos[c->n_pos++])) return false;
    for (uint32_t i = c->n_pos; i < n_pos; i++) c->pos[c->n_pos++] = more.u.list->v[i - a->n_pos];
    for (uint32_t i = 0; i < a->n_kw; i++) {
        c->kw_name[i] = a->kw_name[i];
        if (!jeval(r, a->kw[i], &c->kw[c->n_kw++])) return false;
    }
    for (uint32_t i = a->n_kw; more_kw.t == J_DICT && c->n_kw < a->n_kw + more_kw.u.dict->n; i++) {
        c->kw_name[i] = more_kw.u.dict->kv[i - a->n_kw].k;
        c->kw[c->n_kw++] = more_kw.u.dict->kv[i - a->n_kw].v;
        if (c->kw_name[i].t != J_STR) return jfail(r, "keywords must be strings");
    }
    if (caller.t != J_MISSING) {
        c->kw_name[c->n_kw] = jv_lit("caller");
        c->kw[c->n_kw++] = caller;
    }
    return true;
}

/* Next name of a spec; its '?' told apart. */
static bool spec_name(const char **spec, cairn_str *name, bool *optional)
{
    const char *s = *spec;
    while (*s == ' ') s++;
    name->ptr = s;
    while (*s && *s != ' ' && *s != '?') s++;
    name->len = (size_t)(s - name->ptr);
    *optional = *s == '?';
    *spec = s + *optional;
    return name->len > 0;
}

static bool bind(jrun *r, const jfn *fn, const char *what, const jcall *c, jv *arg)
{
    const char *spec = fn->spec ? fn->spec : "";
    uint32_t n = 0, used = 0;
    cairn_str name;
    bool optional;

    for (; spec_name(&spec, &name, &optional); n++) {
        arg[n] = n < c->n_pos ? c->pos[n] : jv_of(J_MISSING);
        for (uint32_t k = 0; k < c->n_kw; k++) {
            if (!str_eq(jv_text(c->kw_name[k]), name)) continue;
            if (n < c->n_pos)
                return jfail(r, "%s '%s' got two values for '%.*s'; expected one", what, fn->name,
                             STR_ARG(name));
            arg[n] = c->kw[k];
            used++;
        }
        if (arg[n].t == J_MISSING && !optional)
            return jfail(r, "%s '%s' needs the argument '%.*s'", what, fn->name, STR_ARG(name));
    }
    if (c->n_pos > n)
        return jfail(r, "%s '%s' takes at most %u arguments, got %u", what, fn->name, n, c->n_pos);
    if (used < c->n_kw)
        return jfail(r, "%s '%s' got an unknown keyword argument; expected its own", what,
                     fn->name);
    return true;
}

bool jfn_call(jrun *r, const jfn *fn, const char *what, jv self, const jcall *c, jv *out)
{
    jv arg[JFN_MAX_ARGS];

    if (fn->raw) return fn->raw(r, self, c, out);
    if (!fn->fn)
        return jfail_as(r, CAIRN_E_UNSUPPORTED, "the %s '%s' is not supported", what, fn->name);
    return bind(r, fn, what, c, arg) && fn->fn(r, self, arg, out);
}

static bool take_kw(const jcall *c, bool *taken, cairn_str name, jv *out)
{
    for (uint32_t i = 0; i < c->n_kw; i++) {
        if (taken[i] || !str_eq(jv_text(c->kw_name[i]), name)) continue;
        taken[i] = true;
        *out = c->kw[i];
        return true;
    }
    return false;
}

/* Puts the arguments into the slots of the macro's activation. */
static bool macro_args(jrun *r, const jblock *b, const jcall *c, jact *act)
{
    bool *taken = jalloc(r, c->n_kw + 1);
    bool found_caller = c->n_pos >= b->n_param && b->explicit_caller;
    jv rest;

    if (!taken) return false;
    memset(taken, 0, c->n_kw + 1);
    for (uint32_t i = 0; i < b->n_param; i++) {
        jv v = i < c->n_pos ? c->pos[i] : jv_of(J_MISSING);
        if (i >= c->n_pos) {
            take_kw(c, taken, jv_text(b->param[i]->val), &v);
            found_caller |= jv_is_str(b->param[i]->val, "caller");
        }
        act->slot[b->param[i]->slot] = v;
    }
    if (b->uses_caller && !found_caller) {
        jv v = jv_none();
        take_kw(c, taken, STR_LIT("caller"), &v);
        if (v.t == J_NONE && !jv_undef_hint(r, "No caller defined", &v)) return false;
        act->slot[b->caller_slot] = v;
    }
    if (!jv_new_dict(r, J_DICT, 0, &rest)) return false;
    for (uint32_t i = 0; i < c->n_kw; i++) {
        if (taken[i]) continue;
        if (!b->uses_kwargs)
            return jfail(r, "macro takes no keyword argument '%.*s'",
                         STR_ARG(jv_text(c->kw_name[i])));
        if (!jdict_put(r, rest.u.dict, c->kw_name[i], c->kw[i])) return false;
    }
    if (b->uses_kwargs) act->slot[b->kwargs_slot] = rest;
    if (c->n_pos > b->n_param && !b->uses_varargs)
        return jfail(r, "macro takes not more than %u arguments, got %u", b->n_param, c->n_pos);
    if (!b->uses_varargs) return true;
    uint32_t n = c->n_pos > b->n_param ? c->n_pos - b->n_param : 0;
    if (!jv_new_list(r, J_TUPLE, n, &rest)) return false;
    if (n) memcpy(rest.u.list->v, c->pos + b->n_param, n * sizeof(jv));
    act->slot[b->varargs_slot] = rest;
    return true;
}

static bool macro_defaults(jrun *r, const jblock *b)
{
    for (uint32_t i = 0; i < b->n_param; i++) {
        jv *slot = &r->act->slot[b->param[i]->slot], v;
        if (slot->t != J_MISSING) continue;
        bool ok = b->dflt[i] ? jeval(r, b->dflt[i], &v)
                             : jv_undef_hint(r, "parameter was not provided", &v);
        if (!ok) return false;
        *slot = v;
    }
    return true;
}

static bool macro_call(jrun *r, jv macro, const jcall *c, jv *out)
{
    const jblock *b = macro.u.macro->node->x.block;
    jact *caller = r->act, *act = jact_new(r, macro.u.macro->outer, b->n_slots);
    size_t from = r->out->len;
    int32_t line = r->line;
    const size_t held = jhold(r);

    if (!act || !jsteps(r, 4) || !macro_args(r, b, c, act)) return false;
    r->act = act;
    jscope_enter(r, &b->scope);
    bool ok = macro_defaults(r, b) && jexec(r, b->body) != EXEC_FAILED && jcapture(r, from, out);
    r->act = caller;
    r->yielded = held;
    if (ok) r->line = line;
    return ok;
}

static bool loop_call(jrun *r, jloop *l, const jcall *c, jv *out)
{
    jact *at = r->act;
    size_t from = r->out->len;

    if (!l->node->x.block->recursive) return jfail(r, "the loop needs 'recursive' to be called");
    if (c->n_pos != 1 || c->n_kw) return jfail(r, "loop() takes one argument");
    jact *own = jact_new(r, l->act->parent, l->node->x.block->n_slots);
    if (!own) return false;
    r->act = own;
    const size_t held = jhold(r);
    bool ok = jfor_run(r, l->node, c->pos[0], l->depth0 + 1) == EXEC_OK && jcapture(r, from, out);
    r->act = at;
    r->yielded = held;
    return ok;
}

static bool call_value(jrun *r, jv f, const jcall *c, jv *out)
{
    switch (f.t) {
    case J_FUNC:
        return jfn_call(r, f.u.fn, "function", jv_none(), c, out);
    case J_METHOD:
        return jfn_call(r, f.u.bound->fn, "method", f.u.bound->self, c, out);
    case J_MACRO:
        return macro_call(r, f, c, out);
    case J_LOOP:
        return loop_call(r, f.u.loop, c, out);
    case J_JOINER:
        if (c->n_pos || c->n_kw) return jfail(r, "a joiner takes no argument");
        *out = f.u.joiner->used ? f.u.joiner->sep : jv_lit("");
        f.u.joiner->used = true;
        return true;
    case J_UNDEF:
        return jfail_undef(r, f);
    default:
        return jfail(r, "'%s' object is not callable; expected a function or a macro",
                     jv_type_name(f));
    }
}

static const jfn *known_method(const jnode *n, jv obj)
{
    switch (obj.t) {
    case J_STR:
        return n->x.known[0];
    case J_LIST:
        return n->x.known[1];
    case J_DICT:
        return n->x.known[2];
    default:
        return NULL;
    }
}

bool jeval_call(jrun *r, const jnode *n, jv caller, jv *out)
{
    jcall c;
    jv f;

    if (n->a->kind == N_GETATTR) { /* a method of a plain value needs no object of its own */
        jv obj;
        if (!jeval(r, n->a->a, &obj)) return false;
        const jfn *m = known_method(n->a, obj);
        if (m && (m->fn || m->raw)) {
            if (!jeval_args(r, n->x.args, caller, &c)) return false;
            r->line = n->line;
            return jfn_call(r, m, "method", obj, &c, out);
        }
        if (!jv_getattr(r, obj, n->a->val, n->a->x.known, &f)) return false;
    } else if (!jeval(r, n->a, &f)) {
        return false;
    }
    if (!jeval_args(r, n->x.args, caller, &c)) return false;
    r->line = n->line;
    return call_value(r, f, &c, out);
}
