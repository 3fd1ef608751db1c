/* One step's data: which rows, of which sequences, at which positions; where their caches lie. */
#ifndef TENSOR_BATCH_H
#define TENSOR_BATCH_H

#include "tensor/kvview.h"

/* Consecutive rows of one sequence at consecutive positions.  Adapters will have their place here, one for all of its
   rows, as they have one in the key of its cache (cache/store.h). */
typedef struct segment {
    int32_t row0, n_rows;
    int32_t out0, n_out; /* the span of its rows in out_row */
    int32_t pos0;        /* position of row0 */
    int32_t known_len;   /* length of the sequence as known: selects long rotary factors */
    uint8_t *const *const *blocks; /* [group][position / KV_BLOCK] */
    float *state;      /* recurrent state of all layers, left behind; NULL: the model has none */
    const float *from; /* what it is before row0, where that lies elsewhere; NULL: it is there */
} segment;

typedef struct step {
    int32_t n_rows, n_out, n_seg;
    const int32_t *id, *pos; /* [n_rows] */
    const int32_t *out_row;  /* [n_out], ascending */
    const segment *seg;      /* in row order */
    const kv_layer *kv;      /* [n_layer] */
    int32_t n_group;
    const float *input; /* [n_rows, …] of INPUT, or NULL */
    float *logits;      /* [n_out, vocab] */
    float *const *tap;  /* [n_tap] of [rows, cols], or NULL: taps are skipped */
    /* A note (base/thread.h) that another thread may set while the step runs: nobody wants it any more.  Whoever has
       seen it set may leave the rest undone: caches of these rows, logits and recurrent states hold anything.  Or NULL. */
    const uint8_t *stop;
} step;

#endif
