/* What the machine grants this process: cores and memory, the kernel's figures capped by the control
   groups', the affinity mask and the address space limit.  Whatever cannot be read limits nothing. */
#include "base/machine.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/cpulist.h"
#include "base/num.h"
#include "base/proc.h"

enum { CORES_MAX = 1 << 16 }; /* of the mask: 8 KB; kernels are built for up to 8,192 */

typedef struct core_set {
    cpu_set_t bits[CORES_MAX / CPU_SETSIZE];
} core_set;

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

/* Those of a list, or the calling thread's mask: the kernel refuses one that is shorter than its own. */
static int32_t get_cpus(const char *list, core_set *out)
{
    long first, last;
    memset(out, 0, sizeof *out);
    if (!list && sched_getaffinity(0, sizeof *out, out->bits) != 0) return 0;
    for (const char *at = list; at && cpulist_next(&at, CORES_MAX, &first, &last);)
        for (long i = first; i <= last; i++) CPU_SET_S((size_t)i, sizeof *out, out->bits);
    return CPU_COUNT_S(sizeof *out, out->bits);
}

int32_t machine_affinity(void)
{
    core_set mine;
    return max_i32(1, get_cpus(NULL, &mine));
}

/* Whether `cpu` is the first of its core's in the mask; also where the system does not say. */
static bool leads_core(const char *root, long cpu, const core_set *mine)
{
    char path[1024], text[1024];
    long first, last;
    (void)snprintf(path, sizeof path,
                   "%s/sys/devices/system/cpu/cpu%ld/topology/thread_siblings_list", root, cpu);
    if (!proc_read(path, text, sizeof text)) return true;
    for (const char *at = text; cpulist_next(&at, CORES_MAX, &first, &last);)
        for (long i = first; i <= last && i < cpu; i++)
            if (CPU_ISSET_S((size_t)i, sizeof *mine, mine->bits)) return false;
    return true;
}

/* Cores of the mask, each counted once however many hardware threads it has: these share the multipliers and the
   misses that are bound here.  A lone core is counted twice if it has two: one waits for memory while one computes. */
static int32_t whole_cores(const char *root, const char *cpus)
{
    core_set mine;
    const int32_t n_cpu = get_cpus(cpus, &mine);
    int32_t n = 0;
    for (long cpu = 0, seen = 0; seen < n_cpu && cpu < CORES_MAX; cpu++) {
        if (!CPU_ISSET_S((size_t)cpu, sizeof mine, mine.bits)) continue;
        seen++;
        n += leads_core(root, cpu, &mine);
    }
    return n > 1 || n_cpu <= 1 ? max_i32(n, 1) : 2;
}

int32_t machine_cores_at(const char *root, const char *cpus)
{
    const int32_t n = whole_cores(root, cpus);
    const double quota = cgroup_read(root).cores;
    if (quota <= 0 || quota >= (double)n) return n;
    const int32_t whole = (int32_t)quota;
    /* a part of a core is one more */
    return (double)whole < quota || whole == 0 ? whole + 1 : whole;
}

int32_t machine_cores(void)
{
    return machine_cores_at("", NULL);
}

const char *machine_isa(void)
{
    const char *v = getenv("CAIRN_ISA"); /* NOLINT(concurrency-mt-unsafe): nothing sets variables */
    return v && v[0] ? v : NULL;
}
