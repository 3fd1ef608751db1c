/* A model: its file, its shape, its weights on a device, and how its forward pass is recorded.
   Immutable once open. */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "base/thread.h"
#include "cairn/model.h"
#include "nn/nn.h"
#include "tensor/backend.h"
#include "tensor/cachespec.h"
#include "tensor/kvview.h"
#include "tensor/pool.h"
#include "tensor/source.h"

typedef struct model_shape {
    int32_t n_layer, hidden, n_head, n_kv_head, head_dim, vocab, ctx_train;
} model_shape;

struct family;

typedef struct model {
    arena a;
    source *src;
    const struct family *family;
    const char *arch; /* the file's word for it, in `a` */
    model_shape shape;
    cachespec cache;
    bool both;               /* a row sees those after it too: a sequence runs in one step */
    bool headless;           /* no logits: the forward pass gives hidden states */
    const char *headless_by; /* the field of config.json that says so, or NULL */
    int32_t pad_id;          /* takes no position, so that no text may hold it; -1: none */
    bool embeds;             /* the file says how */
    pool_spec pool;          /* how hidden states become a vector */
    const struct model_dense *dense; /* [pool.n_dense] */
    weights w;                       /* every weight that the family bound */
    void *impl;                      /* the family's own struct, in `a` */
    const backend *be;
    dev *dev;       /* NULL: opened for its headers only */
    mutex *running; /* held while a step runs on dev, which takes one at a time; NULL: one user */
    cairn_compute compute;
    const kv_scheme *kv; /* what caches hold; NULL: f16, or f32 where `compute` says so */
    const char *kv_text; /* of it, canonical; NULL: the compute mode's own */
    size_t n_adopted;
    double load_seconds;
} model;

/* As cairn_model_open. */
cairn_status model_open(const char *path, const cairn_model_opts *o, model **out, cairn_diag *dg);
/* Puts the weights of a model that was opened with `no_weights` on a device, once; no other thread may
   have the model yet.  After a failure only model_close is left. */
cairn_status model_load(model *m, const cairn_model_opts *o, cairn_diag *dg);
void model_close(model *m);

/* Records the forward pass and rewrites it (`fuse`: FUSE_* bits).  With `taps`, tap 0 is the
   embedding and tap i+1 the output of layer i. */
cairn_status model_record(const model *m, uint32_t fuse, bool taps, arena *a, prog *out,
                          cairn_diag *dg);
/* The same up to what the head reads: the output is the hidden state of each wanted row. */
cairn_status model_record_hidden(const model *m, uint32_t fuse, bool taps, arena *a, prog *out,
                                 cairn_diag *dg);
/* E_ARG: the model gives no logits, and `what` needs them. */
cairn_status model_check_head(const model *m, const char *what, cairn_diag *dg);

/* A dense module's matrices, its fields in the pool_spec. */
typedef struct model_dense {
    const weight *weight, *shortcut;
} model_dense;
/* Width of a pooled vector; of what the dense modules make of it. */
int32_t model_pooled_dim(const model *m);
int32_t model_embed_dim(const model *m);
/* Records the dense modules: rows are pooled vectors (INPUT). */
cairn_status model_record_dense(const model *m, arena *a, prog *out, cairn_diag *dg);
/* Bytes that the weights take once loaded, whether they are or not; UINT64_MAX where the sum overflows. */
uint64_t model_loaded_bytes(const model *m);
/* Bytes that decoding one token reads from the file: every matrix that it meets, once. */
uint64_t model_token_bytes(const model *m);
/* The same of a step of so many rows, which may meet different experts. */
uint64_t model_step_bytes(const model *m, int32_t rows);
/* Elements of every matrix that a token meets, and of the head among them. */
void model_count_matmul(const model *m, uint64_t *all, uint64_t *head);

#endif
