/* A bucket that leaks evenly: whoever keeps to N a minute never meets it, whoever does not waits 60/N s. */
#include "serve/rate.h"

#include <math.h>

enum { MINUTE_MS = 60000 };

bool rate_take(rate *r, int32_t per_minute, uint64_t now_ms, int32_t *wait_s)
{
    const double each_ms = (double)MINUTE_MS / per_minute;

    r->used = fmax(0, r->used - (double)(now_ms - r->at_ms) / each_ms);
    r->at_ms = now_ms;
    if (r->used + 1 > per_minute) {
        *wait_s = (int32_t)ceil((r->used + 1 - per_minute) * each_ms / 1000);
        return false;
    }
    r->used += 1;
    return true;
}
