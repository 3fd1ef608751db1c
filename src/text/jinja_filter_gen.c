/* Filters that give generators: map, select and reject with their attr forms, unique, items.  What
   they do to an item happens when the result is consumed, as in Jinja2. */
#include "text/jinja_run.h"

static int empty(jiter *it)
{
    it->done = true;
    return 1;
}

/* The arguments after the first n. */
static jcall rest(const jcall *c, uint32_t n)
{
    jcall r = *c;
    r.pos += n;
    r.n_pos -= n;
    return r;
}

static int map_set_up(jrun *r, jiter *it)
{
    jcall *c = &it->call;
    jv attribute = jv_of(J_MISSING), dflt = jv_of(J_MISSING);

    if (c->n_pos) {
        if (c->pos[0].t != J_STR) return jfail(r, "map: the filter's name must be a string") - 1;
        it->fn = jfilter_find(jv_text(c->pos[0]));
        if (!it->fn)
            return jfail(r, "no filter named '%.*s'; expected one that is known",
                         STR_ARG(jv_text(c->pos[0]))) -
                   1;
        *c = rest(c, 1);
        return 0;
    }
    for (uint32_t i = 0; i < c->n_kw; i++) {
        if (jv_is_str(c->kw_name[i], "attribute"))
            attribute = c->kw[i];
        else if (jv_is_str(c->kw_name[i], "default"))
            dflt = c->kw[i];
        else
            return jfail(r, "map: unexpected keyword argument; expected attribute or default") - 1;
    }
    if (attribute.t == J_MISSING) return jfail(r, "map requires a filter argument") - 1;
    it->src = dflt;
    return jattr_prepare(r, attribute, &it->key) ? 0 : -1;
}

static int map_step(jrun *r, jiter *it, jv item, jv *out)
{
    if (item.t == J_MISSING) return map_set_up(r, it);
    bool ok = it->fn ? jfn_call(r, it->fn, "filter", item, &it->call, out)
                     : jattr_get(r, item, it->key, it->src, out);
    return ok ? 1 : -1;
}

static bool f_map(jrun *r, jv in, const jcall *c, jv *out)
{
    jiter like = {.kind = IT_GEN, .step = map_step, .call = *c};
    return jv_generator(r, jv_truth(in) ? in : jv_lit(""), &like, out);
}

/* it->src: true for the attr forms. */
static int select_set_up(jrun *r, jiter *it)
{
    jcall *c = &it->call;
    jv attribute = jv_of(J_MISSING);

    if (it->src.u.b) {
        if (!c->n_pos) return jfail(r, "missing parameter for attribute name; expected a name") - 1;
        attribute = c->pos[0];
        *c = rest(c, 1);
    }
    if (!jattr_prepare(r, attribute, &it->key)) return -1;
    if (!c->n_pos) return 0;
    if (c->pos[0].t != J_STR) return jfail(r, "the test's name must be a string") - 1;
    it->fn = jtest_find(jv_text(c->pos[0]));
    if (!it->fn)
        return jfail(r, "no test named '%.*s'; expected one that is known",
                     STR_ARG(jv_text(c->pos[0]))) -
               1;
    *c = rest(c, 1);
    return 0;
}

static int select_step(jrun *r, jiter *it, jv item, jv *out)
{
    jv x;
    if (item.t == J_MISSING) return select_set_up(r, it);
    if (!jattr_get(r, item, it->key, jv_none(), &x)) return -1;
    if (it->fn && !jfn_call(r, it->fn, "test", x, &it->call, &x)) return -1;
    *out = item;
    return jv_truth(x) != it->negate;
}

static bool select_gen(jrun *r, jv in, const jcall *c, bool attr, bool negate, jv *out)
{
    jiter like = {.kind = IT_GEN, .step = select_step, .call = *c, .negate = negate};
    like.src = jv_bool(attr);
    return jv_generator(r, jv_truth(in) ? in : jv_lit(""), &like, out);
}

static bool f_select(jrun *r, jv in, const jcall *c, jv *out)
{
    return select_gen(r, in, c, false, false, out);
}

static bool f_reject(jrun *r, jv in, const jcall *c, jv *out)
{
    return select_gen(r, in, c, false, true, out);
}

static bool f_selectattr(jrun *r, jv in, const jcall *c, jv *out)
{
    return select_gen(r, in, c, true, false, out);
}

static bool f_rejectattr(jrun *r, jv in, const jcall *c, jv *out)
{
    return select_gen(r, in, c, true, true, out);
}

/* it->src: a dict of the keys seen so far; it->key: the attribute. */
static int unique_step(jrun *r, jiter *it, jv item, jv *out)
{
    jv k, seen;
    if (item.t == J_MISSING) return 0;
    if (!jattr_get(r, item, it->key, jv_none(), &k)) return -1;
    if (!it->negate && !jkey_fold(r, &k)) return -1;
    if (!jv_hashable(r, k)) return -1;
    if (jdict_get(r, it->src.u.dict, k, &seen)) return 0;
    if (r->st != CAIRN_OK || !jdict_put(r, it->src.u.dict, k, k)) return -1;
    *out = item;
    return 1;
}

static bool f_unique(jrun *r, jv in, const jv *arg, jv *out)
{
    jiter like = {.kind = IT_GEN, .step = unique_step, .negate = jv_truth(arg[0])};
    return jattr_prepare(r, arg[1], &like.key) && jv_new_dict(r, J_DICT, 0, &like.src) &&
           jv_generator(r, in, &like, out);
}

static int items_step(jrun *r, jiter *it, jv item, jv *out)
{
    if (item.t == J_MISSING) {
        if (it->src.t == J_UNDEF) return empty(it);
        return it->src.t == J_DICT ? 0 : jfail(r, "can only get item pairs from a mapping") - 1;
    }
    *out = item;
    return 1;
}

static bool f_items(jrun *r, jv in, const jv *arg, jv *out)
{
    jiter like = {.kind = IT_GEN, .step = items_step, .src = in};
    jv pairs = jv_lit("");
    (void)arg;
    if (in.t == J_DICT && !jmethod_find(J_DICT, STR_LIT("items"))->fn(r, in, NULL, &pairs))
        return false;
    return jv_generator(r, pairs, &like, out);
}

const jfn jfilters_gen[] = {{"map", NULL, f_map, NULL},
                            {"select", NULL, f_select, NULL},
                            {"reject", NULL, f_reject, NULL},
                            {"selectattr", NULL, f_selectattr, NULL},
                            {"rejectattr", NULL, f_rejectattr, NULL},
                            {"unique", f_unique, NULL, "case_sensitive? attribute?"},
                            {"items", f_items, NULL, ""},
                            {0}};
