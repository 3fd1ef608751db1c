/* A weight as a program sees it: shape, stored type, bytes, and what the backend made of it. */
#ifndef TENSOR_WEIGHT_H
#define TENSOR_WEIGHT_H

#include "tensor/packed.h"

/* What a weight is for: decides the precision of the activations that meet it (numerics contract:
   the list of classes with two-term activations belongs to its version). */
typedef enum weight_class {
    WEIGHT_PLAIN,
    WEIGHT_HEAD,
    WEIGHT_FFN_DOWN,
    WEIGHT_ATTN_OUT,
    WEIGHT_KV, /* keys and values, which all later rows read */
    /* Meets float activations in every mode: routers, as which experts run hangs on them, and the small
       matrices of heads. */
    WEIGHT_FLOAT
} weight_class;

typedef struct weight {
    const char *name;    /* as in the file */
    dtype type;          /* as stored */
    int32_t rows, cols;  /* out, in; a vector has rows = 1 */
    const uint8_t *data; /* row-major, stored form, mapped; any alignment */
    size_t size;
    const struct packed *packed;       /* of type PACKED; then `data` is not rows of anything: */
    int32_t packed_first, packed_step; /* row i is row first + i · step of it */
    const float *bias;                 /* f32 [rows] or NULL; added after the product is complete */
    const float *f32;                  /* vectors (norm gains): f32 [cols]; NULL for matrices */
    weight_class klass;
    bool gather; /* rows are looked up (embedding) */
    bool matmul; /* used by LINEAR (a tied embedding has both) */
    void *dev;   /* the backend's form, made by adopt; NULL: used in place */
    /* A stack of experts: n_expert matrices of this shape, class and type with data, bias and dev of
       their own; those fields are empty here.  Adopted together.  NULL: one matrix. */
    struct weight *expert;
    int32_t n_expert, n_expert_used; /* a row meets n_expert_used of them */
} weight;

static inline size_t weight_packed_row(const weight *w, size_t row)
{
    return (size_t)w->packed_first + row * (size_t)w->packed_step;
}
/* The stored values of one row, [cols]. */
static inline void weight_row_f32(const weight *w, size_t row, float *out)
{
    if (w->packed)
        packed_row_f32(w->packed, weight_packed_row(w, row), out);
    else
        dtype_to_f32(w->type, w->data + row * (w->size / (size_t)w->rows), out, (size_t)w->cols);
}

#endif
