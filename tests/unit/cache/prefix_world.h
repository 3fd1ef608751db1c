/* Caches against a naive model: what a row holds is a hash of all tokens up to it, so that a block or a state
   taken from the wrong place, or written again while somebody reads it, shows.  Random programs of open,
   grow, rewind, mark, pin, close and forget, from a seed, for every kind of cache. */
#ifndef TESTS_PREFIX_WORLD_H
#define TESTS_PREFIX_WORLD_H

#include "test.h"

#include "cache/cache_priv.h"

enum { MAX_STEP = 40, CTX = 500, SEQS = 4, PAST = 60, PINS = 3, N_KIND = 10 };

typedef struct kind {
    const char *name;
    cachespec spec;
    kv_scheme codec;
    bool sees_all; /* no window, no state: with ample room all that was computed is known */
} kind;

extern const kind world_kinds[N_KIND];

typedef struct naive {
    bool open;
    seq_id id;
    int ns;
    int32_t n_pos, len, furthest, hit;
    int32_t ids[CTX];
} naive;

typedef struct world {
    const kind *k;
    cache *c;
    cache_opts opts;
    uint64_t seed, i, draw;
    naive seq[SEQS];
    struct {
        int ns;
        int32_t n, ids[CTX];
    } past[PAST]; /* what was closed, as far as computed */
    int32_t n_past;
    int64_t hits;
    struct {
        int32_t pin, n, ns, ids[CTX];
    } pin[PINS];
    int32_t ctx;
    int32_t n_pin, n_pinned; /* now; ever */
} world;

/* Sequences of at most ctx ≤ CTX positions, memory for n_seqs of them and for prefixes. */
world *world_new(const kind *k, uint64_t seed, int32_t ctx, uint64_t n_seqs, uint64_t prefix_bytes);
void world_free(world *w);
void world_open_cache(world *w); /* of w->opts */
/* The i-th thing.  `ample`: with room for all, so that whatever was marked is known. */
void world_do(world *w, uint64_t i, bool ample);
void world_verify(const world *w); /* what open sequences see */
void world_count(const world *w);  /* references, blocks, nodes, states */
void world_close_all(world *w);    /* sequences and pins */
bool world_open(world *w, naive *q, int32_t n_ids, int32_t n_pos); /* q's prompt; false: no room */

#endif
