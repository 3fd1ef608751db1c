/* The face of the template language: compiles a template into one arena, renders it with an arena
   of the render's own.  Owns the way from JSON to values; a compiled template is never written. */
#include "base/diag.h"
#include "base/utf8.h"
#include "text/jinja_big.h"
#include "text/jinja_run.h"

cairn_status jinja_compile(cairn_str text, const char *where, jinja **out, cairn_diag *dg)
{
    jinja *t = mem_calloc(1, sizeof *t, MEM_TEXT);
    jparse p = {.dg = dg, .where = where};
    jtoken *tok;
    cairn_status st = CAIRN_OK;

    if (!t) return diag_set(dg, CAIRN_E_NOMEM, "%s: a template", where);
    arena_init(&t->a, MEM_TEXT);
    p.a = &t->a;
    if (text.len > JINJA_MAX_TEMPLATE)
        st = diag_set(dg, CAIRN_E_LIMIT, "%s: template of %zu bytes, at most %d are allowed", where,
                      text.len, JINJA_MAX_TEMPLATE);
    else if (!utf8_valid(text))
        st = diag_set(dg, CAIRN_E_CORRUPT, "%s: template is not UTF-8", where);
    if (st != CAIRN_OK) goto out;
    t->where = arena_strdup(&t->a, str_of(where));
    if (!t->where) {
        st = diag_set(dg, CAIRN_E_NOMEM, "%s: a template", where);
        goto out;
    }
    TRY_GOTO(jlex(&p, text, &tok), out);
    p.tok = tok;
    t->root = jparse_template(&p);
    st = t->root ? jresolve(&p, t) : p.st;
out:
    if (st != CAIRN_OK)
        jinja_free(t);
    else
        *out = t;
    return st;
}

void jinja_free(jinja *t)
{
    if (!t) return;
    arena_deinit(&t->a);
    mem_free(t);
}

static bool from_json(jrun *r, json_val v, jv *out);

static bool from_word(jrun *r, uint64_t u, jv *out)
{
    char z[24];
    size_t n = sizeof z;
    for (; u; u /= 10) z[--n] = (char)('0' + u % 10);
    const jbig *x = jbig_read(&r->a, (cairn_str){z + n, sizeof z - n}, 10, false);
    if (x) *out = jbig_value(x);
    return x || jfail_as(r, CAIRN_E_NOMEM, "a long integer");
}

static bool from_long(jrun *r, cairn_str s, jv *out)
{
    const bool neg = s.len && s.ptr[0] == '-';
    if (s.len > JBIG_MAX_DIGITS)
        return jfail_as(r, CAIRN_E_LIMIT, "integer of more than %d digits", JBIG_MAX_DIGITS);
    const jbig *x = jbig_read(&r->a, str_sub(s, neg, s.len - neg), 10, neg);
    if (x) *out = jbig_value(x);
    return x || jfail_as(r, CAIRN_E_NOMEM, "a long integer");
}

static bool from_array(jrun *r, json_val v, jv *out)
{
    json_iter it = json_each(v);
    json_val x;
    uint32_t cap = 0;
    jv e;

    if (!jv_new_list(r, J_LIST, 0, out)) return false;
    while (json_next(&it, &x))
        if (!from_json(r, x, &e) || !jlist_push(r, out, &cap, e)) return false;
    return true;
}

static bool from_object(jrun *r, json_val v, jv *out)
{
    json_iter it = json_each(v);
    json_val x;
    cairn_str key;
    jv e;

    if (!jv_new_dict(r, J_DICT, 0, out)) return false;
    while (json_next_member(&it, &key, &x))
        if (!from_json(r, x, &e) || !jdict_put(r, out->u.dict, jv_str(key), e)) return false;
    return true;
}

/* Depth is the parser's: JSON_MAX_DEPTH. */
static bool from_json(jrun *r, json_val v, jv *out)
{
    cairn_str s;

    switch (json_typeof(v)) {
    case JSON_NONE:
    case JSON_NULL:
        *out = jv_none();
        return true;
    case JSON_BOOL:
        *out = jv_bool(json_bool(v, false));
        return true;
    case JSON_INT:
        *out = jv_int(json_int(v, 0));
        return true;
    case JSON_UINT:
        return from_word(r, json_uint(v, 0), out);
    case JSON_FLOAT:
        if (json_digits(v).len) return from_long(r, json_digits(v), out);
        *out = jv_float(json_num(v, 0));
        return true;
    case JSON_STR:
        s = json_str(v);
        if (s.len > INT32_MAX) /* an image in base64 may be longer than every output */
            return jfail(r, "found a string of %zu bytes; expected at most %d", s.len, INT32_MAX);
        r->max_steps += s.len; /* work is bounded by what was sent */
        *out = jv_str(s.ptr ? s : STR_LIT(""));
        return true;
    case JSON_ARR:
        return from_array(r, v, out);
    case JSON_OBJ:
        return from_object(r, v, out);
    }
    return false;
}

static bool from_var(jrun *r, const jinja_var *v, jv *out)
{
    if (json_typeof(v->value) != JSON_NONE) return from_json(r, v->value, out);
    if (v->text.ptr)
        *out = jv_str(v->text);
    else
        *out = v->is_none ? jv_none() : jv_bool(v->flag);
    return true;
}

/* What each name means that the template looks up: a variable, else a global. */
static bool fill_context(jrun *r, const jinja_var *vars, size_t n_vars)
{
    if (!(r->ctx = jalloc(r, (r->t->n_ctx + 1) * sizeof *r->ctx))) return false;
    for (uint32_t i = 0; i < r->t->n_ctx; i++) {
        const jfn *global = jglobal_find(r->t->ctx_names[i]);
        size_t k = n_vars;
        while (k > 0 && !str_eq(vars[k - 1].name, r->t->ctx_names[i])) k--;
        r->ctx[i] = global ? (jv){.t = J_FUNC, .u.fn = global} : jv_of(J_MISSING);
        if (k > 0 && !from_var(r, &vars[k - 1], &r->ctx[i])) return false;
    }
    return true;
}

cairn_status jinja_render(const jinja *t, const jinja_var *vars, size_t n_vars, uint32_t max_steps,
                          buf *out, buf *spans, cairn_diag *dg)
{
    jrun r = {.t = t,
              .out = out,
              .out_base = out->len,
              .dg = dg,
              .spans = spans,
              .yielded = SIZE_MAX,
              .line = 1,
              .max_steps = max_steps && max_steps < JINJA_MAX_STEPS ? max_steps : JINJA_MAX_STEPS};

    arena_init(&r.a, MEM_TEXT);
    if (fill_context(&r, vars, n_vars) && (r.act = jact_new(&r, NULL, t->top.n_slots))) {
        jscope_enter(&r, &t->top.scope);
        jexec(&r, t->root);
    }
    if (r.st == CAIRN_OK && spans && buf_status(spans) != CAIRN_OK)
        jfail_as(&r, CAIRN_E_NOMEM, "spans of generation");
    if (r.st != CAIRN_OK && buf_status(out) == CAIRN_OK) buf_cut(out, r.out_base);
    arena_deinit(&r.a);
    return r.st;
}
