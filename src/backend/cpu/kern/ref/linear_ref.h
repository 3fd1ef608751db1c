/* The reference kernels of LINEAR, for the table and for levels that keep some of them. */
#ifndef LINEAR_REF_H
#define LINEAR_REF_H

#include "backend/cpu/kern/kern_linear.h"

kern_quant32_fn ref_quant32;
kern_quant256_fn ref_quant256;
kern_tile_fn ref_tile_q4_0, ref_tile_q4_1, ref_tile_q5_0, ref_tile_q5_1, ref_tile_q8_0,
    ref_tile_iq4_nl, ref_tile_q2_k, ref_tile_q3_k, ref_tile_iq4_xs, ref_tile_q4_k, ref_tile_q5_k,
    ref_tile_q6_k, ref_tile_mxfp4, ref_tile_nvfp4, ref_tile_iq3_s, ref_tile_iq3_xxs,
    ref_tile_iq2_xxs, ref_tile_iq2_s, ref_tile_iq1_s, ref_tile_iq1_m, ref_tile_tq, ref_fine_q4_k,
    ref_fine_q5_k, ref_fine_q6_k;
kern_affine_fn ref_affine_4, ref_affine_5, ref_affine_8;
kern_dense_fn ref_dense_f32, ref_dense_f16, ref_dense_bf16;
kern_widen_fn ref_widen_e4m3, ref_widen_e5m2;

#endif
