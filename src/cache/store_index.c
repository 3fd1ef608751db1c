/* Which entries there are: found by the keys of their blocks, listed by use.  Owns the entries; knows
   no file but by name.  The caller holds the store's lock.

   A block's place in the hash table is slot · STORE_MAX_BLOCKS + block, so that chains are an array
   beside the slots and nothing is allocated but for new entries and on growth. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cache/store_priv.h"

enum { FIRST_SLOTS = 64 /* 6 KiB for who has no files yet; doubled as they come */ };

void index_init(store_index *ix)
{
    *ix = (store_index){.newest = STORE_NONE, .oldest = STORE_NONE};
}

void index_deinit(store_index *ix)
{
    for (uint32_t i = 0; i < ix->cap; i++) mem_free(ix->slot[i]);
    mem_free(ix->slot);
    mem_free(ix->gen);
    mem_free(ix->free_slot);
    mem_free(ix->bucket);
    mem_free(ix->chain);
    index_init(ix);
}

static uint32_t *bucket_of(const store_index *ix, store_key k)
{
    return &ix->bucket[k.lo & (ix->n_bucket - 1)];
}

static void link_blocks(store_index *ix, uint32_t slot)
{
    const store_entry *e = ix->slot[slot];
    for (int32_t i = 0; i < e->n_block; i++) {
        const uint32_t place = slot * STORE_MAX_BLOCKS + (uint32_t)i;
        uint32_t *head = bucket_of(ix, e->key[i]);
        ix->chain[place] = *head;
        *head = place;
    }
}

static void unlink_blocks(store_index *ix, uint32_t slot)
{
    const store_entry *e = ix->slot[slot];
    for (int32_t i = 0; i < e->n_block; i++) {
        uint32_t *at = bucket_of(ix, e->key[i]);
        while (*at != slot * STORE_MAX_BLOCKS + (uint32_t)i) at = &ix->chain[*at];
        *at = ix->chain[*at];
    }
}

/* Everything new before anything is given up. */
static bool grow(store_index *ix)
{
    const uint32_t cap = ix->cap ? 2 * ix->cap : FIRST_SLOTS, n_bucket = cap * 4;
    if (cap > STORE_MAX_ENTRIES) return false;
    store_index to = *ix;
    to.cap = cap;
    to.n_bucket = n_bucket;
    to.slot = mem_calloc(cap, sizeof *to.slot, MEM_CACHE);
    to.gen = mem_calloc(cap, sizeof *to.gen, MEM_CACHE);
    to.free_slot = mem_calloc(cap, sizeof *to.free_slot, MEM_CACHE);
    to.bucket = mem_alloc(n_bucket * sizeof *to.bucket, MEM_CACHE);
    to.chain = mem_calloc(cap, STORE_MAX_BLOCKS * sizeof *to.chain, MEM_CACHE);
    const bool ok = to.slot && to.gen && to.free_slot && to.bucket && to.chain;
    store_index *give_up = ok ? ix : &to;
    if (ok) {
        if (ix->cap) { /* in the same slots: ids stay */
            memcpy(to.slot, ix->slot, ix->cap * sizeof *to.slot);
            memcpy(to.gen, ix->gen, ix->cap * sizeof *to.gen);
        }
        memset(to.bucket, 0xff, n_bucket * sizeof *to.bucket);
        to.n_free = 0;
        for (uint32_t i = cap; i-- > ix->cap;) to.free_slot[to.n_free++] = i;
        for (uint32_t i = 0; i < ix->cap; i++)
            if (to.slot[i]) link_blocks(&to, i);
    }
    mem_free(give_up->slot);
    mem_free(give_up->gen);
    mem_free(give_up->free_slot);
    mem_free(give_up->bucket);
    mem_free(give_up->chain);
    if (ok) *ix = to;
    return ok;
}

bool index_reserve(store_index *ix)
{
    return ix->n_free || grow(ix);
}

store_entry *index_entry(const store_meta *m, uint64_t bytes)
{
    const size_t n_key = (size_t)m->n_block, n_state = (size_t)m->n_state;
    store_entry *e = mem_calloc(
        1, sizeof *e + n_key * sizeof *e->key + n_state * sizeof *e->state_pos, MEM_CACHE);
    if (!e) return NULL;
    e->root = m->root;
    e->parent = m->parent;
    e->name = store_name_of(m);
    e->bytes = bytes;
    e->first_block = m->first_block;
    e->n_block = m->n_block;
    e->n_tok = m->n_tok;
    e->n_state = m->n_state;
    memcpy(e->here, m->here, sizeof e->here);
    memcpy(e->key, m->key, n_key * sizeof *e->key);
    e->state_pos = (int32_t *)(void *)(e->key + n_key);
    memcpy(e->state_pos, m->state_pos, n_state * sizeof *e->state_pos);
    return e;
}

store_entry *index_foreign(store_name n, uint64_t bytes)
{
    store_entry *e = mem_calloc(1, sizeof *e, MEM_CACHE);
    if (!e) return NULL;
    e->name = n;
    e->bytes = bytes;
    return e;
}

static void put_newest(store_index *ix, uint32_t slot)
{
    store_entry *e = ix->slot[slot];
    e->newer = STORE_NONE;
    e->older = ix->newest;
    *(ix->newest == STORE_NONE ? &ix->oldest : &ix->slot[ix->newest]->newer) = slot;
    ix->newest = slot;
}

static void take_out(store_index *ix, uint32_t slot)
{
    const store_entry *e = ix->slot[slot];
    *(e->newer == STORE_NONE ? &ix->newest : &ix->slot[e->newer]->older) = e->older;
    *(e->older == STORE_NONE ? &ix->oldest : &ix->slot[e->older]->newer) = e->newer;
}

uint32_t index_add(store_index *ix, store_entry *e)
{
    assert(ix->n_free > 0); /* index_reserve */
    const uint32_t slot = ix->free_slot[--ix->n_free];
    ix->slot[slot] = e;
    ix->gen[slot]++;
    link_blocks(ix, slot);
    put_newest(ix, slot);
    ix->bytes += e->bytes;
    *(e->n_block ? &ix->n : &ix->n_foreign) += 1;
    return slot;
}

store_entry *index_take(store_index *ix, uint32_t slot)
{
    store_entry *e = ix->slot[slot];
    unlink_blocks(ix, slot);
    take_out(ix, slot);
    ix->slot[slot] = NULL;
    ix->free_slot[ix->n_free++] = slot;
    ix->bytes -= e->bytes;
    *(e->n_block ? &ix->n : &ix->n_foreign) -= 1;
    return e;
}

/* root NULL: on any path. */
static uint32_t next_place(const store_index *ix, const store_key *root, store_key key,
                           uint32_t from, int32_t *block)
{
    if (!ix->n_bucket) return STORE_NONE;
    uint32_t at = from == STORE_NONE ? *bucket_of(ix, key) : ix->chain[from];
    for (; at != STORE_NONE; at = ix->chain[at]) {
        const store_entry *e = ix->slot[at / STORE_MAX_BLOCKS];
        *block = (int32_t)(at % STORE_MAX_BLOCKS);
        if (hash128_same(e->key[*block], key) && (!root || hash128_same(e->root, *root))) return at;
    }
    return STORE_NONE;
}

uint32_t index_find(const store_index *ix, store_key root, store_key key, uint32_t from,
                    int32_t *block)
{
    return next_place(ix, &root, key, from, block);
}

static uint32_t named(const store_index *ix, const store_key *root, store_name n)
{
    int32_t block;
    for (uint32_t at = STORE_NONE;;) {
        at = next_place(ix, root, n.end, at, &block);
        if (at == STORE_NONE) return STORE_NONE;
        const store_entry *e = ix->slot[at / STORE_MAX_BLOCKS];
        if (e->n_block == n.n_block && block == n.n_block - 1) return at / STORE_MAX_BLOCKS;
    }
}

uint32_t index_named(const store_index *ix, store_key root, store_name n)
{
    return named(ix, &root, n);
}

bool index_has_name(const store_index *ix, store_name n)
{
    return named(ix, NULL, n) != STORE_NONE;
}

uint32_t index_slot(const store_index *ix, store_id id)
{
    const uint32_t slot = (uint32_t)id - 1;
    const bool there = slot < ix->cap && ix->slot[slot] && ix->gen[slot] == id >> 32;
    return there ? slot : STORE_NONE;
}

store_id index_id(const store_index *ix, uint32_t slot)
{
    return (store_id)ix->gen[slot] << 32 | (slot + 1);
}

uint32_t index_before(const store_index *ix, store_key root, store_key parent, int32_t first_block)
{
    int32_t block;
    if (first_block == 0) return STORE_NONE;
    for (uint32_t at = STORE_NONE;;) {
        at = index_find(ix, root, parent, at, &block);
        if (at == STORE_NONE) return STORE_NONE;
        const store_entry *p = ix->slot[at / STORE_MAX_BLOCKS];
        if (p->first_block + block + 1 == first_block) return at / STORE_MAX_BLOCKS;
    }
}

static uint32_t parent_of(const store_index *ix, const store_entry *e)
{
    return index_before(ix, e->root, e->parent, e->first_block); /* foreign ones begin at 0 */
}

uint64_t index_path_bytes(const store_index *ix, uint32_t slot)
{
    uint64_t sum = 0;
    for (; slot != STORE_NONE; slot = parent_of(ix, ix->slot[slot])) sum += ix->slot[slot]->bytes;
    return sum;
}

/* Ends: each step goes to a lower first_block. */
void index_touch(store_index *ix, uint32_t slot)
{
    while (slot != STORE_NONE) {
        take_out(ix, slot);
        put_newest(ix, slot);
        slot = parent_of(ix, ix->slot[slot]);
    }
}

typedef struct aged {
    int64_t clamped_ns, ns;
    uint32_t slot;
} aged;

static int by_age(const void *a, const void *b)
{
    const aged *x = a, *y = b;
    if (x->clamped_ns != y->clamped_ns) return x->clamped_ns < y->clamped_ns ? -1 : 1;
    if (x->ns != y->ns) return x->ns < y->ns ? -1 : 1;
    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static void put_oldest(store_index *ix, uint32_t slot)
{
    store_entry *e = ix->slot[slot];
    e->older = STORE_NONE;
    e->newer = ix->oldest;
    *(ix->oldest == STORE_NONE ? &ix->newest : &ix->slot[ix->oldest]->older) = slot;
    ix->oldest = slot;
}

/* From the latest on, each behind what precedes it; `up` has room for a path of all. */
static void relist(store_index *ix, const aged *all, size_t n, uint32_t *up, bool *listed)
{
    ix->newest = ix->oldest = STORE_NONE;
    while (n-- > 0) {
        size_t depth = 0;
        uint32_t slot = all[n].slot;
        while (slot != STORE_NONE && !listed[slot]) {
            listed[slot] = true;
            up[depth++] = slot;
            slot = parent_of(ix, ix->slot[slot]);
        }
        while (depth > 0) put_oldest(ix, up[--depth]);
    }
}

void index_sort(store_index *ix, int64_t now_ns)
{
    size_t n = 0;
    const size_t want = (size_t)ix->n + ix->n_foreign;
    if (!want) return;
    aged *all = mem_calloc(want, sizeof *all, MEM_CACHE);
    uint32_t *up = mem_calloc(want, sizeof *up, MEM_CACHE);
    bool *listed = mem_calloc(ix->cap, sizeof *listed, MEM_CACHE);
    if (all && up && listed) { /* or else the order of the folder stays */
        for (uint32_t i = ix->oldest; i != STORE_NONE; i = ix->slot[i]->newer) {
            const store_entry *e = ix->slot[i];
            const int64_t t = e->mtime_ns, known_ns = t < now_ns ? t : now_ns;
            all[n++] = (aged){e->used ? now_ns + 1 : known_ns, t, i};
        }
        qsort(all, n, sizeof *all, by_age);
        relist(ix, all, n, up, listed);
    }
    mem_free(all);
    mem_free(up);
    mem_free(listed);
}

/* Whether all that precedes an entry is there too. */
static bool rooted(const store_index *ix, uint32_t slot)
{
    while (ix->slot[slot]->first_block != 0) {
        slot = parent_of(ix, ix->slot[slot]);
        if (slot == STORE_NONE) return false;
    }
    return true;
}

int32_t index_longest(const store_index *ix)
{
    int32_t longest = 0;
    for (uint32_t i = ix->newest; i != STORE_NONE; i = ix->slot[i]->older) {
        const store_entry *e = ix->slot[i];
        const int32_t end = e->n_block ? e->first_block * KV_BLOCK + e->n_tok : 0;
        if (end > longest && rooted(ix, i)) longest = end;
    }
    return longest;
}
