/* How a server divides one budget: its own buffers first; cli/serve_share.c shares the rest among models. */
#include "cli/serve_memory.h"

#include "base/machine.h"

enum {
    HOST_PART = 8, /* of the budget: weights and caches need it more */
    SMALL_PART = 4 /* of a small one, up to HOST_LEAST: a prompt must still come in */
};
#define HOST_MOST  (UINT64_C(1280) << 20) /* bodies of 32 MiB, the most that is read anyway */
#define HOST_LEAST (UINT64_C(40) << 20)   /* bodies of 1 MiB */

uint64_t serve_budget(uint64_t budget)
{
    uint64_t free, total;
    if (budget) return budget;
    machine_memory(&free, &total);
    return free / 10 * 9;
}

uint64_t serve_host_bytes(uint64_t budget)
{
    const uint64_t all = serve_budget(budget), part = all / HOST_PART;
    const uint64_t least = all / SMALL_PART < HOST_LEAST ? all / SMALL_PART : HOST_LEAST;
    return part > HOST_MOST ? HOST_MOST : part < least ? least : part;
}
