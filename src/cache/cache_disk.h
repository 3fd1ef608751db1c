/* The disk tier inside the cache: what cache_disk.c (writing) and cache_restore.c (reading) share. */
#ifndef CACHE_CACHE_DISK_H
#define CACHE_CACHE_DISK_H

#include "cache/cache_priv.h"
#include "cache/store.h"

typedef struct disk_writer disk_writer;

/* Where a block of a path lies on disk. */
typedef struct disk_block {
    bool here;
    store_id id;
    int32_t first; /* block of the entry */
} disk_block;

_Static_assert(STORE_MAX_GROUPS <= 32, "a bit each");

typedef struct disk {
    store *store;
    disk_writer *writer;
    /* scratch, by block number of a path */
    int32_t *ram;      /* [n_table] the last node of each block */
    disk_block *entry; /* [n_table] */
    uint32_t *fresh;   /* [n_table] bit g: group g's block is read from a file */
} disk;

#endif
