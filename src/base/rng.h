/* Counter-based random numbers: value = f(seed, stream, index), no state (Philox4x32-10; Salmon et
   al. 2011, "Parallel random numbers: as easy as 1, 2, 3"). */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdint.h>

uint64_t rng_u64(uint64_t seed, uint64_t stream, uint64_t index);
/* In [0, 1), 53 bits. */
double rng_unit(uint64_t seed, uint64_t stream, uint64_t index);

#endif
