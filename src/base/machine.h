/* What the machine grants this process.  Read anew at each call; any thread. */
#ifndef BASE_MACHINE_H
#define BASE_MACHINE_H

#include <stdint.h>

/* Bytes that this process may still take: MemAvailable, capped by the cgroup's and the address space
   limit.  Total likewise. */
void machine_memory(uint64_t *available, uint64_t *total);
/* The most bytes that were resident at once; 0: unknown. */
uint64_t machine_peak_rss(void);
/* Bytes of the second-level cache, which is one core's own; 0: unknown.  Of the third a virtual machine often
   tells its whole host's. */
uint64_t machine_core_cache(void);
/* Cores that this thread may run on, by its affinity mask; at least 1.  A system call, no file. */
int32_t machine_affinity(void);
/* Threads worth starting: the affinity mask's cores, each once whatever hardware threads it has (but both of a
   lone core's), or what the cgroups' quotas grant if that is less; at least 1.  _at: with `root` before every path,
   a folder with files in place of the system's, and of a list of hardware threads ("0-3,8") in place of the mask. */
int32_t machine_cores(void);
int32_t machine_cores_at(const char *root, const char *cpus);
/* The kernel level that the user asks for, CAIRN_ISA; NULL: none.  tests/kern/test_isa.c, and every program
   of tests/kern and tests/ops compares levels. */
const char *machine_isa(void);

#endif
