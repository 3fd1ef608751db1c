/* Tiles of the codebook and ternary types, AVX2. */
#include "backend/cpu/kern/x86/dots_avx2.h"
#include "backend/cpu/kern/x86/linear_x86.h"

#define LEVEL(name) avx2_##name
#include "backend/cpu/kern/x86/grid_avx2_body.h"
