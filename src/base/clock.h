/* Monotonic time.  A clock is passed in, so that tests can fake it. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

uint64_t clock_ns(void); /* monotonic */
double clock_s(void);
int64_t clock_unix_s(void);

#endif
