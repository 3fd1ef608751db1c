/* Matrices whose numbers lie in several tensors: codes, scales of groups of them, offsets.  What a
   format's reader (format/) found out about one such matrix, and the values it stands for. */
#ifndef TENSOR_PACKED_H
#define TENSOR_PACKED_H

#include "cairn/status.h"
#include "tensor/dtype.h"

/* How a row becomes numbers; q is a code, s and m the scale and offset of its group. */
typedef enum packed_kind {
    PACKED_AFFINE,  /* MLX: a row is one bit stream; s·q + m */
    PACKED_MXFP4,   /* nibbles, low first, of e2m1; s is e8m0 */
    PACKED_MXFP8,   /* e4m3; s is e8m0 */
    PACKED_NVFP4,   /* as MXFP4; s is e4m3 */
    PACKED_F8,      /* e4m3; s of a block of block_rows × group */
    PACKED_INT8,    /* signed bytes; likewise */
    PACKED_CENTRED, /* compressed-tensors: a row is one bit stream; s·(q − zero) */
    PACKED_GPTQ, /* codes and zeros by columns, packed down the rows of the file; s·(q − zero) */
    PACKED_AWQ,  /* likewise, packed along them in its own order */
    PACKED_COUNT
} packed_kind;

/* Immutable; lives as long as its source. */
typedef struct packed {
    packed_kind kind;
    int32_t bits;        /* of a code */
    int32_t group;       /* codes along a row that share a scale */
    int32_t block_rows;  /* rows that share it: 1 but for F8 and INT8 */
    int32_t zero;        /* what is subtracted from codes where `offset` is NULL; GPTQ, AWQ: what is
                            added to stored zeros */
    int32_t rows, cols;  /* of the matrix; expert stacks count the rows of all */
    dtype scale_type;    /* F32, F16 or BF16; the micro-formats have their own */
    const uint8_t *code; /* mapped; any alignment */
    const uint8_t *scale;
    const uint8_t *offset; /* m, of scale_type (AFFINE); packed zeros; or NULL */
    const uint8_t *order;  /* GPTQ: int32 group of each column, or NULL: in order */
    size_t code_size, scale_size, offset_size;
    char name[24];    /* "affine 4 g64" */
    const char *file; /* of the scales, for messages */
} packed;

/* Values of row `row`, [cols]; each operation rounds once, in the order written above. */
void packed_row_f32(const packed *s, size_t row, float *out);
/* Codes that become numbers by d·q + m: what integer kernels want.  Groups are whole 32s. */
bool packed_is_affine(const packed *s);
/* Codes of e2m1 in rows of whole 32s: MXFP4, NVFP4. */
bool packed_is_fp4(const packed *s);
/* 32 codes of a row from column 32·block on. */
void packed_codes32(const packed *s, size_t row, size_t block, uint8_t out[32]);
/* d and m of a row's group, exact (of affine ones). */
void packed_scales(const packed *s, size_t row, size_t group, float *d, float *m);
/* The factor of a row's group, of F8 and MXFP8. */
float packed_scale(const packed *s, size_t row, size_t group);
/* Every scale and offset is finite; else E_CORRUPT says which is not. */
cairn_status packed_check(const packed *s, const char *tensor, cairn_diag *dg);
static inline size_t packed_groups(const packed *s)
{
    return (size_t)((s->cols + s->group - 1) / s->group);
}

#endif
