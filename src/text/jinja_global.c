/* The functions that every template may call by name.  What is none of Jinja2's own (raise_exception,
   strftime_now) is what the library around chat templates adds. */
#include <time.h>

#include "base/clock.h"
#include "text/jinja_run.h"

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
    if (c->n_pos && c->pos[0].t == J_UNDEF) return jfail_undef(r, c->pos[0]);
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
            return jfail(r,
                         "namespace attribute '%.*s' begins with an underscore; expected a letter",
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
