/* Statements: tags to nodes, and what both halves of the parser share (errors, token tests, node
   lists).  Expressions are jinja_expr.c's; terms jinja_term.c's; names get their places in jinja_scope.c and
   jinja_place.c. */
#include <stdarg.h>
#include <stdio.h>

#include "base/diag.h"
#include "text/jinja_ast.h"

void *jparse_fail(jparse *p, cairn_status st, int32_t line, const char *fmt, ...)
{
    char msg[400];
    va_list ap;

    if (p->st != CAIRN_OK) return NULL;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    p->st = diag_set(p->dg, st, "%s, line %d: %s", p->where, (int)line, msg);
    return NULL;
}

void *jparse_alloc(jparse *p, size_t size)
{
    void *m = arena_calloc(p->a, 1, size);
    if (!m) jparse_fail(p, CAIRN_E_NOMEM, 0, "%zu bytes", size);
    return m;
}

jnode *jnode_new(jparse *p, int kind, int32_t line)
{
    jnode *n = jparse_alloc(p, sizeof *n);
    if (!n) return NULL;
    n->kind = (uint8_t)kind;
    n->line = line;
    return n;
}

bool jnodes_push(jparse *p, jnodes *l, jnode *n)
{
    if (!n) return false;
    if (l->n == l->cap) {
        uint32_t cap = l->cap ? l->cap * 2 : 4;
        jnode **v = jparse_alloc(p, cap * sizeof(jnode *));
        if (!v) return false;
        if (l->n) memcpy(v, l->v, l->n * sizeof(jnode *));
        l->v = v;
        l->cap = cap;
    }
    l->v[l->n++] = n;
    return true;
}

jnode *jnode_pair(jparse *p, int kind, int32_t line, jnode *a, jnode *b)
{
    jnode *n = jnode_new(p, kind, line);
    if (!n) return NULL;
    n->a = a;
    n->b = b;
    return n;
}

bool jparse_enter(jparse *p)
{
    if (++p->depth <= JINJA_MAX_NESTING) return true;
    jparse_fail(p, CAIRN_E_LIMIT, jcur(p)->line, "nested more than %d deep", JINJA_MAX_NESTING);
    return false;
}

bool jtok_is_name(const jtoken *t, const char *name)
{
    return t->type == TK_NAME && str_is(jv_text(t->val), name);
}

bool jskip(jparse *p, int type)
{
    if (jcur(p)->type != type) return false;
    p->pos++;
    return true;
}

bool jskip_name(jparse *p, const char *name)
{
    if (!jtok_is_name(jcur(p), name)) return false;
    p->pos++;
    return true;
}

const jtoken *jexpect(jparse *p, int type)
{
    const jtoken *t = jcur(p);
    if (t->type == type) {
        p->pos++;
        return t;
    }
    if (t->type == TK_NAME)
        return jparse_fail(p, CAIRN_E_CORRUPT, t->line, "expected '%s', got '%.*s'",
                           jtoken_name(type), STR_ARG(jv_text(t->val)));
    return jparse_fail(p, CAIRN_E_CORRUPT, t->line, "expected '%s', got '%s'", jtoken_name(type),
                       jtoken_name(t->type));
}

static bool expect_name(jparse *p, const char *name)
{
    const jtoken *t = jcur(p);
    if (jskip_name(p, name)) return true;
    bool is_name = t->type == TK_NAME;
    cairn_str got = is_name ? jv_text(t->val) : str_of(jtoken_name(t->type));
    jparse_fail(p, CAIRN_E_CORRUPT, t->line, "expected '%s', got '%.*s'", name, STR_ARG(got));
    return false;
}

static jnode *statement(jparse *p);

/* Text and tags up to a tag named in `ends` (NULL-terminated; its name is the current token then),
   or to the end of the template where `ends` is NULL. */
static jnode *body(jparse *p, const char *const *ends)
{
    int32_t line = jcur(p)->line;
    jnodes l = {0};

    for (;;) {
        const jtoken *t = jcur(p);
        if (t->type == TK_EOF) {
            if (!ends) break;
            return jparse_fail(p, CAIRN_E_CORRUPT, t->line,
                               "end of template, expected the tag '%s' (block begun on line %d)",
                               ends[0], (int)line);
        }
        p->pos++;
        jnode *n;
        if (t->type == TK_DATA) {
            n = jnode_new(p, N_DATA, t->line);
            if (n) n->val = t->val;
        } else if (t->type == TK_VAR_BEGIN) {
            n = jnode_new(p, N_PRINT, t->line);
            if (n && (!(n->a = jparse_tuple(p, 0, NULL)) || !jexpect(p, TK_VAR_END))) n = NULL;
        } else {
            for (size_t i = 0; ends && ends[i]; i++)
                if (jtok_is_name(jcur(p), ends[i])) goto done;
            n = statement(p);
            if (n && !jexpect(p, TK_BLOCK_END)) n = NULL;
        }
        if (!jnodes_push(p, &l, n)) return NULL;
    }
done:;
    jnode *b = jnode_new(p, N_BODY, line);
    if (!b) return NULL;
    b->v = l.v;
    b->n = l.n;
    return b;
}

/* The rest of an opening tag, then the body. */
static jnode *block_body(jparse *p, const char *const *ends)
{
    jskip(p, TK_COLON);
    return jexpect(p, TK_BLOCK_END) ? body(p, ends) : NULL;
}

/* The same, with one possible end, whose name is taken. */
static jnode *whole_body(jparse *p, const char *end)
{
    const char *const ends[] = {end, NULL};
    jnode *b = block_body(p, ends);
    if (b) p->pos++;
    return b;
}

static jnode *block_node(jparse *p, int kind, int32_t line)
{
    jnode *n = jnode_new(p, kind, line);
    return n && (n->x.block = jparse_alloc(p, sizeof(jblock))) ? n : NULL;
}

static jnode *parse_for(jparse *p, int32_t line)
{
    static const char *const ends[] = {"endfor", "else", NULL};
    jnode *n = block_node(p, N_FOR, line);

    if (!n || !(n->a = jparse_target(p, 0, "in")) || !expect_name(p, "in")) return NULL;
    if (!(n->b = jparse_tuple(p, TUPLE_NO_COND, "recursive"))) return NULL;
    if (jskip_name(p, "if") && !(n->c = jparse_expr(p))) return NULL;
    n->x.block->recursive = jskip_name(p, "recursive");
    if (!(n->x.block->body = block_body(p, ends))) return NULL;
    if (jskip_name(p, "else")) return (n->x.block->orelse = whole_body(p, "endfor")) ? n : NULL;
    p->pos++;
    return n;
}

static jnode *parse_if(jparse *p, int32_t line)
{
    static const char *const ends[] = {"endif", "elif", "else", NULL};
    jnode *first = jnode_new(p, N_IF, line), *n = first;

    while (n) {
        if (!(n->a = jparse_tuple(p, TUPLE_NO_COND, NULL))) return NULL;
        if (!(n->b = block_body(p, ends))) return NULL;
        int32_t at = jcur(p)->line;
        if (jskip_name(p, "elif")) {
            n->c = jnode_new(p, N_IF, at);
            n->flag = 1; /* c is an elif */
            n = n->c;
            continue;
        }
        if (jskip_name(p, "else")) return (n->c = whole_body(p, "endif")) ? first : NULL;
        p->pos++;
        return first;
    }
    return NULL;
}

static jnode *parse_set(jparse *p, int32_t line)
{
    jnode *n = block_node(p, N_SETBLOCK, line);

    if (!n || !(n->a = jparse_target(p, TUPLE_NS, NULL))) return NULL;
    if (jskip(p, TK_ASSIGN)) {
        n->kind = N_SET;
        return (n->b = jparse_tuple(p, 0, NULL)) ? n : NULL;
    }
    if (jcur(p)->type == TK_PIPE && !(n->b = jparse_filters(p, NULL, false))) return NULL;
    return (n->x.block->body = whole_body(p, "endset")) ? n : NULL;
}

static bool signature(jparse *p, jblock *b)
{
    jnodes params = {0}, dflt = {0};
    bool with_default = false;

    if (!jexpect(p, TK_LPAREN)) return false;
    while (jcur(p)->type != TK_RPAREN) {
        if (params.n && !jexpect(p, TK_COMMA)) return false;
        if (!jnodes_push(p, &params, jparse_name(p))) return false;
        jnode *d = NULL;
        if (jskip(p, TK_ASSIGN)) {
            with_default = true;
            if (!(d = jparse_expr(p))) return false;
        } else if (with_default) {
            jparse_fail(p, CAIRN_E_CORRUPT, jcur(p)->line,
                        "a parameter without default after one with; expected the other order");
            return false;
        }
        if (!jnodes_push(p, &dflt, params.v[0])) return false;
        dflt.v[dflt.n - 1] = d;
    }
    p->pos++;
    b->param = params.v;
    b->n_param = params.n;
    b->dflt = dflt.v;
    return true;
}

static jnode *parse_macro(jparse *p, int32_t line)
{
    jnode *n = block_node(p, N_MACRO, line);

    if (!n || !(n->a = jparse_name(p)) || !signature(p, n->x.block)) return NULL;
    n->x.block->name = n->a->val;
    return (n->x.block->body = whole_body(p, "endmacro")) ? n : NULL;
}

static jnode *parse_call(jparse *p, int32_t line)
{
    jnode *n = block_node(p, N_CALLBLOCK, line);

    if (!n || (jcur(p)->type == TK_LPAREN && !signature(p, n->x.block))) return NULL;
    if (!(n->x.block->call = jparse_expr(p))) return NULL;
    if (n->x.block->call->kind != N_CALL)
        return jparse_fail(p, CAIRN_E_CORRUPT, line, "expected a call in a call block");
    n->x.block->name = jv_none();
    return (n->x.block->body = whole_body(p, "endcall")) ? n : NULL;
}

static jnode *parse_generation(jparse *p, int32_t line)
{
    jnode *n = block_node(p, N_GENERATION, line);
    return n && (n->x.block->body = whole_body(p, "endgeneration")) ? n : NULL;
}

static jnode *parse_filter_block(jparse *p, int32_t line)
{
    jnode *n = block_node(p, N_FILTERBLOCK, line);
    if (!n || !(n->b = jparse_filters(p, NULL, true))) return NULL;
    return (n->x.block->body = whole_body(p, "endfilter")) ? n : NULL;
}

static jnode *parse_with(jparse *p, int32_t line)
{
    jnode *n = block_node(p, N_WITH, line);
    jnodes l = {0}; /* target, value, … */

    while (n && jcur(p)->type != TK_BLOCK_END) {
        if (l.n && !jexpect(p, TK_COMMA)) return NULL;
        if (!jnodes_push(p, &l, jparse_target(p, 0, NULL)) || !jexpect(p, TK_ASSIGN)) return NULL;
        if (!jnodes_push(p, &l, jparse_expr(p))) return NULL;
    }
    if (!n || !(n->x.block->body = whole_body(p, "endwith"))) return NULL;
    n->v = l.v;
    n->n = l.n;
    return n;
}

static jnode *parse_autoescape(jparse *p, int32_t line)
{
    jnode *n = block_node(p, N_SCOPE, line), *on = n ? jparse_expr(p) : NULL;

    if (!on) return NULL;
    if (on->kind != N_CONST || jv_truth(on->val))
        return jparse_fail(p, CAIRN_E_UNSUPPORTED, line,
                           "automatic escaping is not supported; expected autoescape false");
    return (n->x.block->body = whole_body(p, "endautoescape")) ? n : NULL;
}

static jnode *parse_print(jparse *p, int32_t line)
{
    jnode *n = jnode_new(p, N_BODY, line);
    jnodes l = {0};

    while (n && jcur(p)->type != TK_BLOCK_END) {
        if (l.n && !jexpect(p, TK_COMMA)) return NULL;
        jnode *print = jnode_new(p, N_PRINT, line);
        if (!print || !(print->a = jparse_expr(p)) || !jnodes_push(p, &l, print)) return NULL;
    }
    if (!n) return NULL;
    n->v = l.v;
    n->n = l.n;
    return n;
}

static jnode *parse_break(jparse *p, int32_t line)
{
    return jnode_new(p, N_BREAK, line);
}

static jnode *parse_continue(jparse *p, int32_t line)
{
    return jnode_new(p, N_CONTINUE, line);
}

/* Statements that need other templates, of which there are none. */
static bool needs_templates(cairn_str name)
{
    static const char *const names[] = {"include", "import", "from", "extends", "block"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_is(name, names[i])) return true;
    return false;
}

static jnode *statement(jparse *p)
{
    static const struct {
        const char *name;
        jnode *(*parse)(jparse *p, int32_t line);
    } tags[] = {{"if", parse_if},
                {"for", parse_for},
                {"set", parse_set},
                {"macro", parse_macro},
                {"call", parse_call},
                {"generation", parse_generation},
                {"filter", parse_filter_block},
                {"with", parse_with},
                {"autoescape", parse_autoescape},
                {"print", parse_print},
                {"break", parse_break},
                {"continue", parse_continue}};
    const jtoken *t = jexpect(p, TK_NAME);
    jnode *n;

    if (!t) return NULL;
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        if (!str_is(jv_text(t->val), tags[i].name)) continue;
        if (++p->depth > JINJA_MAX_NESTING)
            return jparse_fail(p, CAIRN_E_LIMIT, t->line, "nested more than %d deep",
                               JINJA_MAX_NESTING);
        n = tags[i].parse(p, t->line);
        p->depth--;
        return n;
    }
    if (needs_templates(jv_text(t->val)))
        return jparse_fail(p, CAIRN_E_UNSUPPORTED, t->line,
                           "found {%% %.*s %%}; expected a statement that needs no other template",
                           STR_ARG(jv_text(t->val)));
    return jparse_fail(p, CAIRN_E_CORRUPT, t->line,
                       "unknown tag '%.*s'; expected one that is known", STR_ARG(jv_text(t->val)));
}

jnode *jparse_template(jparse *p)
{
    return body(p, NULL);
}
