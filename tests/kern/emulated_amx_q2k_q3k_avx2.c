/* The AMX kernels of Q2_K and Q3_K over emulated instructions. */
#if defined(__x86_64__)
#include "kern/emulate_avx512.h"

#include "kern/emulate_amx.h"

#define vnni_tile_q2_k emulated_tile_q2_k
#define vnni_tile_q3_k emulated_tile_q3_k
#define amx_tile_q2_k  emulated_amx_tile_q2_k
#define amx_tile_q3_k  emulated_amx_tile_q3_k
#include "backend/cpu/kern/x86/linear_q2k_q3k_amx.c"
#else
typedef int nothing_here;
#endif
