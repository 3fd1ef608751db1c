/* The calendar of a test: its program's own time() takes the place of the C library's. */
#ifndef TESTS_FAKE_TIME_H
#define TESTS_FAKE_TIME_H

#include <stdint.h>
#include <time.h>

static int64_t fake_time_by; /* seconds; other threads read it */

static inline void fake_time_shift(int64_t by_s)
{
    __atomic_store_n(&fake_time_by, by_s, __ATOMIC_RELAXED);
}

time_t time(time_t *out)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += (time_t)__atomic_load_n(&fake_time_by, __ATOMIC_RELAXED);
    if (out) *out = t.tv_sec;
    return t.tv_sec;
}

#endif
