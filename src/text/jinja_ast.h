/* Tokens and the syntax tree of a template, shared by lexer, parser, name resolution and run. */
#ifndef TEXT_JINJA_AST_H
#define TEXT_JINJA_AST_H

#include "base/map.h"
#include "text/jinja.h"
#include "text/jinja_value.h"

/* name, how messages call it */
/* clang-format off */
#define JTOKEN_LIST(X)                                                                             \
    X(EOF, "end of template") X(DATA, "text") X(VAR_BEGIN, "{{") X(VAR_END, "}}")                  \
    X(BLOCK_BEGIN, "{%") X(BLOCK_END, "%}") X(NAME, "name") X(STRING, "string")                    \
    X(INT, "integer") X(FLOAT, "float") X(ADD, "+") X(SUB, "-") X(DIV, "/") X(FLOORDIV, "//")      \
    X(MUL, "*") X(MOD, "%") X(POW, "**") X(TILDE, "~") X(LBRACKET, "[") X(RBRACKET, "]")           \
    X(LPAREN, "(") X(RPAREN, ")") X(LBRACE, "{") X(RBRACE, "}") X(EQ, "==") X(NE, "!=")            \
    X(GT, ">") X(GE, ">=") X(LT, "<") X(LE, "<=") X(ASSIGN, "=") X(DOT, ".") X(COLON, ":")         \
    X(PIPE, "|") X(COMMA, ",") X(SEMICOLON, ";") X(IN, "in") X(NOT_IN, "not in")
/* clang-format on */
enum {
#define JTOKEN_ENUM(name, text) TK_##name,
    JTOKEN_LIST(JTOKEN_ENUM)
#undef JTOKEN_ENUM
        TK_COUNT
};
const char *jtoken_name(int type);

typedef struct jtoken {
    uint8_t type;
    int32_t line;
    jv val; /* text, name, string or number */
} jtoken;

enum {
    /* expressions */
    N_CONST,
    N_NAME,
    N_TUPLE,
    N_LIST,
    N_DICT /* v: key, value, … */,
    N_UNARY,
    N_NOT,
    N_BINARY,
    N_AND,
    N_OR,
    N_CONCAT,
    N_COMPARE /* a, v: N_OPERAND */,
    N_OPERAND,
    N_GETATTR,
    N_GETITEM,
    N_SLICE,
    N_CALL,
    N_FILTER,
    N_TEST,
    N_COND /* a: test, b, c */,
    N_NSREF,
    /* statements */
    N_BODY,
    N_DATA,
    N_PRINT,
    N_FOR /* a: target, b: iterable, c: test */,
    N_IF /* a, b, c */,
    N_MACRO,
    N_CALLBLOCK,
    N_GENERATION,
    N_FILTERBLOCK,
    N_WITH,
    N_SET,
    N_SETBLOCK,
    N_SCOPE,
    N_BREAK,
    N_CONTINUE
};

typedef struct jargs {
    jnode **pos, **kw;
    jv *kw_name;
    uint32_t n_pos, n_kw;
    jnode *dyn_pos, *dyn_kw;
} jargs;

/* What entering a scope does to one slot. */
enum { LOAD_NONE, LOAD_PARAM, LOAD_RESOLVE, LOAD_ALIAS, LOAD_UNDEF };
typedef struct jload {
    uint8_t kind, hops; /* hops: activations up to the one that has `from` */
    int32_t slot, from; /* from: slot (alias) or index of a context name (resolve) */
} jload;
typedef struct jscope {
    jload *loads;
    uint32_t n_loads;
} jscope;

/* The parts of loops, macros and call blocks. */
typedef struct jblock {
    jnode *body, *orelse, *call; /* call: N_CALL of a call block */
    jscope scope, else_scope, test_scope;
    jnode *test_target; /* the target again, in the scope of the test */
    bool recursive;
    uint32_t n_slots; /* of the activation, where the block has its own */
    int32_t loop_slot;
    jnode **param, **dflt; /* N_NAME; a default or NULL for each */
    uint32_t n_param;
    bool uses_caller, uses_kwargs, uses_varargs, explicit_caller;
    int32_t caller_slot, kwargs_slot, varargs_slot;
    jv name;
} jblock;

struct jnode {
    uint8_t kind, op, hops, flag;
    int32_t line, slot;
    uint32_t n;
    jnode *a, *b, *c, **v;
    jv val;
    union {
        jargs *args;
        jblock *block;
        const jfn *const *known; /* N_GETATTR: the methods of that name */
        jundef *undef;           /* N_NAME: what an unset one yields */
    } x;
    const jfn *fn; /* N_FILTER, N_TEST; NULL: unknown, an error when reached */
};

struct jinja {
    arena a;
    char *where;
    jnode *root; /* N_BODY */
    jblock top;
    cairn_str *ctx_names; /* names that are looked up in the context */
    uint32_t n_ctx;
};

enum {
    JINJA_MAX_TEMPLATE = 4 << 20, /* the largest known template has 70 kB */
    JINJA_MAX_NESTING = 100       /* of syntax */
};

/* State of compiling. */
typedef struct jparse {
    arena *a;
    const char *where;
    cairn_diag *dg;
    cairn_status st;
    const jtoken *tok;
    size_t pos;
    uint32_t depth;
} jparse;

cairn_status jlex(jparse *p, cairn_str text, jtoken **out);
/* Records the first error; answers NULL, to be returned. */
void *jparse_fail(jparse *p, cairn_status st, int32_t line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void *jparse_alloc(jparse *p, size_t size); /* zeroed; NULL: failed */
jnode *jnode_new(jparse *p, int kind, int32_t line);
jnode *jnode_pair(jparse *p, int kind, int32_t line, jnode *a, jnode *b);
bool jparse_enter(jparse *p); /* one level of nesting; pair with p->depth-- */
/* A growing list of nodes. */
typedef struct jnodes {
    jnode **v;
    uint32_t n, cap;
} jnodes;
bool jnodes_push(jparse *p, jnodes *l, jnode *n);

static inline const jtoken *jcur(const jparse *p)
{
    return &p->tok[p->pos];
}
bool jtok_is_name(const jtoken *t, const char *name);
bool jskip(jparse *p, int type);
bool jskip_name(jparse *p, const char *name);
const jtoken *jexpect(jparse *p, int type); /* NULL: failed */

/* jinja_expr.c */
enum { TUPLE_NO_COND = 1, TUPLE_PARENS = 2, TUPLE_TARGET = 4, TUPLE_NS = 8 };
jnode *jparse_expr(jparse *p);
jnode *jparse_tuple(jparse *p, int flags, const char *end_name);
jnode *jparse_target(jparse *p, int flags, const char *end_name);
/* jinja_term.c */
jnode *jparse_unary(jparse *p, bool with_filter);
jnode *jparse_primary(jparse *p, bool with_ns);
jnode *jparse_filters(jparse *p, jnode *on, bool inline_first);
jnode *jparse_name(jparse *p);
/* jinja_parse.c, jinja_place.c */
jnode *jparse_template(jparse *p);
cairn_status jresolve(jparse *p, jinja *t);

#endif
