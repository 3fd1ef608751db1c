/* What the files of the cache share.  cache.c owns sequences, cache_layout.c all sizes, cache_block.c the pools and
   who refers to a block, cache_state.c recurrent states, cache_tree.c the tree of known prefixes, cache_prefix.c what
   sequences take from it and leave in it, cache_drop.c what is given up first, cache_pin.c what may not go,
   cache_disk.c, cache_restore.c and cache_reader.c what files hold of it. */
#ifndef CACHE_CACHE_PRIV_H
#define CACHE_CACHE_PRIV_H

#include "cache/cache.h"

/* A block is free, or referred to: by tables of open sequences, by nodes of the tree, or by both. */
typedef struct group {
    int32_t window;   /* 0: everything */
    int32_t from, to; /* only blocks of these numbers there are: [from, to) */
    size_t block_bytes;
    uint8_t *pool;
    int32_t n_block, n_free;
    int32_t n_reserved;        /* that open sequences may hold, used or not */
    int32_t n_pinned;          /* of those, by pins */
    int32_t n_kept;            /* that the tree alone refers to */
    int32_t *free_block;       /* stack of indices */
    int32_t *by_seq, *by_tree; /* [n_block] references */
} group;

typedef struct seq {
    bool open;
    bool reading; /* rows come from files: its table is the reader's, and nobody else's to touch */
    bool leaving; /* closed meanwhile */
    bool torn;    /* its recurrent state has gone through some of its layers only */
    int32_t len, reserved_rows; /* positions computed; rows between reserve and commit */
    int32_t n_pos;              /* positions set aside */
    int32_t node;    /* the tree's node where its known prefix ends; NO_NODE: keeps to itself */
    int32_t n_known; /* positions up to there */
    int32_t shared;  /* positions from here on lie in blocks of its own */
    int32_t *first;  /* [group] lowest block index still held */
    int32_t *end;    /* [group] one past the highest block index held */
    uint8_t **table; /* [group][n_table] */
    uint8_t *const **view; /* [group] → its row of `table` */
    float *state;          /* NULL: no layer is recurrent */
    /* Where `state` lies, referred to by nobody else; NO_SNAP: not open, or no state. */
    int32_t own;
    /* Where its rows lie that others may read too, until it writes; NO_SNAP: in its own. */
    int32_t from;
    bool blank; /* its own is zeros, though not written yet */
} seq;

enum { SAVED_NOT, SAVED_SOON, SAVED, SAVED_NO_ROOM /* there was none when it was tried */ };
enum { NO_NODE = -1, NO_BLOCK = -1, NO_SNAP = -1 };

/* Part of a block of 64 positions on a path from a root: `n` tokens from offset `lo` of block number
   `i_block` on.  Several nodes may share a block; the deepest one's holds the positions of all above it. */
typedef struct prefix_node {
    cache_ns ns;                       /* roots: whose */
    int32_t parent, child, next, prev; /* siblings */
    int32_t hash_next;
    int32_t users; /* open sequences whose known prefix ends here, and pins */
    int32_t pins;
    int32_t i_block;
    int32_t lo, n;
    int32_t snap;   /* recurrent state after its last token, one of cache.states */
    uint32_t birth; /* tells it from others that had its place */
    uint64_t used;  /* tree.clock when it was; leaves are in order of it */
    int32_t saved;  /* SAVED_*: its block up to its end, and its state */
} prefix_node;

/* Things in order of last use: in one of two lists, of which the cold one is given up first. */
enum { LIST_NONE, LIST_COLD, LIST_KEPT };
typedef struct list_link {
    int32_t prev, next, in;
} list_link;
typedef struct ends {
    int32_t first, last; /* least, most recent */
    int32_t passed;      /* drops in a row that took another than the first that might go */
} ends;

/* Invariants of the lists: a parent was used no longer ago than its children, but for one that counts as used when it
   became a leaf; a leaf is what has none. */
typedef struct tree {
    int32_t n_node, n_free;
    prefix_node *node;
    int32_t *free_node;
    int32_t *tok;    /* [n_node][KV_BLOCK] */
    int32_t *block;  /* [n_node][n_group] */
    int32_t n_thing; /* groups, then snapshots, nodes, leaves */
    list_link *link; /* [n_node][n_thing] */
    ends (*list)[3]; /* [n_thing] by LIST_* */
    uint32_t n_bucket;
    int32_t *bucket; /* [n_bucket] first node of each chain */
    int32_t *path;   /* [n_group] scratch of a match */
    uint32_t births;
    uint64_t clock; /* uses so far */
} tree;

struct cache {
    int32_t n_layer, n_group, n_seq, n_table;
    cache_opts opts;
    kv_layer *layer;
    group *group;
    seq *seq;
    int32_t *ints;          /* storage of first and end */
    uint8_t **tables;       /* storage of tables */
    uint8_t *const **views; /* storage of views */
    group states; /* of open sequences and of nodes, as blocks: n_seq and n_snap of them */
    size_t state_bytes;
    double attend_cost; /* how much dearer each position makes a token, in tokens at position 0 */
    bool keeps;         /* prefixes */
    struct disk *disk;  /* NULL: none */
    int32_t n_pin;
    tree tree;
    int32_t n_snap; /* states beside those of open sequences, at most */
};

static inline bool group_has(const group *p, int32_t i_block)
{
    return i_block >= p->from && i_block < p->to;
}
static inline uint8_t **table_slot(const cache *c, const seq *q, int32_t g, int32_t i_block)
{
    return &q->table[(size_t)g * (size_t)c->n_table + (size_t)i_block];
}
static inline int32_t block_index(const group *p, const uint8_t *block)
{
    return (int32_t)((size_t)(block - p->pool) / p->block_bytes);
}
static inline uint8_t *block_at(const group *p, int32_t block)
{
    return p->pool + (size_t)block * p->block_bytes;
}
seq *cache_seq(const cache *c, seq_id s); /* asserts that it is open */
void cache_drop_blocks(cache *c, seq *q); /* all that its tables hold */
int32_t cache_worst_blocks(const cache *c, int32_t g,
                           int32_t n_pos); /* of a sequence of n_pos positions */

/* The first position that the row behind n positions sees. */
static inline int32_t block_lowest_seen(const group *p, int32_t n)
{
    return p->window && n >= p->window ? n - p->window + 1 : 0;
}

/* Numbers of the blocks with those positions, whether the group has them or not: from `first` on, before
   `end`. */
typedef struct block_range {
    int32_t first, end;
} block_range;
static inline block_range block_seen(const group *p, int32_t n)
{
    const int32_t low = block_lowest_seen(p, n), at = n / KV_BLOCK;
    return low < n ? (block_range){low / KV_BLOCK, at + (n % KV_BLOCK != 0)}
                   : (block_range){at, at};
}
/* Those of them that the group has: without them nobody can go on behind n positions. */
static inline block_range block_needed(const group *p, int32_t n)
{
    const block_range r = block_seen(p, n);
    const int32_t first = r.first < p->from ? p->from : r.first,
                  end = r.end < p->to ? r.end : p->to;
    return first < end ? (block_range){first, end} : (block_range){0, 0};
}

/* cache_layout.c */
cairn_status layout_make(cache *c, const cachespec *spec, const cache_opts *o, cairn_diag *dg);
void layout_free(cache *c); /* after a failure too */
/* Most blocks that a sequence of n_pos positions holds at once. */
int32_t layout_worst(const group *p, int32_t max_step_rows, int32_t n_pos);

/* cache_block.c */
uint64_t block_list_bytes(const group *g); /* beside the pool */
cairn_status block_pool_new(group *g, cairn_diag *dg);
void block_pool_free(group *g);
int32_t
block_take(cache *c,
           int32_t g); /* referred to by one sequence; the cache set it aside, so there is one */
int32_t block_try_take(cache *c, int32_t g); /* NO_BLOCK: none can be had */
void block_add_seq(group *p, int32_t block);
void block_drop_seq(group *p, int32_t block);
void block_add_tree(group *p, int32_t block);
void block_drop_tree(group *p, int32_t block);

/* cache_state.c */
cairn_status state_pool_new(cache *c, cairn_diag *dg);
void state_open(cache *c, seq *q); /* zeros */
void state_close(cache *c, seq *q);
void state_clear(cache *c, seq *q);                /* zeros again */
void state_follow(cache *c, seq *q, int32_t node); /* goes on from the node's; nothing is copied */
void state_reserve(cache *c, seq *q);              /* before rows are computed */
void state_commit(cache *c, seq *q);               /* after that */
void state_keep(cache *c, seq *q, int32_t node);   /* leaves it to a node too, if there is room */
void state_forsaken(cache *c, int32_t state);      /* a node referred to it, and does no more */
const float *state_shared(const cache *c, const seq *q); /* NULL: it is its own */

/* cache_tree.c */
uint64_t tree_bytes(const cache *c);
cairn_status tree_new(cache *c, cairn_diag *dg);
void tree_free(cache *c);
int32_t tree_root(cache *c, const cache_ns *ns, bool make);
int32_t tree_child(const tree *t, int32_t parent, int32_t token);
/* A child of n tokens at offset lo of block number i_block, no block yet; NO_NODE: no node is left. */
int32_t tree_add(cache *c, int32_t parent, const int32_t *tok, int32_t n, int32_t i_block,
                 int32_t lo);
int32_t tree_split(cache *c, int32_t node,
                   int32_t n); /* the upper part, of n tokens; NO_NODE as above */
void tree_set_block(cache *c, int32_t node, int32_t g, int32_t block);
void tree_drop_block(cache *c, int32_t node, int32_t g);
void tree_set_snap(cache *c, int32_t node, int32_t snap);
void tree_drop_snap(cache *c, int32_t node);
void tree_keep(tree *t, int32_t node, int32_t thing); /* is worth more than others of its kind */
void tree_touch(tree *t, int32_t node);               /* and all above it */
void tree_remove(cache *c, int32_t node);             /* without children or users */
int32_t tree_newest(const tree *t); /* of all nodes, by last use; NO_NODE: there is none */
int32_t tree_older(const tree *t, int32_t node);
/* A node in the middle of a block needs no block of its own beside another one that begins with its
   positions.  What lies above open sequences and pins cannot be given up but so. */
void tree_merge_blocks(cache *c, int32_t g);
static inline int32_t tree_snaps(const tree *t) /* as things */
{
    return t->n_thing - 3;
}
static inline int32_t tree_leaves(const tree *t)
{
    return t->n_thing - 1;
}
static inline list_link *tree_link(const tree *t, int32_t node, int32_t thing)
{
    return &t->link[(size_t)node * (size_t)t->n_thing + (size_t)thing];
}
static inline int32_t *tree_tok(const tree *t, int32_t node)
{
    return t->tok + (size_t)node * KV_BLOCK;
}
static inline int32_t tree_block(const cache *c, int32_t node, int32_t g)
{
    return c->tree.block[(size_t)node * (size_t)c->n_group + (size_t)g];
}
static inline int32_t tree_end(const prefix_node *n) /* one past its last position */
{
    return n->i_block * KV_BLOCK + n->lo + n->n;
}
/* From a node upward, the first whose block has a number before `end`: the deepest of that block, so walking
   on from it meets each block once, at its deepest node.  NO_NODE: there is none. */
static inline int32_t tree_before(const tree *t, int32_t node, int32_t end)
{
    while (t->node[node].n > 0 && t->node[node].i_block >= end) node = t->node[node].parent;
    return t->node[node].n > 0 ? node : NO_NODE;
}
static inline int32_t tree_next_block(const tree *t, int32_t node)
{
    return tree_before(t, node, t->node[node].i_block);
}

/* cache_drop.c: false: nothing may go */
enum {
    DROP_LOOK =
        8 /* things that one is chosen of: enough to meet other conversations, and half a microsecond */
};
bool drop_leaf(cache *c);                                    /* without users */
bool drop_window_block(cache *c, int32_t g, bool cold_only); /* that no sequence refers to */
bool drop_snap(cache *c);

/* cache_disk.c */
uint64_t disk_bytes(const cache *c); /* what a disk tier takes, but for the index of its files */
void disk_free(cache *c);
/* cache_restore.c: a sequence that was just opened goes on where files let it, if that is beyond `known`, once
   they are read; false: they do not. */
bool disk_begin(cache *c, seq *q, const cache_ask *a, int32_t known);
void disk_drop(cache *c, seq *q); /* is closed as soon as nobody reads into it */

/* cache_prefix.c */
bool prefix_learn(cache *c, seq *q, const int32_t *ids, int32_t to);
void prefix_begin(cache *c, seq *q, const cache_ask *a); /* of an empty one: what is known of it */
void prefix_use(cache *c, seq *q, int32_t node);
void prefix_trim(cache *c);                         /* what is kept fits into its bytes again */
void prefix_leave(cache *c, seq *q);                /* it no longer uses the tree */
void prefix_rewound(cache *c, seq *q);              /* len is shorter than what is known of it */
void prefix_own(cache *c, seq *q, int32_t i_block); /* copies what others refer to, for writing */

#endif
