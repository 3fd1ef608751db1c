/* The AMX kernels of 256-element tiles over emulated instructions. */
#if defined(__x86_64__)
#include "kern/emulate_avx512.h"

#include "kern/emulate_amx.h"

#define vnni_tile_q4_k emulated_tile_q4_k
#define vnni_tile_q5_k emulated_tile_q5_k
#define vnni_tile_q6_k emulated_tile_q6_k
#define amx_tile_q4_k  emulated_amx_tile_q4_k
#define amx_tile_q5_k  emulated_amx_tile_q5_k
#define amx_tile_q6_k  emulated_amx_tile_q6_k
#include "backend/cpu/kern/x86/linear_tile256_amx.c"
#else
typedef int nothing_here;
#endif
