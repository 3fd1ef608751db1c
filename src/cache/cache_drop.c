/* What is given up first.  Of the DROP_LOOK things of a kind that were used longest ago and may go, the one that
   costs least to compute again for each byte it holds; of equal ones the one used longest ago.  So what is cheap
   and large goes before what is dear and small, and order of last use decides between what is far apart.

   Nothing is passed over for ever: of DROP_LOOK drops of a kind that follow each other, one at least takes the
   oldest that may go, so a thing with m older ones beside it is gone after DROP_LOOK · (m + 1) drops, unless it is
   used meanwhile.  (GreedyDual ages by value instead: Cao and Irani 1997, section 4; a list in order of use needs
   no heap, and nothing to be done about what is not looked at.)

   A drop weighs DROP_LOOK things and walks DROP_WALK nodes from each at most.  It steps over what sequences and pins
   use, which is not moved: as far as the first thing that may go, and while fewer than DROP_FAR are passed in all.
   Nothing allocates. */
#include "base/num.h"
#include "cache/cache_priv.h"

enum {
    DROP_WALK = 32, /* twice the blocks between two states that an engine keeps: 1,024 positions */
    DROP_FAR = 64   /* a choice is worth passing 4,096 positions of a sequence, not all of it */
};

typedef struct pick {
    int32_t n, oldest, best;
    double worth;
} pick;
static const pick nothing = {.n = 0, .oldest = NO_NODE, .best = NO_NODE};

static void consider(pick *p, int32_t node, double worth)
{
    if (p->n++ == 0) p->oldest = node;
    if (p->best != NO_NODE && worth >= p->worth) return;
    p->best = node;
    p->worth = worth;
}

/* After `passed` things, those that may not go included. */
static bool is_enough(const pick *p, int32_t passed)
{
    return p->n == DROP_LOOK || (p->n > 0 && passed >= DROP_FAR);
}

static int32_t decide(ends *e, const pick *p)
{
    const bool pass = p->best != p->oldest && e->passed < DROP_LOOK - 1;
    e->passed = pass ? e->passed + 1 : 0;
    return pass ? p->best : p->oldest;
}

/* Of computing positions [from, to), in tokens at position 0. */
static double cost(const cache *c, int32_t from, int32_t to)
{
    return (to - from) * (1 + c->attend_cost * ((double)from + to) / 2);
}

/* A block that several nodes refer to is in parts each one's. */
static double block_bytes(const cache *c, int32_t i, int32_t g)
{
    const int32_t b = tree_block(c, i, g);
    const group *p = &c->group[g];
    return b == NO_BLOCK ? 0 : (double)p->block_bytes / p->by_tree[b];
}

/* The positions of the node's last one back to the nearest state above it, which has to be gone on from then. */
static double state_cost(const cache *c, int32_t i)
{
    const prefix_node *v = c->tree.node;
    int32_t up = v[i].parent;
    for (int32_t k = 0; k < DROP_WALK && v[up].n > 0 && v[up].snap == NO_SNAP; k++)
        up = v[up].parent;
    return cost(c, v[up].n > 0 ? tree_end(&v[up]) : 0, tree_end(&v[i]));
}

/* Nobody can go on at a leaf that holds nothing, or, beside recurrent layers, has no state: it is worth nothing. */
static double leaf_worth(const cache *c, int32_t i)
{
    const prefix_node *v = &c->tree.node[i];
    const int32_t end = tree_end(v);
    double bytes = 0;
    if (v->n == 0 || (c->state_bytes && v->snap == NO_SNAP)) return 0;
    for (int32_t g = 0; g < c->n_group; g++) bytes += block_bytes(c, i, g);
    if (v->snap != NO_SNAP)
        return state_cost(c, i) / (bytes + (double)c->state_bytes / c->states.by_tree[v->snap]);
    return bytes > 0 ? cost(c, end - v->n, end) / bytes : 0;
}

/* Whoever goes on behind the block and sees it has to go back to where it begins: as far as blocks follow it, along
   the child that came last. */
static double window_worth(const cache *c, int32_t i, int32_t g)
{
    const prefix_node *v = c->tree.node;
    const int32_t from = tree_end(&v[i]) - v[i].n;
    int32_t last = i;
    for (int32_t k = 0, at = v[i].child; k < DROP_WALK && at != NO_NODE; k++, at = v[at].child) {
        if (tree_block(c, at, g) == NO_BLOCK) break;
        last = at;
    }
    const int32_t end = min_i32(tree_end(&v[last]), tree_end(&v[i]) + c->group[g].window);
    return cost(c, from, end) / block_bytes(c, i, g);
}

bool drop_leaf(cache *c)
{
    tree *t = &c->tree;
    const int32_t leaves = tree_leaves(t);
    ends *e = &t->list[leaves][LIST_KEPT];
    pick p = nothing;
    for (int32_t i = e->first, k = 0; i != NO_NODE && !is_enough(&p, k); k++) {
        if (t->node[i].users == 0) consider(&p, i, leaf_worth(c, i));
        i = tree_link(t, i, leaves)->next;
    }
    if (p.n == 0) return false;
    tree_remove(c, decide(e, &p));
    return true;
}

bool drop_window_block(cache *c, int32_t g, bool cold_only)
{
    tree *t = &c->tree;
    for (int32_t in = LIST_COLD; in <= (cold_only ? LIST_COLD : LIST_KEPT); in++) {
        ends *e = &t->list[g][in];
        pick p = nothing;
        for (int32_t i = e->first, k = 0; i != NO_NODE && !is_enough(&p, k); k++) {
            if (c->group[g].by_seq[tree_block(c, i, g)] == 0)
                consider(&p, i, window_worth(c, i, g));
            i = tree_link(t, i, g)->next;
        }
        if (p.n == 0) continue;
        tree_drop_block(c, decide(e, &p), g);
        return true;
    }
    return false;
}

/* Whether giving it up leads to room: what several open sequences read still would stay. */
static bool may_free(const cache *c, int32_t i)
{
    const prefix_node *v = &c->tree.node[i];
    return v->pins == 0 && c->states.by_seq[v->snap] <= 1;
}

bool drop_snap(cache *c)
{
    tree *t = &c->tree;
    const int32_t snaps = tree_snaps(t);
    for (int32_t in = LIST_COLD; in <= LIST_KEPT; in++) {
        ends *e = &t->list[snaps][in];
        pick p = nothing;
        for (int32_t i = e->first, k = 0; i != NO_NODE && !is_enough(&p, k); k++) {
            if (may_free(c, i)) consider(&p, i, state_cost(c, i)); /* all of one size */
            i = tree_link(t, i, snaps)->next;
        }
        if (p.n == 0) continue;
        tree_drop_snap(c, decide(e, &p));
        return true;
    }
    return false;
}
