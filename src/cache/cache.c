/* Paged KV cache and recurrent states.  Owns the block tables and the accounting; knows
   nothing of what a block holds.

   Invariant: for every group, the blocks that open sequences may still ask for never exceed the
   pool, since cache_open sets each sequence's worst case aside.  Hence only cache_open can fail.
   Everything is allocated in cache_new; pools are mapped and become resident as they are touched,
   lowest blocks first. */

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/diag.h"
#include "base/num.h"
#include "cache/cache_priv.h"

static void hand_out_tables(cache *c)
{
    const size_t ng = (size_t)c->n_group, nt = (size_t)c->n_table;
    for (size_t i = 0; i < (size_t)c->n_seq; i++) {
        seq *q = &c->seq[i];
        q->first = c->ints + i * 2 * ng;
        q->end = q->first + ng;
        q->table = c->tables + i * ng * nt;
        q->view = c->views + i * ng;
        for (size_t g = 0; g < ng; g++) q->view[g] = q->table + g * nt;
    }
}

cairn_status cache_new(const cachespec *spec, const cache_opts *o, cache **out, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    cache *c = mem_calloc(1, sizeof *c, MEM_CACHE);
    if (!c) return diag_set(dg, CAIRN_E_NOMEM, "no memory for a cache");
    TRY_GOTO(layout_make(c, spec, o, dg), out);
    const size_t lanes = (size_t)c->n_seq * (size_t)c->n_group;
    c->seq = mem_calloc((size_t)c->n_seq, sizeof *c->seq, MEM_CACHE);
    c->ints = mem_calloc(lanes, 2 * sizeof *c->ints, MEM_CACHE);
    c->tables = mem_calloc(lanes, (size_t)c->n_table * sizeof *c->tables, MEM_CACHE);
    c->views = mem_calloc(lanes, sizeof *c->views, MEM_CACHE);
    if (!c->seq || !c->ints || !c->tables || !c->views) {
        st = diag_set(dg, CAIRN_E_NOMEM, "no memory for cache tables of %d sequences", c->n_seq);
        goto out;
    }
    hand_out_tables(c);
    TRY_GOTO(state_pool_new(c, dg), out);
    if (c->keeps) TRY_GOTO(tree_new(c, dg), out);
    for (int32_t g = 0; g < c->n_group; g++) TRY_GOTO(block_pool_new(&c->group[g], dg), out);
    *out = c;
    c = NULL;
out:
    cache_free(c);
    return st;
}

void cache_free(cache *c)
{
    if (!c) return;
    disk_free(c); /* nobody reads into blocks from here on */
    for (int32_t g = 0; c->group && g < c->n_group; g++) block_pool_free(&c->group[g]);
    tree_free(c);
    block_pool_free(&c->states);
    mem_free(c->views);
    mem_free(c->tables);
    mem_free(c->ints);
    mem_free(c->seq);
    layout_free(c);
    mem_free(c);
}

const kv_layer *cache_layers(const cache *c)
{
    return c->layer;
}

int32_t cache_groups(const cache *c)
{
    return c->n_group;
}

static uint64_t open_states(const cache *c)
{
    uint64_t sum = 0;
    for (int32_t s = 0; s < c->n_seq; s++) sum += c->seq[s].open ? c->state_bytes : 0;
    return sum;
}

uint64_t cache_used(const cache *c)
{
    uint64_t sum = (uint64_t)(c->states.n_block - c->states.n_free) * c->state_bytes;
    for (int32_t g = 0; g < c->n_group; g++)
        sum += (uint64_t)(c->group[g].n_block - c->group[g].n_free) * c->group[g].block_bytes;
    return sum;
}

uint64_t cache_reserved(const cache *c)
{
    uint64_t sum = open_states(c);
    for (int32_t g = 0; g < c->n_group; g++)
        sum += (uint64_t)c->group[g].n_reserved * c->group[g].block_bytes;
    return sum;
}

uint64_t cache_total(const cache *c)
{
    uint64_t sum = (uint64_t)c->states.n_block * c->state_bytes;
    for (int32_t g = 0; g < c->n_group; g++)
        sum += (uint64_t)c->group[g].n_block * c->group[g].block_bytes;
    return sum;
}

seq *cache_seq(const cache *c, seq_id s)
{
    assert(s >= 0 && s < c->n_seq && c->seq[s].open);
    return &c->seq[s];
}

/* Changes what is set aside for a sequence of n_pos positions by `sign` times its worst case. */
static void set_aside(cache *c, int32_t n_pos, int32_t sign)
{
    for (int32_t g = 0; g < c->n_group; g++) {
        group *p = &c->group[g];
        p->n_reserved += sign * layout_worst(p, c->opts.max_step_rows, n_pos);
        assert(p->n_reserved >= 0 && p->n_reserved <= p->n_block);
    }
}

int32_t cache_worst_blocks(const cache *c, int32_t g, int32_t n_pos)
{
    return layout_worst(&c->group[g], c->opts.max_step_rows, n_pos);
}

cairn_status cache_open(cache *c, int32_t n_pos, seq_id *out)
{
    if (n_pos < 1 || n_pos > c->opts.ctx_len) return CAIRN_E_LIMIT;
    cache_arrive(c); /* what was closed while it was read gives its room back */
    bool room = true;
    for (int32_t g = 0; g < c->n_group; g++) {
        const group *p = &c->group[g];
        const int32_t need = layout_worst(p, c->opts.max_step_rows, n_pos);
        if (need > p->n_block) return CAIRN_E_LIMIT;
        if (need > p->n_block - p->n_reserved) room = false;
    }
    seq_id s = 0;
    while (s < c->n_seq && c->seq[s].open) s++;
    if (!room || s == c->n_seq) return CAIRN_E_BUSY;
    seq *q = &c->seq[s];
    q->open = true;
    q->reading = q->leaving = false;
    q->len = q->reserved_rows = q->n_known = q->shared = 0;
    q->torn = false;
    q->node = NO_NODE;
    q->n_pos = n_pos;
    if (c->state_bytes) state_open(c, q);
    memset(q->first, 0, 2 * (size_t)c->n_group * sizeof *q->first);
    set_aside(c, n_pos, 1);
    *out = s;
    return CAIRN_OK;
}

static void give_back(cache *c, seq *q, int32_t g, int32_t i_block)
{
    group *p = &c->group[g];
    uint8_t **slot = table_slot(c, q, g, i_block);
    if (!group_has(p, i_block)) return;
    assert(*slot);
    block_drop_seq(p, block_index(p, *slot));
    *slot = NULL;
}

static void take_block(cache *c, seq *q, int32_t g, int32_t i_block)
{
    uint8_t **slot = table_slot(c, q, g, i_block);
    assert(!*slot);
    if (!group_has(&c->group[g], i_block)) return;
    *slot = block_at(&c->group[g], block_take(c, g));
}

void cache_drop_blocks(cache *c, seq *q)
{
    for (int32_t g = 0; g < c->n_group; g++)
        while (q->end[g] > q->first[g]) give_back(c, q, g, --q->end[g]);
}

void cache_close(cache *c, seq_id s)
{
    seq *q = cache_seq(c, s);
    if (q->reading) {
        disk_drop(c, q);
        return;
    }
    cache_drop_blocks(c, q);
    set_aside(c, q->n_pos, -1);
    if (q->state) state_close(c, q);
    if (q->node != NO_NODE) prefix_leave(c, q);
    q->open = false;
    if (c->keeps) prefix_trim(c);
}

void cache_reserve(cache *c, seq_id s, int32_t n_rows)
{
    seq *q = cache_seq(c, s);
    assert(n_rows > 0 && n_rows <= c->opts.max_step_rows && !q->reading && !q->torn);
    assert(q->len + n_rows <= q->n_pos);
    if (q->len < q->shared) { /* it went back to where others read */
        if (q->len % KV_BLOCK) prefix_own(c, q, q->len / KV_BLOCK);
        q->shared = q->len;
    }
    const int32_t end = (q->len + n_rows - 1) / KV_BLOCK + 1;
    for (int32_t g = 0; g < c->n_group; g++) {
        const int32_t window = c->group[g].window;
        /* the lowest position that is visible from max_step_rows before the new end */
        const int32_t low = q->len + n_rows - c->opts.max_step_rows - window + 1;
        if (window)
            while (q->first[g] < low / KV_BLOCK && q->first[g] < q->end[g])
                give_back(c, q, g, q->first[g]++);
        while (q->end[g] < end) take_block(c, q, g, q->end[g]++);
    }
    if (q->state) state_reserve(c, q);
    q->reserved_rows = n_rows;
}

void cache_commit(cache *c, seq_id s, int32_t n_rows)
{
    seq *q = cache_seq(c, s);
    assert(n_rows >= 0 && n_rows <= q->reserved_rows);
    assert(!q->state || n_rows == 0 ||
           n_rows == q->reserved_rows); /* the state has gone through all */
    q->len += n_rows;
    q->reserved_rows = 0;
    if (q->state && n_rows > 0)
        state_commit(c, q);
    else if (q->state)
        q->torn = true;
}

void cache_rewind(cache *c, seq_id s, int32_t n_pos)
{
    seq *q = cache_seq(c, s);
    assert(n_pos >= 0 && n_pos <= q->len);
    assert(!q->state || n_pos == q->len);
    for (int32_t g = 0; g < c->n_group; g++) {
        const int32_t low = n_pos - c->group[g].window + 1;
        assert(q->first[g] == 0 || low >= q->first[g] * KV_BLOCK); /* still there */
        while (q->end[g] > ceil_div(n_pos, KV_BLOCK) && q->end[g] > q->first[g])
            give_back(c, q, g, --q->end[g]);
    }
    q->len = n_pos;
    q->reserved_rows = 0;
    prefix_rewound(c, q);
}

bool cache_ready(const cache *c, seq_id s)
{
    return !cache_seq(c, s)->reading;
}

int32_t cache_len(const cache *c, seq_id s)
{
    return cache_seq(c, s)->len;
}

uint8_t *const *const *cache_blocks(const cache *c, seq_id s)
{
    return cache_seq(c, s)->view;
}

float *cache_state(const cache *c, seq_id s)
{
    return cache_seq(c, s)->state;
}

const float *cache_state_before(const cache *c, seq_id s)
{
    const seq *q = cache_seq(c, s);
    return q->state ? state_shared(c, q) : NULL;
}
