/* Attributes, subscripts and slices, as the sandbox resolves them: `x.y` is a Python attribute first
   and an item second, `x["y"]` the other way round; what is missing is undefined. */
#include "text/jinja_big.h"
#include "text/jinja_run.h"

static const jfn *in_table(const jfn *t, cairn_str name)
{
    for (; t->name; t++)
        if (str_is(name, t->name)) return t;
    return NULL;
}

const jfn *jmethod_find(uint8_t t, cairn_str name)
{
    const jfn *fn;
    switch (t) {
    case J_STR:
        fn = in_table(jmethods_str_cut, name);
        if (!fn) fn = in_table(jmethods_str_form, name);
        return fn ? fn : in_table(jmethods_str_ask, name);
    case J_LIST:
        return in_table(jmethods_list, name);
    case J_TUPLE: /* index and count */
        fn = in_table(jmethods_list, name);
        return fn && (str_is(name, "index") || str_is(name, "count")) ? fn : NULL;
    case J_DICT:
        return in_table(jmethods_dict, name);
    default:
        return NULL;
    }
}

static bool bound(jrun *r, const jfn *fn, jv self, jv *out)
{
    jbound *b;

    if (!fn->fn && !fn->raw && self.t != J_STR) /* list.append and the like */
        return jv_undef_hint(r, "the sandbox forbids methods that change a value", out);
    if (!(b = jalloc(r, sizeof *b))) return false;
    *b = (jbound){.fn = fn, .self = self};
    *out = (jv){.t = J_METHOD, .u.bound = b};
    return true;
}

static bool cycle_next(jrun *r, jv self, const jcall *c, jv *out)
{
    jcycler *y = self.u.cycler;
    if (c->n_pos || c->n_kw) return jfail(r, "next() takes no argument");
    *out = y->items.v[y->pos];
    y->pos = (y->pos + 1) % y->items.n;
    return true;
}

static bool cycle_reset(jrun *r, jv self, const jcall *c, jv *out)
{
    (void)r, (void)c;
    self.u.cycler->pos = 0;
    *out = jv_none();
    return true;
}

static bool loop_cycle(jrun *r, jv self, const jcall *c, jv *out)
{
    if (!c->n_pos || c->n_kw) return jfail(r, "no items for cycling given; expected at least one");
    *out = c->pos[self.u.loop->index0 % c->n_pos];
    return true;
}

static bool loop_changed(jrun *r, jv self, const jcall *c, jv *out)
{
    jv now;
    bool same = false;

    if (!jv_new_list(r, J_TUPLE, 0, &now)) return false;
    *now.u.list = (jlist){.n = c->n_pos, .v = c->pos};
    if (self.u.loop->changed.t == J_TUPLE && !jv_eq(r, self.u.loop->changed, now, &same))
        return false;
    if (!same) self.u.loop->changed = now;
    *out = jv_bool(!same);
    return true;
}

static const jfn loop_methods[] = {
    {"cycle", NULL, loop_cycle, NULL}, {"changed", NULL, loop_changed, NULL}, {0}};
static const jfn cycler_methods[] = {
    {"next", NULL, cycle_next, NULL}, {"reset", NULL, cycle_reset, NULL}, {0}};

static bool is_loop_attr(cairn_str name)
{
    static const char *const names[] = {"index",  "index0",   "first",     "last",
                                        "length", "revindex", "revindex0", "depth",
                                        "depth0", "nextitem", "previtem"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_is(name, names[i])) return true;
    return false;
}

static bool macro_attr(jrun *r, jv m, cairn_str name, jv *out)
{
    const jblock *b = m.u.macro->node->x.block;
    if (str_is(name, "name"))
        *out = b->name;
    else if (str_is(name, "caller"))
        *out = jv_bool(b->uses_caller);
    else if (str_is(name, "catch_kwargs"))
        *out = jv_bool(b->uses_kwargs);
    else if (str_is(name, "catch_varargs"))
        *out = jv_bool(b->uses_varargs);
    else if (str_is(name, "arguments")) {
        if (!jv_new_list(r, J_TUPLE, b->n_param, out)) return false;
        for (uint32_t i = 0; i < b->n_param; i++) out->u.list->v[i] = b->param[i]->val;
    }
    return true;
}

/* Python attributes of a value; *out stays J_MISSING where there is none. */
static bool attribute(jrun *r, jv obj, cairn_str name, const jfn *method, jv *out)
{
    const jfn *fn = NULL;

    switch (obj.t) {
    case J_NS:
        jdict_get_str(obj.u.dict, name, out);
        return true;
    case J_LOOP:
        if (is_loop_attr(name)) return jloop_attr(r, obj.u.loop, name, out);
        fn = in_table(loop_methods, name);
        break;
    case J_CYCLER:
        if (str_is(name, "current")) *out = obj.u.cycler->items.v[obj.u.cycler->pos];
        fn = in_table(cycler_methods, name);
        break;
    case J_MACRO:
        return macro_attr(r, obj, name, out);
    case J_TUPLE:
        if (obj.flag & J_GROUP && str_is(name, "grouper")) *out = obj.u.list->v[0];
        if (obj.flag & J_GROUP && str_is(name, "list")) *out = obj.u.list->v[1];
        fn = method;
        break;
    case J_INT:
    case J_BIG:
    case J_BOOL:
        if (str_is(name, "real") || str_is(name, "numerator"))
            *out = obj.t == J_BIG ? obj : jv_int(jv_as_int(obj));
        if (str_is(name, "imag")) *out = jv_int(0);
        if (str_is(name, "denominator")) *out = jv_int(1);
        return true;
    case J_FLOAT:
        if (str_is(name, "real")) *out = obj;
        if (str_is(name, "imag")) *out = jv_float(0);
        return true;
    case J_RANGE:
        if (str_is(name, "start")) *out = jv_int(obj.u.range->start);
        if (str_is(name, "stop")) *out = jv_int(obj.u.range->stop);
        if (str_is(name, "step")) *out = jv_int(obj.u.range->step);
        fn = in_table(jmethods_range, name);
        break;
    default:
        fn = method;
        break;
    }
    return !fn || bound(r, fn, obj, out);
}

static const jfn *method_of(jv obj, cairn_str name, const jfn *const *known)
{
    if (!known) return jmethod_find(obj.t, name);
    switch (obj.t) {
    case J_STR:
        return known[0];
    case J_LIST:
        return known[1];
    case J_DICT:
        return known[2];
    case J_TUPLE:
        return known[3];
    default:
        return NULL;
    }
}

/* Names that every Python object has and the sandbox hides. */
static bool is_internal(cairn_str name)
{
    static const char *const names[] = {
        "__class__",  "__doc__",    "__init__",         "__dict__",   "__len__",          "__str__",
        "__repr__",   "__eq__",     "__hash__",         "__dir__",    "__getattribute__", "__new__",
        "__reduce__", "__sizeof__", "__subclasshook__", "__module__", "__globals__"};
    if (!str_starts(name, STR_LIT("__"))) return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_is(name, names[i])) return true;
    return false;
}

bool jv_getattr(jrun *r, jv obj, jv name, const jfn *const *known, jv *out)
{
    jv found = jv_of(J_MISSING);

    if (obj.t == J_UNDEF) return jfail_undef(r, obj);
    if (is_internal(jv_text(name)))
        return jv_undef_hint(r, "access to an internal attribute is unsafe", out);
    if (!attribute(r, obj, jv_text(name), method_of(obj, jv_text(name), known), &found))
        return false;
    if (found.t == J_MISSING && obj.t == J_DICT) jdict_get_str(obj.u.dict, jv_text(name), &found);
    *out = found;
    return found.t != J_MISSING || jv_undef(r, obj, name, out);
}

static bool seq_at(const jlist *l, int64_t i, jv *out)
{
    if (i < 0) i += l->n;
    if (i < 0 || i >= (int64_t)l->n) return false;
    *out = l->v[i];
    return true;
}

static bool char_at(cairn_str s, int64_t i, jv *out)
{
    int64_t n = (int64_t)s.len;
    bool ascii = true;
    for (size_t k = 0; k < s.len && ascii; k++) ascii = (unsigned char)s.ptr[k] < 0x80;
    if (!ascii) n = (int64_t)jtext_count(s);
    if (i < 0) i += n;
    if (i < 0 || i >= n) return false;
    size_t from = ascii ? (size_t)i : jtext_offset(s, (size_t)i);
    size_t to = ascii ? from + 1 : from + jtext_offset(str_sub(s, from, s.len - from), 1);
    *out = jv_str(str_sub(s, from, to - from));
    return true;
}

/* obj[key]; false with nothing wrong: there is no such item. */
static bool item(jrun *r, jv obj, jv key, jv *out)
{
    const jrange *g;
    int64_t i;

    switch (obj.t) {
    case J_DICT:
        if (key.t == J_LIST || key.t == J_DICT || key.t == J_VIEW) return false;
        return jdict_get(r, obj.u.dict, key, out);
    case J_LIST:
    case J_TUPLE:
        return jv_is_int(key) && seq_at(obj.u.list, jv_as_int(key), out);
    case J_STR:
        if (!jv_is_int(key) || !jsteps(r, obj.len / 8) ||
            !char_at(jv_text(obj), jv_as_int(key), out))
            return false;
        out->flag = obj.flag & J_SAFE;
        return true;
    case J_RANGE:
        if (!jv_is_int(key)) return false;
        g = obj.u.range;
        i = jv_as_int(key);
        if (i < 0) i += g->n;
        if (i < 0 || i >= g->n) return false;
        *out = jv_int(g->start + g->step * i);
        return true;
    default:
        return false;
    }
}

bool jv_getitem(jrun *r, jv obj, jv key, jv *out)
{
    if (obj.t == J_UNDEF) return jfail_undef(r, obj);
    if (item(r, obj, key, out)) return true;
    if (r->st != CAIRN_OK) return false;
    if (key.t == J_STR && !is_internal(jv_text(key))) {
        jv found = jv_of(J_MISSING);
        if (!attribute(r, obj, jv_text(key), method_of(obj, jv_text(key), NULL), &found))
            return false;
        *out = found;
        if (found.t != J_MISSING) return true;
    }
    return jv_undef(r, obj, key, out);
}

bool jv_slice_part(jrun *r, jv v, int64_t otherwise, int64_t *out)
{
    *out = otherwise;
    if (v.t == J_NONE) return true;
    if (v.t == J_BIG) { /* clamped like every index that is too large */
        *out = v.u.big->neg ? INT64_MIN / 2 : INT64_MAX / 2;
        return true;
    }
    if (!jv_is_int(v)) return jfail(r, "slice indices must be integers, not %s", jv_type_name(v));
    *out = jv_as_int(v);
    return true;
}

static int64_t clamp(int64_t i, int64_t n, bool down)
{
    int64_t lo = down ? -1 : 0, hi = down ? n - 1 : n;
    if (i < 0) i += n;
    return i < lo ? lo : i > hi ? hi : i;
}

typedef struct span {
    int64_t start, step, n, stop, raw_step; /* raw: as written, for printing a range */
} span;

static bool slice_span(jrun *r, int64_t len, jv lo, jv hi, jv step, span *s)
{
    int64_t start, stop, by;

    if (!jv_slice_part(r, step, 1, &by)) return false;
    if (!by) return jfail(r, "slice step cannot be zero; expected another step");
    const int64_t raw = by;
    if (by < -len - 1) by = -len - 1; /* the same items, without overflow */
    if (by > len + 1) by = len + 1;
    bool down = by < 0;
    if (!jv_slice_part(r, lo, down ? len - 1 : 0, &start) || !jv_slice_part(r, hi, 0, &stop))
        return false;
    start = lo.t == J_NONE ? start : clamp(start, len, down);
    stop = hi.t == J_NONE ? (down ? -1 : len) : clamp(stop, len, down);
    int64_t gap = down ? start - stop : stop - start, width = down ? -by : by;
    *s = (span){.start = start,
                .stop = stop,
                .step = by,
                .raw_step = raw,
                .n = gap > 0 ? (gap + width - 1) / width : 0};
    return true;
}

static bool slice_text(jrun *r, jv obj, span s, bool ascii, jv *out)
{
    cairn_str t = jv_text(obj);

    if (!jsteps(r, t.len / 16)) return false;
    if (s.step == 1) {
        size_t from = ascii ? (size_t)s.start : jtext_offset(t, (size_t)s.start);
        cairn_str rest = str_sub(t, s.n ? from : 0, s.n ? t.len - from : 0);
        rest.len = ascii ? (size_t)s.n : jtext_offset(rest, (size_t)s.n);
        *out = jv_str(rest);
        return true;
    }
    /* Offsets of all characters first: a step may go backwards. */
    size_t n = ascii ? t.len : jtext_count(t), len = 0;
    uint32_t *at = jalloc(r, (n + 1) * sizeof *at);
    char *to = jalloc(r, t.len + 1);
    if (!at || !to) return false;
    for (size_t i = 0, k = 0; i <= t.len; i++)
        if (i == t.len || ((unsigned char)t.ptr[i] & 0xc0) != 0x80) at[k++] = (uint32_t)i;
    for (int64_t i = 0; i < s.n; i++) {
        size_t k = (size_t)(s.start + s.step * i);
        memcpy(to + len, t.ptr + at[k], at[k + 1] - at[k]);
        len += at[k + 1] - at[k];
    }
    *out = jv_str((cairn_str){to, len});
    return jsteps(r, n / 4);
}

bool jv_can_slice(jv v)
{
    return v.t == J_STR || v.t == J_LIST || v.t == J_TUPLE || v.t == J_RANGE;
}

bool jv_slice(jrun *r, jv obj, jv lo, jv hi, jv step, jv *out)
{
    int64_t len;
    span s = {0};

    if (obj.t == J_UNDEF) return jfail_undef(r, obj);
    if (!jv_can_slice(obj))
        return jfail(r, "'%s' object cannot be sliced; expected a list or a string",
                     jv_type_name(obj));
    if (!jv_len(r, obj, &len) || !slice_span(r, len, lo, hi, step, &s)) return false;
    if (obj.t == J_STR) {
        if (!slice_text(r, obj, s, len == (int64_t)obj.len, out)) return false;
        out->flag = obj.flag & J_SAFE;
        return true;
    }
    if (obj.t == J_RANGE) {
        const jrange *g = obj.u.range;
        jrange *made = jalloc(r, sizeof *made);
        if (!made) return false;
        *made = (jrange){.start = g->start + g->step * s.start, .step = g->step * s.step, .n = s.n};
        made->stop = g->start + g->step * s.stop;
        if (s.n < 2 && !__builtin_mul_overflow(g->step, s.raw_step, &s.step)) made->step = s.step;
        *out = (jv){.t = J_RANGE, .u.range = made};
        return true;
    }
    if (!jv_new_list(r, obj.t, s.step == 1 ? 0 : (size_t)s.n, out)) return false;
    if (s.step == 1) {
        if (s.n) *out->u.list = (jlist){.n = (uint32_t)s.n, .v = obj.u.list->v + s.start};
        return true;
    }
    for (int64_t i = 0; i < s.n; i++) out->u.list->v[i] = obj.u.list->v[s.start + s.step * i];
    return jsteps(r, (uint64_t)s.n / 4);
}
