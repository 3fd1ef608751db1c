/* Limits that control groups set on this process.  Read anew at each call; any thread. */
#ifndef BASE_CGROUP_H
#define BASE_CGROUP_H

#include <stdint.h>

typedef struct cgroup_limits {
    uint64_t memory_max,
        memory_left; /* bytes, of limits that kill or slow down; UINT64_MAX: none */
    double cores;    /* CPU time a second of time; 0: no quota */
} cgroup_limits;

/* The tightest of our own groups' and of all above them.  `root` goes before every path: "", or a
   folder with files in place of the system's. */
cgroup_limits cgroup_read(const char *root);

#endif
