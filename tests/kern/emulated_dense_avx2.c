/* The AVX-512 kernels of dense weights over emulated intrinsics: their logic is tested where the machine
   lacks the instructions. */
#if defined(__x86_64__)
#include "kern/emulate_avx512.h"

#define avx512_dense_f32  emulated_dense_f32
#define avx512_dense_f16  emulated_dense_f16
#define avx512_dense_bf16 emulated_dense_bf16
#include "backend/cpu/kern/x86/linear_dense_avx512.c"
#else
typedef int nothing_here;
#endif
