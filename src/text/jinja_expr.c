/* Expressions: tokens to nodes, by recursive descent with Jinja2's precedence (from loose to tight:
   if-else, or, and, not, comparisons, + -, ~, * / // %, **, terms); tuples and targets.  What an operator
   stands between is jinja_term.c's.  Depth is limited by jparse_enter. */
#include "text/jinja_ast.h"

static jnode *binary(jparse *p, int level);

/* a ~ b ~ …: one node; the first "~" has been taken. */
static jnode *concat(jparse *p, int32_t line, jnode *first)
{
    jnode *n = jnode_new(p, N_CONCAT, line);
    jnodes l = {0};

    if (!n || !jnodes_push(p, &l, first)) return NULL;
    do {
        if (!jnodes_push(p, &l, binary(p, 2))) return NULL;
    } while (jskip(p, TK_TILDE));
    n->v = l.v;
    n->n = l.n;
    return n;
}

/* One level of left-associative binary operators. */
static jnode *binary(jparse *p, int level)
{
    static const uint8_t ops[][5] = {
        {TK_ADD, TK_SUB}, {TK_TILDE}, {TK_MUL, TK_DIV, TK_FLOORDIV, TK_MOD}, {TK_POW}};
    if (level == 4) return jparse_unary(p, true);
    int32_t line = jcur(p)->line;
    jnode *n = binary(p, level + 1);
    while (n) {
        int t = jcur(p)->type;
        if (t == TK_EOF || !memchr(ops[level], t, sizeof ops[level])) break;
        p->pos++;
        if (t == TK_TILDE) {
            n = concat(p, line, n);
            continue;
        }
        jnode *right = binary(p, level + 1);
        n = right ? jnode_pair(p, N_BINARY, line, n, right) : NULL;
        if (n) n->op = (uint8_t)t;
    }
    return n;
}

static jnode *compare(jparse *p)
{
    int32_t line = jcur(p)->line;
    jnode *n = binary(p, 0), *c;
    jnodes l = {0};

    while (n) {
        const jtoken *t = jcur(p);
        int op = 0;
        if (t->type >= TK_EQ && t->type <= TK_LE)
            op = t->type;
        else if (jtok_is_name(t, "in"))
            op = TK_IN;
        else if (jtok_is_name(t, "not") && jtok_is_name(t + 1, "in"))
            op = TK_NOT_IN;
        else
            break;
        p->pos += op == TK_NOT_IN ? 2 : 1;
        jnode *right = binary(p, 0);
        jnode *o = right ? jnode_pair(p, N_OPERAND, t->line, right, NULL) : NULL;
        if (!jnodes_push(p, &l, o)) return NULL;
        o->op = (uint8_t)op;
    }
    if (!n || !l.n) return n;
    c = jnode_pair(p, N_COMPARE, line, n, NULL);
    if (!c) return NULL;
    c->v = l.v;
    c->n = l.n;
    return c;
}

static jnode *parse_not(jparse *p)
{
    const jtoken *t = jcur(p);
    if (!jtok_is_name(t, "not")) return compare(p);
    if (!jparse_enter(p)) return NULL;
    p->pos++;
    jnode *a = parse_not(p);
    p->depth--;
    return a ? jnode_pair(p, N_NOT, t->line, a, NULL) : NULL;
}

static jnode *logic(jparse *p, bool is_or)
{
    int32_t line = jcur(p)->line;
    jnode *n = is_or ? logic(p, false) : parse_not(p);
    while (n && jskip_name(p, is_or ? "or" : "and")) {
        jnode *right = is_or ? logic(p, false) : parse_not(p);
        n = right ? jnode_pair(p, is_or ? N_OR : N_AND, line, n, right) : NULL;
    }
    return n;
}

static jnode *cond_expr(jparse *p)
{
    int32_t line = jcur(p)->line;
    jnode *n = logic(p, true);
    while (n && jskip_name(p, "if")) {
        jnode *test_node = logic(p, true);
        jnode *c = test_node ? jnode_pair(p, N_COND, line, test_node, n) : NULL;
        if (!c) return NULL;
        if (jskip_name(p, "else") && !(c->c = jparse_expr(p))) return NULL;
        n = c;
    }
    return n;
}

jnode *jparse_expr(jparse *p)
{
    if (!jparse_enter(p)) return NULL;
    jnode *n = cond_expr(p);
    p->depth--;
    return n;
}

static jnode *tuple_item(jparse *p, int flags)
{
    if (flags & TUPLE_TARGET) return jparse_primary(p, (flags & TUPLE_NS) != 0);
    if (!(flags & TUPLE_NO_COND)) return jparse_expr(p);
    if (!jparse_enter(p)) return NULL;
    jnode *n = logic(p, true);
    p->depth--;
    return n;
}

/* One expression, or several with commas between: a tuple. */
jnode *jparse_tuple(jparse *p, int flags, const char *end_name)
{
    int32_t line = jcur(p)->line;
    jnodes l = {0};
    bool tuple = false;

    for (;;) {
        if (l.n && !jexpect(p, TK_COMMA)) return NULL;
        int t = jcur(p)->type;
        if (t == TK_VAR_END || t == TK_BLOCK_END || t == TK_RPAREN) break;
        if (end_name && jtok_is_name(jcur(p), end_name)) break;
        if (!jnodes_push(p, &l, tuple_item(p, flags))) return NULL;
        if (jcur(p)->type != TK_COMMA) break;
        tuple = true;
    }
    if (!tuple && l.n) return l.v[0];
    if (!tuple && !(flags & TUPLE_PARENS))
        return jparse_fail(p, CAIRN_E_CORRUPT, jcur(p)->line, "expected an expression, got '%s'",
                           jtoken_name(jcur(p)->type));
    jnode *n = jnode_new(p, N_TUPLE, line);
    if (!n) return NULL;
    n->v = l.v;
    n->n = l.n;
    return n;
}

static bool can_assign(const jnode *n)
{
    if (n->kind == N_TUPLE) {
        for (uint32_t i = 0; i < n->n; i++)
            if (!can_assign(n->v[i])) return false;
        return true;
    }
    return n->kind == N_NAME || n->kind == N_NSREF;
}

jnode *jparse_target(jparse *p, int flags, const char *end_name)
{
    jnode *n = jparse_tuple(p, TUPLE_TARGET | flags, end_name);
    if (n && !can_assign(n))
        return jparse_fail(p, CAIRN_E_CORRUPT, n->line,
                           "cannot assign to this expression; expected a name");
    return n;
}
