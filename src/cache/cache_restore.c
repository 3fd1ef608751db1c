/* Taking up a prefix from files: as far as blocks in memory and on disk reach without a gap, and where the
   windows and the state that a position needs are there too.  Blocks are read straight into those of the
   sequence (cache_reader.c), which leaves them to the tree as if it had computed them. */
#include <string.h>

#include "base/num.h"
#include "cache/cache.h"
#include "cache/cache_disk.h"
#include "cairn/status.h"
#include "tensor/kvview.h"

enum {
    MAX_TRIES =
        3, /* what was damaged is gone from the index the next time; a disk with more is given up */
    STATE_BLOCKS = 17 /* an engine keeps a state every 1,024 positions, at the end of a block */
};

typedef struct search {
    cache *c;
    restore *r;
    int32_t limit;   /* positions at most */
    int32_t n_block; /* that are there, one after the other; the last may be partial */
    int32_t end;     /* positions of them */
    store_id id;     /* whose info this is: neighbours lie in one entry */
    store_info info;
} search;

/* Blocks that memory has in full, by number. */
static void look_in_memory(search *s, int32_t root)
{
    const tree *t = &s->c->tree;
    const int32_t *ids = s->r->ids;
    int32_t *ram = s->c->disk->ram, n = 0, at = root;
    for (int32_t i = 0; i < s->c->n_table; i++) ram[i] = NO_NODE;
    while (root != NO_NODE && n < s->limit) {
        const int32_t child = tree_child(t, at, ids[n]);
        if (child == NO_NODE || t->node[child].n > s->limit - n) return;
        const int32_t m = t->node[child].n;
        if (memcmp(tree_tok(t, child), ids + n, (size_t)m * sizeof(int32_t)) != 0) return;
        n += m;
        at = child;
        if (n % KV_BLOCK == 0) ram[t->node[child].i_block] = child;
    }
}

static bool get_info(search *s, store_id id)
{
    if (s->id == id) return true;
    s->id = store_get_info(s->c->disk->store, id, &s->info) ? id : 0;
    return s->id != 0;
}

/* The last state within block i of the entry of s->info. */
static void note_state(search *s, int32_t i)
{
    const store_info *info = &s->info;
    disk_block *b = &s->r->entry[i];
    for (int32_t k = 0; k < info->n_state; k++) {
        const int32_t pos = info->state_pos[k];
        if (pos <= max_i32(i * KV_BLOCK, b->state_pos) ||
            pos > min_i32((i + 1) * KV_BLOCK, s->limit))
            continue;
        b->state_id = s->id;
        b->state_first = info->first_block;
        b->state_pos = pos;
    }
}

/* The entry of s->info has block i.  Of several the one with most of it is read: some have no more of their windows
   than the last ones of their path. */
static void note_block(search *s, int32_t i)
{
    const cache *c = s->c;
    const store_info *info = &s->info;
    disk_block *b = &s->r->entry[i];
    uint32_t groups = 0;
    bool full = true;
    for (int32_t g = 0; g < c->n_group; g++) {
        const bool has = info->here[g] >> (i - info->first_block) & 1;
        groups |= (uint32_t)has << g;
        full &= has || c->group[g].window || !group_has(&c->group[g], i);
    }
    if (full && (!b->id || __builtin_popcount(groups) > __builtin_popcount(b->groups))) {
        b->id = s->id;
        b->first = info->first_block;
        b->end = info->first_block + info->n_block;
        b->n_tok = info->n_tok;
        b->groups = groups;
    }
}

/* An entry that holds block i with this key. */
static bool look_on_disk(search *s, store_key key, int32_t i)
{
    store_id found[DISK_MAX_FOUND];
    const int32_t n = store_find(s->c->disk->store, s->r->ask.ns, key, found, DISK_MAX_FOUND);
    s->r->entry[i] = (disk_block){.id = 0};
    for (int32_t k = 0; k < n; k++)
        if (get_info(s, found[k])) {
            note_block(s, i);
            note_state(s, i);
        }
    return s->r->entry[i].id != 0;
}

/* A state inside a block has a file of its own, that ends with it: in the last blocks, as far back as an engine
   keeps none at the end of a block. */
static void look_inside(search *s, const store_key before[STATE_BLOCKS], int32_t n_full)
{
    store_id found;
    for (int32_t i = n_full - 1; i >= max_i32(0, n_full - STATE_BLOCKS); i--) {
        for (int32_t n = KV_BLOCK - 1; n > 0 && !s->r->entry[i].state_id; n--) {
            const store_key key =
                store_block_key(before[i % STATE_BLOCKS], s->r->ids + i * KV_BLOCK, n);
            if (!store_find(s->c->disk->store, s->r->ask.ns, key, &found, 1) || !get_info(s, found))
                continue;
            note_state(s, i);
            if (!s->r->entry[i].id) note_block(s, i); /* memory alone has the whole block */
        }
        if (s->r->entry[i].state_id) return;
    }
}

/* How far it goes; a partial block behind the full ones has a key for every length. */
static void look_everywhere(search *s)
{
    const int32_t *ids = s->r->ids;
    store_key key = s->r->ask.ns, before[STATE_BLOCKS];
    int32_t i = 0;
    for (; (i + 1) * KV_BLOCK <= s->limit; i++) {
        const store_key next = store_block_key(key, ids + i * KV_BLOCK, KV_BLOCK);
        if (!look_on_disk(s, next, i) && s->c->disk->ram[i] == NO_NODE) break;
        before[i % STATE_BLOCKS] = key;
        key = next;
    }
    if (s->c->state_bytes) look_inside(s, before, i);
    s->n_block = i;
    s->end = i * KV_BLOCK;
    for (int32_t n = min_i32(KV_BLOCK - 1, s->limit - s->end); n > 0; n--)
        if (look_on_disk(s, store_block_key(key, ids + s->end, n), i)) {
            s->n_block++;
            s->end += n;
            return;
        }
}

/* Whether the file of block i has what n positions need of it. */
static bool covers(const disk_block *e, int32_t i, int32_t n)
{
    return e->id && e->first * KV_BLOCK + e->n_tok >= min_i32(n, (i + 1) * KV_BLOCK);
}

/* Of memory's blocks only whole ones are taken. */
static bool has_block(const search *s, int32_t n, int32_t i, int32_t g)
{
    const int32_t node = s->c->disk->ram[i];
    if (i < n / KV_BLOCK && node != NO_NODE && tree_block(s->c, node, g) != NO_BLOCK) return true;
    return covers(&s->r->entry[i], i, n) && (s->r->entry[i].groups >> g & 1);
}

/* Whether all is there that a sequence of n positions needs and paths may lack. */
static bool can_end(const search *s, int32_t n)
{
    for (int32_t g = 0; g < s->c->n_group; g++) {
        const block_range r = block_needed(&s->c->group[g], n);
        for (int32_t i = r.first; s->c->group[g].window && i < r.end; i++)
            if (!has_block(s, n, i, g)) return false;
    }
    return n % KV_BLOCK == 0 || covers(&s->r->entry[n / KV_BLOCK], n / KV_BLOCK, n);
}

/* The last position before `below` at which an entry of the path has a state. */
static int32_t state_before(const search *s, int32_t below)
{
    for (int32_t i = min_i32(s->n_block, ceil_div(below, KV_BLOCK)) - 1; i >= 0; i--)
        if (s->r->entry[i].state_id && s->r->entry[i].state_pos < below)
            return s->r->entry[i].state_pos;
    return 0;
}

/* The furthest position behind `known` at which the sequence can go on; 0: none. */
static int32_t best_end(const search *s, int32_t known)
{
    const bool states = s->c->state_bytes > 0;
    int32_t n = states ? state_before(s, s->end + 1) : s->end;
    while (n > known && !can_end(s, n))
        n = states ? state_before(s, n) : (n - 1) / KV_BLOCK * KV_BLOCK;
    return n > known ? n : 0;
}

/* Memory's own blocks first, as making room may take what nobody refers to. */
static void place_known(const cache *c, seq *q, int32_t g, int32_t n)
{
    for (int32_t i = q->first[g]; i < n / KV_BLOCK; i++) {
        const int32_t node = c->disk->ram[i],
                      b = node == NO_NODE ? NO_BLOCK : tree_block(c, node, g);
        if (b == NO_BLOCK) continue;
        *table_slot(c, q, g, i) = block_at(&c->group[g], b);
        block_add_seq(&c->group[g], b);
    }
}

/* Every block that the row behind n positions sees has a place; those that are yet to be read are noted. */
static void place(cache *c, restore *r)
{
    seq *q = r->q;
    for (int32_t g = 0; g < c->n_group; g++) {
        const block_range seen = block_seen(&c->group[g], r->n);
        q->first[g] = seen.first;
        q->end[g] = seen.end;
        place_known(c, q, g, r->n);
    }
    memset(r->fresh, 0, (size_t)c->n_table * sizeof *r->fresh);
    for (int32_t g = 0; g < c->n_group; g++) {
        const block_range need = block_needed(&c->group[g], r->n);
        for (int32_t i = need.first; i < need.end; i++) {
            if (*table_slot(c, q, g, i)) continue;
            *table_slot(c, q, g, i) = block_at(&c->group[g], block_take(c, g));
            r->fresh[i] |= 1u << g;
        }
    }
}

/* What is wanted of the entry that holds block r->at, up to the block answered; 0: it could not be read.  The
   tokens behind that block may be another path's. */
static int32_t read_entry(const cache *c, const restore *r)
{
    const disk_block e = r->entry[r->at];
    uint8_t *to[STORE_MAX_BLOCKS * STORE_MAX_GROUPS] = {NULL};
    const int32_t at = e.first * KV_BLOCK;
    int32_t k = r->at;
    if (!e.id) return 0;
    for (; k < e.end && k * KV_BLOCK < r->n && r->entry[k].id == e.id; k++)
        for (int32_t g = 0; g < c->n_group; g++)
            if (r->fresh[k] >> g & 1)
                to[(k - e.first) * c->n_group + g] = *table_slot(c, r->q, g, k);
    const store_dest dest = {.token = r->ids + at,
                             .n_tok = min_i32(e.n_tok, min_i32(r->n, k * KV_BLOCK) - at),
                             .block = to};
    cairn_diag dg = {0};
    return store_read(c->disk->store, e.id, &dest, &dg) == CAIRN_OK ? k : 0;
}

static bool read_state(const cache *c, const restore *r)
{
    const disk_block *e = &r->entry[(r->n - 1) / KV_BLOCK];
    const int32_t at = e->state_first * KV_BLOCK;
    const store_dest dest = {
        .token = r->ids + at, .n_tok = r->n - at, .state = r->q->state, .state_pos = r->n};
    cairn_diag dg = {0};
    return store_read(c->disk->store, e->state_id, &dest, &dg) == CAIRN_OK;
}

bool restore_step(const cache *c, restore *r)
{
    const int32_t end = ceil_div(r->n, KV_BLOCK);
    while (r->at < end && !r->fresh[r->at]) r->at++;
    if (r->at == end) {
        r->failed = r->q->state && !read_state(c, r);
        return false;
    }
    const int32_t next = read_entry(c, r);
    r->failed = next == 0;
    if (next) r->at = next;
    return !r->failed;
}

/* The tree learns of n positions as of what is computed; files have them already. */
static void leave(cache *c, restore *r, int32_t n)
{
    seq *q = r->q;
    const bool state = q->state && !r->failed;
    q->len = q->shared = n;
    if (state) q->blank = false; /* it was read */
    if (!prefix_learn(c, q, r->ids, n)) return;
    if (state) state_keep(c, q, q->node);
    const bool from_file = state || r->fresh[c->tree.node[q->node].i_block];
    if (from_file) c->tree.node[q->node].saved = SAVED;
    for (int32_t i = q->node; c->tree.node[i].n > 0; i = c->tree.node[i].parent) {
        prefix_node *v = &c->tree.node[i];
        const bool full = v->lo + v->n == KV_BLOCK && v->snap == NO_SNAP;
        if (full && covers(&r->entry[v->i_block], v->i_block, INT32_MAX)) v->saved = SAVED;
    }
    tree_touch(&c->tree, q->node);
}

/* It ended at block r->at.  What came before that memory has from now on, and the sequence begins anew. */
static void begin_again(cache *c, restore *r)
{
    seq *q = r->q;
    if (r->at > 0) leave(c, r, min_i32(r->at * KV_BLOCK, r->n));
    cache_drop_blocks(c, q);
    for (int32_t g = 0; g < c->n_group; g++) q->first[g] = q->end[g] = 0;
    q->len = q->shared = 0;
    if (q->state) state_clear(c, q);
    r->tries++;
    prefix_begin(c, q, &r->ask);
}

static restore *restore_of(const cache *c, const seq *q)
{
    return &c->disk->restore[q - c->seq];
}

bool disk_begin(cache *c, seq *q, const cache_ask *a, int32_t known)
{
    restore *r = restore_of(c, q);
    const bool again = a == &r->ask;
    search s = {.c = c, .r = r, .limit = min_i32(a->n_ids, a->n_pos) - 1};
    if (!again) r->tries = 0;
    if (s.limit <= known || r->tries >= MAX_TRIES) return false;
    if (!again) {
        memcpy(r->ids, a->ids, (size_t)(s.limit + 1) * sizeof *r->ids);
        r->ask = *a;
        r->ask.ids = r->ids;
        r->ask.n_ids = s.limit + 1;
    }
    look_in_memory(&s, q->node);
    look_everywhere(&s);
    r->q = q;
    r->n = best_end(&s, known);
    r->at = 0;
    r->failed = false;
    if (r->n == 0) return false;
    place(c, r);
    q->reading = true;
    reader_put(c->disk, r);
    return true;
}

void disk_drop(cache *c, seq *q)
{
    q->leaving = true;
    reader_drop(c->disk, restore_of(c, q));
}

void cache_arrive(cache *c)
{
    for (int32_t s = 0; c->disk && s < c->n_seq; s++) {
        seq *q = &c->seq[s];
        restore *r = &c->disk->restore[s];
        if (!q->open || !q->reading || !reader_take(c->disk, r)) continue;
        q->reading = false;
        if (q->leaving)
            cache_close(c, s);
        else if (r->failed)
            begin_again(c, r);
        else
            leave(c, r, r->n);
    }
}
