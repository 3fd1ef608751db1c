/* The methods of list, tuple and dict.  Those that would change their value are known and refused. */
#include "text/jinja_run.h"

static bool m_list_index(jrun *r, jv self, const jv *arg, jv *out)
{
    const jlist *l = self.u.list;
    int64_t lo = 0, hi = l->n;

    for (int i = 1; i < 3; i++) {
        if (arg[i].t == J_MISSING) continue;
        int64_t v;
        if (arg[i].t == J_NONE) return jfail(r, "slice indices must be integers");
        if (!jv_slice_part(r, arg[i], 0, &v)) return false;
        if (v < 0) v = v + l->n < 0 ? 0 : v + l->n;
        if (i == 1)
            lo = v;
        else
            hi = v < hi ? v : hi;
    }
    for (int64_t i = lo; i < hi; i++) {
        bool same;
        if (!jv_eq(r, l->v[i], arg[0], &same)) return false;
        if (!same) continue;
        *out = jv_int(i);
        return true;
    }
    return jfail(r, "the value is not in the list; expected one that is");
}

static bool range_find(jrun *r, jv self, jv x, int64_t *at, int64_t *n)
{
    *at = -1;
    *n = 0;
    for (int64_t i = 0; i < self.u.range->n; i++) {
        bool same;
        if (!jv_eq(r, jv_int(self.u.range->start + self.u.range->step * i), x, &same)) return false;
        if (same && *at < 0) *at = i;
        *n += same;
    }
    return true;
}

static bool m_range_index(jrun *r, jv self, const jv *arg, jv *out)
{
    int64_t at, n;
    if (!range_find(r, self, arg[0], &at, &n)) return false;
    *out = jv_int(at);
    return at >= 0 || jfail(r, "the value is not in the range; expected one that is");
}

static bool m_range_count(jrun *r, jv self, const jv *arg, jv *out)
{
    int64_t at, n;
    if (!range_find(r, self, arg[0], &at, &n)) return false;
    *out = jv_int(n);
    return true;
}

const jfn jmethods_range[] = {
    {"index", m_range_index, NULL, "value"}, {"count", m_range_count, NULL, "value"}, {0}};

static bool m_list_count(jrun *r, jv self, const jv *arg, jv *out)
{
    int64_t n = 0;
    for (uint32_t i = 0; i < self.u.list->n; i++) {
        bool same;
        if (!jv_eq(r, self.u.list->v[i], arg[0], &same)) return false;
        n += same;
    }
    *out = jv_int(n);
    return true;
}

static bool m_copy(jrun *r, jv self, const jv *arg, jv *out)
{
    (void)r, (void)arg;
    *out = self; /* nothing can change it */
    return true;
}

const jfn jmethods_list[] = {{"index", m_list_index, NULL, "value start? stop?"},
                             {"count", m_list_count, NULL, "value"},
                             {"copy", m_copy, NULL, ""},
                             {"append", NULL, NULL, NULL},
                             {"clear", NULL, NULL, NULL},
                             {"extend", NULL, NULL, NULL},
                             {"insert", NULL, NULL, NULL},
                             {"pop", NULL, NULL, NULL},
                             {"remove", NULL, NULL, NULL},
                             {"reverse", NULL, NULL, NULL},
                             {"sort", NULL, NULL, NULL},
                             {0}};

static bool m_get(jrun *r, jv self, const jv *arg, jv *out)
{
    if (!jv_hashable(r, arg[0])) return false;
    if (jdict_get(r, self.u.dict, arg[0], out)) return true;
    *out = arg[1].t == J_MISSING ? jv_none() : arg[1];
    return r->st == CAIRN_OK;
}

static bool view(jrun *r, jv self, uint8_t which, jv *out)
{
    const jdict *d = self.u.dict;
    jlist *pair = NULL;
    jv *kv = NULL;

    if (!jv_new_list(r, J_VIEW, d->n, out) || !jsteps(r, d->n)) return false;
    out->flag = which;
    if (which == J_ITEMS && d->n) {
        pair = jalloc(r, d->n * sizeof *pair);
        kv = jalloc(r, 2 * (size_t)d->n * sizeof *kv);
        if (!pair || !kv) return false;
    }
    for (uint32_t i = 0; i < d->n; i++) {
        jv *to = &out->u.list->v[i];
        if (pair) {
            kv[2 * i] = d->kv[i].k;
            kv[2 * i + 1] = d->kv[i].v;
            pair[i] = (jlist){.n = 2, .v = kv + 2 * i};
            *to = (jv){.t = J_TUPLE, .u.list = &pair[i]};
        } else {
            *to = which == J_KEYS ? d->kv[i].k : d->kv[i].v;
        }
    }
    return true;
}

static bool m_items(jrun *r, jv self, const jv *arg, jv *out)
{
    (void)arg;
    return view(r, self, J_ITEMS, out);
}
static bool m_keys(jrun *r, jv self, const jv *arg, jv *out)
{
    (void)arg;
    return view(r, self, J_KEYS, out);
}
static bool m_values(jrun *r, jv self, const jv *arg, jv *out)
{
    (void)arg;
    return view(r, self, J_VALUES, out);
}

static bool m_fromkeys(jrun *r, jv self, const jv *arg, jv *out)
{
    jiter it;
    jv k;
    int got;

    (void)self;
    if (!jiter_init(r, arg[0], &it) || !jv_new_dict(r, J_DICT, 0, out)) return false;
    while ((got = jiter_next(r, &it, &k)) > 0)
        if (!jdict_put(r, out->u.dict, k, arg[1].t == J_MISSING ? jv_none() : arg[1])) return false;
    return got == 0;
}

const jfn jmethods_dict[] = {
    {"get", m_get, NULL, "key default?"}, {"items", m_items, NULL, ""},
    {"keys", m_keys, NULL, ""},           {"values", m_values, NULL, ""},
    {"copy", m_copy, NULL, ""},           {"fromkeys", m_fromkeys, NULL, "keys value?"},
    {"clear", NULL, NULL, NULL},          {"pop", NULL, NULL, NULL},
    {"popitem", NULL, NULL, NULL},        {"setdefault", NULL, NULL, NULL},
    {"update", NULL, NULL, NULL},         {0}};
