/* How hidden states become one vector.  Filled by format/ from the files that sentence-transformers puts
   beside a checkpoint, or by model/ from a GGUF file's keys; read by model/ and engine/. */
#ifndef TENSOR_POOL_H
#define TENSOR_POOL_H

#include "cairn/status.h"
#include "tensor/op.h"

enum { POOL_KINDS = 6, POOL_DENSE_MAX = 4 /* known models have 2 */, POOL_PROMPTS_MAX = 256 };

typedef enum pool_kind {
    POOL_CLS, /* the first row */
    POOL_MAX,
    POOL_MEAN,
    POOL_MEAN_SQRT,     /* the sum over the root of their number */
    POOL_WEIGHTED_MEAN, /* row i weighs i + 1 */
    POOL_LAST
} pool_kind;

/* y = act(W x + b) (+ x, or + R x where the widths differ) */
typedef struct pool_dense {
    const char *weight, *shortcut; /* the tensors' names, without ".weight"; shortcut NULL: none */
    int32_t in, out;
    bool bias, residual, tanh;
    glu_act act; /* without a gate; GLU_BILINEAR: none; not with tanh */
} pool_dense;

typedef struct pool_prompt {
    cairn_str name, text;
} pool_prompt;

/* Pooling, dense layers, normalisation, in this order. */
typedef struct pool_spec {
    int32_t n_kind; /* their results one after another */
    pool_kind kind[POOL_KINDS];
    int32_t width;    /* of a hidden state; 0: the files do not say */
    bool skip_prompt; /* rows of the prompt are not pooled */
    int32_t n_dense;
    pool_dense dense[POOL_DENSE_MAX];
    bool normalise;
    bool lowered;    /* texts are meant in lower case, which the tokenizer must see to */
    int32_t max_ids; /* of a text; 0: as many as the model has positions */
    int32_t n_dim;   /* elements kept, the first ones; 0: all */
    int32_t n_prompt, default_prompt; /* -1: none */
    const pool_prompt *prompt;
} pool_spec;

#endif
