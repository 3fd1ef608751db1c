/* Methods of str that search, cut and join. */
#include "text/jinja_run.h"

static bool want_str(jrun *r, jv v, const char *what)
{
    if (v.t == J_STR) return true;
    return v.t == J_UNDEF ? jfail(r, "%s: expected a string, got Undefined", what)
                          : jfail(r, "%s: expected a string, got %s", what, jv_type_name(v));
}

static bool strip(jrun *r, jv self, const jv *arg, bool left, bool right, jv *out)
{
    cairn_str chars, *set = NULL;
    if (arg[0].t != J_MISSING && arg[0].t != J_NONE) {
        if (!want_str(r, arg[0], "strip")) return false;
        chars = jv_text(arg[0]);
        set = &chars;
    }
    *out = jv_str(jtext_strip(jv_text(self), set, left, right));
    return jsteps(r, (self.len - out->len) / 2 * (set ? 1 + set->len : 1));
}

static bool m_strip(jrun *r, jv self, const jv *arg, jv *out)
{
    return strip(r, self, arg, true, true, out);
}
static bool m_lstrip(jrun *r, jv self, const jv *arg, jv *out)
{
    return strip(r, self, arg, true, false, out);
}
static bool m_rstrip(jrun *r, jv self, const jv *arg, jv *out)
{
    return strip(r, self, arg, false, true, out);
}

/* The [start, end) part that find, count, startswith take, in characters; false: an empty part that
   begins after the end.  *base: its offset in bytes. */
static bool window(jrun *r, cairn_str s, const jv *arg, cairn_str *part, size_t *base, bool *beyond)
{
    int64_t bound[2] = {0, INT64_MAX}, n = (int64_t)jtext_count(s);

    for (int i = 0; i < 2; i++) {
        if (arg[i].t == J_MISSING) continue;
        if (!jv_slice_part(r, arg[i], bound[i], &bound[i])) return false;
        if (bound[i] < 0) bound[i] = bound[i] + n < 0 ? 0 : bound[i] + n;
    }
    if (bound[1] > n) bound[1] = n;
    *beyond = bound[0] > bound[1] || bound[0] > n;
    if (*beyond) bound[0] = bound[1] = 0;
    *base = jtext_offset(s, (size_t)bound[0]);
    *part = str_sub(s, *base, jtext_offset(s, (size_t)bound[1]) - *base);
    return jbytes(r, s.len);
}

static size_t rfind(cairn_str s, cairn_str what)
{
    if (what.len > s.len) return SIZE_MAX;
    for (size_t i = s.len - what.len + 1; i-- > 0;)
        if (!what.len || memcmp(s.ptr + i, what.ptr, what.len) == 0) return i;
    return SIZE_MAX;
}

static bool find(jrun *r, jv self, const jv *arg, bool last, bool must, jv *out)
{
    cairn_str part;
    size_t base, at;
    bool beyond;

    if (!want_str(r, arg[0], "find") || !window(r, jv_text(self), arg + 1, &part, &base, &beyond))
        return false;
    at = last ? rfind(part, jv_text(arg[0])) : str_find(part, jv_text(arg[0]), 0);
    if (beyond) at = SIZE_MAX;
    if (at == SIZE_MAX && must) return jfail(r, "substring not found; expected it in the text");
    *out = jv_int(at == SIZE_MAX ? -1 : (int64_t)jtext_count(str_sub(jv_text(self), 0, base + at)));
    return true;
}

static bool m_find(jrun *r, jv self, const jv *arg, jv *out)
{
    return find(r, self, arg, false, false, out);
}
static bool m_rfind(jrun *r, jv self, const jv *arg, jv *out)
{
    return find(r, self, arg, true, false, out);
}
static bool m_index(jrun *r, jv self, const jv *arg, jv *out)
{
    return find(r, self, arg, false, true, out);
}
static bool m_rindex(jrun *r, jv self, const jv *arg, jv *out)
{
    return find(r, self, arg, true, true, out);
}

static bool m_count(jrun *r, jv self, const jv *arg, jv *out)
{
    cairn_str part, what;
    size_t base, at = 0;
    int64_t n = 0;
    bool beyond;

    if (!want_str(r, arg[0], "count") || !window(r, jv_text(self), arg + 1, &part, &base, &beyond))
        return false;
    what = jv_text(arg[0]);
    if (!what.len) n = beyond ? 0 : (int64_t)jtext_count(part) + 1;
    for (; what.len && (at = str_find(part, what, at)) != SIZE_MAX; at += what.len) n++;
    *out = jv_int(n);
    return true;
}

static bool affix(jrun *r, jv self, const jv *arg, bool start, jv *out)
{
    cairn_str part;
    size_t base;
    bool beyond, yes = false;
    jv one = arg[0];
    const jlist single = {.n = 1, .v = &one}, *l = one.t == J_TUPLE ? one.u.list : &single;

    if (!window(r, jv_text(self), arg + 1, &part, &base, &beyond)) return false;
    for (uint32_t i = 0; i < l->n; i++) {
        if (!want_str(r, l->v[i], start ? "startswith" : "endswith")) return false;
        cairn_str w = jv_text(l->v[i]);
        yes |= !beyond && (start ? str_starts(part, w) : str_ends(part, w));
    }
    *out = jv_bool(yes);
    return true;
}

static bool m_startswith(jrun *r, jv self, const jv *arg, jv *out)
{
    return affix(r, self, arg, true, out);
}
static bool m_endswith(jrun *r, jv self, const jv *arg, jv *out)
{
    return affix(r, self, arg, false, out);
}

static bool m_removeprefix(jrun *r, jv self, const jv *arg, jv *out)
{
    if (!want_str(r, arg[0], "removeprefix")) return false;
    *out = self;
    if (str_starts(jv_text(self), jv_text(arg[0])))
        *out = jv_str(str_sub(jv_text(self), arg[0].len, self.len - arg[0].len));
    return true;
}
static bool m_removesuffix(jrun *r, jv self, const jv *arg, jv *out)
{
    if (!want_str(r, arg[0], "removesuffix")) return false;
    *out = self;
    if (str_ends(jv_text(self), jv_text(arg[0])))
        *out = jv_str(str_sub(jv_text(self), 0, self.len - arg[0].len));
    return true;
}

/* Runs of anything but white space. */
static bool split_space(jrun *r, cairn_str s, int64_t max, jv *out)
{
    uint32_t cap = 0;

    s = jtext_strip(s, NULL, true, false);
    while (s.len) {
        size_t end = 0;
        if (!jsteps(r, 1)) return false;
        if (max-- == 0) return jlist_push(r, out, &cap, jv_str(s));
        while (end < s.len && !jtext_space(s.ptr + end, s.len - end)) end++;
        if (!jlist_push(r, out, &cap, jv_str(str_sub(s, 0, end)))) return false;
        s = jtext_strip(str_sub(s, end, s.len - end), NULL, true, false);
    }
    return true;
}

/* The same from the right: pieces come in reverse. */
static bool rsplit_any(jrun *r, cairn_str s, const cairn_str *sep, int64_t max, jv *out)
{
    uint32_t cap = 0;

    if (!sep) s = jtext_strip(s, NULL, false, true);
    for (bool more = sep || s.len; more;) {
        if (!jsteps(r, 1)) return false;
        size_t at = SIZE_MAX, gap = sep ? sep->len : 0;
        if (max-- != 0 && sep) at = rfind(s, *sep);
        if (max + 1 != 0 && !sep)
            for (size_t i = s.len; i > 0 && at == SIZE_MAX; i--)
                if ((gap = jtext_space_back(s.ptr, i)) > 0) at = i - gap;
        more = at != SIZE_MAX;
        size_t from = more ? at + gap : 0;
        cairn_str piece = str_sub(s, from, s.len - from);
        if (!more && !sep) piece = jtext_strip(piece, NULL, max + 1 != 0, false);
        if (!jlist_push(r, out, &cap, jv_str(piece))) return false;
        if (!more) break;
        s.len = at;
        if (!sep) {
            s = jtext_strip(s, NULL, false, true);
            more = jtext_strip(s, NULL, true, true).len > 0;
        }
    }
    jlist *l = out->u.list;
    for (uint32_t i = 0; i < l->n / 2; i++) {
        jv t = l->v[i];
        l->v[i] = l->v[l->n - 1 - i];
        l->v[l->n - 1 - i] = t;
    }
    return true;
}

static bool split(jrun *r, jv self, const jv *arg, bool right, jv *out)
{
    cairn_str s = jv_text(self), sep, *by = NULL;
    int64_t max = -1;
    uint32_t cap = 0;

    if (arg[1].t != J_MISSING) {
        if (!jv_is_int(arg[1])) return jfail(r, "split: maxsplit must be an integer");
        max = jv_as_int(arg[1]) < 0 ? -1 : jv_as_int(arg[1]);
    }
    if (arg[0].t != J_MISSING && arg[0].t != J_NONE) {
        if (!want_str(r, arg[0], "split")) return false;
        sep = jv_text(arg[0]);
        by = &sep;
        if (!sep.len) return jfail(r, "empty separator; expected at least one character");
    }
    if (!jv_new_list(r, J_LIST, 0, out) || !jbytes(r, s.len)) return false;
    if (right) return rsplit_any(r, s, by, max, out);
    if (!by) return split_space(r, s, max, out);
    for (;;) {
        if (!jsteps(r, 1)) return false;
        size_t at = max-- == 0 ? SIZE_MAX : str_find(s, sep, 0);
        if (at == SIZE_MAX) return jlist_push(r, out, &cap, jv_str(s));
        if (!jlist_push(r, out, &cap, jv_str(str_sub(s, 0, at)))) return false;
        s = str_sub(s, at + sep.len, s.len - at - sep.len);
    }
}

static bool m_split(jrun *r, jv self, const jv *arg, jv *out)
{
    return split(r, self, arg, false, out);
}
static bool m_rsplit(jrun *r, jv self, const jv *arg, jv *out)
{
    return split(r, self, arg, true, out);
}

static bool m_splitlines(jrun *r, jv self, const jv *arg, jv *out)
{
    size_t pos = 0;
    uint32_t cap = 0;
    cairn_str line;

    if (!jv_new_list(r, J_LIST, 0, out)) return false;
    while (jtext_line(jv_text(self), &pos, jv_truth(arg[0]), &line))
        if (!jsteps(r, 1 + line.len / 4) || !jlist_push(r, out, &cap, jv_str(line))) return false;
    return true;
}

static bool partition(jrun *r, jv self, const jv *arg, bool last, jv *out)
{
    cairn_str s = jv_text(self), sep;

    if (!want_str(r, arg[0], "partition")) return false;
    sep = jv_text(arg[0]);
    if (!sep.len) return jfail(r, "empty separator; expected at least one character");
    size_t at = last ? rfind(s, sep) : str_find(s, sep, 0);
    if (!jv_new_list(r, J_TUPLE, 3, out)) return false;
    jv *v = out->u.list->v;
    v[0] = v[1] = v[2] = jv_lit("");
    if (at == SIZE_MAX) {
        v[last ? 2 : 0] = jv_str(s);
        return true;
    }
    v[0] = jv_str(str_sub(s, 0, at));
    v[1] = arg[0];
    v[2] = jv_str(str_sub(s, at + sep.len, s.len - at - sep.len));
    return true;
}

static bool m_partition(jrun *r, jv self, const jv *arg, jv *out)
{
    return partition(r, self, arg, false, out);
}
static bool m_rpartition(jrun *r, jv self, const jv *arg, jv *out)
{
    return partition(r, self, arg, true, out);
}

static void replace_into(cairn_str s, cairn_str from, cairn_str to, int64_t n, buf *b)
{
    size_t at = 0;
    while (n-- != 0 && b->len <= JINJA_MAX_OUTPUT) {
        if (!from.len) { /* before each character and at the end */
            buf_str(b, to);
            size_t k = at < s.len ? jtext_offset(str_sub(s, at, s.len - at), 1) : 0;
            if (!k) return;
            buf_put(b, s.ptr + at, k);
            at += k;
            continue;
        }
        size_t next = str_find(s, from, at);
        if (next == SIZE_MAX) break;
        buf_put(b, s.ptr + at, next - at);
        buf_str(b, to);
        at = next + from.len;
    }
    buf_put(b, s.ptr + at, s.len - at);
}

static bool m_replace(jrun *r, jv self, const jv *arg, jv *out)
{
    int64_t n = -1;
    buf b;

    if (!want_str(r, arg[0], "replace") || !want_str(r, arg[1], "replace")) return false;
    if (arg[2].t != J_MISSING) {
        if (!jv_is_int(arg[2])) return jfail(r, "replace: count must be an integer");
        n = jv_as_int(arg[2]) < 0 ? -1 : jv_as_int(arg[2]);
    }
    *out = jv_str(jv_text(self));
    if (!jsteps(r, self.len / 16)) return false;
    if (arg[0].len && str_find(jv_text(self), jv_text(arg[0]), 0) == SIZE_MAX) return true;
    buf_init(&b, MEM_TEXT);
    replace_into(jv_text(self), jv_text(arg[0]), jv_text(arg[1]), n, &b);
    bool ok = buf_status(&b) == CAIRN_OK || jfail_as(r, CAIRN_E_NOMEM, "replace");
    ok = ok && jbytes(r, b.len);
    ok = ok && jv_copy(r, buf_view(&b), out);
    buf_deinit(&b);
    return ok;
}

static bool m_join(jrun *r, jv self, const jv *arg, jv *out)
{
    const jfn *join = jfilter_find(STR_LIT("join"));
    jv call[2] = {self, jv_of(J_MISSING)}, l;

    if (!jv_to_list(r, arg[0], J_LIST, &l)) return false;
    for (uint32_t i = 0; i < l.u.list->n; i++)
        if (l.u.list->v[i].t != J_STR)
            return jfail(r, "join: item %u: expected a string, got %s", i,
                         jv_type_name(l.u.list->v[i]));
    return join->fn(r, l, call, out);
}

const jfn jmethods_str_cut[] = {{"strip", m_strip, NULL, "chars?"},
                                {"lstrip", m_lstrip, NULL, "chars?"},
                                {"rstrip", m_rstrip, NULL, "chars?"},
                                {"split", m_split, NULL, "sep? maxsplit?"},
                                {"rsplit", m_rsplit, NULL, "sep? maxsplit?"},
                                {"splitlines", m_splitlines, NULL, "keepends?"},
                                {"startswith", m_startswith, NULL, "prefix start? end?"},
                                {"endswith", m_endswith, NULL, "suffix start? end?"},
                                {"replace", m_replace, NULL, "old new count?"},
                                {"find", m_find, NULL, "sub start? end?"},
                                {"rfind", m_rfind, NULL, "sub start? end?"},
                                {"index", m_index, NULL, "sub start? end?"},
                                {"rindex", m_rindex, NULL, "sub start? end?"},
                                {"count", m_count, NULL, "sub start? end?"},
                                {"join", m_join, NULL, "iterable"},
                                {"partition", m_partition, NULL, "sep"},
                                {"rpartition", m_rpartition, NULL, "sep"},
                                {"removeprefix", m_removeprefix, NULL, "prefix"},
                                {"removesuffix", m_removesuffix, NULL, "suffix"},
                                {0}};
