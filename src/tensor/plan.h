/* Where each value of a program lies in the scratch buffer, and the exact peak. */
#ifndef TENSOR_PLAN_H
#define TENSOR_PLAN_H

#include "tensor/prog.h"

typedef struct plan {
    const prog *p;
    int32_t max_rows, max_out;
    size_t *offset; /* [n_value] bytes, 64-aligned; SIZE_MAX for the logits (bound by the step) */
    size_t peak;    /* bytes of all values */
} plan;

/* Lifetimes end at the last reading op; elementwise ops may write over an operand that dies there. */
cairn_status plan_make(const prog *p, int32_t max_rows, int32_t max_out, arena *a, plan *out);

#endif
