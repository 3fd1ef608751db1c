/* The tojson filter: Python's json.dumps with ensure_ascii, indent, separators and sort_keys. */
#include <math.h>

#include "base/utf8.h"
#include "text/jinja_big.h"
#include "text/jinja_run.h"

typedef struct dumper {
    buf b;
    cairn_str indent, item_sep, key_sep;
    bool ascii, pretty, sort;
} dumper;

/* A UTF-16 unit as \\uXXXX. */
static void put_unit(uint32_t unit, buf *b)
{
    static const char hex[] = "0123456789abcdef";
    const char z[6] = {
        '\\', 'u', hex[unit >> 12], hex[unit >> 8 & 15], hex[unit >> 4 & 15], hex[unit & 15]};
    buf_put(b, z, sizeof z);
}

static void json_str_out(dumper *d, cairn_str s)
{
    buf_byte(&d->b, '"');
    for (size_t i = 0; i < s.len;) {
        uint32_t cp;
        unsigned char c = (unsigned char)s.ptr[i];
        size_t run = i;
        while (run < s.len && (unsigned char)s.ptr[run] >= 0x20 && s.ptr[run] != '"' &&
               s.ptr[run] != '\\' && (!d->ascii || (unsigned char)s.ptr[run] < 0x7f))
            run++;
        if (run > i) {
            buf_put(&d->b, s.ptr + i, run - i);
            i = run;
            continue;
        }
        int k = c < 0x80 ? (cp = c, 1) : utf8_decode(s.ptr + i, s.len - i, &cp);
        if (cp == '"')
            buf_puts(&d->b, "\\\"");
        else if (cp == '\\')
            buf_puts(&d->b, "\\\\");
        else if (cp == '\n')
            buf_puts(&d->b, "\\n");
        else if (cp == '\r')
            buf_puts(&d->b, "\\r");
        else if (cp == '\t')
            buf_puts(&d->b, "\\t");
        else if (cp == '\b')
            buf_puts(&d->b, "\\b");
        else if (cp == '\f')
            buf_puts(&d->b, "\\f");
        else if (cp < 0x10000)
            put_unit(cp, &d->b);
        else {
            put_unit(0xd7c0 + (cp >> 10), &d->b);
            put_unit(0xdc00 | (cp & 0x3ff), &d->b);
        }
        i += (size_t)(k > 0 ? k : 1);
    }
    buf_byte(&d->b, '"');
}

static void json_float(dumper *d, double x)
{
    if (isnan(x))
        buf_puts(&d->b, "NaN");
    else if (isinf(x))
        buf_puts(&d->b, x < 0 ? "-Infinity" : "Infinity");
    else
        jnum_repr(x, &d->b);
}

static void new_line(dumper *d, uint32_t depth)
{
    if (!d->pretty) return;
    buf_byte(&d->b, '\n');
    for (uint32_t i = 0; i < depth; i++) buf_str(&d->b, d->indent);
}

static bool dump(jrun *r, dumper *d, jv v, uint32_t depth);

static bool dump_key(jrun *r, dumper *d, jv k)
{
    switch (k.t) {
    case J_STR:
        json_str_out(d, jv_text(k));
        return true;
    case J_INT:
        buf_printf(&d->b, "\"%lld\"", (long long)k.u.i);
        return true;
    case J_BIG:
        buf_byte(&d->b, '"');
        if (!jv_repr(r, k, &d->b, 0)) return false;
        buf_byte(&d->b, '"');
        return true;
    case J_BOOL:
        buf_puts(&d->b, k.u.b ? "\"true\"" : "\"false\"");
        return true;
    case J_NONE:
        buf_puts(&d->b, "\"null\"");
        return true;
    case J_FLOAT:
        buf_byte(&d->b, '"');
        json_float(d, k.u.f);
        buf_byte(&d->b, '"');
        return true;
    default:
        return jfail(r, "keys must be str, int, float, bool or None, not %s", jv_type_name(k));
    }
}

/* Indices of the members by key; insertion sort keeps equal keys in place, objects are small. */
static bool sorted(jrun *r, const jdict *o, uint32_t *order)
{
    for (uint32_t i = 0; i < o->n; i++) {
        uint32_t k = i;
        for (; k > 0; k--) {
            bool less;
            if (!jsteps(r, 1)) return false;
            if (!jv_cmp(r, o->kv[i].k, o->kv[order[k - 1]].k, TK_LT, &less)) return false;
            if (!less) break;
            order[k] = order[k - 1];
        }
        order[k] = i;
    }
    return true;
}

static bool dump_obj(jrun *r, dumper *d, const jdict *o, uint32_t depth)
{
    uint32_t *order = NULL;

    if (!o->n) {
        buf_puts(&d->b, "{}");
        return true;
    }
    if (d->sort && (!(order = jalloc(r, o->n * sizeof *order)) || !sorted(r, o, order)))
        return false;
    buf_byte(&d->b, '{');
    for (uint32_t i = 0; i < o->n; i++) {
        const jpair *p = &o->kv[order ? order[i] : i];
        if (i) buf_str(&d->b, d->item_sep);
        new_line(d, depth + 1);
        if (!dump_key(r, d, p->k)) return false;
        buf_str(&d->b, d->key_sep);
        if (!dump(r, d, p->v, depth + 1)) return false;
    }
    new_line(d, depth);
    buf_byte(&d->b, '}');
    return true;
}

static bool dump_arr(jrun *r, dumper *d, const jlist *l, uint32_t depth)
{
    if (!l->n) {
        buf_puts(&d->b, "[]");
        return true;
    }
    buf_byte(&d->b, '[');
    for (uint32_t i = 0; i < l->n; i++) {
        if (i) buf_str(&d->b, d->item_sep);
        new_line(d, depth + 1);
        if (!dump(r, d, l->v[i], depth + 1)) return false;
    }
    new_line(d, depth);
    buf_byte(&d->b, ']');
    return true;
}

static bool dump(jrun *r, dumper *d, jv v, uint32_t depth)
{
    enum { MAX_DEPTH = 500 };
    if (depth > MAX_DEPTH)
        return jfail_as(r, CAIRN_E_LIMIT, "value nested more than %d deep", MAX_DEPTH);
    if (d->b.len > JINJA_MAX_OUTPUT) return jfail_long(r, "tojson");
    if (!jsteps(r, 1)) return false;
    switch (v.t) {
    case J_NONE:
        buf_puts(&d->b, "null");
        return true;
    case J_BOOL:
        buf_puts(&d->b, v.u.b ? "true" : "false");
        return true;
    case J_INT:
        buf_printf(&d->b, "%lld", (long long)v.u.i);
        return true;
    case J_BIG:
        return jv_repr(r, v, &d->b, 0);
    case J_FLOAT:
        json_float(d, v.u.f);
        return true;
    case J_STR:
        json_str_out(d, jv_text(v));
        return jsteps(r, v.len / (d->ascii ? 1 : 4));
    case J_LIST:
    case J_TUPLE:
        return dump_arr(r, d, v.u.list, depth);
    case J_DICT:
        return dump_obj(r, d, v.u.dict, depth);
    default:
        return jfail(r,
                     "Object of type %s is not JSON serializable; expected a list, mapping, text, "
                     "number or none",
                     jv_type_name(v));
    }
}

static bool options(jrun *r, dumper *d, const jv *arg)
{
    jv indent = arg[1], sep = arg[2], part;

    d->ascii = jv_truth(arg[0]);
    d->sort = jv_truth(arg[3]);
    d->pretty = indent.t != J_MISSING && indent.t != J_NONE;
    d->item_sep = d->pretty ? STR_LIT(",") : STR_LIT(", ");
    d->key_sep = STR_LIT(": ");
    if (d->pretty && indent.t == J_STR) {
        d->indent = jv_text(indent);
    } else if (d->pretty) {
        enum { MAX_INDENT = 1000 };
        if (!jv_is_int(indent)) return jfail(r, "tojson: indent must be a number or a string");
        int64_t n = jv_as_int(indent);
        if (n > MAX_INDENT)
            return jfail_as(r, CAIRN_E_LIMIT, "tojson: indent of more than %d", MAX_INDENT);
        if (n < 0) n = 0;
        char *z = jalloc(r, (size_t)n + 1);
        if (!z) return false;
        memset(z, ' ', (size_t)n);
        d->indent = (cairn_str){z, (size_t)n};
    }
    if (sep.t == J_MISSING || sep.t == J_NONE) return true;
    if (!jv_to_list(r, sep, J_LIST, &part)) return false;
    if (part.u.list->n != 2 || part.u.list->v[0].t != J_STR || part.u.list->v[1].t != J_STR)
        return jfail(r, "tojson: separators must be two strings");
    d->item_sep = jv_text(part.u.list->v[0]);
    d->key_sep = jv_text(part.u.list->v[1]);
    return true;
}

bool jv_tojson(jrun *r, jv v, const jv *arg, jv *out)
{
    dumper d = {0};

    if (!options(r, &d, arg)) return false;
    buf_init(&d.b, MEM_TEXT);
    bool ok = dump(r, &d, v, 0);
    if (ok && buf_status(&d.b) != CAIRN_OK) ok = jfail_as(r, CAIRN_E_NOMEM, "tojson");
    ok = ok && jv_copy(r, buf_view(&d.b), out);
    buf_deinit(&d.b);
    return ok;
}
