/* The system's clocks.  Time for measuring never jumps; only clock_unix_s follows the calendar. */
#include "base/clock.h"

#include <time.h>

uint64_t clock_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail with this clock */
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

double clock_s(void)
{
    return (double)clock_ns() * 1e-9;
}

int64_t clock_unix_s(void)
{
    return (int64_t)time(NULL);
}
