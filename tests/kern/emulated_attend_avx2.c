/* Attention's AVX-512 kernels over emulated intrinsics. */
#include "kern/emulate_avx512_vec.h"

#define kern_attend_avx512 emulated_attend
#include "backend/cpu/kern/x86/attend_avx512.c"
