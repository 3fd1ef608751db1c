/* Binding a file's tensors to the fields of a model: one table names each field, its HF and GGUF
   names, its shape, and whether it may be absent. */
#ifndef NN_WEIGHTS_H
#define NN_WEIGHTS_H

#include "base/arena.h"
#include "tensor/source.h"
#include "tensor/weight.h"

/* Shape words of a table, resolved against the model's numbers. */
typedef enum dim_name {
    DIM_ONE,
    DIM_HIDDEN,
    DIM_VOCAB,
    DIM_Q,  /* query heads · head width */
    DIM_KV, /* KV heads · head width */
    DIM_HEAD,
    DIM_FFN,
    DIM_Q_LORA,
    DIM_KV_LORA,
    DIM_KV_A,
    DIM_NOPE,
    DIM_VALUE,
    DIM_V,
    DIM_KV_B,       /* latent attention */
    DIM_PLE,        /* width of a layer's own input */
    DIM_PLES,       /* of all layers' */
    DIM_PLE_VOCAB,  /* tokens that have one */
    DIM_STREAMS,    /* alternating updates: parallel states */
    DIM_STREAM_MIX, /* their number squared */
    DIM_LAUREL,     /* rank of a learned residual */
    DIM_HEADS,      /* query heads */
    DIM_UNIT,       /* 1, of a matrix: its file may leave the dimension out */
    DIM_EXPERTS,    /* routed experts */
    DIM_EXPERT_FFN, /* their width */
    DIM_LATENT,     /* what experts read and write where it is not the hidden state */
    DIM_SHARED_FFN, /* width of the experts that every token meets */
    DIM_IN,         /* what a recurrent layer makes of its input, all parts */
    DIM_INNER,      /* what it mixes over time */
    DIM_SSM_HEADS,  /* heads of its state */
    DIM_CONV,       /* columns of a convolution over time */
    DIM_KERNEL,     /* its rows, at most CONV_MAX_ROWS */
    DIM_Q_GATE,     /* query heads and a gate as wide as each */
    DIM_V_HEADS,
    DIM_V_HEAD,
    DIM_V_ALL,     /* heads of values of the delta rule; the width of one, of all */
    DIM_BA,        /* two numbers a head of values */
    DIM_POSITIONS, /* rows of a table of positions */
    DIM_TYPES,     /* of one of token types */
    DIM_DENSE_IN,  /* of a matrix behind the pooling */
    DIM_DENSE_OUT,
    DIM_INDEX, /* width of an indexer's head */
    DIM_INDEX_HEADS,
    DIM_INDEX_Q, /* its heads · their width */
    DIM_COUNT
} dim_name;

enum {
    W_OPTIONAL = 1, /* the field stays NULL when the file lacks it */
    W_GATHER = 2,   /* rows are looked up: the embedding */
    W_PLUS_ONE = 4, /* HF files store gain - 1 */
    W_HEAD = 8,     /* the matrix of the logits */
    W_FFN_DOWN = 16,
    W_ATTN_OUT = 32,
    /* NAME.bias belongs to the weight, as `weights.bias` says of the class: */
    W_BIAS_QKV = 64,
    W_BIAS_OUT = 128, /* of attention */
    W_BIAS_ATTN = W_BIAS_QKV | W_BIAS_OUT,
    W_BIAS_MLP = 256,
    W_BIAS_ROUTER = 1024,
    W_ROUTER = 2048, /* chooses experts: f32 in every mode */
    W_BARE = 512,    /* the name has no ".weight" */
    /* DIM_KERNEL × DIM_CONV, in files [columns, rows] with a dimension of 1 somewhere or none: f32 and the
       other way round in memory */
    W_CONV = 4096,
    W_BIAS_CONV = 8192,
    W_NEG_EXP = 16384, /* a vector of which HF files store the logarithm of minus it */
    W_FLAT = 32768,    /* a vector that files may store in two dimensions */
    W_BIAS_SSM_IN = 65536,
    W_BIAS_SSM_OUT = 131072, /* of a mixer's first and last matrix; classes of biases as above */
    W_KV = 262144            /* keys and values; known by their rows, tables need not say it */
};

enum { CONV_MAX_ROWS = 32 }; /* files hold 3 or 4 */

typedef struct weight_row {
    size_t field;          /* offsetof(struct, field) of a `const weight *` */
    const char *hf, *gguf; /* without ".weight"; %d stands for the layer */
    dim_name rows, cols;   /* DIM_ONE rows: a vector */
    uint32_t flags;
} weight_row;

/* Of a table. */
#define N_ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* One tensor whose rows are several matrices, one after another. */
typedef struct weight_split {
    const char *hf, *gguf; /* as in weight_row */
    dim_name cols;
    uint32_t flags;
    struct {
        size_t field;
        dim_name rows; /* DIM_ONE ends the list */
    } part[4];
} weight_split;

/* A tensor that holds an expert's matrix, or many.  Complete names: the first %d is the layer, a second
   one the expert (a tensor each); else one tensor stacks all experts, outermost.  Of n_part equal
   runs of rows in each expert's matrix the row wants number `part` (gate and up in one tensor). */
typedef struct expert_name {
    const char *name;
    int32_t part, n_part;
    const char *bias; /* [experts, n_part · rows]; NULL: none */
    bool input_major; /* [experts, cols, n_part · rows], the parts interleaved: copied at load */
} expert_name;

/* Without biases: a tensor of one matrix an expert, or one of n_part. */
#define EXPERT_WHOLE(name)                                                                         \
    {                                                                                              \
        name, 0, 1, NULL, false                                                                    \
    }
#define EXPERT_PART(name, part, n_part)                                                            \
    {                                                                                              \
        name, part, n_part, NULL, false                                                            \
    }

enum { EXPERT_NAMES = 3 };

/* A stack of experts, [DIM_EXPERTS] matrices of rows × cols. */
typedef struct expert_row {
    size_t field;
    expert_name hf[EXPERT_NAMES],
        gguf[EXPERT_NAMES]; /* the first that the file has; name NULL ends */
    dim_name rows, cols;
    uint32_t flags;
} expert_row;

typedef struct weights {
    arena *a;
    const source *src;
    const char *stem; /* what stands for "model." in this file; NULL: to be tried */
    int32_t dim[DIM_COUNT];
    int32_t n_expert_used; /* a token meets so many of DIM_EXPERTS */
    weight **item;         /* everything bound; in `a` */
    size_t n, cap;
    uint32_t may_bias, need_bias; /* W_BIAS_* bits: bound where the file has them; must be there */
    uint8_t *used;                /* [src->n_tensor] */
    struct weight_turn *turns;    /* matrices to be copied the other way round */
    uint64_t turn_bytes;          /* what the copies will take */
} weights;

/* `dim` of the result is for the caller to fill, DIM_ONE excepted. */
cairn_status weights_init(weights *w, arena *a, const source *src, cairn_diag *dg);
/* Binds every row of `table` into `into`.  A missing or misshapen tensor is an error that names it
   with the shape found and the one expected. */
cairn_status weights_bind(weights *w, const weight_row *table, size_t n_rows, int32_t layer,
                          void *into, cairn_diag *dg);
/* Binds the parts of one tensor; its bias is cut the same way. */
cairn_status weights_bind_split(weights *w, const weight_split *split, int32_t layer, void *into,
                                cairn_diag *dg);
/* Whether the file has the weight of this name. */
bool weights_has(const weights *w, const char *hf, const char *gguf, int32_t layer);
/* The tensor of this name, or NULL. */
const tensor_desc *weights_tensor(const weights *w, const char *hf, const char *gguf,
                                  int32_t layer);
/* The same as weights_bind for stacks of experts. */
cairn_status weights_bind_experts(weights *w, const expert_row *table, size_t n_rows, int32_t layer,
                                  void *into, cairn_diag *dg);
/* The same for stacks of a matrix a query head, DIM_HEADS of them. */
cairn_status weights_bind_heads(weights *w, const expert_row *table, size_t n_rows, int32_t layer,
                                void *into, cairn_diag *dg);
/* Of latent attention's [heads · (DIM_NOPE + DIM_VALUE), DIM_KV_LORA] (complete names): *k_b a stack of
   [DIM_KV_LORA, DIM_NOPE], turned over, and *v_b one of [DIM_VALUE, DIM_KV_LORA]. */
cairn_status weights_split_kv_b(weights *w, const char *hf, const char *gguf, int32_t layer,
                                const weight **k_b, const weight **v_b, cairn_diag *dg);
/* Copies the matrices that lie another way round in the file; the others are used where they are.  Before
   it their data is NULL, which is enough for a model that is only looked at. */
cairn_status weights_settle(weights *w, cairn_diag *dg);
/* The tied case: the embedding is the head too. */
void weights_tie(weights *w, const weight *embedding);
/* Tensors with `part` in their names are known and not part of the model. */
void weights_skip(weights *w, const char *part);
/* A vector of the file outside every table, as f32 [n] in the arena; *out NULL when absent. */
cairn_status weights_vector(weights *w, const char *name, int32_t n, const float **out,
                            cairn_diag *dg);
/* Every tensor of the file must be bound or hold one of `ignored` in its name; else an error names some. */
cairn_status weights_audit(const weights *w, const char *const *ignored, size_t n_ignored,
                           cairn_diag *dg);

#endif
