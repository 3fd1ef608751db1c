/* Taking up a prefix from files: as far as blocks in memory and on disk reach without a gap, and where the
   windows and the state that a position needs are there too.  Blocks are read straight into those of the
   sequence, which leaves them to the tree as if it had computed them. */
#include <string.h>

#include "base/num.h"
#include "cache/cache.h"
#include "cache/cache_disk.h"
#include "cairn/status.h"
#include "tensor/kvview.h"

enum { MAX_FOUND = 8 };

typedef struct search {
    cache *c;
    const cache_ask *a;
    int32_t limit;   /* positions at most */
    int32_t n_block; /* that are there, one after the other; the last may be partial */
    int32_t end;     /* positions of them */
} search;

/* Blocks that memory has in full, by number. */
static void look_in_memory(search *s, int32_t root)
{
    const tree *t = &s->c->tree;
    int32_t *ram = s->c->disk->ram, n = 0, at = root;
    for (int32_t i = 0; i < s->c->n_table; i++) ram[i] = NO_NODE;
    while (root != NO_NODE && n < s->limit) {
        const int32_t child = tree_child(t, at, s->a->ids[n]);
        if (child == NO_NODE || t->node[child].n > s->limit - n) return;
        const int32_t m = t->node[child].n;
        if (memcmp(tree_tok(t, child), s->a->ids + n, (size_t)m * sizeof(int32_t)) != 0) return;
        n += m;
        at = child;
        if (n % KV_BLOCK == 0) ram[t->node[child].i_block] = child;
    }
}

/* Whether the entry has of block i what layers that see everything need. */
static bool has_full(const cache *c, const store_info *info, int32_t i)
{
    for (int32_t g = 0; g < c->n_group; g++)
        if (!c->group[g].window && group_has(&c->group[g], i) &&
            !(info->here[g] >> (i - info->first_block) & 1))
            return false;
    return true;
}

/* An entry that holds block i with this key. */
static bool look_on_disk(const search *s, store_key key, int32_t i)
{
    disk *d = s->c->disk;
    store_id found[MAX_FOUND];
    store_info info;
    const int32_t n = store_find(d->store, s->a->ns, key, found, MAX_FOUND);
    d->entry[i].here = false;
    for (int32_t k = 0; k < n && !d->entry[i].here; k++)
        if (store_get_info(d->store, found[k], &info) && has_full(s->c, &info, i))
            d->entry[i] = (disk_block){true, found[k], info.first_block};
    return d->entry[i].here;
}

/* How far it goes; a partial block behind the full ones has a key for every length. */
static void look_everywhere(search *s)
{
    disk *d = s->c->disk;
    store_key key = s->a->ns;
    int32_t i = 0;
    for (; (i + 1) * KV_BLOCK <= s->limit; i++) {
        const store_key next = store_block_key(key, s->a->ids + i * KV_BLOCK, KV_BLOCK);
        if (!look_on_disk(s, next, i) && d->ram[i] == NO_NODE) break;
        key = next;
    }
    s->n_block = i;
    s->end = i * KV_BLOCK;
    for (int32_t n = min_i32(KV_BLOCK - 1, s->limit - s->end); n > 0; n--)
        if (look_on_disk(s, store_block_key(key, s->a->ids + s->end, n), i)) {
            s->n_block++;
            s->end += n;
            return;
        }
}

static bool has_block(const search *s, int32_t i, int32_t g)
{
    const disk *d = s->c->disk;
    store_info info;
    if (d->ram[i] != NO_NODE && tree_block(s->c, d->ram[i], g) != NO_BLOCK) return true;
    return d->entry[i].here && store_get_info(d->store, d->entry[i].id, &info) &&
           (info.here[g] >> (i - info.first_block) & 1);
}

static bool has_windows(const search *s, int32_t n)
{
    for (int32_t g = 0; g < s->c->n_group; g++) {
        const block_range r = block_needed(&s->c->group[g], n);
        for (int32_t i = r.first; s->c->group[g].window && i < r.end; i++)
            if (!has_block(s, i, g)) return false;
    }
    return true;
}

/* The last position before `below`, and behind `above`, at which an entry of the path has a state. */
static int32_t state_before(const search *s, int32_t below, int32_t above)
{
    const disk *d = s->c->disk;
    store_info info;
    for (int32_t i = min_i32(s->n_block, ceil_div(below, KV_BLOCK)) - 1; i >= above / KV_BLOCK;
         i--) {
        if (!d->entry[i].here || !store_get_info(d->store, d->entry[i].id, &info)) continue;
        for (int32_t k = info.n_state - 1; k >= 0; k--)
            if (info.state_pos[k] < below && info.state_pos[k] > i * KV_BLOCK)
                return info.state_pos[k];
    }
    return 0;
}

/* The furthest position behind `known` at which the sequence can go on; 0: none. */
static int32_t best_end(const search *s, int32_t known)
{
    int32_t n = s->end;
    if (s->c->state_bytes) n = state_before(s, s->end + 1, known);
    while (n > known) {
        if (has_windows(s, n)) return n;
        if (s->c->state_bytes)
            n = state_before(s, n, known);
        else
            n = (n - 1) / KV_BLOCK * KV_BLOCK;
    }
    return 0;
}

/* Memory's own blocks first, as making room may take what nobody refers to. */
static void place_known(const search *s, seq *q, int32_t g, int32_t n)
{
    cache *c = s->c;
    for (int32_t i = q->first[g]; i < n / KV_BLOCK; i++) {
        const int32_t node = c->disk->ram[i],
                      b = node == NO_NODE ? NO_BLOCK : tree_block(c, node, g);
        if (b == NO_BLOCK) continue;
        *table_slot(c, q, g, i) = block_at(&c->group[g], b);
        block_add_seq(&c->group[g], b);
    }
}

/* Every block that the row behind n positions sees has a place; those that are yet to be read are noted. */
static void place(const search *s, seq *q, int32_t n)
{
    cache *c = s->c;
    for (int32_t g = 0; g < c->n_group; g++) {
        const block_range r = block_seen(&c->group[g], n);
        q->first[g] = r.first;
        q->end[g] = r.end;
        place_known(s, q, g, n);
    }
    memset(c->disk->fresh, 0, (size_t)c->n_table * sizeof *c->disk->fresh);
    for (int32_t g = 0; g < c->n_group; g++)
        for (int32_t i = q->first[g]; i < q->end[g]; i++) {
            if (*table_slot(c, q, g, i) || !group_has(&c->group[g], i)) continue;
            *table_slot(c, q, g, i) = block_at(&c->group[g], block_take(c, g));
            c->disk->fresh[i] |= 1u << g;
        }
}

static void give_up(cache *c, seq *q)
{
    cache_drop_blocks(c, q);
    for (int32_t g = 0; g < c->n_group; g++) q->first[g] = q->end[g] = 0;
    if (q->state) memset(q->state, 0, c->state_bytes);
}

/* What is wanted of the entry that holds block i; answers the number of the first block behind it. */
static int32_t read_entry(const search *s, const seq *q, int32_t i, int32_t n)
{
    const cache *c = s->c;
    disk *d = c->disk;
    const disk_block e = d->entry[i];
    uint8_t *to[STORE_MAX_BLOCKS * STORE_MAX_GROUPS] = {NULL};
    store_info info;
    if (!e.here || !store_get_info(d->store, e.id, &info)) return 0;
    int32_t k = i;
    for (; k < info.first_block + info.n_block && k * KV_BLOCK < n && d->entry[k].here &&
           d->entry[k].id == e.id;
         k++)
        for (int32_t g = 0; g < c->n_group; g++)
            if (d->fresh[k] >> g & 1)
                to[(k - info.first_block) * c->n_group + g] = *table_slot(c, q, g, k);
    const int32_t at = info.first_block * KV_BLOCK;
    const store_dest dest = {.token = s->a->ids + at,
                             .n_tok = min_i32(info.n_tok, n - at),
                             .block = to,
                             .state = k * KV_BLOCK >= n ? q->state : NULL,
                             .state_pos = n};
    cairn_diag dg = {0};
    return store_read(d->store, e.id, &dest, &dg) == CAIRN_OK ? k : 0;
}

static bool read_all(const search *s, const seq *q, int32_t n)
{
    const int32_t last = (n - 1) / KV_BLOCK;
    for (int32_t i = 0; i <= last;) {
        const bool state = q->state && i == last;
        const int32_t next = s->c->disk->fresh[i] || state ? read_entry(s, q, i, n) : i + 1;
        if (next == 0) return false;
        i = next;
    }
    return true;
}

/* The tree learns of it as of what is computed; files have it already. */
static void leave(cache *c, seq *q, const int32_t *ids, int32_t n)
{
    q->len = q->shared = n;
    if (!prefix_learn(c, q, ids, n)) return;
    const bool from_file = q->state || c->disk->fresh[c->tree.node[q->node].i_block];
    if (q->state) prefix_keep_state(c, q);
    if (from_file) c->tree.node[q->node].saved = SAVED;
    for (int32_t i = q->node; c->tree.node[i].n > 0; i = c->tree.node[i].parent) {
        prefix_node *v = &c->tree.node[i];
        const bool whole = v->lo + v->n == KV_BLOCK && v->snap == NO_SNAP;
        if (whole && c->disk->fresh[v->i_block]) v->saved = SAVED;
    }
    tree_touch(&c->tree, q->node);
}

int32_t disk_restore(cache *c, seq *q, const cache_ask *a, int32_t known)
{
    search s = {.c = c, .a = a, .limit = min_i32(a->n_ids, a->n_pos) - 1};
    if (s.limit <= known) return 0;
    look_in_memory(&s, q->node);
    look_everywhere(&s);
    const int32_t n = best_end(&s, known);
    if (n == 0) return 0;
    place(&s, q, n);
    if (read_all(&s, q, n)) {
        leave(c, q, a->ids, n);
        return n;
    }
    give_up(c, q);
    return 0;
}
