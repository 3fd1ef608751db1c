/* Terms: what stands between the operators of an expression, as Jinja2 reads it.  A constant, name, list,
   dict or bracketed expression; then any number of attributes, subscripts, slices and calls; then
   filters and tests.  A sign binds closer than a filter. */
#include "text/jinja_ast.h"

static void *unexpected(jparse *p, const jtoken *t)
{
    if (t->type == TK_NAME)
        return jparse_fail(p, CAIRN_E_CORRUPT, t->line, "unexpected '%.*s'; expected a value",
                           STR_ARG(jv_text(t->val)));
    return jparse_fail(p, CAIRN_E_CORRUPT, t->line, "unexpected '%s'; expected a value",
                       jtoken_name(t->type));
}

jnode *jparse_name(jparse *p)
{
    const jtoken *t = jexpect(p, TK_NAME);
    jnode *n = t ? jnode_new(p, N_NAME, t->line) : NULL;
    if (n) n->val = t->val;
    return n;
}

static jnode *name_or_constant(jparse *p, bool with_ns)
{
    const jtoken *t = jcur(p);
    jnode *n = jnode_new(p, N_CONST, t->line);

    if (!n) return NULL;
    p->pos++;
    if (jtok_is_name(t, "true") || jtok_is_name(t, "True")) {
        n->val = jv_bool(true);
    } else if (jtok_is_name(t, "false") || jtok_is_name(t, "False")) {
        n->val = jv_bool(false);
    } else if (jtok_is_name(t, "none") || jtok_is_name(t, "None")) {
        n->val = jv_none();
    } else {
        n->kind = N_NAME;
        n->val = t->val;
        if (!with_ns || !jskip(p, TK_DOT)) return n;
        const jtoken *attr = jexpect(p, TK_NAME);
        jnode *ns = attr ? jnode_pair(p, N_NSREF, t->line, n, NULL) : NULL;
        if (ns) ns->val = attr->val;
        return ns;
    }
    return n;
}

/* Adjacent strings are one. */
static jnode *strings(jparse *p)
{
    const jtoken *t = jcur(p);
    jnode *n = jnode_new(p, N_CONST, t->line);
    size_t len = 0, i = p->pos;
    char *s;

    if (!n) return NULL;
    for (; p->tok[i].type == TK_STRING; i++) len += p->tok[i].val.len;
    n->val = t->val;
    if (i > p->pos + 1) {
        s = jparse_alloc(p, len + 1);
        if (!s) return NULL;
        n->val = jv_str((cairn_str){s, len});
        for (size_t k = p->pos; k < i; k++) {
            if (p->tok[k].val.len) memcpy(s, p->tok[k].val.u.s, p->tok[k].val.len);
            s += p->tok[k].val.len;
        }
    }
    p->pos = i;
    return n;
}

/* [ … ] or { … }. */
static jnode *brackets(jparse *p)
{
    bool dict = jcur(p)->type == TK_LBRACE;
    int end = dict ? TK_RBRACE : TK_RBRACKET;
    jnode *n = jnode_new(p, dict ? N_DICT : N_LIST, jcur(p)->line);
    jnodes l = {0};

    if (!n) return NULL;
    p->pos++;
    while (jcur(p)->type != end) {
        if (l.n && !jexpect(p, TK_COMMA)) return NULL;
        if (jcur(p)->type == end) break;
        if (!jnodes_push(p, &l, jparse_expr(p))) return NULL;
        if (dict && (!jexpect(p, TK_COLON) || !jnodes_push(p, &l, jparse_expr(p)))) return NULL;
    }
    p->pos++;
    n->v = l.v;
    n->n = l.n;
    return n;
}

jnode *jparse_primary(jparse *p, bool with_ns)
{
    const jtoken *t = jcur(p);
    jnode *n;

    switch (t->type) {
    case TK_NAME:
        return name_or_constant(p, with_ns);
    case TK_STRING:
        return strings(p);
    case TK_INT:
    case TK_FLOAT:
        n = jnode_new(p, N_CONST, t->line);
        if (n) n->val = t->val;
        p->pos++;
        return n;
    case TK_LPAREN:
        p->pos++;
        n = jparse_tuple(p, TUPLE_PARENS, NULL);
        return n && jexpect(p, TK_RPAREN) ? n : NULL;
    case TK_LBRACKET:
    case TK_LBRACE:
        return brackets(p);
    default:
        return unexpected(p, t);
    }
}

static bool call_arg(jparse *p, jnodes *pos, jnodes *kw, jnodes *names, jargs *a)
{
    const jtoken *t = jcur(p);
    bool ok = !a->dyn_kw;

    if (t->type == TK_MUL || t->type == TK_POW) {
        p->pos++;
        jnode **dyn = t->type == TK_MUL ? &a->dyn_pos : &a->dyn_kw;
        if (ok && !*dyn) return (*dyn = jparse_expr(p)) != NULL;
    } else if (t->type == TK_NAME && p->tok[p->pos + 1].type == TK_ASSIGN) {
        jnode *name = jparse_name(p);
        p->pos++;
        if (ok) return jnodes_push(p, names, name) && jnodes_push(p, kw, jparse_expr(p));
    } else if (ok && !a->dyn_pos && !kw->n) {
        return jnodes_push(p, pos, jparse_expr(p));
    }
    jparse_fail(p, CAIRN_E_CORRUPT, t->line,
                "arguments in an order that is not allowed; expected keywords behind the others");
    return false;
}

static jargs *call_args(jparse *p)
{
    jargs *a = jparse_alloc(p, sizeof *a);
    jnodes pos = {0}, kw = {0}, names = {0};
    bool first = true;

    if (!a || !jexpect(p, TK_LPAREN)) return NULL;
    while (jcur(p)->type != TK_RPAREN) {
        if (!first) {
            if (!jexpect(p, TK_COMMA)) return NULL;
            if (jcur(p)->type == TK_RPAREN) break;
        }
        first = false;
        if (!call_arg(p, &pos, &kw, &names, a)) return NULL;
    }
    p->pos++;
    a->pos = pos.v;
    a->n_pos = pos.n;
    a->kw = kw.v;
    a->n_kw = kw.n;
    if (kw.n) {
        a->kw_name = jparse_alloc(p, kw.n * sizeof *a->kw_name);
        if (!a->kw_name) return NULL;
        for (uint32_t i = 0; i < kw.n; i++) {
            a->kw_name[i] = names.v[i]->val;
            for (uint32_t k = 0; k < i; k++)
                if (str_eq(jv_text(a->kw_name[k]), jv_text(a->kw_name[i])))
                    return jparse_fail(p, CAIRN_E_CORRUPT, names.v[i]->line,
                                       "argument '%.*s' is given twice; expected once",
                                       STR_ARG(jv_text(a->kw_name[i])));
        }
    }
    return a;
}

static jnode *call(jparse *p, jnode *on)
{
    jnode *n = jnode_pair(p, N_CALL, jcur(p)->line, on, NULL);
    return n && (n->x.args = call_args(p)) ? n : NULL;
}

static jnode *slice_or_expr(jparse *p)
{
    jnode *n = jnode_new(p, N_SLICE, jcur(p)->line);
    jnode **part[3];
    int k = 0;

    if (!n) return NULL;
    part[0] = &n->a, part[1] = &n->b, part[2] = &n->c;
    if (jcur(p)->type != TK_COLON) {
        n->a = jparse_expr(p);
        if (!n->a || jcur(p)->type != TK_COLON) return n->a;
    }
    while (k < 2 && jskip(p, TK_COLON)) {
        int t = jcur(p)->type;
        k++;
        if (t == TK_COLON || t == TK_RBRACKET || t == TK_COMMA) continue;
        if (!(*part[k] = jparse_expr(p))) return NULL;
    }
    return n;
}

static jnode *subscript(jparse *p, jnode *on)
{
    jnode *n = jnode_pair(p, N_GETITEM, jcur(p)->line, on, NULL);
    jnodes l = {0};

    if (!n) return NULL;
    p->pos++;
    while (jcur(p)->type != TK_RBRACKET) {
        if (l.n && !jexpect(p, TK_COMMA)) return NULL;
        if (!jnodes_push(p, &l, slice_or_expr(p))) return NULL;
    }
    p->pos++;
    if (l.n == 1) {
        n->b = l.v[0];
        return n;
    }
    n->b = jnode_new(p, N_TUPLE, n->line);
    if (!n->b) return NULL;
    n->b->v = l.v;
    n->b->n = l.n;
    for (uint32_t i = 0; i < l.n; i++)
        if (l.v[i]->kind == N_SLICE)
            return jparse_fail(p, CAIRN_E_UNSUPPORTED, n->line,
                               "a slice among other subscripts; expected it alone");
    return n;
}

static jnode *attribute(jparse *p, jnode *on)
{
    static const uint8_t types[] = {J_STR, J_LIST, J_DICT, J_TUPLE};
    jnode *n = jnode_pair(p, N_GETATTR, jcur(p)->line, on, NULL);
    const jtoken *t = &p->tok[p->pos + 1];
    const jfn **known;

    if (!n) return NULL;
    p->pos += 2;
    if (t->type == TK_INT) {
        n->kind = N_GETITEM;
        n->b = jnode_new(p, N_CONST, t->line);
        if (n->b) n->b->val = t->val;
        return n->b ? n : NULL;
    }
    if (t->type != TK_NAME)
        return jparse_fail(p, CAIRN_E_CORRUPT, t->line,
                           "expected a name or number after '.', got '%s'", jtoken_name(t->type));
    n->val = t->val;
    known = jparse_alloc(p, sizeof types * sizeof *known);
    if (!known) return NULL;
    for (size_t i = 0; i < sizeof types; i++) known[i] = jmethod_find(types[i], jv_text(t->val));
    n->x.known = known;
    return n;
}

static jnode *parse_postfix(jparse *p, jnode *n)
{
    while (n) {
        int t = jcur(p)->type;
        if (t == TK_DOT)
            n = attribute(p, n);
        else if (t == TK_LBRACKET)
            n = subscript(p, n);
        else if (t == TK_LPAREN)
            n = call(p, n);
        else
            break;
    }
    return n;
}

/* "name" or "name.name": dotted filter names exist in the grammar only. */
static jnode *filter_name(jparse *p, int kind, jnode *on)
{
    const jtoken *t = jexpect(p, TK_NAME);
    jnode *n = t ? jnode_pair(p, kind, t->line, on, NULL) : NULL;

    if (!n) return NULL;
    n->val = t->val;
    n->fn = kind == N_FILTER ? jfilter_find(jv_text(t->val)) : jtest_find(jv_text(t->val));
    while (jskip(p, TK_DOT)) {
        if (!jexpect(p, TK_NAME)) return NULL;
        n->fn = NULL;
    }
    return n;
}

jnode *jparse_filters(jparse *p, jnode *on, bool inline_first)
{
    while (inline_first || jcur(p)->type == TK_PIPE) {
        if (!inline_first) p->pos++;
        inline_first = false;
        on = filter_name(p, N_FILTER, on);
        if (!on) return NULL;
        on->x.args = jcur(p)->type == TK_LPAREN ? call_args(p) : jparse_alloc(p, sizeof(jargs));
        if (!on->x.args) return NULL;
    }
    return on;
}

static jnode *test(jparse *p, jnode *on)
{
    int32_t line = jcur(p)->line;
    p->pos++; /* "is" */
    bool negated = jskip_name(p, "not");
    jnode *n = filter_name(p, N_TEST, on), *arg;
    const jtoken *t = jcur(p);

    if (!n) return NULL;
    if (t->type == TK_LPAREN) {
        n->x.args = call_args(p);
        if (!n->x.args) return NULL;
    } else {
        n->x.args = jparse_alloc(p, sizeof(jargs));
        if (!n->x.args) return NULL;
        bool starts = t->type == TK_NAME || t->type == TK_STRING || t->type == TK_INT ||
                      t->type == TK_FLOAT || t->type == TK_LBRACKET || t->type == TK_LBRACE;
        if (starts && !jtok_is_name(t, "else") && !jtok_is_name(t, "or") &&
            !jtok_is_name(t, "and")) {
            if (jtok_is_name(t, "is"))
                return jparse_fail(p, CAIRN_E_CORRUPT, t->line,
                                   "two tests in a row with 'is'; expected one, or brackets");
            arg = parse_postfix(p, jparse_primary(p, false));
            n->x.args->pos = jparse_alloc(p, sizeof(jnode *));
            if (!arg || !n->x.args->pos) return NULL;
            n->x.args->pos[0] = arg;
            n->x.args->n_pos = 1;
        }
    }
    return negated ? jnode_pair(p, N_NOT, line, n, NULL) : n;
}

static jnode *filter_expr(jparse *p, jnode *n)
{
    while (n) {
        const jtoken *t = jcur(p);
        if (t->type == TK_PIPE)
            n = jparse_filters(p, n, false);
        else if (jtok_is_name(t, "is"))
            n = test(p, n);
        else if (t->type == TK_LPAREN)
            n = call(p, n);
        else
            break;
    }
    return n;
}

jnode *jparse_unary(jparse *p, bool with_filter)
{
    const jtoken *t = jcur(p);
    jnode *n;

    if (t->type == TK_SUB || t->type == TK_ADD) {
        if (!jparse_enter(p)) return NULL;
        p->pos++;
        n = jnode_pair(p, N_UNARY, t->line, jparse_unary(p, false), NULL);
        p->depth--;
        if (!n || !n->a) return NULL;
        n->op = t->type;
    } else {
        n = jparse_primary(p, false);
    }
    n = parse_postfix(p, n);
    return with_filter && n ? filter_expr(p, n) : n;
}
