/* The AVX-VNNI kernels of the codebook and ternary types over emulated intrinsics. */
#if defined(__x86_64__)
#include "kern/emulate_avxvnni.h"
#include "kern/emulated_x86.h"

#include "backend/cpu/kern/x86/dots_avxvnni.h"

#define LEVEL(name) emulated_avxvnni_##name
#include "backend/cpu/kern/x86/grid_avx2_body.h"
#else
typedef int nothing_here;
#endif
