/* The kernels of LINEAR for x86, by level. */
#ifndef LINEAR_X86_H
#define LINEAR_X86_H

#include "backend/cpu/kern/kern_linear.h"

kern_quant32_fn avx2_quant32;
kern_quant256_fn avx2_quant256;
kern_tile_fn avx2_tile_q4_0, avx2_tile_q4_1, avx2_tile_q5_0, avx2_tile_q5_1, avx2_tile_q8_0,
    avx2_tile_iq4_nl, avx2_tile_q2_k, avx2_tile_q3_k, avx2_tile_iq4_xs, avx2_tile_q4_k,
    avx2_tile_q5_k, avx2_tile_q6_k, avx2_tile_mxfp4, avx2_tile_nvfp4, avx2_tile_iq3_s,
    avx2_tile_iq3_xxs, avx2_tile_iq2_xxs, avx2_tile_iq2_s, avx2_tile_iq1_s, avx2_tile_iq1_m,
    avx2_tile_tq, avx2_fine_q4_k, avx2_fine_q5_k, avx2_fine_q6_k;
kern_affine_fn avx2_affine_4, avx2_affine_5, avx2_affine_8;
kern_dense_fn avx2_dense_f32, avx2_dense_f16, avx2_dense_bf16;
kern_widen_fn avx2_widen_e4m3, avx2_widen_e5m2;

kern_dense_fn avx512_dense_f32, avx512_dense_f16, avx512_dense_bf16;

kern_tile_fn vnni_tile_q4_0, vnni_tile_q4_1, vnni_tile_q5_0, vnni_tile_q5_1, vnni_tile_q8_0,
    vnni_tile_iq4_nl, vnni_tile_q2_k, vnni_tile_q3_k, vnni_tile_iq4_xs, vnni_tile_q4_k,
    vnni_tile_q5_k, vnni_tile_q6_k, vnni_tile_mxfp4, vnni_tile_nvfp4, vnni_tile_iq3_s,
    vnni_tile_iq3_xxs, vnni_tile_iq2_xxs, vnni_tile_iq2_s, vnni_tile_iq1_s, vnni_tile_iq1_m,
    vnni_tile_tq, vnni_fine_q4_k, vnni_fine_q5_k, vnni_fine_q6_k;
kern_affine_fn vnni_affine_4, vnni_affine_5, vnni_affine_8;

kern_tile_fn amx_tile_q4_0, amx_tile_q5_0, amx_tile_q8_0, amx_tile_q4_k, amx_tile_q5_k,
    amx_tile_q6_k;

#endif
