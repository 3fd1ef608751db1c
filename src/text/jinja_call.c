/* Calls: arguments, their binding to parameters, macros, and the global functions. */
#include <time.h>

#include "base/clock.h"
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
                return jfail(r, "%s '%s' got two values for '%.*s'", what, fn->name, STR_ARG(name));
            arg[n] = c->kw[k];
            used++;
        }
        if (arg[n].t == J_MISSING && !optional)
            return jfail(r, "%s '%s' needs the argument '%.*s'", what, fn->name, STR_ARG(name));
    }
    if (c->n_pos > n)
        return jfail(r, "%s '%s' takes at most %u arguments, got %u", what, fn->name, n, c->n_pos);
    if (used < c->n_kw) return jfail(r, "%s '%s' got an unknown keyword argument", what, fn->name);
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

    if (!act || !macro_args(r, b, c, act)) return false;
    r->act = act;
    jscope_enter(r, &b->scope);
    bool ok = macro_defaults(r, b) && jexec(r, b->body) != EXEC_FAILED && jcapture(r, from, out);
    r->act = caller;
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
    bool ok = jfor_run(r, l->node, c->pos[0], l->depth0 + 1) == EXEC_OK && jcapture(r, from, out);
    r->act = at;
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
        return jfail(r, "'%s' object is not callable", jv_type_name(f));
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

static bool g_range(jrun *r, jv self, const jv *arg, jv *out)
{
    jrange *g = jalloc(r, sizeof *g);
    int64_t v[3] = {0, 0, 1};

    (void)self;
    if (!g) return false;
    for (int i = 0; i < 3; i++) {
        if (arg[i].t == J_MISSING) continue;
        if (arg[i].t == J_UNDEF) return jfail_undef(r, arg[i]);
        if (!jv_is_int(arg[i]))
            return jfail(r, "range() needs integers, got %s", jv_type_name(arg[i]));
        v[i] = jv_as_int(arg[i]);
    }
    if (arg[1].t == J_MISSING) v[1] = v[0], v[0] = 0;
    if (!v[2]) return jfail(r, "range() step must not be zero");
    *g = (jrange){.start = v[0], .stop = v[1], .step = v[2]};
    double n = ((double)v[1] - (double)v[0]) / (double)v[2];
    if (n > JINJA_MAX_RANGE + 1.0)
        return jfail(r, "range too big: the sandbox allows %d items", JINJA_MAX_RANGE);
    if (n > 0) { /* small, so the difference fits unless the bounds are far apart and step too */
        __extension__ __int128 d = (__int128)v[1] - v[0], s = v[2];
        g->n = (int64_t)((d + s + (s > 0 ? -1 : 1)) / s);
    }
    if (g->n > JINJA_MAX_RANGE)
        return jfail(r, "range too big: the sandbox allows %d items", JINJA_MAX_RANGE);
    *out = (jv){.t = J_RANGE, .u.range = g};
    return true;
}

/* dict(mapping or pairs, **more) */
static bool fill_dict(jrun *r, const jcall *c, jdict *d)
{
    if (c->n_pos > 1) return jfail(r, "dict() takes at most one positional argument");
    if (c->n_pos && (c->pos[0].t == J_DICT)) {
        const jdict *from = c->pos[0].u.dict;
        for (uint32_t i = 0; i < from->n; i++)
            if (!jdict_put(r, d, from->kv[i].k, from->kv[i].v)) return false;
    } else if (c->n_pos) {
        jiter it;
        jv x;
        int got;
        if (!jiter_init(r, c->pos[0], &it)) return false;
        while ((got = jiter_next(r, &it, &x)) > 0) {
            if (!jv_to_list(r, x, J_LIST, &x)) return false;
            if (x.u.list->n != 2) return jfail(r, "dict() needs pairs");
            if (!jdict_put(r, d, x.u.list->v[0], x.u.list->v[1])) return false;
        }
        if (got < 0) return false;
    }
    for (uint32_t i = 0; i < c->n_kw; i++)
        if (!jdict_put(r, d, c->kw_name[i], c->kw[i])) return false;
    return true;
}

static bool g_dict(jrun *r, jv self, const jcall *c, jv *out)
{
    (void)self;
    return jv_new_dict(r, J_DICT, c->n_kw, out) && fill_dict(r, c, out->u.dict);
}

static bool g_namespace(jrun *r, jv self, const jcall *c, jv *out)
{
    (void)self;
    if (!jv_new_dict(r, J_NS, c->n_kw, out) || !fill_dict(r, c, out->u.dict)) return false;
    for (uint32_t i = 0; i < out->u.dict->n; i++) {
        jv k = out->u.dict->kv[i].k;
        if (k.t == J_STR && k.len && k.u.s[0] == '_')
            return jfail(r, "namespace attribute '%.*s' begins with an underscore",
                         STR_ARG(jv_text(k)));
    }
    return true;
}

static bool g_raise(jrun *r, jv self, const jv *arg, jv *out)
{
    cairn_str s;
    (void)self, (void)out;
    return jv_to_text(r, arg[0], &s) && jfail(r, "%.*s", STR_ARG(s));
}

static bool g_strftime_now(jrun *r, jv self, const jv *arg, jv *out)
{
    enum { MAX_TIME = 1024 };
    time_t now = (time_t)clock_unix_s();
    struct tm tm;
    char *fmt, *to;

    (void)self;
    if (arg[0].t != J_STR) return jfail(r, "strftime_now() needs a string");
    fmt = jalloc(r, arg[0].len + 1);
    to = jalloc(r, MAX_TIME);
    if (!fmt || !to) return false;
    memcpy(fmt, arg[0].u.s, arg[0].len);
    fmt[arg[0].len] = 0;
    localtime_r(&now, &tm);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* the template's own format */
    size_t n = strftime(to, MAX_TIME, fmt, &tm);
#pragma GCC diagnostic pop
    *out = jv_str((cairn_str){to, n});
    return true;
}

static bool g_cycler(jrun *r, jv self, const jcall *c, jv *out)
{
    jcycler *y = jalloc(r, sizeof *y);
    (void)self;
    if (!y) return false;
    if (!c->n_pos || c->n_kw) return jfail(r, "cycler() needs items");
    *y = (jcycler){.items = {.n = c->n_pos, .v = c->pos}};
    *out = (jv){.t = J_CYCLER, .u.cycler = y};
    return true;
}

static bool g_joiner(jrun *r, jv self, const jv *arg, jv *out)
{
    jjoiner *j = jalloc(r, sizeof *j);
    (void)self;
    if (!j) return false;
    *j = (jjoiner){.sep = arg[0].t == J_MISSING ? jv_lit(", ") : arg[0]};
    *out = (jv){.t = J_JOINER, .u.joiner = j};
    return true;
}

static const jfn globals[] = {{"range", g_range, NULL, "start stop? step?"},
                              {"dict", NULL, g_dict, NULL},
                              {"namespace", NULL, g_namespace, NULL},
                              {"raise_exception", g_raise, NULL, "message"},
                              {"strftime_now", g_strftime_now, NULL, "format"},
                              {"cycler", NULL, g_cycler, NULL},
                              {"joiner", g_joiner, NULL, "sep?"},
                              {"lipsum", NULL, NULL, NULL}};

const jfn *jglobal_find(cairn_str name)
{
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++)
        if (str_is(name, globals[i].name)) return &globals[i];
    return NULL;
}
