/* A backend that runs no arithmetic.  The logits of a row are a function of the dev's seed and of
   every id up to the row, read back through the cache; time is counted, not spent.  For tests of the
   scheduler, the cache and the numerics check. */
#ifndef BACKEND_SIM_SIM_H
#define BACKEND_SIM_SIM_H

#include "tensor/backend.h"

extern const backend backend_sim;

/* Ways to be wrong, so that tests can see whether anybody notices. */
typedef enum sim_flaw {
    SIM_SOUND,
    SIM_ROWS_MATTER, /* logits depend on the number of rows in the step */
    SIM_NAN          /* logits of positions that are a multiple of 5 are NaN */
} sim_flaw;

void sim_set(dev *d, uint64_t seed, sim_flaw flaw);
enum { SIM_STEP_NS = 1000000, SIM_ROW_NS = 100000 };
uint64_t sim_now_ns(const dev *d); /* a step's and its rows' */
/* Called within each step, as another thread might be at work meanwhile; NULL: no more. */
void sim_within(dev *d, void (*fn)(void *ctx), void *ctx);
bool sim_is_busy(const dev *d); /* the last hint */
int32_t sim_threads_limit(const dev *d);

#endif
