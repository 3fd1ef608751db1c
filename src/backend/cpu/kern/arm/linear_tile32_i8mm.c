/* Tiles of the formats with 32 weights a block, affine ones and those of e2m1: sdot, and smmla for many vectors. */
#include "backend/cpu/kern/arm/linear_arm.h"
#include "backend/cpu/kern/arm/words_neon.h"

#include "backend/cpu/kern/arm/dots_i8mm.h"

#define LEVEL(name) i8mm_##name
#include "backend/cpu/kern/arm/tile32_arm_body.h"
