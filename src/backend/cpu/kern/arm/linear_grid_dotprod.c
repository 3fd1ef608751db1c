/* Tiles of the codebook and ternary types: dotprod. */
#include "backend/cpu/kern/arm/linear_arm.h"
#include "backend/cpu/kern/arm/words_neon.h"

#include "backend/cpu/kern/arm/dots_dotprod.h"

#define LEVEL(name) dotprod_##name
#include "backend/cpu/kern/arm/tile256_arm_body.h"

DEFINE_GRID_TILES
