/* Tiles of Q2_K … Q6_K and IQ4_XS, of Q4_K … Q6_K also with fine activations: neon. */
#include "backend/cpu/kern/arm/linear_arm.h"
#include "backend/cpu/kern/arm/words_neon.h"

#include "backend/cpu/kern/arm/dots_neon.h"

#define LEVEL(name) neon_##name
#include "backend/cpu/kern/arm/tile256_arm_body.h"

#include "backend/cpu/kern/arm/fine256_arm_body.h"

DEFINE_TILE(LEVEL(tile_q2_k), 2)
DEFINE_TILE(LEVEL(tile_q3_k), 3)
DEFINE_TILE(LEVEL(tile_q4_k), 4)
DEFINE_TILE(LEVEL(tile_q5_k), 5)
DEFINE_TILE(LEVEL(tile_q6_k), 6)
DEFINE_TILE(LEVEL(tile_iq4_xs), BITS_IQ4)
DEFINE_FINE(LEVEL(fine_q4_k), 4)
DEFINE_FINE(LEVEL(fine_q5_k), 5)
DEFINE_FINE(LEVEL(fine_q6_k), 6)
