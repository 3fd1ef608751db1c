/* How often one may ask: N a minute, so many of them at once as a minute allows. */
#ifndef SERVE_RATE_H
#define SERVE_RATE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rate { /* zeroed: nothing was asked for */
    double used;      /* of the N, what time has not given back */
    uint64_t at_ms;   /* when that was so */
} rate;

/* Takes one, at a monotonic time.  False: none is left, and *wait_s is after how many seconds one is. */
bool rate_take(rate *r, int32_t per_minute, uint64_t now_ms, int32_t *wait_s);

#endif
