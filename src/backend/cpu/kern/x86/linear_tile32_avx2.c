/* Tiles of the formats with 32 weights a block, affine ones and those of e2m1, AVX2. */
#include "backend/cpu/kern/x86/dots_avx2.h"
#include "backend/cpu/kern/x86/linear_x86.h"

#define LEVEL(name) avx2_##name
#include "backend/cpu/kern/x86/tile32_avx2_body.h"
