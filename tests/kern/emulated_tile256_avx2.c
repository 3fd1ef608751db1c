/* The AVX-512 VNNI kernels of 256-element tiles over emulated intrinsics. */
#if defined(__x86_64__)
#include "kern/emulate_avx512.h"

#define vnni_tile_q4_k emulated_tile_q4_k
#define vnni_tile_q5_k emulated_tile_q5_k
#define vnni_tile_q6_k emulated_tile_q6_k
#define vnni_fine_q4_k emulated_fine_q4_k
#define vnni_fine_q5_k emulated_fine_q5_k
#define vnni_fine_q6_k emulated_fine_q6_k
#include "backend/cpu/kern/x86/linear_tile256_avx512vnni.c"
#else
typedef int nothing_here;
#endif
