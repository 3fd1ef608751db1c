/* What a sequence takes from the tree of known prefixes when it opens, and what it leaves there while it
   grows.  A full block is in the tree as soon as it is computed, so sequences that run beside each other
   share it; nothing that others may refer to is ever written again. */
#include <string.h>

#include "base/num.h"
#include "cache/cache_priv.h"

void prefix_use(cache *c, seq *q, int32_t node)
{
    if (node != NO_NODE) c->tree.node[node].users++;
    if (q->node != NO_NODE) c->tree.node[q->node].users--;
    q->node = node;
    q->n_known = node == NO_NODE ? 0 : tree_end(&c->tree.node[node]);
}

static int32_t common(const int32_t *a, const int32_t *b, int32_t n)
{
    int32_t i = 0;
    while (i < n && a[i] == b[i]) i++;
    return i;
}

typedef struct match {
    int32_t node, n; /* the deepest node, and positions that can be taken: n may end inside it */
} match;

/* The group has blocks of the node's number, but the node has none. */
static bool lacks(const cache *c, int32_t node, int32_t g)
{
    return group_has(&c->group[g], c->tree.node[node].i_block) &&
           tree_block(c, node, g) == NO_BLOCK;
}

/* Whether n positions that end in `node` can go on from there.  since[g]: the blocks from this number on,
   up to the node's own, are there. */
static bool may_end(const cache *c, int32_t i_node, int32_t n, const int32_t *since)
{
    const prefix_node *v = &c->tree.node[i_node];
    if (c->state_bytes && (n != tree_end(v) || v->snap == NO_SNAP)) return false;
    for (int32_t g = 0; g < c->n_group; g++) {
        const int32_t low = block_lowest_seen(&c->group[g], n);
        if (low >= n) continue;
        if (lacks(c, i_node, g) || since[g] > low / KV_BLOCK) return false;
    }
    return true;
}

static match find(const cache *c, int32_t root, const int32_t *ids, int32_t limit)
{
    const tree *t = &c->tree;
    match best = {root, 0};
    int32_t at = root, n = 0;
    memset(t->path, 0, (size_t)c->n_group * sizeof *t->path);
    while (n < limit) {
        const int32_t child = tree_child(t, at, ids[n]);
        if (child == NO_NODE) break;
        const prefix_node *v = &t->node[child];
        for (int32_t g = 0; v->lo == 0 && n > 0 && g < c->n_group; g++)
            if (lacks(c, at, g)) t->path[g] = v->i_block;
        const int32_t m = common(tree_tok(t, child), ids + n, min_i32(v->n, limit - n));
        if (may_end(c, child, n + m, t->path)) best = (match){child, n + m};
        if (m < v->n) break;
        at = child;
        n += m;
    }
    return best;
}

/* Refers to the blocks that the next row sees, each the deepest node's. */
static void borrow(cache *c, seq *q, const match *m)
{
    const tree *t = &c->tree;
    for (int32_t g = 0; g < c->n_group; g++) {
        group *p = &c->group[g];
        const block_range seen = block_seen(p, m->n), r = block_needed(p, m->n);
        q->first[g] = seen.first;
        q->end[g] = seen.end;
        for (int32_t i = tree_before(t, m->node, r.end);
             i != NO_NODE && t->node[i].i_block >= r.first; i = tree_next_block(t, i)) {
            const int32_t b = tree_block(c, i, g);
            *table_slot(c, q, g, t->node[i].i_block) = block_at(p, b);
            block_add_seq(p, b);
        }
    }
}

/* The old block's bytes stay as they are until somebody writes, even where it was given up for the new one.
   Where no other can be had, all that still refers to the old one is the node where this very sequence's
   prefix ends, and what lies above it: whatever else did was given up or given another.  None of them claims
   positions behind that end, so the sequence may write on. */
void prefix_own(cache *c, seq *q, int32_t i_block)
{
    for (int32_t g = 0; g < c->n_group; g++) {
        group *p = &c->group[g];
        uint8_t **slot = table_slot(c, q, g, i_block), *old = *slot;
        if (i_block < q->first[g] || i_block >= q->end[g] || !old) continue;
        const int32_t was = block_index(p, old);
        block_drop_seq(p, was);
        *slot = NULL; /* nobody may take it for one that is referred to */
        const int32_t now = block_try_take(c, g);
        if (now == NO_BLOCK) block_add_seq(p, was);
        *slot = now == NO_BLOCK ? old : block_at(p, now);
        if (*slot != old) memcpy(*slot, old, p->block_bytes);
    }
}

/* Whether nobody but the node at whose very end a sequence goes on refers to the blocks there. */
static bool may_go_on(const cache *c, const match *m)
{
    const prefix_node *v = &c->tree.node[m->node];
    if (m->n != tree_end(v)) return false;
    for (int32_t g = 0; g < c->n_group; g++) {
        const int32_t b = tree_block(c, m->node, g);
        if (b != NO_BLOCK && (c->group[g].by_tree[b] > 1 || c->group[g].by_seq[b] > 0))
            return false;
    }
    return true;
}

/* The longer of both spaces' matches, its own of two equal ones. */
static match find_in_both(cache *c, int32_t root, const cache_ask *a)
{
    const int32_t limit = min_i32(a->n_ids, a->n_pos) - 1;
    const match own = find(c, root, a->ids, limit);
    const int32_t other = tree_root(c, &a->common, false);
    if (other == NO_NODE || other == root) return own;
    const match common = find(c, other, a->ids, limit);
    return common.n > own.n ? common : own;
}

static bool is_below(const tree *t, int32_t node, int32_t root)
{
    while (node != root && node != NO_NODE) node = t->node[node].parent;
    return node == root;
}

void prefix_begin(cache *c, seq *q, const cache_ask *a)
{
    const int32_t root = tree_root(c, &a->ns, true);
    prefix_use(c, q, root);
    if (root == NO_NODE) return;
    const match m = find_in_both(c, root, a);
    if ((c->disk && disk_begin(c, q, a, m.n)) || m.n == 0) return;
    const prefix_node *v = &c->tree.node[m.node];
    const bool own = is_below(&c->tree, m.node, root), go_on = own && may_go_on(c, &m);
    tree_touch(&c->tree, m.node);
    if (v->snap != NO_SNAP) state_follow(c, q, m.node);
    borrow(c, q, &m);
    if (own)
        prefix_use(c, q,
                   m.n == tree_end(v) ? m.node
                                      : v->parent); /* else it leaves all of it in its own space */
    if (m.n % KV_BLOCK && !go_on) prefix_own(c, q, m.n / KV_BLOCK);
    q->len = q->shared = m.n;
}

cairn_status cache_open_on(cache *c, const cache_ask *a, seq_id *out)
{
    const cairn_status st = cache_open(c, a->n_pos, out);
    if (st == CAIRN_OK && c->keeps) prefix_begin(c, cache_seq(c, *out), a);
    return st;
}

/* Gives the tree what it lacks of a block that is known now, and takes the tree's in place of an equal one
   once it is full. */
static void share_block(cache *c, seq *q, int32_t node)
{
    const prefix_node *v = &c->tree.node[node];
    for (int32_t g = 0; g < c->n_group; g++) {
        group *p = &c->group[g];
        uint8_t **slot = table_slot(c, q, g, v->i_block);
        if (v->i_block < q->first[g] || v->i_block >= q->end[g] || !*slot) continue;
        const int32_t mine = block_index(p, *slot);
        if (tree_block(c, node, g) == NO_BLOCK) {
            tree_set_block(c, node, g, mine);
        } else if (tree_block(c, node, g) != mine && v->lo + v->n == KV_BLOCK) {
            block_add_seq(p, tree_block(c, node, g));
            block_drop_seq(p, mine);
            *slot = block_at(p, tree_block(c, node, g));
        }
    }
}

/* The node of the next known tokens, [n_known, to) or the first of them, all of one block. */
static int32_t next_node(cache *c, const seq *q, const int32_t *ids, int32_t to)
{
    tree *t = &c->tree;
    const int32_t *tok = ids + q->n_known, n = to - q->n_known;
    const int32_t child = tree_child(t, q->node, *tok);
    if (child == NO_NODE)
        return tree_add(c, q->node, tok, n, q->n_known / KV_BLOCK, q->n_known % KV_BLOCK);
    const int32_t m = common(tree_tok(t, child), tok, min_i32(t->node[child].n, n));
    return m < t->node[child].n ? tree_split(c, child, m) : child;
}

bool prefix_learn(cache *c, seq *q, const int32_t *ids, int32_t to)
{
    while (q->n_known < to) {
        const int32_t i_block = q->n_known / KV_BLOCK;
        const int32_t node = next_node(c, q, ids, min_i32(to, (i_block + 1) * KV_BLOCK));
        if (node == NO_NODE) return false;
        share_block(c, q, node);
        prefix_use(c, q, node);
    }
    q->shared = max_i32(q->shared, q->n_known);
    return true;
}

void cache_publish(cache *c, seq_id s, const int32_t *ids)
{
    seq *q = cache_seq(c, s);
    const int32_t full = q->len / KV_BLOCK * KV_BLOCK;
    if (q->node == NO_NODE || full <= q->n_known) return;
    (void)prefix_learn(c, q, ids, full); /* no node left: they are not kept */
    tree_touch(&c->tree, q->node);
    prefix_trim(c);
}

/* The windows before the sequence's known end are worth more than what lies between such ends.  One that was
   given up since it was known, the tree gets again. */
static void keep_windows(cache *c, const seq *q, bool longest)
{
    tree *t = &c->tree;
    for (int32_t g = 0; g < c->n_group; g++) {
        const int32_t low = block_lowest_seen(&c->group[g], q->n_known);
        if (!c->group[g].window) continue;
        for (int32_t i = q->node; i != NO_NODE && tree_end(&t->node[i]) > low;
             i = t->node[i].parent) {
            const int32_t at = t->node[i].i_block;
            if (lacks(c, i, g) && q->first[g] <= at && at < q->end[g])
                tree_set_block(c, i, g, block_index(&c->group[g], *table_slot(c, q, g, at)));
            if (longest) tree_keep(t, i, g);
        }
    }
}

void cache_mark(cache *c, seq_id s, const int32_t *ids, cache_worth worth)
{
    seq *q = cache_seq(c, s);
    if (q->node == NO_NODE || q->len == 0 || !prefix_learn(c, q, ids, q->len)) return;
    if (q->state && !q->torn) state_keep(c, q, q->node);
    keep_windows(c, q, worth == CACHE_TURN);
    if (worth == CACHE_TURN) tree_keep(&c->tree, q->node, c->n_group);
    tree_touch(&c->tree, q->node);
    prefix_trim(c);
}

bool cache_keeps(const cache *c)
{
    return c->keeps;
}

bool cache_needs_marks(const cache *c)
{
    bool windows = false;
    for (int32_t g = 0; g < c->n_group; g++) windows |= c->group[g].window > 0;
    return c->keeps && (c->state_bytes || windows);
}

void prefix_leave(cache *c, seq *q)
{
    prefix_use(c, q, NO_NODE);
}

void prefix_rewound(cache *c, seq *q)
{
    while (q->node != NO_NODE && q->n_known > q->len)
        prefix_use(c, q, c->tree.node[q->node].parent);
}

uint64_t cache_kept(const cache *c)
{
    uint64_t sum = (uint64_t)c->states.n_kept * c->state_bytes;
    for (int32_t g = 0; g < c->n_group; g++)
        sum += (uint64_t)c->group[g].n_kept * c->group[g].block_bytes;
    return sum;
}

int32_t cache_nodes(const cache *c)
{
    return c->keeps ? c->tree.n_node - c->tree.n_free : 0;
}

static bool drop_cold(cache *c)
{
    for (int32_t g = 0; g < c->n_group; g++)
        if (c->group[g].window && drop_window_block(c, g, true)) return true;
    return false;
}

void prefix_trim(cache *c)
{
    while (cache_kept(c) > c->opts.prefix_bytes && (drop_cold(c) || drop_leaf(c))) continue;
}

void cache_forget(cache *c)
{
    while (c->keeps && drop_leaf(c)) continue;
}
