/* /sys/devices/system/node lists the nodes and the cores of each, "0-3,8".  Nodes without cores (memory alone),
   and lists that cannot be read, do not count. */
#include "base/nodes.h"

#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/cpulist.h"
#include "base/proc.h"

enum {
    CORES_MAX = 1 << 16, /* as in machine.c */
    IDS_MAX = 1 << 10,   /* the kernel's CONFIG_NODES_SHIFT is 10 at most */
    TEXT_MAX = 8192,
};

typedef struct core_set {
    cpu_set_t bits[CORES_MAX / CPU_SETSIZE];
} core_set;

/* The cores of a node among those of the calling thread; answers how many. */
static int32_t node_cores(const char *root, int32_t id, core_set *out)
{
    char path[1024], text[TEXT_MAX];
    core_set mine;
    long first, last;
    memset(out, 0, sizeof *out);
    (void)snprintf(path, sizeof path, "%s/sys/devices/system/node/node%d/cpulist", root, (int)id);
    memset(&mine, 0, sizeof mine);
    if (!proc_read(path, text, sizeof text) || sched_getaffinity(0, sizeof mine, mine.bits) != 0)
        return 0;
    for (const char *at = text; cpulist_next(&at, CORES_MAX, &first, &last);)
        for (size_t i = (size_t)first; i <= (size_t)last; i++)
            if (CPU_ISSET_S(i, sizeof mine, mine.bits)) CPU_SET_S(i, sizeof *out, out->bits);
    return CPU_COUNT_S(sizeof *out, out->bits);
}

void nodes_read(const char *root, nodes *out)
{
    char path[1024], text[TEXT_MAX];
    core_set cores;
    long first, last;
    *out = (nodes){0};
    (void)snprintf(path, sizeof path, "%s/sys/devices/system/node/online", root);
    if (!proc_read(path, text, sizeof text)) return;
    for (const char *at = text; cpulist_next(&at, IDS_MAX, &first, &last);) {
        for (int32_t id = (int32_t)first; id <= last && out->n < NODES_MAX; id++) {
            const int32_t n = node_cores(root, id, &cores);
            if (n == 0) continue;
            out->of[out->n].id = id;
            out->of[out->n++].n_core = n;
            out->n_core += n;
        }
    }
}

int32_t nodes_place(const nodes *m, int32_t i, int32_t n)
{
    const int64_t core = (int64_t)i * m->n_core / n;
    int32_t at = 0;
    for (int64_t end = m->of[0].n_core; at + 1 < m->n && core >= end; end += m->of[at].n_core) at++;
    return at;
}

bool nodes_bind(const char *root, int32_t id)
{
    core_set cores;
    return node_cores(root, id, &cores) > 0 && sched_setaffinity(0, sizeof cores, cores.bits) == 0;
}
