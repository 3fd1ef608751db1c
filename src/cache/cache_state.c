/* Recurrent states: one that each open sequence writes, and those that nodes of the tree keep.  Nothing is copied.  A
   sequence that goes on from a node's state reads it where it lies, and what its rows leave behind goes to its own;
   one that leaves its state to a node gives its own away, reads it there, and has another to write.

   States are referred to as blocks are: by sequences, by nodes, or by both.  Invariant: those that are neither free
   nor some sequence's own are n_snap at most, so a sequence that opens always finds one. */
#include <assert.h>
#include <string.h>

#include "cache/cache_priv.h"

cairn_status state_pool_new(cache *c, cairn_diag *dg)
{
    for (int32_t s = 0; s < c->n_seq; s++) c->seq[s].own = c->seq[s].from = NO_SNAP;
    return c->state_bytes ? block_pool_new(&c->states, dg) : CAIRN_OK;
}

static float *state_at(const cache *c, int32_t state)
{
    return (float *)(void *)block_at(&c->states, state);
}

static void set_own(cache *c, seq *q, int32_t state)
{
    q->own = state;
    q->state = state_at(c, state);
}

static int32_t take(cache *c)
{
    group *p = &c->states;
    assert(p->n_free > 0);
    const int32_t state = p->free_block[--p->n_free];
    block_add_seq(p, state);
    return state;
}

void state_open(cache *c, seq *q)
{
    set_own(c, q, take(c));
    q->from = NO_SNAP;
    q->blank = true;
}

/* The last sequence that goes on from a state which no node keeps any more has it for its own; but not while rows are
   being computed, which lets go of it in any case. */
void state_forsaken(cache *c, int32_t state)
{
    const group *p = &c->states;
    if (p->by_tree[state] > 0 || p->by_seq[state] != 1) return;
    for (int32_t s = 0; s < c->n_seq; s++) {
        seq *q = &c->seq[s];
        if (!q->open || q->from != state || q->reserved_rows > 0) continue;
        block_drop_seq(&c->states, q->own);
        set_own(c, q, state);
        q->from = NO_SNAP;
        return;
    }
}

static void let_go(cache *c, seq *q)
{
    const int32_t state = q->from;
    if (state == NO_SNAP) return;
    q->from = NO_SNAP;
    block_drop_seq(&c->states, state);
    state_forsaken(c, state);
}

void state_close(cache *c, seq *q)
{
    let_go(c, q);
    block_drop_seq(&c->states, q->own);
    q->own = NO_SNAP;
}

void state_clear(cache *c, seq *q)
{
    let_go(c, q);
    q->blank = true;
}

void state_follow(cache *c, seq *q, int32_t node)
{
    let_go(c, q);
    q->from = c->tree.node[node].snap;
    block_add_seq(&c->states, q->from);
    q->blank = false;
}

void state_reserve(cache *c, seq *q)
{
    if (q->blank) memset(q->state, 0, c->state_bytes);
    q->blank = false;
}

void state_commit(cache *c, seq *q)
{
    let_go(c, q);
}

/* One more may be kept beside what sequences have, or may open with. */
static bool has_room(const cache *c)
{
    int32_t closed = 0;
    for (int32_t s = 0; s < c->n_seq; s++) closed += !c->seq[s].open;
    return c->states.n_free > closed;
}

void state_keep(cache *c, seq *q, int32_t node)
{
    if (c->tree.node[node].snap != NO_SNAP) return;
    while (q->from == NO_SNAP && !has_room(c))
        if (!drop_snap(c)) return;
    if (q->from == NO_SNAP) {
        q->from = q->own;
        set_own(c, q, take(c));
    }
    tree_set_snap(c, node, q->from);
}

const float *state_shared(const cache *c, const seq *q)
{
    return q->from == NO_SNAP ? NULL : state_at(c, q->from);
}
