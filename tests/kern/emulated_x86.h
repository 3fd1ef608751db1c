/* The kernels whose instructions are emulated: AVX-512 VNNI's without a level's name, AVX-VNNI's and AMX's with it. */
#ifndef TESTS_EMULATED_X86_H
#define TESTS_EMULATED_X86_H

#include "backend/cpu/kern/x86/linear_x86.h"

#define DECLARE_TILE(slot, type, name) kern_tile_fn emulated_##name, emulated_avxvnni_##name;
X86_TILES(DECLARE_TILE)
#undef DECLARE_TILE
kern_affine_fn emulated_affine_4, emulated_affine_5, emulated_affine_8, emulated_avxvnni_affine_4,
    emulated_avxvnni_affine_5, emulated_avxvnni_affine_8;
#define DECLARE_TILE(type, name) kern_tile_fn emulated_amx_tile_##name;
AMX_TILES(DECLARE_TILE)
#undef DECLARE_TILE
kern_tile_fn emulated_amx_fine_q4_k, emulated_amx_fine_q5_k, emulated_amx_fine_q6_k;
kern_tile_fn emulated_amx_fine_more_q4_k, emulated_amx_fine_more_q5_k, emulated_amx_fine_more_q6_k;
kern_affine_fn emulated_amx_affine_4, emulated_amx_affine_5, emulated_amx_affine_8;
kern_quant32_fn emulated_quant32;
kern_dense_fn emulated_dense_f32, emulated_dense_f16, emulated_dense_bf16;
kern_widen_fn emulated_widen_e4m3, emulated_widen_e5m2;

#endif
