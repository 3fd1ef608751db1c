/* Filters over text, and the search through all filter tables. */
#include <math.h>

#include "text/jinja_big.h"
#include "text/jinja_run.h"

#define OPT(i, otherwise) (arg[i].t == J_MISSING ? (otherwise) : arg[i])

/* What is made of markup is markup. */
static bool keep_safe(jv in, bool ok, jv *out)
{
    if (ok && in.t == J_STR) out->flag = in.flag & J_SAFE;
    return ok;
}

static bool cased(jrun *r, jv in, int how, jv *out)
{
    cairn_str s;
    buf b;
    if (!jv_to_text(r, in, &s) || !jbytes(r, s.len)) return false;
    buf_init(&b, MEM_TEXT);
    jtext_case(s, how, &b);
    return keep_safe(in, jv_give(r, &b, true, out), out);
}

static bool f_upper(jrun *r, jv in, const jv *arg, jv *out)
{
    (void)arg;
    return cased(r, in, CASE_UPPER, out);
}

static bool f_lower(jrun *r, jv in, const jv *arg, jv *out)
{
    (void)arg;
    return cased(r, in, CASE_LOWER, out);
}

static bool f_capitalize(jrun *r, jv in, const jv *arg, jv *out)
{
    (void)arg;
    return cased(r, in, CASE_CAPITAL, out);
}

/* Words begin after white space and - ( { [ <, unlike in str.title. */
static bool f_title(jrun *r, jv in, const jv *arg, jv *out)
{
    cairn_str s;
    buf b;

    (void)arg;
    if (!jv_to_text(r, in, &s) || !jbytes(r, s.len)) return false;
    buf_init(&b, MEM_TEXT);
    for (size_t i = 0; i < s.len;) {
        size_t k = jtext_space(s.ptr + i, s.len - i);
        if (!k && strchr("-({[<", s.ptr[i]) && s.ptr[i]) k = 1;
        if (k) {
            buf_put(&b, s.ptr + i, k);
            i += k;
            continue;
        }
        size_t end = i;
        while (end < s.len && !jtext_space(s.ptr + end, s.len - end) &&
               (!s.ptr[end] || !strchr("-({[<", s.ptr[end])))
            end++;
        cairn_str word = str_sub(s, i, end - i);
        size_t first = jtext_offset(word, 1);
        jtext_case(str_sub(word, 0, first), CASE_UPPER, &b);
        jtext_case(str_sub(word, first, word.len - first), CASE_LOWER, &b);
        i = end;
    }
    return jv_give(r, &b, true, out);
}

static bool f_trim(jrun *r, jv in, const jv *arg, jv *out)
{
    cairn_str s, chars, *set = NULL;

    if (!jv_to_text(r, in, &s)) return false;
    if (arg[0].t != J_MISSING && arg[0].t != J_NONE) {
        if (arg[0].t != J_STR) return jfail(r, "trim: the characters must be a string");
        chars = jv_text(arg[0]);
        set = &chars;
    }
    *out = jv_str(jtext_strip(s, set, true, true));
    keep_safe(in, true, out);
    return jbytes(r, s.len - out->len);
}

static bool f_string(jrun *r, jv in, const jv *arg, jv *out)
{
    cairn_str s;
    (void)arg;
    if (!jv_to_text(r, in, &s)) return false;
    *out = jv_str(s);
    return keep_safe(in, true, out);
}

static bool f_safe(jrun *r, jv in, const jv *arg, jv *out)
{
    if (!f_string(r, in, arg, out)) return false;
    out->flag = J_SAFE;
    return true;
}

static bool f_escape(jrun *r, jv in, const jv *arg, jv *out)
{
    cairn_str s;
    buf b;

    (void)arg;
    if (in.t == J_STR && in.flag & J_SAFE) {
        *out = in;
        return true;
    }
    if (!jv_to_text(r, in, &s) || !jbytes(r, s.len)) return false;
    buf_init(&b, MEM_TEXT);
    jtext_escape(s, &b);
    if (!jv_give(r, &b, true, out)) return false;
    out->flag = J_SAFE;
    return true;
}

static bool f_forceescape(jrun *r, jv in, const jv *arg, jv *out)
{
    if (in.t == J_STR) in.flag = 0;
    return f_escape(r, in, arg, out);
}

static bool f_replace(jrun *r, jv in, const jv *arg, jv *out)
{
    cairn_str s, from, to;
    jv n = arg[2];

    if (!jv_to_text(r, in, &s) || !jv_to_text(r, arg[0], &from) || !jv_to_text(r, arg[1], &to))
        return false;
    if (n.t == J_NONE) n.t = J_MISSING;
    if (n.t != J_MISSING && !jv_is_int(n)) return jfail(r, "replace: count must be an integer");
    jv call[3] = {jv_str(from), jv_str(to), n};
    const jfn *method = jmethod_find(J_STR, STR_LIT("replace"));
    return method->fn(r, jv_str(s), call, out);
}

static bool indent_lines(jrun *r, cairn_str s, cairn_str by, bool first, bool blank, buf *b)
{
    size_t pos = 0, n = 0;
    cairn_str line;

    if (first) buf_str(b, by);
    for (; pos <= s.len; n++) {
        if (pos == s.len) { /* the line break that the filter adds ends an empty last line only */
            if (n && !(s.len && jtext_line(str_sub(s, s.len - 1, 1), &(size_t){0}, false, &line) &&
                       !line.len))
                break;
            line = (cairn_str){s.ptr, 0};
            pos++;
        } else {
            jtext_line(s, &pos, false, &line);
        }
        if (n) buf_byte(b, '\n');
        if (n && (blank || line.len)) buf_str(b, by);
        buf_str(b, line);
        if (!jsteps(r, 1 + line.len / 4 + by.len / 16)) return false;
        if (b->len > JINJA_MAX_OUTPUT) return jfail_long(r, "indent");
    }
    return true;
}

static bool f_indent(jrun *r, jv in, const jv *arg, jv *out)
{
    enum { MAX_WIDTH = 10000 };
    jv width = OPT(0, jv_int(4));
    cairn_str by;
    buf b;

    if (in.t == J_UNDEF) return jfail_undef(r, in);
    if (in.t != J_STR) return jfail(r, "indent: expected a string, got %s", jv_type_name(in));
    if (width.t == J_STR) {
        by = jv_text(width);
    } else {
        if (!jv_is_int(width)) return jfail(r, "indent: width must be a number or a string");
        if (jv_as_int(width) > MAX_WIDTH)
            return jfail_as(r, CAIRN_E_LIMIT, "indent: width over %d", MAX_WIDTH);
        size_t n = jv_as_int(width) < 0 ? 0 : (size_t)jv_as_int(width);
        char *z = jalloc(r, n + 1);
        if (!z) return false;
        memset(z, ' ', n);
        by = (cairn_str){z, n};
    }
    buf_init(&b, MEM_TEXT);
    bool ok = indent_lines(r, jv_text(in), by, jv_truth(arg[1]), jv_truth(arg[2]), &b);
    return jv_give(r, &b, ok, out);
}

static bool f_wordcount(jrun *r, jv in, const jv *arg, jv *out)
{
    cairn_str s;
    int64_t n = 0;
    bool inside = false;

    (void)arg;
    if (!jv_to_text(r, in, &s) || !jsteps(r, s.len / 2)) return false;
    for (size_t i = 0; i < s.len;) {
        const size_t k = jtext_word(s.ptr + i, s.len - i);
        n += k && !inside;
        inside = k > 0;
        i += k ? k : jtext_offset(str_sub(s, i, s.len - i), 1);
    }
    *out = jv_int(n);
    return true;
}

static bool f_truncate(jrun *r, jv in, const jv *arg, jv *out)
{
    jv len = OPT(0, jv_int(255)), end = OPT(2, jv_lit("...")), leeway = OPT(3, jv_int(5)), joined;
    if (leeway.t == J_NONE) leeway = jv_int(5);
    if (len.t == J_BIG) len = jv_int(len.u.big->neg ? -1 : INT64_MAX);
    int64_t n_end, n_in;
    if (!jv_is_int(len) || !jv_is_int(leeway)) return jfail(r, "truncate: expected integers");
    const int64_t n = jv_as_int(len);
    if (!jv_len(r, end, &n_end)) return false;
    if (n < n_end || jv_as_int(leeway) < 0)
        return jfail(
            r, "truncate: length or leeway too small; expected the end's length and 0 at least");
    if (!jv_len(r, in, &n_in)) return false;
    if (n_in - jv_as_int(leeway) <= n) { /* whatever has a length */
        *out = in;
        return true;
    }
    if (in.t != J_STR || end.t != J_STR) return jfail(r, "truncate: expected a string");
    cairn_str s = jv_text(in);
    s.len = jtext_offset(s, (size_t)(n - n_end));
    if (!jv_truth(arg[1])) {
        size_t cut = s.len;
        while (cut > 0 && s.ptr[cut - 1] != ' ') cut--;
        if (cut > 0) s.len = cut - 1;
    }
    joined = jv_str(s);
    return jv_binary(r, TK_ADD, joined, end, out);
}

static bool f_center(jrun *r, jv in, const jv *arg, jv *out)
{
    cairn_str s;
    jv call[2] = {OPT(0, jv_int(80)), jv_of(J_MISSING)};
    if (!jv_to_text(r, in, &s)) return false;
    return keep_safe(in, jmethod_find(J_STR, STR_LIT("center"))->fn(r, jv_str(s), call, out), out);
}

static bool f_format(jrun *r, jv in, const jcall *c, jv *out)
{
    cairn_str s;
    jv args;

    if (!jv_to_text(r, in, &s)) return false;
    if (c->n_pos && c->n_kw)
        return jfail(r, "format: positional and keyword arguments together; expected one kind");
    if (c->n_kw) {
        if (!jv_new_dict(r, J_DICT, c->n_kw, &args)) return false;
        for (uint32_t i = 0; i < c->n_kw; i++)
            if (!jdict_put(r, args.u.dict, c->kw_name[i], c->kw[i])) return false;
    } else {
        if (!jv_new_list(r, J_TUPLE, c->n_pos, &args)) return false;
        if (c->n_pos) memcpy(args.u.list->v, c->pos, c->n_pos * sizeof(jv));
    }
    return jformat_percent(r, s, args, out);
}

static void url_quote(cairn_str s, bool query, buf *b)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        bool plain = str_is_digit((char)c) || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
                     strchr("_.-~", c) || (c == '/' && !query);
        if (plain && c)
            buf_byte(b, (char)c);
        else if (c == ' ' && query)
            buf_byte(b, '+');
        else
            buf_printf(b, "%%%02X", c);
    }
}

static bool f_urlencode(jrun *r, jv in, const jv *arg, jv *out)
{
    cairn_str s;
    jiter it;
    jv x;
    int got = 0;
    bool ok = true, pairs = in.t != J_STR && jv_can_iter(in);
    buf b;

    (void)arg;
    if (in.t == J_DICT && !jmethod_find(J_DICT, STR_LIT("items"))->fn(r, in, NULL, &in))
        return false;
    if (!pairs && !jv_to_text(r, in, &s)) return false;
    if (pairs && !jiter_init(r, in, &it)) return false;
    buf_init(&b, MEM_TEXT);
    ok = pairs || jsteps(r, s.len);
    if (!pairs && ok) url_quote(s, false, &b);
    while (pairs && ok && (got = jiter_next(r, &it, &x)) > 0) {
        ok =
            jv_to_list(r, x, J_LIST, &x) && (x.u.list->n == 2 || jfail(r, "urlencode needs pairs"));
        if (b.len) buf_byte(&b, '&');
        for (uint32_t i = 0; ok && i < 2; i++) {
            if (i) buf_byte(&b, '=');
            ok = jv_to_text(r, x.u.list->v[i], &s);
            ok = ok && jsteps(r, s.len);
            if (ok) url_quote(s, true, &b);
        }
    }
    return jv_give(r, &b, ok && got >= 0, out);
}

static bool f_default(jrun *r, jv in, const jv *arg, jv *out)
{
    bool absent = in.t == J_UNDEF || (arg[1].t != J_MISSING && jv_truth(arg[1]) && !jv_truth(in));
    (void)r;
    *out = !absent ? in : arg[0].t == J_MISSING ? jv_lit("") : arg[0];
    return true;
}

static bool f_attr(jrun *r, jv in, const jv *arg, jv *out)
{
    if (in.t == J_UNDEF) return jfail_undef(r, in);
    if (arg[0].t != J_STR) return jfail(r, "attr: the name must be a string");
    if (in.t == J_DICT) { /* no fall back to items */
        const jfn *m = jmethod_find(J_DICT, jv_text(arg[0]));
        if (!m) return jv_undef(r, in, arg[0], out);
    }
    return jv_getattr(r, in, arg[0], NULL, out);
}

const jfn jfilters_text[] = {
    {"upper", f_upper, NULL, ""},
    {"lower", f_lower, NULL, ""},
    {"capitalize", f_capitalize, NULL, ""},
    {"title", f_title, NULL, ""},
    {"trim", f_trim, NULL, "chars?"},
    {"string", f_string, NULL, ""},
    {"safe", f_safe, NULL, ""},
    {"escape", f_escape, NULL, ""},
    {"e", f_escape, NULL, ""},
    {"forceescape", f_forceescape, NULL, ""},
    {"replace", f_replace, NULL, "old new count?"},
    {"indent", f_indent, NULL, "width? first? blank?"},
    {"wordcount", f_wordcount, NULL, ""},
    {"truncate", f_truncate, NULL, "length? killwords? end? leeway?"},
    {"center", f_center, NULL, "width?"},
    {"format", NULL, f_format, NULL},
    {"urlencode", f_urlencode, NULL, ""},
    {"default", f_default, NULL, "default_value? boolean?"},
    {"d", f_default, NULL, "default_value? boolean?"},
    {"attr", f_attr, NULL, "name"},
    {"tojson", jv_tojson, NULL, "ensure_ascii? indent? separators? sort_keys?"},
    {0}};

const jfn *jfilter_find(cairn_str name)
{
    const jfn *const tables[] = {jfilters_text, jfilters_seq,  jfilters_gen,
                                 jfilters_num,  jfilters_html, jfilters_wide};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const jfn *f = tables[i]; f->name; f++)
            if (str_is(name, f->name)) return f;
    return NULL;
}
