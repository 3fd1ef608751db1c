/* Filters that take a whole sequence: order, ends, aggregates, groups. */
#include "text/jinja_big.h"
#include "text/jinja_run.h"

/* "a.b.0": names and indices, in a list; the empty list for no attribute. */
static bool attr_parts(jrun *r, cairn_str s, jv *out)
{
    uint32_t cap = 0;
    if (!jv_new_list(r, J_LIST, 0, out)) return false;
    for (size_t i = 0; i <= s.len;) {
        size_t end = str_find(s, STR_LIT("."), i);
        if (end == SIZE_MAX) end = s.len;
        jv part = jv_str(str_sub(s, i, end - i));
        if (jtext_is(jv_text(part), IS_DIGIT)) {
            int64_t v = 0;
            for (uint32_t k = 0; k < part.len; k++) {
                if (part.u.s[k] < '0' || part.u.s[k] > '9' || v > INT32_MAX)
                    return jfail(r, "an index in an attribute is too large; expected below 2^31");
                v = v * 10 + (part.u.s[k] - '0');
            }
            part = jv_int(v);
        }
        if (!jlist_push(r, out, &cap, part)) return false;
        i = end + 1;
    }
    return true;
}

bool jattr_prepare(jrun *r, jv attribute, jv *out)
{
    if (attribute.t == J_STR) return attr_parts(r, jv_text(attribute), out);
    bool none = attribute.t == J_MISSING || attribute.t == J_NONE;
    if (!jv_new_list(r, J_LIST, none ? 0 : 1, out)) return false;
    if (!none) out->u.list->v[0] = attribute;
    return true;
}

bool jattr_get(jrun *r, jv x, jv parts, jv otherwise, jv *out)
{
    bool has_default = otherwise.t != J_MISSING && otherwise.t != J_NONE;
    for (uint32_t i = 0; i < parts.u.list->n; i++) {
        if (!jv_getitem(r, x, parts.u.list->v[i], &x)) return false;
        if (x.t == J_UNDEF && has_default) x = otherwise;
    }
    *out = x;
    return true;
}

bool jkey_fold(jrun *r, jv *k) /* case is ignored */
{
    const jfn *lower = jfilter_find(STR_LIT("lower"));
    return k->t != J_STR || lower->fn(r, *k, NULL, k);
}

typedef struct keyed {
    jv key, x;
} keyed;

/* Stable merge sort by key, as Python's. */
static bool sort_keyed(jrun *r, keyed *a, keyed *tmp, size_t n, bool reverse)
{
    if (n < 2) return true;
    size_t half = n / 2, i = 0, j = half;
    if (!sort_keyed(r, a, tmp, half, reverse) || !sort_keyed(r, a + half, tmp, n - half, reverse))
        return false;
    for (size_t k = 0; k < n; k++) {
        bool right = i == half;
        if (i < half && j < n) {
            if (!jsteps(r, 1)) return false;
            bool ok = reverse ? jv_cmp(r, a[i].key, a[j].key, TK_LT, &right)
                              : jv_cmp(r, a[j].key, a[i].key, TK_LT, &right);
            if (!ok) return false;
        }
        tmp[k] = right ? a[j++] : a[i++];
    }
    memcpy(a, tmp, n * sizeof *a);
    return true;
}

static bool keyed_new(jrun *r, jv list, keyed **a, keyed **tmp)
{
    size_t n = list.u.list->n;
    *a = jalloc(r, (n + 1) * sizeof **a);
    *tmp = jalloc(r, (n + 1) * sizeof **tmp);
    for (size_t i = 0; *a && i < n; i++) (*a)[i] = (keyed){list.u.list->v[i], list.u.list->v[i]};
    return *a && *tmp;
}

/* One key for each of "a,b": a list of them. */
static bool multi_key(jrun *r, jv x, jv attribute, bool fold, jv *out)
{
    cairn_str s = attribute.t == J_STR ? jv_text(attribute) : (cairn_str){0};
    uint32_t cap = 0;
    jv parts, k;

    if (!jv_new_list(r, J_LIST, 0, out)) return false;
    for (size_t i = 0; i <= s.len;) {
        size_t end = str_find(s, STR_LIT(","), i);
        if (end == SIZE_MAX) end = s.len;
        jv one = attribute.t == J_STR ? jv_str(str_sub(s, i, end - i)) : attribute;
        if (!jattr_prepare(r, one, &parts) || !jattr_get(r, x, parts, jv_none(), &k)) return false;
        if ((fold && !jkey_fold(r, &k)) || !jlist_push(r, out, &cap, k)) return false;
        i = end + 1;
    }
    return true;
}

/* Python takes an integer for a truth here, and nothing else. */
static bool is_reverse(jrun *r, jv v, bool *reverse)
{
    *reverse = jv_truth(v);
    return v.t == J_MISSING || jv_is_int(v) || jfail(r, "reverse must be an integer");
}

static bool f_sort(jrun *r, jv in, const jv *arg, jv *out)
{
    keyed *a, *tmp;
    bool reverse;

    if (!jv_to_list(r, in, J_LIST, out) || !keyed_new(r, *out, &a, &tmp)) return false;
    if (!is_reverse(r, arg[0], &reverse)) return false;
    uint32_t n = out->u.list->n;
    for (uint32_t i = 0; i < n; i++)
        if (!multi_key(r, a[i].x, arg[2], !jv_truth(arg[1]), &a[i].key)) return false;
    if (!sort_keyed(r, a, tmp, n, reverse) || !jv_new_list(r, J_LIST, n, out)) return false;
    for (uint32_t i = 0; i < n; i++) out->u.list->v[i] = a[i].x;
    return true;
}

static bool f_dictsort(jrun *r, jv in, const jv *arg, jv *out)
{
    bool by_value = arg[1].t != J_MISSING && jv_is_str(arg[1], "value");
    bool reverse;
    keyed *a, *tmp;
    jv items;

    if (!is_reverse(r, arg[2], &reverse)) return false;
    if (arg[1].t != J_MISSING && !by_value && !jv_is_str(arg[1], "key"))
        return jfail(r, "dictsort: by must be 'key' or 'value'");
    if (in.t == J_UNDEF) return jfail_undef(r, in);
    if (in.t != J_DICT) return jfail(r, "dictsort: expected a dict, got %s", jv_type_name(in));
    if (!jmethod_find(J_DICT, STR_LIT("items"))->fn(r, in, NULL, &items)) return false;
    if (!keyed_new(r, items, &a, &tmp)) return false;
    uint32_t n = items.u.list->n;
    for (uint32_t i = 0; i < n; i++) {
        a[i].key = a[i].x.u.list->v[by_value];
        if (!jv_truth(arg[0]) && !jkey_fold(r, &a[i].key)) return false;
    }
    if (!sort_keyed(r, a, tmp, n, reverse) || !jv_new_list(r, J_LIST, n, out)) return false;
    for (uint32_t i = 0; i < n; i++) out->u.list->v[i] = a[i].x;
    return true;
}

static bool group_tuple(jrun *r, jv key, jv list, jv *out)
{
    if (!jv_new_list(r, J_TUPLE, 2, out)) return false;
    out->u.list->v[0] = key;
    out->u.list->v[1] = list;
    out->flag = J_GROUP;
    return true;
}

static bool f_groupby(jrun *r, jv in, const jv *arg, jv *out)
{
    keyed *a, *tmp;
    jv parts, key, one;
    bool fold = !jv_truth(arg[2]);
    uint32_t cap = 0, cap_group = 0;

    if (!jattr_prepare(r, arg[0], &parts) || !jv_to_list(r, in, J_LIST, &in)) return false;
    if (!keyed_new(r, in, &a, &tmp) || !jv_new_list(r, J_LIST, 0, out)) return false;
    for (uint32_t i = 0; i < in.u.list->n; i++) {
        if (!jattr_get(r, a[i].x, parts, arg[1], &a[i].key)) return false;
        if (fold && !jkey_fold(r, &a[i].key)) return false;
    }
    if (!sort_keyed(r, a, tmp, in.u.list->n, false)) return false;
    for (uint32_t i = 0; i < in.u.list->n; i++) {
        bool same = false;
        if (i && !jv_eq(r, a[i].key, a[i - 1].key, &same)) return false;
        if (!same) {
            if (!jattr_get(r, a[i].x, parts, arg[1], &key) || !jv_new_list(r, J_LIST, 0, &one))
                return false;
            jv group;
            cap_group = 0;
            if (!group_tuple(r, key, one, &group) || !jlist_push(r, out, &cap, group)) return false;
        }
        if (!jlist_push(r, &one, &cap_group, a[i].x)) return false;
    }
    return true;
}

static bool extreme(jrun *r, jv in, const jv *arg, int op, jv *out)
{
    jv parts, x, key, best_key = jv_of(J_MISSING);
    jiter it;
    int got;

    if (!jattr_prepare(r, arg[1], &parts) || !jiter_init(r, in, &it)) return false;
    while ((got = jiter_next(r, &it, &x)) > 0) {
        bool better = true;
        if (!jattr_get(r, x, parts, jv_none(), &key)) return false;
        if (!jv_truth(arg[0]) && !jkey_fold(r, &key)) return false;
        if (best_key.t != J_MISSING && !jv_cmp(r, key, best_key, op, &better)) return false;
        if (!better) continue;
        best_key = key;
        *out = x;
    }
    if (got < 0) return false;
    return best_key.t != J_MISSING ||
           jv_undef_hint(r, "no aggregated item, sequence was empty", out);
}

static bool f_min(jrun *r, jv in, const jv *arg, jv *out)
{
    return extreme(r, in, arg, TK_LT, out);
}

static bool f_max(jrun *r, jv in, const jv *arg, jv *out)
{
    return extreme(r, in, arg, TK_GT, out);
}

static bool f_sum(jrun *r, jv in, const jv *arg, jv *out)
{
    jv parts, x;
    jiter it;
    int got;

    *out = arg[1].t == J_MISSING ? jv_int(0) : arg[1];
    if (out->t == J_STR) return jfail(r, "sum: cannot sum strings; expected numbers or lists");
    if (!jattr_prepare(r, arg[0], &parts) || !jiter_init(r, in, &it)) return false;
    while ((got = jiter_next(r, &it, &x)) > 0)
        if (!jattr_get(r, x, parts, jv_none(), &x) || !jv_binary(r, TK_ADD, *out, x, out))
            return false;
    return got == 0;
}

static bool f_length(jrun *r, jv in, const jv *arg, jv *out)
{
    int64_t n;
    (void)arg;
    if (!jv_len(r, in, &n)) return false;
    *out = jv_int(n);
    return true;
}

static bool f_first(jrun *r, jv in, const jv *arg, jv *out)
{
    jiter it;
    (void)arg;
    if (!jiter_init(r, in, &it)) return false;
    int got = jiter_next(r, &it, out);
    return got > 0 || (got == 0 && jv_undef_hint(r, "no first item, sequence was empty", out));
}

static bool f_last(jrun *r, jv in, const jv *arg, jv *out)
{
    (void)arg;
    if (in.t == J_ITER || in.t == J_LOOP || !jv_can_iter(in))
        return jfail(r, "'%s' object is not reversible; expected a list or a string",
                     jv_type_name(in));
    if (!jv_truth(in)) return jv_undef_hint(r, "no last item, sequence was empty", out);
    if (in.t == J_STR || in.t == J_RANGE) return jv_getitem(r, in, jv_int(-1), out);
    if (in.t == J_DICT)
        *out = in.u.dict->kv[in.u.dict->n - 1].k;
    else
        *out = in.u.list->v[in.u.list->n - 1];
    return true;
}

static bool f_list(jrun *r, jv in, const jv *arg, jv *out)
{
    (void)arg;
    return jv_to_list(r, in, J_LIST, out);
}

static bool f_reverse(jrun *r, jv in, const jv *arg, jv *out)
{
    (void)arg;
    if (in.t == J_STR) return jv_slice(r, in, jv_none(), jv_none(), jv_int(-1), out);
    if (!jv_can_iter(in)) return jfail(r, "reverse: argument must be iterable");
    if (in.t == J_ITER || in.t == J_LOOP) {
        jv l;
        return jv_to_list(r, in, J_LIST, &l) &&
               jv_slice(r, l, jv_none(), jv_none(), jv_int(-1), out);
    }
    jiter *it = jalloc(r, sizeof *it);
    if (!it) return false;
    *it = (jiter){.kind = in.t == J_UNDEF ? IT_END : IT_REVERSE, .src = in};
    *out = (jv){.t = J_ITER, .u.iter = it};
    return true;
}

static bool f_join(jrun *r, jv in, const jv *arg, jv *out)
{
    jv parts, x;
    jiter it;
    cairn_str d = {0};
    int got;
    bool first = true, ok = true;
    buf b;

    if (arg[0].t != J_MISSING && !jv_to_text(r, arg[0], &d)) return false;
    if (!jattr_prepare(r, arg[1], &parts) || !jiter_init(r, in, &it)) return false;
    buf_init(&b, MEM_TEXT);
    while (ok && (got = jiter_next(r, &it, &x)) != 0) {
        ok = got > 0 && jattr_get(r, x, parts, jv_none(), &x);
        if (!ok) break;
        if (!first) buf_str(&b, d);
        first = false;
        ok = jsteps(r, 1 + (uint64_t)(x.t == J_STR ? x.len : 0) / 64) && jv_print(r, x, &b);
        if (b.len > JINJA_MAX_OUTPUT) ok = jfail_long(r, "join");
    }
    if (ok && buf_status(&b) != CAIRN_OK) ok = jfail_as(r, CAIRN_E_NOMEM, "join");
    ok = ok && jv_copy(r, buf_view(&b), out);
    buf_deinit(&b);
    return ok;
}

/* Cuts into lists of n; `fill` completes the last one. */
static bool batch_now(jrun *r, jv in, const jv *arg, jv *out)
{
    jv all, one;
    uint32_t cap = 0, cap_one = 0;

    if (arg[0].t == J_UNDEF) return jfail_undef(r, arg[0]);
    int64_t n = jv_is_int(arg[0]) ? jv_as_int(arg[0]) : -1; /* no other value equals a length */
    const bool fill = arg[1].t != J_MISSING && arg[1].t != J_NONE;
    if (!jv_to_list(r, in, J_LIST, &in) || !jv_new_list(r, J_LIST, 0, &all)) return false;
    if (!jv_new_list(r, J_LIST, 0, &one)) return false;
    for (uint32_t i = 0; i < in.u.list->n; i++) {
        if (one.u.list->n == n) { /* a size of 0 gives an empty list first */
            cap_one = 0;
            if (!jlist_push(r, &all, &cap, one) || !jv_new_list(r, J_LIST, 0, &one)) return false;
        }
        if (!jlist_push(r, &one, &cap_one, in.u.list->v[i])) return false;
    }
    const bool big = arg[0].t == J_BIG && !arg[0].u.big->neg;
    if (fill && one.u.list->n && (big || !jv_is_num(arg[0])))
        return jfail(r, "batch: the number must be an integer below 2^63");
    while (fill && one.u.list->n && one.u.list->n < n)
        if (!jsteps(r, 1) || !jlist_push(r, &one, &cap_one, arg[1])) return false;
    if (one.u.list->n && !jlist_push(r, &all, &cap, one)) return false;
    jiter like = {.kind = IT_FORWARD};
    return jv_generator(r, all, &like, out);
}

static bool slice_now(jrun *r, jv in, const jv *arg, jv *out)
{
    enum { MAX_SLICES = 100000 };
    jv all, one;
    uint32_t cap = 0;

    if (!jv_is_int(arg[0])) return jfail(r, "slice: the number must be an integer");
    int64_t n = jv_as_int(arg[0]), at = 0;
    if (!n) return jfail(r, "slice: zero slices; expected at least one");
    if (n > MAX_SLICES) return jfail_as(r, CAIRN_E_LIMIT, "slice: more than %d", MAX_SLICES);
    if (!jv_to_list(r, in, J_LIST, &in) || !jv_new_list(r, J_LIST, 0, &all)) return false;
    int64_t each = in.u.list->n / n, extra = in.u.list->n % n;
    for (int64_t i = 0; i < n; i++) {
        int64_t size = each + (i < extra);
        uint32_t cap_one = 0;
        if (!jv_new_list(r, J_LIST, 0, &one)) return false;
        for (int64_t k = 0; k < size; k++)
            if (!jlist_push(r, &one, &cap_one, in.u.list->v[at + k])) return false;
        at += size;
        bool fill = i >= extra && arg[1].t != J_MISSING && arg[1].t != J_NONE;
        if (fill && !jlist_push(r, &one, &cap_one, arg[1])) return false;
        if (!jlist_push(r, &all, &cap, one)) return false;
    }
    jiter like = {.kind = IT_FORWARD};
    return jv_generator(r, all, &like, out);
}

static const jfn now[] = {{"batch", batch_now, NULL, NULL}, {"slice", slice_now, NULL, NULL}};

/* Generators in Jinja2: what is wrong with them is said when they are consumed. */
static bool later(jrun *r, const jfn *fn, jv in, const jv *arg, jv *out)
{
    jiter *it = jalloc(r, sizeof *it);
    jv *kept = jalloc(r, 2 * sizeof *kept);
    if (!it || !kept) return false;
    kept[0] = arg[0];
    kept[1] = arg[1];
    *it = (jiter){.kind = IT_LATER, .src = in, .fn = fn, .call = {.pos = kept}};
    *out = (jv){.t = J_ITER, .u.iter = it};
    return true;
}

static bool f_batch(jrun *r, jv in, const jv *arg, jv *out)
{
    return later(r, &now[0], in, arg, out);
}

static bool f_slice(jrun *r, jv in, const jv *arg, jv *out)
{
    return later(r, &now[1], in, arg, out);
}

const jfn jfilters_seq[] = {{"sort", f_sort, NULL, "reverse? case_sensitive? attribute?"},
                            {"dictsort", f_dictsort, NULL, "case_sensitive? by? reverse?"},
                            {"groupby", f_groupby, NULL, "attribute default? case_sensitive?"},
                            {"min", f_min, NULL, "case_sensitive? attribute?"},
                            {"max", f_max, NULL, "case_sensitive? attribute?"},
                            {"sum", f_sum, NULL, "attribute? start?"},
                            {"length", f_length, NULL, ""},
                            {"count", f_length, NULL, ""},
                            {"first", f_first, NULL, ""},
                            {"last", f_last, NULL, ""},
                            {"list", f_list, NULL, ""},
                            {"reverse", f_reverse, NULL, ""},
                            {"join", f_join, NULL, "d? attribute?"},
                            {"batch", f_batch, NULL, "linecount fill_with?"},
                            {"slice", f_slice, NULL, "slices fill_with?"},
                            {0}};
