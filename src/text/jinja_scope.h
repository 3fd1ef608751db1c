/* What the two passes of name resolution share: jscope_visit collects what a scope reads and stores,
   jinja_place.c walks the scope with the result.  Lives while a template is compiled. */
#ifndef TEXT_JINJA_SCOPE_H
#define TEXT_JINJA_SCOPE_H

#include "text/jinja_ast.h"

typedef struct jentry {
    jv name;
    int32_t slot;
    bool ref, store;
    jload load;
} jentry;

typedef struct jfunc { /* what has an activation of its own */
    struct jfunc *parent;
    uint32_t depth, n_slots;
    bool in_loop;
} jfunc;

typedef struct jframe {
    struct jframe *parent;
    jfunc *fn;
    jentry *e;
    uint32_t n, cap;
} jframe;

typedef struct jresolver {
    jparse *p;
    cairn_str *ctx;
    uint32_t n_ctx, cap_ctx, depth, for_depth;
} jresolver;

/* Where a message has been recorded, these answer false or NULL. */
bool jscope_visit(jresolver *r, jframe *f, jnode *n);
bool jscope_visit_target(jresolver *r, jframe *f, jnode *n, bool param);
jentry *jscope_param(jresolver *r, jframe *f, jv name);
/* The innermost scope that knows the name; NULL: none. */
jentry *jscope_find(jresolver *r, jframe *f, jv name, jframe **where);
bool jscope_descend(jresolver *r, const jnode *n); /* pair with r->depth-- */

#endif
