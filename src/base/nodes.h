/* Memory nodes: which cores are near which memory.  A thread that stays with one node and touches pages first
   has them there. */
#ifndef BASE_NODES_H
#define BASE_NODES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    NODES_MAX = 64
}; /* of those that have cores; machines have up to 16, or 32 by halves of sockets */

/* The nodes with cores that the thread may run on, by rising id. */
typedef struct nodes {
    int32_t n;
    int32_t n_core; /* of all */
    struct {
        int32_t id, n_core;
    } of[NODES_MAX];
} nodes;

/* Reads them for the calling thread, below `root` ("": the machine's).  n = 0 where the system names none. */
void nodes_read(const char *root, nodes *out);
/* Index into m->of for part i of n, 0 ≤ i < n: parts in rising order, as many a node as it has cores. */
int32_t nodes_place(const nodes *m, int32_t i, int32_t n);
/* Binds the calling thread to those cores of a node that it may run on; false: it may run where it might before. */
bool nodes_bind(const char *root, int32_t id);

#endif
