/* Memory of tiles: spans cut one after another from large mapped slabs, so that small tensors lie in
   huge pages too and a page is no tensor's alone.  One caller at a time. */
#ifndef CPU_SLAB_H
#define CPU_SLAB_H

#include <stddef.h>
#include <stdint.h>

typedef struct slab slab;
typedef struct slabs {
    slab *newest;
} slabs;

/* A span of zeros at a 64-byte address; NULL: no memory. */
uint8_t *slabs_take(slabs *s, size_t size);
/* A span back; its slab goes with its last one. */
void slabs_give(slabs *s, const uint8_t *p);
/* Bytes that are mapped and that nobody has: addresses, not memory. */
size_t slabs_spare(const slabs *s);
/* Where the i-th `size` bytes of what was taken lie, whole ones of a slab alone; NULL: there are not so many. */
const uint8_t *slabs_chunk(const slabs *s, size_t size, size_t i);

#endif
