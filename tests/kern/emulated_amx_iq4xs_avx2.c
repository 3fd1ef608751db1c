/* The AMX kernels of IQ4_XS over emulated instructions. */
#if defined(__x86_64__)
#include "kern/emulate_avx512.h"

#include "kern/emulate_amx.h"

#define vnni_tile_iq4_xs emulated_tile_iq4_xs
#define amx_tile_iq4_xs  emulated_amx_tile_iq4_xs
#include "backend/cpu/kern/x86/linear_iq4xs_amx.c"
#else
typedef int nothing_here;
#endif
