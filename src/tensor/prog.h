/* A forward pass as a flat list of ops.  Recorded once by a model file, rewritten by fuse.c, laid out
   by plan.c, run by a backend at any number of rows. */
#ifndef TENSOR_PROG_H
#define TENSOR_PROG_H

#include "base/arena.h" /* IWYU pragma: export */
#include "base/buf.h"
#include "tensor/op.h" /* IWYU pragma: export */

/* Which rows a value has: all rows of the step, or only those whose logits are wanted. */
typedef enum rowset { ROWS_ALL, ROWS_OUT } rowset;

typedef struct value {
    int32_t cols;
    rowset rows;
    bool output; /* the logits */
} value;

enum { PROG_MAX_ROPE = 4 };

typedef struct prog {
    arena *a;
    struct op *op; /* `struct`: in C++ a member may not take its type's plain name */
    int32_t n_op, cap_op;
    struct value *value;
    int32_t n_value, cap_value;
    rope_spec rope[PROG_MAX_ROPE];
    int32_t n_rope;
    int32_t n_tap;
    val logits;
    cairn_status status; /* sticky: out of memory, or a shape that does not fit */
    cairn_diag diag;
} prog;

void prog_init(prog *p, arena *a);
val prog_value(prog *p, int32_t cols);
/* Appends after checking shapes; afterwards p->status tells. Outputs must be new values. */
void prog_emit(prog *p, const op *o);
int32_t prog_rope(prog *p, const rope_spec *r); /* index; equal specs are shared */
void prog_set_output(prog *p, val logits);
void prog_print(const prog *p, buf *out); /* one op a line */

#endif
