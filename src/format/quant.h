/* Quantised checkpoints of the HF layout: tensors that belong together become one matrix of type
   PACKED (tensor/packed.h).  Private to format/ and its tests. */
#ifndef FORMAT_QUANT_H
#define FORMAT_QUANT_H

#include "format/format_priv.h"

/* The list of tensors while schemes look at it. */
typedef struct quant_job {
    source_build *b;
    const meta_view *meta; /* config.json */
    const char *root;      /* the object of config.json that speaks of quantisation */
    uint8_t *gone;         /* [n_tensor]: part of another's matrix, or of no use to us */
    size_t n_joined;       /* matrices */
    cairn_diag *dg;
} quant_job;

/* A way to store quantised matrices.  `module` is called for every tensor whose name ends in `suffix`,
   with that tensor and the length of its name before the suffix. */
typedef cairn_status quant_module_fn(quant_job *j, tensor_desc *t, size_t stem);
typedef struct quant_scheme {
    const char *method; /* quant_method; NULL: MLX has none */
    const char *suffix;
    quant_module_fn *module;
} quant_scheme;
quant_module_fn mlx_module, mlx_orphan;                                   /* mlxquant.c */
quant_module_fn fp8_module, mxfp4_module;                                 /* hfquant_float.c */
quant_module_fn ct_packed_module, ct_int_module, gptq_module, awq_module; /* hfquant_int.c */

/* Joins what config.json says is quantised; a source without such a word stays as it is. */
cairn_status quant_join(source_build *b, const meta_view *config, cairn_diag *dg);

/* The tensor `stem` of t's name + suffix, or NULL. */
tensor_desc *quant_find(const quant_job *j, const tensor_desc *t, size_t stem, const char *suffix);
/* The same; an error names the one that is missing. */
cairn_status quant_need(const quant_job *j, const tensor_desc *t, size_t stem, const char *suffix,
                        tensor_desc **out);
/* Marks t (NULL is fine) as consumed. */
void quant_drop(quant_job *j, const tensor_desc *t);
/* t: found and expected in words. */
cairn_status quant_bad(const quant_job *j, const tensor_desc *t, const char *field,
                       const char *found, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* The shape of t must be dim[n]. */
cairn_status quant_shape(const quant_job *j, const tensor_desc *t, const int64_t *dim, int32_t n);
/* t becomes the matrix `p`: its last two dimensions are p's columns and rows of one expert. */
typedef struct quant_matrix {
    packed p; /* rows, cols, name, sizes of parts are filled in by quant_put */
    const tensor_desc *code, *scale, *offset, *order;
    int64_t n_stack; /* experts; 0: the matrix has two dimensions */
    int64_t rows, cols;
} quant_matrix;
cairn_status quant_put(quant_job *j, tensor_desc *t, const char *name, const quant_matrix *m);
/* The matrix t is called `stem` of its name + suffix from now on. */
cairn_status quant_rename(quant_job *j, tensor_desc *t, size_t stem, const char *suffix);

/* hfquant_float.c: t is a matrix of bytes with one factor a block, a row, or in all. */
cairn_status quant_blocks(quant_job *j, tensor_desc *t, const tensor_desc *scale, packed_kind kind,
                          const char *name);
/* Scales of activations, and shapes that are known, are of no use here. */
void quant_drop_activations(quant_job *j, const tensor_desc *t, size_t stem);

#endif
