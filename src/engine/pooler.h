/* Hidden states of a text, row by row, into one vector.  Sums are in double and rows come in rising order, so
   that a vector's bits depend on its rows alone. */
#ifndef ENGINE_POOLER_H
#define ENGINE_POOLER_H

#include "base/arena.h"
#include "tensor/pool.h"

typedef struct pooler {
    const pool_spec *spec;
    size_t hidden;
    double *sum, *weighted;    /* [hidden]; of rows, of rows times their places */
    float *first, *last, *max; /* [hidden] */
    double n, weight;          /* rows; their weights */
} pooler;

/* The arrays live in `a`. */
cairn_status pooler_init(pooler *p, const pool_spec *spec, int32_t hidden, arena *a);
void pooler_begin(pooler *p);
/* Row number `pos` of the text, in rising order. */
void pooler_row(pooler *p, const float *row, int32_t pos);
/* [n_kind · hidden]; at least one row has come. */
void pooler_end(const pooler *p, float *out);

/* v / max(|v|, 1e-12), the sum of squares in double. */
void pool_normalise(float *v, int32_t n);

#endif
