/* The AVX-VNNI kernels of IQ4_XS over emulated intrinsics. */
#if defined(__x86_64__)
#include "kern/emulate_avxvnni.h"
#include "kern/emulated_x86.h"

#define avxvnni_tile_iq4_xs emulated_avxvnni_tile_iq4_xs
#include "backend/cpu/kern/x86/linear_iq4xs_avxvnni.c"
#else
typedef int nothing_here;
#endif
