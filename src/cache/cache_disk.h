/* The disk tier inside the cache: what cache_disk.c (writing), cache_restore.c (what is read) and cache_reader.c
   (who reads it) share. */
#ifndef CACHE_CACHE_DISK_H
#define CACHE_CACHE_DISK_H

#include "base/thread.h"
#include "cache/cache_priv.h"
#include "cache/store.h"

typedef struct disk_writer disk_writer;

/* What files hold of a block of a path. */
typedef struct disk_block {
    store_id id;        /* has all that layers which see everything need; 0: none has */
    int32_t first, end; /* blocks of that entry */
    int32_t n_tok;      /* of that entry */
    uint32_t groups;    /* bit g: it has group g's block */
    store_id state_id;  /* has the last state inside the block; 0: none has */
    int32_t state_first, state_pos;
} disk_block;

/* Entries of one block that are looked at: its run's, those of runs that parted or ended in it. */
enum { DISK_MAX_FOUND = 8 /* more would be as many turns of one message */ };
_Static_assert(STORE_MAX_GROUPS <= 32, "a bit each");

/* A sequence's rows on their way from files.  The engine's thread's, but for the time from reader_put to
   reader_take. */
typedef struct restore {
    cache_ask ask;     /* its ids are a copy: whoever asked may be gone */
    int32_t *ids;      /* [ctx_len] */
    disk_block *entry; /* [n_table] by block number of the path */
    uint32_t *fresh;   /* [n_table] bit g: group g's block is read from a file */
    seq *q;
    int32_t n;     /* positions that the sequence will have */
    int32_t at;    /* the block from which on the rest is to be read */
    int32_t tries; /* before this one */
    bool failed;
    /* guarded by the disk's mu */
    struct restore *next;
    bool over, unwanted;
} restore;

typedef struct disk {
    store *store;
    disk_writer *writer;
    int32_t *ram;     /* [n_table] scratch: the last node of each block of a path */
    restore *restore; /* [n_seq] */

    thread reader;
    void (*arrived)(void *ctx); /* immutable */
    void *ctx;
    mutex mu;
    cond work;
    /* guarded by mu */
    restore *first, *last; /* queue */
    bool stop;
    void (*before_read)(void *ctx); /* test_engine_restore makes a slow disk of it; NULL */
    void *before_ctx;
} disk;

/* cache_reader.c */
cairn_status reader_start(cache *c, cairn_diag *dg); /* after a failure too: */
void reader_stop(cache *c);
uint64_t restores_bytes(const cache *c);
void reader_put(disk *d, restore *r);
void reader_drop(disk *d, restore *r); /* it is not wanted any more: it is over soon */
bool reader_take(disk *d, restore *r); /* false: it is not over */

/* cache_restore.c; the reader's thread.  Reads the next entry that is wanted; false: nothing is left to do. */
bool restore_step(const cache *c, restore *r);

#endif
