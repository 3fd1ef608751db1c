/* Binding a file's tensors to the fields of a model: one table names each field, its HF and GGUF
   names, its shape, and whether it may be absent. */
#ifndef NN_WEIGHTS_H
#define NN_WEIGHTS_H

#include "base/arena.h"
#include "base/map.h"
#include "tensor/weight.h"

/* Shape words of a table, resolved against the model's dims. */
typedef enum dim_name { DIM_ONE, DIM_HIDDEN, DIM_VOCAB, DIM_Q, DIM_KV, DIM_HEAD, DIM_FFN, DIM_COUNT } dim_name;

enum {
    W_OPTIONAL = 1,  /* the field stays NULL when the file lacks it */
    W_GATHER = 2,    /* embedding table */
    W_PLUS_ONE = 4,  /* HF files store gain - 1 */
    W_HEAD = 8,      /* the logits' matrix */
    W_FFN_DOWN = 16,
    W_ATTN_OUT = 32,
    W_BIAS = 64,     /* may have NAME.bias: bound with the weight */
    W_NEED_BIAS = 128
};

typedef struct weight_row {
    size_t field;         /* offsetof(struct, field): a `const weight *` */
    const char *hf, *gguf; /* without ".weight"; %d is the layer */
    dim_name rows, cols;  /* vectors: rows DIM_ONE */
    uint32_t flags;
} weight_row;

typedef struct weights {
    arena *a;
    const source *src;
    int32_t dim[DIM_COUNT];
    weight **item;
    size_t n, cap;
    uint8_t *used; /* [src->n_tensor] */
    cairn_status status; /* sticky */
    cairn_diag *dg;
} weights;

cairn_status weights_init(weights *w, arena *a, const source *src, cairn_diag *dg);
/* Binds every row of `table` into `into` for `layer`.  A missing or misshapen tensor is an error that
   names it, its shape and the expected one. */
cairn_status weights_bind(weights *w, const weight_row *table, size_t n_rows, int32_t layer,
                          void *into, cairn_diag *dg);
/* The tied case: the embedding also is the head. */
const weight *weights_tie(weights *w, const weight *embedding);
/* Every tensor of the file must have been bound, or match one of `ignored` (suffixes): else an error
   that names the first ones. */
cairn_status weights_audit(const weights *w, const char *const *ignored, size_t n_ignored,
                           cairn_diag *dg);
bool weights_has(const weights *w, const char *hf, const char *gguf, int32_t layer);

#endif
