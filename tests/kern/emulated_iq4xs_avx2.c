/* The AVX-512 VNNI kernels of IQ4_XS over emulated intrinsics. */
#if defined(__x86_64__)
#include "kern/emulate_avx512.h"

#define vnni_tile_iq4_xs emulated_tile_iq4_xs
#include "backend/cpu/kern/x86/linear_iq4xs_avx512vnni.c"
#else
typedef int nothing_here;
#endif
