/* Without entropy (never seen on Linux) the clock's nanoseconds: only less unique. */
#include "serve/random.h"

#include <stdio.h>
#include <sys/random.h>

#include "base/clock.h"

uint64_t random_seed(void)
{
    uint64_t seed;

    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) seed = clock_ns();
    return seed;
}

void random_name(char *out, size_t size, const char *prefix, size_t n_digits)
{
    uint64_t bits = 0;
    size_t n = (size_t)snprintf(out, size, "%s", prefix);

    for (size_t i = 0; i < n_digits && n + 1 < size; i++) {
        if (i % 16 == 0) bits = random_seed();
        out[n++] = "0123456789abcdef"[bits & 15];
        bits >>= 4;
        out[n] = '\0';
    }
}
