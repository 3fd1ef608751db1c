/* pprint: a value as Python's pprint.pformat lays it out: on one line where that has 80 characters, else
   each part on its own; keys sorted, long strings cut between words. */
#include "text/jinja_run.h"

enum { PRETTY_WIDTH = 80 };

/* Keys of unlike types are told apart by the names of these, as pprint does. */
static bool key_less(jrun *r, jv a, jv b, bool *less)
{
    if (a.t == J_UNDEF || b.t == J_UNDEF) return jfail_undef(r, a.t == J_UNDEF ? a : b);
    if ((jv_is_num(a) && jv_is_num(b)) ||
        (a.t == b.t && (a.t == J_STR || (a.t == J_TUPLE && a.u.list->n))))
        return jv_cmp(r, a, b, TK_LT, less);
    *less = strcmp(jv_type_name(a), jv_type_name(b)) < 0;
    return true;
}

/* Puts `p` into the n sorted pairs at kv: behind those that are equal. */
static bool insert(jrun *r, jpair *kv, uint32_t n, jpair p)
{
    uint32_t low = 0, high = n;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        bool less = false;
        if (!key_less(r, p.k, kv[mid].k, &less)) return false;
        if (less)
            high = mid;
        else
            low = mid + 1;
    }
    memmove(kv + low + 1, kv + low, (n - low) * sizeof *kv);
    kv[low] = p;
    return jsteps(r, 1 + (n - low) / 64);
}

static bool sorted(jrun *r, jv v, jv *out);

static bool sorted_dict(jrun *r, const jdict *d, jv *out)
{
    if (!jv_new_dict(r, J_DICT, d->n, out)) return false;
    for (uint32_t i = 0; i < d->n; i++) {
        jpair p;
        if (!sorted(r, d->kv[i].k, &p.k) || !sorted(r, d->kv[i].v, &p.v)) return false;
        if (!insert(r, out->u.dict->kv, i, p)) return false;
        out->u.dict->n = i + 1;
    }
    return true;
}

/* What is laid out in parts when it is long; groupby's tuples are not. */
static bool has_parts(jv v)
{
    return v.t == J_DICT || v.t == J_LIST || (v.t == J_TUPLE && !(v.flag & J_GROUP));
}

/* A copy in which every dict that is laid out has its keys in order. */
static bool sorted(jrun *r, jv v, jv *out)
{
    bool ok = true;

    *out = v;
    if (!has_parts(v)) return true;
    if (!jenter(r) || !jsteps(r, 1)) return false;
    if (v.t == J_DICT) {
        ok = sorted_dict(r, v.u.dict, out);
    } else {
        ok = jv_new_list(r, v.t, v.u.list->n, out);
        for (uint32_t i = 0; ok && i < v.u.list->n; i++)
            ok = sorted(r, v.u.list->v[i], &out->u.list->v[i]);
    }
    r->depth--;
    return ok;
}

typedef struct pretty {
    jrun *r;
    buf *out;
    buf rep; /* of one value, on one line */
} pretty;

/* Where a value stands: the column that it begins in, what must fit behind its end, how many
   containers it is in. */
typedef struct place {
    size_t indent, allowance;
    uint32_t level;
} place;

/* The length of a value on one line, which is left in `rep`. */
static bool measure(pretty *p, jv v, size_t *n)
{
    buf_clear(&p->rep);
    if (!jv_repr(p->r, v, &p->rep, 0)) return false;
    *n = jtext_count(buf_view(&p->rep));
    return true;
}

static void new_line(pretty *p, size_t indent)
{
    buf_byte(p->out, '\n');
    for (size_t i = 0; i < indent; i++) buf_byte(p->out, ' ');
}

/* A word with the white space behind it. */
static size_t word_end(cairn_str s, size_t i)
{
    size_t k;
    while (i < s.len && !jtext_space(s.ptr + i, s.len - i)) i++;
    while (i < s.len && (k = jtext_space(s.ptr + i, s.len - i)) > 0) i += k;
    return i;
}

typedef struct lines {
    pretty *p;
    place at;
    bool parens;
    size_t n; /* written so far */
} lines;

static bool put_piece(lines *l, cairn_str s)
{
    size_t n;
    if (!measure(l->p, jv_str(s), &n)) return false;
    if (!l->n && l->parens) buf_byte(l->p->out, '(');
    if (l->n++) new_line(l->p, l->at.indent);
    buf_str(l->p->out, buf_view(&l->p->rep));
    return true;
}

/* One line of a string, cut between words where it is too long. */
static bool put_words(lines *l, cairn_str line, bool last_line)
{
    size_t from = 0, n;

    for (size_t i = 0, end; i < line.len; i = end) {
        end = word_end(line, i);
        size_t width = l->at.indent > PRETTY_WIDTH ? 0 : PRETTY_WIDTH - l->at.indent;
        if (last_line && end == line.len)
            width = width > l->at.allowance ? width - l->at.allowance : 0;
        if (!measure(l->p, jv_str(str_sub(line, from, end - from)), &n)) return false;
        if (n <= width) continue;
        if (i > from && !put_piece(l, str_sub(line, from, i - from))) return false;
        from = i;
    }
    return put_piece(l, str_sub(line, from, line.len - from));
}

/* A string's lines, each as it fits; one piece alone stands without parentheses. */
static bool put_text(pretty *p, cairn_str s, place at)
{
    const size_t begin = p->out->len;
    lines l = {p, at, at.level == 0, 0};
    size_t pos = 0;
    cairn_str line;

    if (l.parens) {
        l.at.indent++;
        l.at.allowance++;
    }
    while (jtext_line(s, &pos, true, &line))
        if (!put_words(&l, line, pos == s.len)) return false;
    if (!l.parens) return true;
    if (l.n > 1) {
        buf_byte(p->out, ')');
    } else {
        size_t n;
        buf_cut(p->out, begin);
        if (!measure(p, jv_str(s), &n)) return false;
        buf_str(p->out, buf_view(&p->rep));
    }
    return true;
}

static bool put_value(pretty *p, jv v, place at);

static bool put_items(pretty *p, const jlist *l, place at)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const bool last = i + 1 == l->n;
        const place in = {at.indent + 1, last ? at.allowance : 1, at.level + 1};
        if (!put_value(p, l->v[i], in)) return false;
        if (last) break;
        buf_byte(p->out, ',');
        new_line(p, in.indent);
    }
    return true;
}

static bool put_pairs(pretty *p, const jdict *d, place at)
{
    for (uint32_t i = 0; i < d->n; i++) {
        const bool last = i + 1 == d->n;
        size_t n;
        if (!measure(p, d->kv[i].k, &n)) return false;
        buf_str(p->out, buf_view(&p->rep));
        buf_puts(p->out, ": ");
        const place in = {at.indent + 1 + n + 2, last ? at.allowance : 1, at.level + 1};
        if (!put_value(p, d->kv[i].v, in)) return false;
        if (last) break;
        buf_byte(p->out, ',');
        new_line(p, at.indent + 1);
    }
    return true;
}

static bool put_parts(pretty *p, jv v, place at)
{
    const char *close = v.t == J_DICT ? "}" : v.t == J_LIST ? "]" : v.u.list->n == 1 ? ",)" : ")";
    bool ok;

    buf_byte(p->out, v.t == J_DICT ? '{' : v.t == J_LIST ? '[' : '(');
    at.allowance += strlen(close);
    ok = v.t == J_DICT ? put_pairs(p, v.u.dict, at) : put_items(p, v.u.list, at);
    buf_puts(p->out, close);
    return ok;
}

static bool put_value(pretty *p, jv v, place at)
{
    size_t n;
    bool ok = true;

    if (!measure(p, v, &n)) return false;
    if (p->out->len > JINJA_MAX_OUTPUT) return jfail_long(p->r, "pprint");
    if (!jenter(p->r)) return false;
    const bool fits = n + at.indent + at.allowance <= PRETTY_WIDTH;
    if (!fits && has_parts(v))
        ok = put_parts(p, v, at);
    else if (!fits && v.t == J_STR && v.len && !(v.flag & J_SAFE))
        ok = put_text(p, jv_text(v), at);
    else
        buf_str(p->out, buf_view(&p->rep));
    p->r->depth--;
    return ok;
}

bool jv_pprint(jrun *r, jv v, const jv *arg, jv *out)
{
    buf b;
    pretty p = {.r = r, .out = &b};

    (void)arg;
    buf_init(&b, MEM_TEXT);
    buf_init(&p.rep, MEM_TEXT);
    bool ok = sorted(r, v, &v) && put_value(&p, v, (place){0});
    if (ok && buf_status(&p.rep) != CAIRN_OK) ok = jfail_as(r, CAIRN_E_NOMEM, "pprint");
    buf_deinit(&p.rep);
    return jv_give(r, &b, ok, out);
}
