/* Tiles of the codebook and ternary types: neon. */
#include "backend/cpu/kern/arm/linear_arm.h"
#include "backend/cpu/kern/arm/words_neon.h"

#include "backend/cpu/kern/arm/dots_neon.h"

#define LEVEL(name) neon_##name
#include "backend/cpu/kern/arm/tile256_arm_body.h"

DEFINE_GRID_TILES
