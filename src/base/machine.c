/* What the machine grants this process: cores and memory.  A container's limit may stand at any
   level above our own control group, in version 2 or 1 of that interface; the tightest one counts.
   Whatever cannot be read limits nothing. */
#include "base/machine.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { GROUP_PATH_MAX = 1024, GROUP_LEVELS_MAX = 64, CORES_MAX = 1 << 16 };

/* Reads a small file whole into a NUL-terminated buffer; false if it is not there. */
static bool slurp(const char *path, char *out, size_t size)
{
    FILE *f = fopen(path, "re");
    if (!f) return false;
    const size_t n = fread(out, 1, size - 1, f);
    out[n] = '\0';
    return fclose(f) == 0;
}

/* The figure after `label` at a line's start; false if there is none ("max" is none). */
static bool figure(const char *text, const char *label, uint64_t *out)
{
    const size_t n = strlen(label);
    for (const char *p = text; p; p = strchr(p, '\n'), p = p ? p + 1 : NULL) {
        if (strncmp(p, label, n) != 0) continue;
        p += n;
        while (*p == ' ' || *p == '\t') p++;
        if (*p < '0' || *p > '9') return false;
        errno = 0;
        *out = strtoull(p, NULL, 10);
        return errno == 0;
    }
    return false;
}

typedef struct group_limits {
    uint64_t memory_max, memory_left; /* UINT64_MAX: none */
    double cores;                     /* 0: no quota */
} group_limits;

static bool group_file(const char *dir, const char *name, char *out, size_t size)
{
    char path[GROUP_PATH_MAX + 64];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return slurp(path, out, size);
}

static void note_memory(group_limits *g, uint64_t max, uint64_t now, const char *stat)
{
    uint64_t active = 0, inactive = 0;
    /* file pages come back from the file, so they are room */
    (void)figure(stat, "active_file ", &active);
    (void)figure(stat, "inactive_file ", &inactive);
    const uint64_t file = active + inactive;
    const uint64_t held = now > file ? now - file : 0, left = max > held ? max - held : 0;
    if (max < g->memory_max) g->memory_max = max;
    if (left < g->memory_left) g->memory_left = left;
}

static void read_group(const char *dir, group_limits *g)
{
    char text[8192], stat[8192];
    uint64_t max = 0, now = 0, quota = 0, period = 0;
    if (!group_file(dir, "memory.stat", stat, sizeof stat)) stat[0] = '\0';
    if ((group_file(dir, "memory.max", text, sizeof text) && figure(text, "", &max) &&
         group_file(dir, "memory.current", text, sizeof text) && figure(text, "", &now)) ||
        (group_file(dir, "memory.limit_in_bytes", text, sizeof text) && figure(text, "", &max) &&
         group_file(dir, "memory.usage_in_bytes", text, sizeof text) && figure(text, "", &now)))
        note_memory(g, max, now, stat);
    const char *gap;
    bool limited = group_file(dir, "cpu.max", text, sizeof text) && figure(text, "", &quota) &&
                   (gap = strchr(text, ' ')) != NULL && figure(gap, " ", &period);
    if (!limited)
        limited =
            group_file(dir, "cpu.cfs_quota_us", text, sizeof text) && figure(text, "", &quota) &&
            group_file(dir, "cpu.cfs_period_us", text, sizeof text) && figure(text, "", &period);
    if (!limited || period == 0) return;
    const double cores = (double)quota / (double)period;
    if (g->cores == 0 || cores < g->cores) g->cores = cores;
}

/* Our group and all above it; `path` as /proc/self/cgroup has it.  Inside a container the path may
   be the host's: levels that are not there are passed over, the mount's root comes last. */
static void walk_up(const char *mount, const char *path, group_limits *g)
{
    char dir[GROUP_PATH_MAX];
    const size_t root = strlen(mount);
    const int n = snprintf(dir, sizeof dir, "%s%s", mount, path);
    if (n < 0 || (size_t)n >= sizeof dir) return;
    for (int level = 0; level < GROUP_LEVELS_MAX; level++) {
        read_group(dir, g);
        char *slash = strrchr(dir, '/');
        if (!slash || (size_t)(slash - dir) < root) return;
        *slash = '\0';
    }
}

static group_limits read_groups(void)
{
    group_limits g = {UINT64_MAX, UINT64_MAX, 0};
    char text[8192];
    if (!slurp("/proc/self/cgroup", text, sizeof text)) return g;
    for (char *line = text, *end; line && *line; line = end) {
        end = strchr(line, '\n');
        if (end) *end++ = '\0';
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path) continue;
        *path++ = '\0';
        names++;
        if (*names == '\0') walk_up("/sys/fs/cgroup", path, &g);
        if (strstr(names, "memory")) walk_up("/sys/fs/cgroup/memory", path, &g);
        if (strstr(names, "cpu") && !strstr(names, "cpuset"))
            walk_up("/sys/fs/cgroup/cpu", path, &g);
    }
    return g;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void machine_memory(uint64_t *available, uint64_t *total)
{
    char text[8192];
    uint64_t free_kib = 0, all_kib = 0;
    if (slurp("/proc/meminfo", text, sizeof text)) {
        (void)figure(text, "MemAvailable:", &free_kib);
        (void)figure(text, "MemTotal:", &all_kib);
    }
    const group_limits g = read_groups();
    *total = smaller(all_kib << 10, g.memory_max);
    *available = smaller(free_kib << 10, g.memory_left);

    struct rlimit as;
    uint64_t mapped_kib = 0;
    if (getrlimit(RLIMIT_AS, &as) != 0 || as.rlim_cur == RLIM_INFINITY) return;
    if (slurp("/proc/self/status", text, sizeof text)) (void)figure(text, "VmSize:", &mapped_kib);
    const uint64_t mapped = mapped_kib << 10;
    *total = smaller(*total, as.rlim_cur);
    *available = smaller(*available, as.rlim_cur > mapped ? as.rlim_cur - mapped : 0);
}

uint64_t machine_peak_rss(void)
{
    char text[8192];
    uint64_t kib = 0;
    if (slurp("/proc/self/status", text, sizeof text) && figure(text, "VmHWM:", &kib))
        return kib << 10;
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (uint64_t)u.ru_maxrss << 10 : 0;
}

static int32_t affinity_cores(void)
{
    cpu_set_t few;
    CPU_ZERO(&few);
    if (sched_getaffinity(0, sizeof few, &few) == 0) return (int32_t)CPU_COUNT(&few);
    /* more cores than cpu_set_t holds */
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 && n < CORES_MAX ? (int32_t)n : 1;
}

int32_t machine_cores(void)
{
    const int32_t n = affinity_cores();
    const group_limits g = read_groups();
    if (g.cores <= 0 || g.cores >= (double)n) return n > 0 ? n : 1;
    const int32_t whole = (int32_t)g.cores;
    return (double)whole < g.cores || whole == 0 ? whole + 1
                                                 : whole; /* part of a core is one more */
}
