/* The disk tier of the prefix cache: runs of blocks, with states, in files that outlive the process
   (docs/cache-files.md).

   An entry is a run of 1 to STORE_MAX_BLOCKS consecutive blocks of one token path: its tokens, the key
   of what precedes, for each block and cache group the block's bytes or nothing, and any recurrent
   states within.  Blocks are found by chain keys: the key of a block is a hash of its parent's key and
   its tokens, that of a path's beginning a hash of all that decides what blocks hold.

   Threads: one thread of the caller calls all of this, but for store_read, which another one may call meanwhile;
   a thread of the store's own scans the folder at the start, writes and removes.  Callers wait for the
   disk in store_read and store_flush alone.  Nothing that a disk does is an error of the caller's: what cannot be written or read is a
   miss, and the store says so in a log line and in its counts. */
#ifndef CACHE_STORE_H
#define CACHE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "cairn/status.h"

enum {
    STORE_MAX_BLOCKS = 16, /* 1,024 positions: a file is worth its seek, a lost one little */
    STORE_MAX_GROUPS = 32, /* models have one to three */
    STORE_MAX_STATES = 64  /* in an entry: one every 16 positions */
};

typedef struct store store;
typedef hash128 store_key;
typedef uint64_t store_id; /* of an entry while it is in the store; never reused */

/* What decides the bytes of a block, besides the tokens up to its end. */
typedef struct store_origin {
    uint8_t fingerprint[16];  /* the model: its weights and configuration */
    uint32_t numerics;        /* version */
    const char *scheme;       /* how blocks are coded: the cache's codec and layout, as text */
    cairn_str space;          /* whose they are: the API key's namespace; empty: nobody's */
    store_key media, adapter; /* zero: none */
} store_origin;
/* The parent of a path's first block. */
store_key store_root(const store_origin *o);
/* Of a block with n_tok ≤ KV_BLOCK tokens after `parent`; the last of a path may be partial, and has
   another key than when it is full. */
store_key store_block_key(store_key parent, const int32_t *token, int32_t n_tok);

typedef struct store_opts {
    const char *dir; /* absolute; made with mode 0700 when it is not there */
    uint8_t fingerprint[16];
    uint32_t numerics;
    const char *scheme;
    int32_t n_group;
    const size_t *block_bytes; /* [n_group] */
    size_t state_bytes;        /* 0: no layer is recurrent */
    uint32_t companion_codec;  /* of companion state that can be read; 0: none */
    uint64_t max_bytes;        /* of all files of this model; 0: 32 GiB */
    uint64_t queue_bytes;      /* borrowed at once at most; 0: 2 GiB */
    uint32_t retry_ms;         /* after a first failure to write, doubled up to 16 times; 0: 30 s */
    bool unverified; /* hashes of tensors are not compared: bench_store measures their cost */
} store_opts;
/* E_NOMEM, E_LIMIT (more groups than STORE_MAX_GROUPS, blocks too large); never for what the disk or the
   folder is. */
cairn_status store_open(const store_opts *o, store **out, cairn_diag *dg);
/* What a store takes from its opening on, but for its path and its index (about 1 KiB a file); and with every run
   that is queued, of so many blocks in all groups together. */
uint64_t store_bytes(void);
uint64_t store_item_bytes(int32_t n_cell);
/* Without a flush: what is queued is lost.  Nothing is borrowed any more.  NULL is fine. */
void store_close(store *s);
/* Whether the folder has been scanned, which is waited for.  Entries are found as they are met. */
bool store_scanned(store *s, uint32_t wait_ms);

/* A recurrent state after `pos` positions from the path's beginning. */
typedef struct store_state {
    int32_t pos;
    const void *bytes;
} store_state;

/* State of something beside the model (a draft's cache).  Readers of another codec do without it. */
typedef struct store_companion {
    uint32_t codec; /* 0: none */
    const void *bytes;
    size_t n_bytes; /* at most 4 GiB */
} store_companion;

typedef struct store_run {
    store_key root, parent; /* the same where first_block is 0 */
    int32_t first_block, n_block;
    const int32_t *token; /* [n_tok]; copied */
    int32_t n_tok;        /* the last block may be partial, and has its whole size in the file */
    const uint8_t *const *block; /* [n_block][n_group], NULL: absent; bytes are borrowed */
    const store_state *state;    /* [n_state], positions rising, within the run or at its end */
    int32_t n_state;
    store_companion companion;
    bool urgent; /* is not put off until the caller is idle */
} store_run;
/* Queues a run for writing.  OK: the bytes of its blocks and states are borrowed, and must not change, until
   store_poll hands `user` back; parents should be put first.  E_BUSY: the queue is full or the folder
   cannot be written now; E_LIMIT: larger than the whole store; E_NOMEM.  After a failure nothing is
   borrowed, and the run may be put again later. */
cairn_status store_put(store *s, const store_run *r, void *user);

typedef enum store_result {
    STORE_DURABLE, /* a crash from now on does not lose it */
    STORE_DROPPED, /* not tried, since the folder cannot be written now */
    STORE_NO_ROOM, /* not within the byte limit, beside what precedes it */
    STORE_FAILED
} store_result;
typedef struct store_done {
    void *user;
    store_result result;
} store_done;
/* One run that is no longer borrowed, in the order of their ends; false: none now. */
bool store_poll(store *s, store_done *out);

/* Writing goes on only while the caller is idle, in a flush, or up to the last urgent run; it stops after at most
   one tensor. */
void store_idle(store *s, bool idle);

typedef struct store_flushed {
    uint32_t pending;                  /* not written by the deadline */
    uint32_t durable, dropped, failed; /* since the last flush; refused puts count as dropped */
    uint32_t n_entry;                  /* in the store now */
    int32_t longest; /* tokens of the longest path that is durable from its beginning */
} store_flushed;
/* Looks for every entry's file.  Answers how many were found gone or damaged since the last call: what was durable
   may have to be put again. */
uint32_t store_count_lost(store *s);
bool store_in_place(store *s); /* the folder is still the one that was written in */
/* Waits until all that was put is durable or has failed, for wait_ms at most.  Results of single runs are
   still to be polled. */
void store_flush(store *s, uint32_t wait_ms, store_flushed *out);

/* Entries that hold the block with this key on a path with this root, the latest first; at most max. */
int32_t store_find(store *s, store_key root, store_key key, store_id *out, int32_t max);

typedef struct store_info {
    int32_t first_block, n_block, n_tok, n_state;
    uint16_t here[STORE_MAX_GROUPS]; /* bit i: block i of the entry is there in this group */
    int32_t state_pos[STORE_MAX_STATES];
} store_info;
bool store_get_info(store *s, store_id id, store_info *out); /* false: it is gone */

typedef struct store_dest {
    const int32_t *token; /* what the entry must begin with; only that much may be asked for */
    int32_t n_tok;
    uint8_t *const
        *block;  /* [n_block][n_group] of the entry, NULL: not wanted; NULL: no block is */
    void *state; /* NULL: not wanted */
    int32_t state_pos;
    void *companion; /* NULL: not wanted */
    size_t companion_bytes;
} store_dest;
/* Fills all that is wanted straight from the file.  E_NOTFOUND: the entry is gone, begins otherwise, or
   lacks something that is wanted; E_CORRUPT: it was damaged and is no longer in the store; E_IO.  After a
   failure the destinations hold anything. */
cairn_status store_read(store *s, store_id id, const store_dest *d, cairn_diag *dg);

typedef struct store_stats {
    uint64_t bytes, queued_bytes, max_bytes;
    uint32_t n_written; /* runs, since the start */
    uint32_t n_failed;  /* that could not be written */
    uint32_t n_entry;   /* that can be read */
    uint32_t n_corrupt; /* files met since the start that were damaged, and removed */
    uint32_t n_foreign; /* of another version, machine or scheme; they stay while there is room */
    uint32_t n_no_room; /* runs that did not fit beside what precedes them */
    uint32_t n_evicted, n_read, n_miss;
    bool read_only; /* the last write failed */
} store_stats;
void store_get_stats(store *s, store_stats *out);

#endif
