/* The tree of known prefixes: a radix tree over tokens whose edges end at blocks of 64 positions at the
   latest (after Zheng et al. 2024, SGLang, section 3: RadixAttention; with blocks, snapshots of recurrent
   states, and windows).  A child is found by its parent and first token in a hash table, so that the
   number of conversations does not matter.  Owns nodes, lists and their references to blocks; decides
   nothing of what is worth keeping.

   Every list is in order of last use, and a node is used whenever one below it is.  Those without children
   have a list of their own, so that what may go is found however long the paths are. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/diag.h"
#include "base/hash.h"
#include "cache/cache_priv.h"

static int32_t thing_node(const tree *t)
{
    return t->n_thing - 2;
}

static void unlink_thing(tree *t, int32_t node, int32_t thing)
{
    list_link *l = tree_link(t, node, thing);
    ends *e = &t->list[thing][l->in];
    *(l->prev == NO_NODE ? &e->first : &tree_link(t, l->prev, thing)->next) = l->next;
    *(l->next == NO_NODE ? &e->last : &tree_link(t, l->next, thing)->prev) = l->prev;
    l->in = LIST_NONE;
}

static void link_before(tree *t, int32_t node, int32_t thing, int32_t in, int32_t next)
{
    ends *e = &t->list[thing][in];
    int32_t *back = next == NO_NODE ? &e->last : &tree_link(t, next, thing)->prev;
    const int32_t prev = *back;
    *tree_link(t, node, thing) = (list_link){prev, next, in};
    *(prev == NO_NODE ? &e->first : &tree_link(t, prev, thing)->next) = node;
    *back = node;
}

/* At the end: used just now. */
static void link_thing(tree *t, int32_t node, int32_t thing, int32_t in)
{
    link_before(t, node, thing, in, NO_NODE);
}

static void move_thing(tree *t, int32_t node, int32_t thing, int32_t in)
{
    if (tree_link(t, node, thing)->in != LIST_NONE) unlink_thing(t, node, thing);
    link_thing(t, node, thing, in);
}

void tree_keep(tree *t, int32_t node, int32_t thing)
{
    if (tree_link(t, node, thing)->in != LIST_NONE) move_thing(t, node, thing, LIST_KEPT);
}

void tree_touch(tree *t, int32_t node)
{
    const uint64_t now = ++t->clock;
    for (; node != NO_NODE; node = t->node[node].parent) {
        t->node[node].used = now;
        for (int32_t k = 0; k < t->n_thing; k++) {
            const int32_t in = tree_link(t, node, k)->in;
            if (in != LIST_NONE) move_thing(t, node, k, in);
        }
    }
}

/* Its last child is gone, which had its place before `next`: of the same use mostly.  Where many leaves are older than
   it, it counts as used now, and those above it as soon as it is gone. */
static void become_leaf(tree *t, int32_t node, int32_t next)
{
    const int32_t leaves = tree_leaves(t);
    for (int32_t k = 0; k < DROP_LOOK && next != NO_NODE && t->node[next].used < t->node[node].used;
         k++)
        next = tree_link(t, next, leaves)->next;
    if (next != NO_NODE && t->node[next].used < t->node[node].used) next = NO_NODE;
    if (next == NO_NODE) t->node[node].used = ++t->clock;
    link_before(t, node, leaves, LIST_KEPT, next);
}

static uint32_t count_buckets(const tree *t)
{
    uint32_t n = 64;
    while (n < (uint32_t)t->n_node) n *= 2;
    return n;
}

uint64_t tree_bytes(const cache *c)
{
    const tree *t = &c->tree;
    const uint64_t n = (uint64_t)t->n_node, ng = (uint64_t)c->n_group, n_thing = ng + 3;
    const uint64_t node = sizeof *t->node + sizeof *t->free_node + KV_BLOCK * sizeof *t->tok +
                          ng * sizeof *t->block + n_thing * sizeof *t->link;
    return n * node + n_thing * sizeof *t->list + count_buckets(t) * sizeof *t->bucket +
           ng * sizeof *t->path;
}

cairn_status tree_new(cache *c, cairn_diag *dg)
{
    tree *t = &c->tree;
    const size_t n = (size_t)t->n_node, ng = (size_t)c->n_group;
    t->n_thing = c->n_group + 3;
    t->n_bucket = count_buckets(t);
    t->node = mem_calloc(n, sizeof *t->node, MEM_CACHE);
    t->free_node = mem_calloc(n, sizeof *t->free_node, MEM_CACHE);
    t->tok = mem_calloc(n, KV_BLOCK * sizeof *t->tok, MEM_CACHE);
    t->block = mem_calloc(n * ng, sizeof *t->block, MEM_CACHE);
    t->link = mem_calloc(n * (size_t)t->n_thing, sizeof *t->link, MEM_CACHE);
    t->list = mem_calloc((size_t)t->n_thing, sizeof *t->list, MEM_CACHE);
    t->bucket = mem_calloc(t->n_bucket, sizeof *t->bucket, MEM_CACHE);
    t->path = mem_calloc(ng, sizeof *t->path, MEM_CACHE);
    if (!t->node || !t->free_node || !t->tok || !t->block || !t->link || !t->list || !t->bucket ||
        !t->path)
        return diag_set(dg, CAIRN_E_NOMEM, "no memory for a tree of %d prefixes", t->n_node);
    for (int32_t k = 0; k < t->n_thing; k++)
        for (int32_t in = 0; in < 3; in++) t->list[k][in] = (ends){NO_NODE, NO_NODE, 0};
    for (uint32_t i = 0; i < t->n_bucket; i++) t->bucket[i] = NO_NODE;
    for (int32_t i = 0; i < t->n_node; i++) t->free_node[i] = t->n_node - 1 - i;
    t->n_free = t->n_node;
    return CAIRN_OK;
}

void tree_free(cache *c)
{
    tree *t = &c->tree;
    mem_free(t->node);
    mem_free(t->free_node);
    mem_free(t->tok);
    mem_free(t->block);
    mem_free(t->link);
    mem_free(t->list);
    mem_free(t->bucket);
    mem_free(t->path);
}

/* Roots hang in the chains by their owner's hash, as children of nothing. */
static uint32_t bucket_of(const tree *t, int32_t parent, int32_t token)
{
    const int32_t key[2] = {parent, token};
    return (uint32_t)hash64(key, sizeof key, 0) & (t->n_bucket - 1);
}
static int32_t first_token(const tree *t, int32_t node)
{
    const prefix_node *n = &t->node[node];
    return n->parent == NO_NODE ? (int32_t)(uint32_t)n->ns.lo : tree_tok(t, node)[0];
}
static void hang(tree *t, int32_t node)
{
    int32_t *head = &t->bucket[bucket_of(t, t->node[node].parent, first_token(t, node))];
    t->node[node].hash_next = *head;
    *head = node;
}
static void unhang(tree *t, int32_t node)
{
    int32_t *at = &t->bucket[bucket_of(t, t->node[node].parent, first_token(t, node))];
    while (*at != node) at = &t->node[*at].hash_next;
    *at = t->node[node].hash_next;
}

static void adopt(tree *t, int32_t parent, int32_t child)
{
    prefix_node *n = &t->node[child];
    n->parent = parent;
    n->prev = NO_NODE;
    n->next = NO_NODE;
    if (parent == NO_NODE) return;
    if (tree_link(t, parent, tree_leaves(t))->in != LIST_NONE)
        unlink_thing(t, parent, tree_leaves(t));
    n->next = t->node[parent].child;
    if (n->next != NO_NODE) t->node[n->next].prev = child;
    t->node[parent].child = child;
}
static void disown(tree *t, int32_t child)
{
    const prefix_node *n = &t->node[child];
    if (n->prev != NO_NODE)
        t->node[n->prev].next = n->next;
    else if (n->parent != NO_NODE)
        t->node[n->parent].child = n->next;
    if (n->next != NO_NODE) t->node[n->next].prev = n->prev;
}

static int32_t new_node(cache *c)
{
    tree *t = &c->tree;
    if (t->n_free == 0 && !drop_leaf(c)) return NO_NODE;
    const int32_t i = t->free_node[--t->n_free];
    t->node[i] = (prefix_node){.parent = NO_NODE,
                               .child = NO_NODE,
                               .next = NO_NODE,
                               .prev = NO_NODE,
                               .snap = NO_SNAP,
                               .birth = ++t->births};
    for (int32_t g = 0; g < c->n_group; g++)
        t->block[(size_t)i * (size_t)c->n_group + (size_t)g] = NO_BLOCK;
    for (int32_t k = 0; k < t->n_thing; k++) tree_link(t, i, k)->in = LIST_NONE;
    return i;
}

int32_t tree_child(const tree *t, int32_t parent, int32_t token)
{
    int32_t i = t->bucket[bucket_of(t, parent, token)];
    while (i != NO_NODE && (t->node[i].parent != parent || first_token(t, i) != token))
        i = t->node[i].hash_next;
    return i;
}

int32_t tree_root(cache *c, const cache_ns *ns, bool make)
{
    tree *t = &c->tree;
    int32_t i = t->bucket[bucket_of(t, NO_NODE, (int32_t)(uint32_t)ns->lo)];
    while (i != NO_NODE && (t->node[i].parent != NO_NODE || t->node[i].ns.hi != ns->hi ||
                            t->node[i].ns.lo != ns->lo))
        i = t->node[i].hash_next;
    if (i != NO_NODE || !make) return i;
    i = new_node(c);
    if (i == NO_NODE) return i;
    t->node[i].ns = *ns;
    hang(t, i);
    link_thing(t, i, thing_node(t), LIST_KEPT);
    link_thing(t, i, tree_leaves(t), LIST_KEPT);
    tree_touch(t, i);
    return i;
}

int32_t tree_add(cache *c, int32_t parent, const int32_t *tok, int32_t n, int32_t i_block,
                 int32_t lo)
{
    tree *t = &c->tree;
    assert(n > 0 && lo + n <= KV_BLOCK);
    const int32_t i = new_node(c);
    if (i == NO_NODE) return i;
    memcpy(tree_tok(t, i), tok, (size_t)n * sizeof *tok);
    t->node[i].i_block = i_block;
    t->node[i].lo = lo;
    t->node[i].n = n;
    adopt(t, parent, i);
    hang(t, i);
    link_thing(t, i, thing_node(t), LIST_KEPT);
    link_thing(t, i, tree_leaves(t), LIST_KEPT);
    tree_touch(t, i);
    return i;
}

void tree_set_block(cache *c, int32_t node, int32_t g, int32_t block)
{
    tree *t = &c->tree;
    int32_t *at = &t->block[(size_t)node * (size_t)c->n_group + (size_t)g];
    assert(*at == NO_BLOCK);
    *at = block;
    block_add_tree(&c->group[g], block);
    if (c->group[g].window) link_thing(t, node, g, LIST_COLD);
}

void tree_drop_block(cache *c, int32_t node, int32_t g)
{
    tree *t = &c->tree;
    int32_t *at = &t->block[(size_t)node * (size_t)c->n_group + (size_t)g];
    if (*at == NO_BLOCK) return;
    block_drop_tree(&c->group[g], *at);
    *at = NO_BLOCK;
    if (c->group[g].window) unlink_thing(t, node, g);
}

void tree_set_snap(cache *c, int32_t node, int32_t snap)
{
    assert(c->tree.node[node].snap == NO_SNAP);
    c->tree.node[node].snap = snap;
    block_add_tree(&c->states, snap);
    c->tree.node[node].saved = SAVED_NOT;
    link_thing(&c->tree, node, tree_snaps(&c->tree), LIST_COLD);
}

void tree_drop_snap(cache *c, int32_t node)
{
    prefix_node *n = &c->tree.node[node];
    if (n->snap == NO_SNAP) return;
    const int32_t was = n->snap;
    n->snap = NO_SNAP;
    block_drop_tree(&c->states, was);
    state_forsaken(c, was);
    unlink_thing(&c->tree, node, tree_snaps(&c->tree));
}

int32_t tree_split(cache *c, int32_t node, int32_t n)
{
    tree *t = &c->tree;
    assert(n > 0 && n < t->node[node].n);
    t->node[node].users++; /* making room must not take it */
    const int32_t up = new_node(c);
    t->node[node].users--;
    if (up == NO_NODE) return up;
    prefix_node *u = &t->node[up], *low = &t->node[node];
    unhang(t, node);
    disown(t, node);
    u->i_block = low->i_block;
    u->saved = SAVED; /* as far as it matters: whoever needs it finds the lower part */
    u->lo = low->lo;
    u->n = n;
    memcpy(tree_tok(t, up), tree_tok(t, node), (size_t)n * sizeof(int32_t));
    low->lo += n;
    low->n -= n;
    memmove(tree_tok(t, node), tree_tok(t, node) + n, (size_t)low->n * sizeof(int32_t));
    adopt(t, low->parent, up);
    hang(t, up);
    adopt(t, up, node);
    hang(t, node);
    for (int32_t g = 0; g < c->n_group; g++) {
        if (tree_block(c, node, g) == NO_BLOCK) continue;
        tree_set_block(c, up, g, tree_block(c, node, g));
        if (c->group[g].window && tree_link(t, node, g)->in == LIST_KEPT) tree_keep(t, up, g);
    }
    link_thing(t, up, thing_node(t), LIST_KEPT);
    tree_touch(t, up);
    return up;
}

/* Another block that holds the positions of a node: a child's, or that of a sequence which goes on there. */
static int32_t other_block(const cache *c, int32_t i_node, int32_t g)
{
    const prefix_node *n = &c->tree.node[i_node];
    const int32_t mine = tree_block(c, i_node, g);
    for (int32_t k = n->child; k != NO_NODE; k = c->tree.node[k].next) {
        const int32_t b = tree_block(c, k, g);
        if (c->tree.node[k].i_block == n->i_block && b != NO_BLOCK && b != mine) return b;
    }
    for (int32_t s = 0; s < c->n_seq; s++) {
        const seq *q = &c->seq[s];
        if (!q->open || q->node != i_node || n->i_block < q->first[g] || n->i_block >= q->end[g])
            continue;
        const uint8_t *block = *table_slot(c, q, g, n->i_block);
        if (block) return block_index(&c->group[g], block);
    }
    return mine;
}

/* From a node up to the first of its block. */
static void merge_upward(cache *c, int32_t i, int32_t g)
{
    const tree *t = &c->tree;
    for (; i != NO_NODE && t->node[i].lo + t->node[i].n < KV_BLOCK; i = t->node[i].parent) {
        const int32_t mine = tree_block(c, i, g);
        if (mine == NO_BLOCK || c->group[g].by_seq[mine] > 0) continue;
        const int32_t other = other_block(c, i, g);
        if (other == mine) continue;
        tree_drop_block(c, i, g);
        tree_set_block(c, i, g, other);
    }
}

void tree_merge_blocks(cache *c, int32_t g)
{
    const tree *t = &c->tree;
    for (int32_t k = t->list[thing_node(t)][LIST_KEPT].first; k != NO_NODE;
         k = tree_link(t, k, thing_node(t))->next)
        for (int32_t i = t->node[k].users > 0 ? k : NO_NODE; i != NO_NODE; i = t->node[i].parent)
            merge_upward(c, i, g);
}

void tree_remove(cache *c, int32_t i)
{
    tree *t = &c->tree;
    const int32_t up = t->node[i].parent, next = tree_link(t, i, tree_leaves(t))->next;
    assert(t->node[i].child == NO_NODE && t->node[i].users == 0);
    for (int32_t g = 0; g < c->n_group; g++) tree_drop_block(c, i, g);
    tree_drop_snap(c, i);
    unlink_thing(t, i, thing_node(t));
    unlink_thing(t, i, tree_leaves(t));
    unhang(t, i);
    disown(t, i);
    if (up != NO_NODE && t->node[up].used < t->node[i].used) t->node[up].used = t->node[i].used;
    if (up != NO_NODE && t->node[up].child == NO_NODE) become_leaf(t, up, next);
    t->free_node[t->n_free++] = i;
}

int32_t tree_newest(const tree *t)
{
    return t->list[thing_node(t)][LIST_KEPT].last;
}

int32_t tree_older(const tree *t, int32_t node)
{
    return tree_link(t, node, thing_node(t))->prev;
}
