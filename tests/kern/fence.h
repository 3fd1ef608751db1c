/* Memory that ends where the next page is not there. */
#ifndef FENCE_H
#define FENCE_H

#include <stddef.h>
#include <stdint.h>

/* `size` bytes that end at an unmapped page (so their start is as misaligned as size is), with
   FENCE_FRONT canary bytes before them. */
enum { FENCE_FRONT = 64 };
void *fence_new(size_t size);
void fence_free(void *p, size_t size); /* fails the test if the canaries changed */

/* Values of a kind, a function of the seed: kinds 0 … FENCE_KINDS-1 are random, huge and tiny,
   denormal, zero of both signs, large (±100), and random with NaN and infinities. */
enum { FENCE_KINDS = 6, FENCE_NAN = 5 };
void fence_fill(float *x, size_t n, int kind, uint64_t seed);

#endif
