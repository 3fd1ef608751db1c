/* AVX-512's products with coded kinds over emulated intrinsics. */
#include "kern/emulate_avx512_vec.h"

#define kern_code_avx512 emulated_code
#include "backend/cpu/kern/x86/code_avx512.c"
