/* Tiles of the codebook and ternary types: i8mm. */
#include "backend/cpu/kern/arm/linear_arm.h"
#include "backend/cpu/kern/arm/words_neon.h"

#include "backend/cpu/kern/arm/dots_i8mm.h"

#define LEVEL(name) i8mm_##name
#include "backend/cpu/kern/arm/tile256_arm_body.h"

DEFINE_GRID_TILES
