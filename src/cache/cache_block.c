/* Pools of blocks, and who refers to them.  A block that only the tree refers to is given up when a
   sequence needs room: what cache_open set aside is always there. */
#include <assert.h>

#include "base/alloc.h"
#include "base/diag.h"
#include "base/num.h"
#include "cache/cache_priv.h"

cairn_status block_pool_new(group *g, cairn_diag *dg)
{
    size_t size;
    const size_t n = (size_t)g->n_block;
    if (!mul_size(n, g->block_bytes, &size))
        return diag_set(dg, CAIRN_E_LIMIT, "%d cache blocks of %zu bytes overflow", g->n_block,
                        g->block_bytes);
    g->pool = mem_map(size, MEM_CACHE);
    g->free_block = mem_calloc(n + 1, sizeof *g->free_block, MEM_CACHE);
    g->by_seq = mem_calloc(n + 1, 2 * sizeof *g->by_seq, MEM_CACHE);
    if (!g->pool || !g->free_block || !g->by_seq)
        return diag_set(dg, CAIRN_E_NOMEM, "%zu bytes for %d cache blocks", size, g->n_block);
    g->by_tree = g->by_seq + n;
    g->n_free = g->n_block;
    for (int32_t i = 0; i < g->n_block; i++) g->free_block[i] = g->n_block - 1 - i;
    return CAIRN_OK;
}

uint64_t block_list_bytes(const group *g)
{
    return ((uint64_t)g->n_block + 1) * (sizeof *g->free_block + 2 * sizeof *g->by_seq);
}

void block_pool_free(group *g)
{
    mem_unmap(g->pool, (size_t)g->n_block * g->block_bytes, MEM_CACHE);
    mem_free(g->free_block);
    mem_free(g->by_seq);
}

static void let_go(group *p, int32_t block)
{
    if (p->by_seq[block] == 0 && p->by_tree[block] == 0) p->free_block[p->n_free++] = block;
}

void block_add_seq(group *p, int32_t block)
{
    if (p->by_seq[block]++ == 0 && p->by_tree[block] > 0) p->n_kept--;
}

void block_drop_seq(group *p, int32_t block)
{
    assert(p->by_seq[block] > 0);
    if (--p->by_seq[block] == 0 && p->by_tree[block] > 0) p->n_kept++;
    let_go(p, block);
}

void block_add_tree(group *p, int32_t block)
{
    assert(p->by_seq[block] > 0 || p->by_tree[block] > 0);
    p->by_tree[block]++;
}

void block_drop_tree(group *p, int32_t block)
{
    assert(p->by_tree[block] > 0);
    if (--p->by_tree[block] == 0 && p->by_seq[block] == 0) p->n_kept--;
    let_go(p, block);
}

/* Blocks of a window go before whole prefixes: without them a prefix is still good further on, or, where
   its layers see everything, before. */
static bool make_room(cache *c, int32_t g)
{
    const group *p = &c->group[g];
    while (p->n_free == 0 && p->window && drop_window_block(c, g, false)) continue;
    while (p->n_free == 0 && drop_leaf(c)) continue;
    if (p->n_free == 0) tree_merge_blocks(c, g);
    return p->n_free > 0;
}

int32_t block_try_take(cache *c, int32_t g)
{
    group *p = &c->group[g];
    if (p->n_free == 0 && !make_room(c, g)) return NO_BLOCK;
    const int32_t block = p->free_block[--p->n_free];
    block_add_seq(p, block);
    return block;
}

int32_t block_take(cache *c, int32_t g)
{
    const int32_t block = block_try_take(c, g);
    assert(block != NO_BLOCK); /* sequences never refer to more than they set aside */
    return block;
}
