/* Memory that ends where the next page is not there. */
#ifndef GUARD_H
#define GUARD_H

#include <stddef.h>
#include <stdint.h>

/* `size` bytes that end at an unmapped page (so their start is as misaligned as size is), with
   GUARD_FRONT canary bytes before them. */
enum { GUARD_FRONT = 64 };
void *guard_new(size_t size);
void guard_free(void *p, size_t size); /* fails the test if the canaries changed */

/* Values of a kind, a function of the seed: kinds 0 … GUARD_KINDS-1 are random, huge and tiny,
   denormal, zero of both signs, large (±100), and random with NaN and infinities. */
enum { GUARD_KINDS = 6, GUARD_NAN = 5 };
void guard_fill(float *x, size_t n, int kind, uint64_t seed);

#endif
