/* The AMX kernels of 32-element tiles over emulated instructions. */
#if defined(__x86_64__)
#include "kern/emulate_avx512.h"

#include "kern/emulate_amx.h"

#define vnni_tile_q4_0   emulated_tile_q4_0
#define vnni_tile_q4_1   emulated_tile_q4_1
#define vnni_tile_q5_0   emulated_tile_q5_0
#define vnni_tile_q5_1   emulated_tile_q5_1
#define vnni_tile_q8_0   emulated_tile_q8_0
#define vnni_tile_iq4_nl emulated_tile_iq4_nl
#define vnni_tile_mxfp4  emulated_tile_mxfp4
#define vnni_affine_4    emulated_affine_4
#define vnni_affine_5    emulated_affine_5
#define vnni_affine_8    emulated_affine_8
#define amx_tile_q4_0    emulated_amx_tile_q4_0
#define amx_tile_q4_1    emulated_amx_tile_q4_1
#define amx_tile_q5_0    emulated_amx_tile_q5_0
#define amx_tile_q5_1    emulated_amx_tile_q5_1
#define amx_tile_q8_0    emulated_amx_tile_q8_0
#define amx_tile_iq4_nl  emulated_amx_tile_iq4_nl
#define amx_tile_mxfp4   emulated_amx_tile_mxfp4
#define amx_affine_4     emulated_amx_affine_4
#define amx_affine_5     emulated_amx_affine_5
#define amx_affine_8     emulated_amx_affine_8
#include "backend/cpu/kern/x86/linear_tile32_amx.c"
#else
typedef int nothing_here;
#endif
