/* The kernels of LINEAR for aarch64, by level: those of neon, dotprod and i8mm have equal names but for the
   level in front. */
#ifndef LINEAR_ARM_H
#define LINEAR_ARM_H

#include "backend/cpu/kern/kern_linear.h"

/* Slot of kern_linear, type, name. */
#define ARM_TILES(X)                                                                               \
    X(tile, Q4_0, q4_0)                                                                            \
    X(tile, Q4_1, q4_1)                                                                            \
    X(tile, Q5_0, q5_0)                                                                            \
    X(tile, Q5_1, q5_1)                                                                            \
    X(tile, Q8_0, q8_0)                                                                            \
    X(tile, IQ4_NL, iq4_nl)                                                                        \
    X(tile, MXFP4, mxfp4)                                                                          \
    X(tile, NVFP4, nvfp4)                                                                          \
    X(tile, Q2_K, q2_k)                                                                            \
    X(tile, Q3_K, q3_k)                                                                            \
    X(tile, IQ4_XS, iq4_xs)                                                                        \
    X(tile, Q4_K, q4_k)                                                                            \
    X(tile, Q5_K, q5_k)                                                                            \
    X(tile, Q6_K, q6_k)                                                                            \
    X(tile, IQ3_S, iq3_s)                                                                          \
    X(tile, IQ3_XXS, iq3_xxs)                                                                      \
    X(tile, IQ2_XXS, iq2_xxs)                                                                      \
    X(tile, IQ2_XS, iq2_s)                                                                         \
    X(tile, IQ2_S, iq2_s)                                                                          \
    X(tile, IQ1_S, iq1_s)                                                                          \
    X(tile, IQ1_M, iq1_m)                                                                          \
    X(tile, TQ1_0, tq)                                                                             \
    X(tile, TQ2_0, tq)                                                                             \
    X(fine, Q4_K, q4_k)                                                                            \
    X(fine, Q5_K, q5_k)                                                                            \
    X(fine, Q6_K, q6_k)

#define DECLARE_TILE(slot, type, name)                                                             \
    kern_tile_fn neon_##slot##_##name, dotprod_##slot##_##name, i8mm_##slot##_##name;
ARM_TILES(DECLARE_TILE)
#undef DECLARE_TILE
kern_affine_fn neon_affine_4, neon_affine_5, neon_affine_8, dotprod_affine_4, dotprod_affine_5,
    dotprod_affine_8, i8mm_affine_4, i8mm_affine_5, i8mm_affine_8;

/* Puts a level's tiles into the table k. */
#define INSTALL_TILE(slot, type, name) k->slot[TILE_##type] = LEVEL(slot##_##name);
#define INSTALL_TILES                                                                              \
    ARM_TILES(INSTALL_TILE)                                                                        \
    k->affine[AFFINE_4] = LEVEL(affine_4);                                                         \
    k->affine[AFFINE_5] = LEVEL(affine_5);                                                         \
    k->affine[AFFINE_8] = LEVEL(affine_8);

kern_quant32_fn neon_quant32;
kern_quant256_fn neon_quant256;
kern_dense_fn neon_dense_f32, neon_dense_f16, neon_dense_bf16;
kern_widen_fn neon_widen_e4m3, neon_widen_e5m2;

#endif
