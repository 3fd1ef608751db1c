/* The kernels of LINEAR for x86, by level: those of avx2, avxvnni and vnni (AVX-512's) have equal names but for
   the level in front. */
#ifndef LINEAR_X86_H
#define LINEAR_X86_H

#include "backend/cpu/kern/kern_linear.h"

/* Slot of kern_linear, type, name. */
#define X86_TILES(X)                                                                               \
    X(tile, Q4_0, tile_q4_0)                                                                       \
    X(tile, Q4_1, tile_q4_1)                                                                       \
    X(tile, Q5_0, tile_q5_0)                                                                       \
    X(tile, Q5_1, tile_q5_1)                                                                       \
    X(tile, Q8_0, tile_q8_0)                                                                       \
    X(tile, IQ4_NL, tile_iq4_nl)                                                                   \
    X(tile, Q2_K, tile_q2_k)                                                                       \
    X(tile, Q3_K, tile_q3_k)                                                                       \
    X(tile, IQ4_XS, tile_iq4_xs)                                                                   \
    X(tile, Q4_K, tile_q4_k)                                                                       \
    X(tile, Q5_K, tile_q5_k)                                                                       \
    X(tile, Q6_K, tile_q6_k)                                                                       \
    X(tile, MXFP4, tile_mxfp4)                                                                     \
    X(tile, NVFP4, tile_nvfp4)                                                                     \
    X(tile, IQ3_S, tile_iq3_s)                                                                     \
    X(tile, IQ3_XXS, tile_iq3_xxs)                                                                 \
    X(tile, IQ2_XXS, tile_iq2_xxs)                                                                 \
    X(tile, IQ2_XS, tile_iq2_s)                                                                    \
    X(tile, IQ2_S, tile_iq2_s)                                                                     \
    X(tile, IQ1_S, tile_iq1_s)                                                                     \
    X(tile, IQ1_M, tile_iq1_m)                                                                     \
    X(tile, TQ1_0, tile_tq)                                                                        \
    X(tile, TQ2_0, tile_tq)                                                                        \
    X(fine, Q4_K, fine_q4_k)                                                                       \
    X(fine, Q5_K, fine_q5_k)                                                                       \
    X(fine, Q6_K, fine_q6_k)

#define DECLARE_TILE(slot, type, name) kern_tile_fn avx2_##name, avxvnni_##name, vnni_##name;
X86_TILES(DECLARE_TILE)
#undef DECLARE_TILE
kern_affine_fn avx2_affine_4, avx2_affine_5, avx2_affine_8, avxvnni_affine_4, avxvnni_affine_5,
    avxvnni_affine_8, vnni_affine_4, vnni_affine_5, vnni_affine_8;

/* Puts a level's tiles into the table k. */
#define INSTALL_TILE(slot, type, name) k->slot[TILE_##type] = LEVEL(name);
#define INSTALL_TILES                                                                              \
    X86_TILES(INSTALL_TILE)                                                                        \
    k->affine[AFFINE_4] = LEVEL(affine_4);                                                         \
    k->affine[AFFINE_5] = LEVEL(affine_5);                                                         \
    k->affine[AFFINE_8] = LEVEL(affine_8);

kern_quant32_fn avx2_quant32, avx512_quant32;
kern_quant256_fn avx2_quant256;
kern_dense_fn avx2_dense_f32, avx2_dense_f16, avx2_dense_bf16;
kern_widen_fn avx2_widen_e4m3, avx2_widen_e5m2;

kern_dense_fn avx512_dense_f32, avx512_dense_f16, avx512_dense_bf16;
kern_widen_fn avx512_widen_e4m3, avx512_widen_e5m2;

/* Those that AMX makes faster: type, name. */
#define AMX_TILES(X)                                                                               \
    X(Q4_0, q4_0)                                                                                  \
    X(Q4_1, q4_1)                                                                                  \
    X(Q5_0, q5_0)                                                                                  \
    X(Q5_1, q5_1)                                                                                  \
    X(Q8_0, q8_0)                                                                                  \
    X(IQ4_NL, iq4_nl)                                                                              \
    X(MXFP4, mxfp4)                                                                                \
    X(Q2_K, q2_k)                                                                                  \
    X(Q3_K, q3_k)                                                                                  \
    X(IQ4_XS, iq4_xs)                                                                              \
    X(Q4_K, q4_k)                                                                                  \
    X(Q5_K, q5_k)                                                                                  \
    X(Q6_K, q6_k)                                                                                  \
    X(IQ3_S, iq3_s)                                                                                \
    X(IQ3_XXS, iq3_xxs)                                                                            \
    X(IQ2_XXS, iq2_xxs)                                                                            \
    X(IQ2_XS, iq2_s)                                                                               \
    X(IQ2_S, iq2_s)                                                                                \
    X(IQ1_S, iq1_s)                                                                                \
    X(IQ1_M, iq1_m)                                                                                \
    X(TQ1_0, tq)                                                                                   \
    X(TQ2_0, tq)

#define DECLARE_AMX(type, name) kern_tile_fn amx_tile_##name;
AMX_TILES(DECLARE_AMX)
#undef DECLARE_AMX
kern_tile_fn amx_fine_q4_k, amx_fine_q5_k, amx_fine_q6_k;
kern_tile_fn amx_fine_more_q4_k, amx_fine_more_q5_k, amx_fine_more_q6_k;
kern_affine_fn amx_affine_4, amx_affine_5, amx_affine_8;

#endif
