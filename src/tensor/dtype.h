/* Element and block types: sizes, names, and dequantisation of whole rows. */
#ifndef TENSOR_DTYPE_H
#define TENSOR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* name, GGUF type number (-1: none), elements a block, bytes a block */
#define DTYPE_LIST(X)                                                                              \
    X(F32, 0, 1, 4)                                                                                \
    X(F16, 1, 1, 2)                                                                                \
    X(Q4_0, 2, 32, 18)                                                                             \
    X(Q4_1, 3, 32, 20)                                                                             \
    X(Q5_0, 6, 32, 22)                                                                             \
    X(Q5_1, 7, 32, 24)                                                                             \
    X(Q8_0, 8, 32, 34)                                                                             \
    X(Q2_K, 10, 256, 84)                                                                           \
    X(Q3_K, 11, 256, 110)                                                                          \
    X(Q4_K, 12, 256, 144)                                                                          \
    X(Q5_K, 13, 256, 176)                                                                          \
    X(Q6_K, 14, 256, 210)                                                                          \
    X(IQ2_XXS, 16, 256, 66)                                                                        \
    X(IQ2_XS, 17, 256, 74)                                                                         \
    X(IQ3_XXS, 18, 256, 98)                                                                        \
    X(IQ1_S, 19, 256, 50)                                                                          \
    X(IQ4_NL, 20, 32, 18)                                                                          \
    X(IQ3_S, 21, 256, 110)                                                                         \
    X(IQ2_S, 22, 256, 82)                                                                          \
    X(IQ4_XS, 23, 256, 136)                                                                        \
    X(I8, 24, 1, 1)                                                                                \
    X(I16, 25, 1, 2)                                                                               \
    X(I32, 26, 1, 4)                                                                               \
    X(I64, 27, 1, 8)                                                                               \
    X(F64, 28, 1, 8)                                                                               \
    X(IQ1_M, 29, 256, 56)                                                                          \
    X(BF16, 30, 1, 2)                                                                              \
    X(TQ1_0, 34, 256, 54)                                                                          \
    X(TQ2_0, 35, 256, 66)                                                                          \
    X(MXFP4, 39, 32, 17)                                                                           \
    X(NVFP4, 40, 64, 36)                                                                           \
    X(U8, -1, 1, 1)                                                                                \
    X(U16, -1, 1, 2)                                                                               \
    X(U32, -1, 1, 4)                                                                               \
    X(U64, -1, 1, 8)                                                                               \
    X(BOOL, -1, 1, 1)                                                                              \
    X(F8_E4M3, -1, 1, 1)                                                                           \
    X(F8_E5M2, -1, 1, 1)                                                                           \
    X(F8_E8M0, -1, 1, 1)                                                                           \
    X(PACKED, -1, 1, 1) /* codes and scales in tensors of their own: tensor/packed.h */

/* The weights that the nibbles of IQ4_NL and IQ4_XS stand for. */
#define IQ4_LEVELS -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113

typedef enum dtype {
#define DTYPE_ENUM(name, gguf, elems, bytes) DT_##name,
    DTYPE_LIST(DTYPE_ENUM)
#undef DTYPE_ENUM
        DT_COUNT
} dtype;

const char *dtype_name(dtype t);
int32_t dtype_block(dtype t); /* elements a block */
int32_t dtype_block_bytes(dtype t);
bool dtype_from_gguf(uint32_t id, dtype *out);
bool dtype_is_quant(dtype t); /* more than one element a block */
/* Bytes of n elements; false when n is no multiple of the block or the size overflows. */
bool dtype_bytes(dtype t, uint64_t n, size_t *out);
bool dtype_can_dequant(dtype t); /* floats and every quantised type above */
/* Dequantises n elements (a multiple of the block), in ggml's operation order so that values equal
   the reference's bits.  `src` may be unaligned. */
void dtype_to_f32(dtype t, const void *src, float *dst, size_t n);

#endif
