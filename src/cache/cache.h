/* The KV cache: blocks of 64 positions, found through a table a sequence and group of layers (layers
   of one window form a group; one whose codec is delayed has a group for the positions before its start and
   one for those after).  A windowed group lets go of blocks that no future row can see.
   Recurrent layers have a fixed state a sequence.  Computed blocks and marked states stay as prefixes that
   later sequences begin with, to the bit what they would compute (docs/numerics.md).  Owned by one thread. */
#ifndef CACHE_CACHE_H
#define CACHE_CACHE_H

#include "base/hash.h"
#include "cairn/status.h"
#include "tensor/cachespec.h"
#include "tensor/kvview.h"

typedef struct cache cache;
struct store_flushed;
struct store_stats;
typedef int32_t seq_id;

typedef struct cache_opts {
    kv_scheme codec; /* borrowed: as long as the cache is opened */
    int32_t max_seqs;
    int32_t ctx_len;       /* positions of one sequence at most */
    int32_t max_step_rows; /* rows of one sequence in one step at most */
    uint64_t max_bytes;    /* of all blocks and states; one state there always is */
    uint64_t prefix_room;  /* beside them, for prefixes */
    uint64_t prefix_bytes; /* of prefixes that no open sequence holds, at most; 0: none are kept */
} cache_opts;

/* Whose prefixes: a hash of all that makes equal tokens mean other rows (store_root, where there is a disk). */
typedef hash128 cache_ns;

cairn_status cache_new(const cachespec *spec, const cache_opts *o, cache **out, cairn_diag *dg);
void cache_free(cache *c);
const kv_layer *cache_layers(const cache *c); /* [n_layer] */
int32_t cache_groups(const cache *c);
/* Bytes that a sequence of n positions takes at its worst moment; exact. */
uint64_t cache_bytes(const cachespec *spec, const kv_scheme *codec, int32_t max_step_rows,
                     int32_t n_pos);
size_t cache_state_bytes(const cachespec *spec); /* of it, the recurrent state */
/* Bytes that a cache takes beside cache_total: its tables, the tree of prefixes, and a disk tier but for the index of
   its files (about 1 KiB each, which hold thousands of times that); exact. */
cairn_status cache_overhead(const cachespec *spec, const cache_opts *o, bool disk, uint64_t *out,
                            cairn_diag *dg);
uint64_t cache_used(const cache *c);     /* blocks that hold positions, states of open sequences */
uint64_t cache_total(const cache *c);    /* the pools and all states */
uint64_t cache_reserved(const cache *c); /* set aside for open sequences, used or not */
/* Of prefixes alone: blocks that no sequence holds, and states. */
uint64_t cache_kept(const cache *c);
int32_t cache_nodes(const cache *c); /* of the tree of prefixes: up to a block of tokens each */

/* A new empty sequence with room set aside for n_pos positions: nothing later fails for lack of
   room.  E_BUSY: no slot or no room now; E_LIMIT: it can never fit. */
cairn_status cache_open(cache *c, int32_t n_pos, seq_id *out);
typedef struct cache_ask {
    cache_ns ns;     /* where it looks, and leaves what it computes */
    cache_ns common; /* where it looks besides */
    const int32_t *ids;
    int32_t n_ids, n_pos;
} cache_ask;
/* The same, beginning with as much of ids as is known (cache_len says how much), but for its last: whoever
   asks wants the row after it.  Only such a sequence can leave anything for others. */
cairn_status cache_open_on(cache *c, const cache_ask *a, seq_id *out);
/* False while its rows come from files: then it may be closed, and nothing else.  Such a close gives the room
   back a little later, so E_BUSY is possible where no sequence is open. */
bool cache_ready(const cache *c, seq_id s);
void cache_arrive(cache *c); /* takes note of what was read */
/* Makes the full blocks of a sequence known, whose tokens are ids[cache_len].  Cheap where there is none
   new; between steps only, as is what follows: a block may be exchanged for an equal one. */
void cache_publish(cache *c, seq_id s, const int32_t *ids);
/* The sequence's very end too, with its recurrent state: a place to go on from.  TURN: where a conversation
   is likely to; such places are given up last. */
typedef enum cache_worth { CACHE_STEP, CACHE_TURN } cache_worth;
void cache_mark(cache *c, seq_id s, const int32_t *ids, cache_worth worth);
bool cache_keeps(const cache *c); /* prefixes, at all */
bool cache_needs_marks(
    const cache *c); /* can only go on from them, or forgets what lies between them first */
/* The prefix of a sequence, whose tokens are ids[cache_len], stays until it is unpinned.  E_BUSY: no room
   beside what runs now; E_LIMIT: it would leave none for one whole sequence, or cannot be noted or kept; *why
   says which, static text. */
cairn_status cache_pin(cache *c, seq_id s, const int32_t *ids, int32_t *out, const char **why);
void cache_unpin(cache *c, int32_t pin);
/* Prefixes outlive the process, in files under `dir` (docs/cache-files.md).  Once, before any sequence opens.
   E_NOMEM, E_LIMIT; what the disk is, is no error. */
typedef struct cache_disk_opts {
    const char *dir;         /* absolute */
    uint8_t fingerprint[16]; /* of the model */
    uint32_t numerics;       /* version */
    const char *scheme;      /* how blocks are coded */
    uint64_t max_bytes;      /* of all files of the model; 0: store_opts */
    void (*arrived)(
        void
            *ctx); /* cache_arrive has something to note; on a thread of the cache's; may be NULL */
    void *ctx;
} cache_disk_opts;
cairn_status cache_add_disk(cache *c, const cache_disk_opts *o, cairn_diag *dg);
/* While nothing else is to do: hands over to be written what is not on disk yet, and takes note of what was.
   False: all of it is.  Stops the writing where idle is false. */
bool cache_write_behind(cache *c, bool idle);
/* What is known of an open sequence, though others run: one run a call, copied, as few as there are buffers.
   False: nothing of it is left to be handed over, or nothing can be now. */
bool cache_write_now(cache *c, seq_id s);
/* All of it, for wait_ms at most. */
void cache_flush(cache *c, uint32_t wait_ms, struct store_flushed *out);
bool cache_disk_stats(const cache *c, struct store_stats *out); /* false: there is none */

void cache_forget(cache *c); /* every prefix that no open sequence uses */
void cache_close(cache *c, seq_id s);
/* Blocks for the next n_rows ≤ max_step_rows positions (within what was set aside).  Windowed groups
   first drop what neither these rows nor a rewind can see. */
void cache_reserve(cache *c, seq_id s, int32_t n_rows);
/* So many of the rows that were reserved are computed; all or none, where a layer is recurrent.  After none a state
   may be lost, so that such a sequence can only be closed. */
void cache_commit(cache *c, seq_id s, int32_t n_rows);
/* Back to n_pos positions, at most max_step_rows behind the furthest end so far.  Waits for drafts,
   whose refused tokens it takes back.  Not where a layer is recurrent: its state has no past. */
void cache_rewind(cache *c, seq_id s, int32_t n_pos);
int32_t cache_len(const cache *c, seq_id s);
uint8_t *const *const *cache_blocks(const cache *c, seq_id s); /* [group][position / 64] */
/* The recurrent state of all layers, which the reserved rows leave behind; NULL: no layer is recurrent. */
float *cache_state(const cache *c, seq_id s);
/* What it is before those rows, where that lies elsewhere: others may read it too.  NULL: it is cache_state. */
const float *cache_state_before(const cache *c, seq_id s);

#endif
