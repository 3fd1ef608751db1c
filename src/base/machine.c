/* What the machine grants this process: cores and memory, the kernel's figures capped by the control
   groups', the affinity mask and the address space limit.  Whatever cannot be read limits nothing. */
#include "base/machine.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/proc.h"

enum { CORES_MAX = 1 << 16 }; /* of the mask: 8 KB; kernels are built for up to 8,192 */

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void machine_memory(uint64_t *available, uint64_t *total)
{
    char text[8192];
    uint64_t free_kib = 0, all_kib = 0;
    if (proc_read("/proc/meminfo", text, sizeof text)) {
        (void)proc_figure(text, "MemAvailable:", &free_kib);
        (void)proc_figure(text, "MemTotal:", &all_kib);
    }
    const cgroup_limits g = cgroup_read("");
    *total = smaller(all_kib << 10, g.memory_max);
    *available = smaller(free_kib << 10, g.memory_left);

    struct rlimit as;
    uint64_t mapped_kib = 0;
    if (getrlimit(RLIMIT_AS, &as) != 0 || as.rlim_cur == RLIM_INFINITY) return;
    if (proc_read("/proc/self/status", text, sizeof text))
        (void)proc_figure(text, "VmSize:", &mapped_kib);
    const uint64_t mapped = mapped_kib << 10;
    *total = smaller(*total, as.rlim_cur);
    *available = smaller(*available, as.rlim_cur > mapped ? as.rlim_cur - mapped : 0);
}

uint64_t machine_peak_rss(void)
{
    char text[8192];
    uint64_t kib = 0;
    if (proc_read("/proc/self/status", text, sizeof text) && proc_figure(text, "VmHWM:", &kib))
        return kib << 10;
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (uint64_t)u.ru_maxrss << 10 : 0;
}

uint64_t machine_core_cache(void)
{
    const long n = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return n > 0 ? (uint64_t)n : 0;
}

int32_t machine_affinity(void)
{
    cpu_set_t
        set[CORES_MAX / CPU_SETSIZE]; /* the kernel refuses a mask that is shorter than its own */
    memset(set, 0, sizeof set);
    if (sched_getaffinity(0, sizeof set, set) != 0) return 1;
    const int32_t n = CPU_COUNT_S(sizeof set, set);
    return n > 0 ? n : 1;
}

int32_t machine_cores(void)
{
    const int32_t n = machine_affinity();
    const double quota = cgroup_read("").cores;
    if (quota <= 0 || quota >= (double)n) return n;
    const int32_t whole = (int32_t)quota;
    /* a part of a core is one more */
    return (double)whole < quota || whole == 0 ? whole + 1 : whole;
}

const char *machine_isa(void)
{
    const char *v = getenv("CAIRN_ISA"); /* NOLINT(concurrency-mt-unsafe): nothing sets variables */
    return v && v[0] ? v : NULL;
}
