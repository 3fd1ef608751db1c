/* The AVX-512 VNNI kernels of Q2_K and Q3_K over emulated intrinsics. */
#if defined(__x86_64__)
#include "kern/emulate_avx512.h"

#define vnni_tile_q2_k emulated_tile_q2_k
#define vnni_tile_q3_k emulated_tile_q3_k
#include "backend/cpu/kern/x86/linear_q2k_q3k_avx512vnni.c"
#else
typedef int nothing_here;
#endif
