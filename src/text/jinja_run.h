/* State of one render: owned by the thread that renders, gone with it.  Everything that it makes lies in
   its arena and counts against the limits below; the compiled template is only read. */
#ifndef TEXT_JINJA_RUN_H
#define TEXT_JINJA_RUN_H

#include "text/jinja_ast.h"

enum {
    JINJA_MAX_OUTPUT = 16 << 20, /* bytes: 4 million tokens */
    JINJA_MAX_MEMORY =
        48 << 20, /* with output and what a filter builds a render stays below 100 MB */
    JINJA_MAX_STEPS = 1 << 20, /* and one for each byte of context; 100 messages take 3,000 */
    JINJA_MAX_DEPTH = 1000,    /* of evaluation, macros included; Python's own limit */
    JINJA_MAX_RANGE = 100000   /* the sandbox's */
};

typedef struct jact { /* an activation: the slots of a template, macro or recursive loop */
    struct jact *parent;
    jv slot[];
} jact;

typedef struct jmacro {
    const jnode *node;
    jact *outer;
} jmacro;

typedef struct jloop {
    jiter it;
    const jnode *node;
    jact *act;
    int64_t index0, length; /* length: -1 until asked for */
    int64_t depth0;
    bool filtered;      /* the rest has passed the loop's condition already */
    jv prev, cur, next; /* J_MISSING: none; next: peeked */
    jv changed;         /* what loop.changed saw last */
} jloop;

struct jrun {
    const jinja *t;
    arena a;
    buf *out;
    size_t out_base;
    cairn_diag *dg;
    cairn_status st;
    int32_t line;
    uint32_t depth;
    uint64_t steps, max_steps;
    jv *ctx;
    jv captured; /* output that a filter block or filtered set block is about to change */
    jact *act;
    buf *spans;     /* of generation blocks; NULL: nobody asked */
    size_t yielded; /* where the outermost capture under way began; SIZE_MAX: there is none */
    const jnode *printing; /* the expression of the print statement under way */
};

/* Records the first error as E_ARG with template and line; answers false. */
bool jfail(jrun *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool jfail_as(jrun *r, cairn_status st, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same of what would pass JINJA_MAX_OUTPUT. */
bool jfail_long(jrun *r, const char *what);
/* Counts work; false when the limit is passed. */
bool jsteps(jrun *r, uint64_t n);
/* The same for n bytes that are looked at one by one. */
static inline bool jbytes(jrun *r, size_t n)
{
    return jsteps(r, n / 4);
}
bool jenter(jrun *r); /* depth; pair with r->depth-- */

bool jeval(jrun *r, const jnode *n, jv *out);
enum { EXEC_OK, EXEC_BREAK, EXEC_CONTINUE, EXEC_FAILED };
int jexec(jrun *r, const jnode *n);
void jscope_enter(jrun *r, const jscope *s);
jact *jact_new(jrun *r, jact *parent, uint32_t n_slots);
/* Output from `from` on becomes a string and leaves the buffer. */
bool jcapture(jrun *r, size_t from, jv *out);
/* Around what writes output that is captured, or counted, as a whole: the value goes back in. */
static inline size_t jhold(jrun *r)
{
    const size_t before = r->yielded;
    if (before == SIZE_MAX) r->yielded = r->out->len;
    return before;
}

bool jeval_call(jrun *r, const jnode *n, jv caller, jv *out);
bool jeval_args(jrun *r, const jargs *a, jv caller, jcall *c);
/* for: the loop's body over `items`, in the loop's own activation where it is recursive. */
int jfor_run(jrun *r, const jnode *n, jv items, int64_t depth0);
int jloop_next(jrun *r, jloop *l, jv *out);
bool jloop_attr(jrun *r, jloop *l, cairn_str name, jv *out);

#endif
