/* Prefixes that stay whatever room others need.  A pin refers to its blocks as an open sequence does, and
   sets them aside, so the cache's invariant holds for both. */
#include "cache/cache_priv.h"

/* For each block of group g that a sequence going on behind `node` sees. */
static void each_block(cache *c, int32_t node, int32_t g, void (*fn)(group *p, int32_t block))
{
    const tree *t = &c->tree;
    group *p = &c->group[g];
    const block_range r = block_needed(p, tree_end(&t->node[node]));
    for (int32_t i = tree_before(t, node, r.end); i != NO_NODE && t->node[i].i_block >= r.first;
         i = tree_next_block(t, i))
        fn(p, tree_block(c, i, g));
}

static int32_t count_blocks(const cache *c, int32_t node, int32_t g)
{
    const block_range r = block_needed(&c->group[g], tree_end(&c->tree.node[node]));
    return r.end - r.first;
}

/* One whole sequence must find room beside all pins, or nothing would ever run again. */
static cairn_status room_for(const cache *c, int32_t node)
{
    bool busy = false;
    for (int32_t g = 0; g < c->n_group; g++) {
        const group *p = &c->group[g];
        const int32_t need = count_blocks(c, node, g);
        if (need > p->n_block - p->n_pinned - cache_worst_blocks(c, g, c->opts.ctx_len))
            return CAIRN_E_LIMIT;
        busy |= need > p->n_block - p->n_reserved;
    }
    return busy ? CAIRN_E_BUSY : CAIRN_OK;
}

static void set_aside(cache *c, int32_t node, int32_t sign)
{
    for (int32_t g = 0; g < c->n_group; g++) {
        c->group[g].n_pinned += sign * count_blocks(c, node, g);
        c->group[g].n_reserved += sign * count_blocks(c, node, g);
    }
}

cairn_status cache_pin(cache *c, seq_id s, const int32_t *ids, int32_t *out, const char **why)
{
    const seq *q = cache_seq(c, s);
    cache_mark(c, s, ids, CACHE_TURN);
    *why = "the tree of prefixes is full of what runs and what is pinned";
    if (q->node == NO_NODE || q->len == 0 || q->n_known != q->len) return CAIRN_E_LIMIT;
    *why = "no place for its recurrent state is left";
    if (q->state && c->tree.node[q->node].snap == NO_SNAP) return CAIRN_E_LIMIT;
    const cairn_status st = room_for(c, q->node);
    *why = st == CAIRN_E_BUSY ? "the requests that run leave it no room"
                              : "beside it there were no room for one whole request";
    if (st != CAIRN_OK) return st;
    *out = q->node;
    c->n_pin++;
    c->tree.node[*out].pins++;
    c->tree.node[*out].users++;
    set_aside(c, *out, 1);
    for (int32_t g = 0; g < c->n_group; g++) each_block(c, *out, g, block_add_seq);
    return CAIRN_OK;
}

void cache_unpin(cache *c, int32_t pin)
{
    for (int32_t g = 0; g < c->n_group; g++) each_block(c, pin, g, block_drop_seq);
    set_aside(c, pin, -1);
    c->n_pin--;
    c->tree.node[pin].pins--;
    c->tree.node[pin].users--;
    tree_touch(&c->tree, pin); /* used until now */
    prefix_trim(c);
}
