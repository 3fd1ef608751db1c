/* Paged KV cache and recurrent states.  Owns the layout of blocks (a group of layers with equal window
   has its pool), the block tables, a state a sequence and the accounting; knows nothing of what a block
   holds beyond its layout.

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

enum {
    STATE_ALIGN = 64,
    MAX_SNAPS = 1 << 16,
    MAX_MORE_BLOCKS = 1 << 17,
    SNAP_NODES = 16, /* the positions between two snapshots */
    LATE_PATH =
        4, /* of a path with a delayed codec a quarter lies before the start: prompts of a few
                        thousand tokens, where a start is worth having */
    SPARE_NODES = 64
};

/* Which blocks of a layer: all, or those before or after its start. */
typedef enum span { SPAN_ALL, SPAN_EARLY, SPAN_LATE } span;

/* But for its places. */
static kv_layer layer_view(const cachespec *s, const kv_scheme *codec, int32_t layer, span part)
{
    const cache_layer_spec *l = &s->layer[layer];
    const kv_pair p = part == SPAN_EARLY ? codec->all : kv_layer_pair(codec, layer);
    return (kv_layer){.k = p.k,
                      .v = l->latent ? p.k : p.v,
                      .n_kv_head = l->n_kv_head,
                      .dk = l->dk,
                      .dv = l->dv,
                      .latent = l->latent};
}

static size_t layer_bytes(const kv_layer *l)
{
    return l->n_kv_head ? (size_t)l->n_kv_head * KV_BLOCK * kv_pos_bytes(l) : 0;
}

static bool has_keys(const cache_layer_spec *l)
{
    return l->n_kv_head > 0;
}

/* The group that a part of a layer belongs to, as far as layers go together: no pool yet. */
static group group_of(const cachespec *s, const kv_scheme *codec, int32_t layer, span part)
{
    const int32_t start = kv_layer_start(codec, layer) / KV_BLOCK;
    return (group){.window = s->layer[layer].window,
                   .from = part == SPAN_LATE ? start : 0,
                   .to = part == SPAN_EARLY ? start : INT32_MAX};
}

static bool same_group(const group *a, const group *b)
{
    return a->window == b->window && a->from == b->from && a->to == b->to;
}

static void parts_of(const kv_scheme *codec, int32_t layer, span *first, span *last)
{
    const bool delayed = kv_layer_start(codec, layer) > 0;
    *first = delayed ? SPAN_EARLY : SPAN_ALL;
    *last = delayed ? SPAN_LATE : SPAN_ALL;
}

size_t cache_state_bytes(const cachespec *s)
{
    size_t n = 0;
    for (int32_t i = 0; i < s->n_layer; i++) n += (size_t)s->layer[i].n_state;
    return round_up(n * sizeof(float), STATE_ALIGN);
}

/* Most blocks that a sequence of n_pos positions holds at once.  A windowed group keeps
   window + max_step_rows - 1 positions (the rows of a step and what the first of them sees, or as
   many rows to go back), wherever they begin in a block. */
static int32_t worst_blocks(const group *p, int32_t max_step_rows, int32_t n_pos)
{
    const int32_t end = min_i32(ceil_div(n_pos, KV_BLOCK), p->to);
    const int32_t all = max_i32(0, end - p->from);
    if (p->window == 0) return all;
    const int64_t seen = (int64_t)p->window + max_step_rows - 1;
    const int64_t kept = (seen - 1 + KV_BLOCK - 1) / KV_BLOCK + 1;
    return kept < all ? (int32_t)kept : all;
}

uint64_t cache_bytes(const cachespec *s, const kv_scheme *codec, int32_t max_step_rows,
                     int32_t n_pos)
{
    uint64_t sum = cache_state_bytes(s);
    for (int32_t i = 0; i < s->n_layer; i++) {
        span part, last;
        parts_of(codec, i, &part, &last);
        for (; part <= last; part++) {
            const kv_layer l = layer_view(s, codec, i, part);
            const group g = group_of(s, codec, i, part);
            sum += layer_bytes(&l) * (uint64_t)worst_blocks(&g, max_step_rows, n_pos);
        }
    }
    return sum;
}

/* A part of a layer: behind the layers that its group has already. */
static void lay_part(cache *c, const cachespec *s, int32_t layer, span part, kv_layer *out)
{
    const group of = group_of(s, &c->opts.codec, layer, part);
    int32_t g = 0;
    while (g < c->n_group && !same_group(&c->group[g], &of)) g++;
    if (g == c->n_group) c->group[c->n_group++] = of;
    *out = layer_view(s, &c->opts.codec, layer, part);
    out->group = g;
    out->k_off = out->v_off = c->group[g].block_bytes;
    if (!out->latent)
        out->v_off += (size_t)out->n_kv_head * KV_BLOCK * kv_row_bytes(out->k, out->dk);
    c->group[g].block_bytes += layer_bytes(out);
}

/* Groups in order of their first layer; a layer's keys, then its values, layer after layer. */
static void lay_out(cache *c, const cachespec *s)
{
    size_t state = 0;
    for (int32_t i = 0; i < s->n_layer; i++) {
        kv_layer *l = &c->layer[i], *late = &c->layer[s->n_layer + i];
        span part, last;
        parts_of(&c->opts.codec, i, &part, &last);
        *l = (kv_layer){.group = -1};
        if (has_keys(&s->layer[i])) lay_part(c, s, i, part, l);
        if (has_keys(&s->layer[i]) && part != last) {
            lay_part(c, s, i, last, late);
            l->late = late;
            l->late_from = kv_layer_start(&c->opts.codec, i);
        }
        l->state_off = state;
        state += (size_t)s->layer[i].n_state;
    }
}

/* As many sequences as their states leave room for one's blocks; one in any case. */
static int32_t fitting_seqs(const cachespec *s, const cache_opts *o, size_t state)
{
    if (!state) return o->max_seqs;
    const uint64_t blocks = cache_bytes(s, &o->codec, o->max_step_rows, o->ctx_len) - state;
    const uint64_t room = o->max_bytes > blocks ? (o->max_bytes - blocks) / state : 0;
    return room < 1 ? 1 : room < (uint64_t)o->max_seqs ? (int32_t)room : o->max_seqs;
}

/* Blocks of each pool.  Where all sequences at full length do not fit, windowed groups still get
   their worst case if that leaves one whole sequence for the others; else all share in proportion
   to what one sequence needs. */
static void size_pools(cache *c)
{
    const cache_opts *o = &c->opts;
    const uint64_t states = (uint64_t)c->n_seq * c->state_bytes;
    const uint64_t max_bytes = o->max_bytes > states ? o->max_bytes - states : 0;
    uint64_t full = 0, windowed = 0;
    for (int32_t g = 0; g < c->n_group; g++) {
        const group *p = &c->group[g];
        const uint64_t one =
            p->block_bytes * (uint64_t)worst_blocks(p, o->max_step_rows, o->ctx_len);
        *(p->window ? &windowed : &full) += one;
    }
    const uint64_t n = (uint64_t)c->n_seq;
    const bool windows_whole = windowed * n + full <= max_bytes;
    for (int32_t g = 0; g < c->n_group; g++) {
        group *p = &c->group[g];
        const uint64_t worst = (uint64_t)worst_blocks(p, o->max_step_rows, o->ctx_len);
        long double share = (long double)max_bytes * (long double)worst / (full + windowed);
        if (windows_whole && !p->window)
            share = (long double)(max_bytes - windowed * n) * (long double)worst / full;
        uint64_t blocks = worst * n;
        if (!(windows_whole && p->window) && share < (long double)blocks) blocks = (uint64_t)share;
        p->n_block = (int32_t)blocks;
    }
}

/* Blocks of a path for which pools get room in proportion: one that is delayed for a quarter of its length. */
static int32_t usual_path(const cache *c)
{
    int32_t start = 0;
    for (int32_t g = 0; g < c->n_group; g++) start = max_i32(start, c->group[g].from);
    const int32_t n = start < c->n_table / LATE_PATH ? start * LATE_PATH : c->n_table;
    return start ? n : 1;
}

static uint64_t blocks_of_path(const group *p, int32_t n_block)
{
    return (uint64_t)max_i32(1, min_i32(n_block, p->to) - p->from);
}

/* More blocks and snapshots for prefixes: of recurrent layers two states for 1,024 positions, about what
   the turns of a conversation leave; two at least, without which nothing could be taken up again. */
static void add_prefix_room(cache *c)
{
    const uint64_t max = c->opts.prefix_room;
    const int32_t path = usual_path(c);
    uint64_t bytes = 0, snaps = 0;
    for (int32_t g = 0; g < c->n_group; g++)
        bytes += c->group[g].block_bytes * blocks_of_path(&c->group[g], path);
    if (c->state_bytes) {
        const uint64_t unit =
            (1024 / KV_BLOCK) * bytes / (uint64_t)path + 2 * (uint64_t)c->state_bytes;
        snaps = max / unit * 2;
        if (snaps < 2) snaps = 2;
        if (snaps > max / c->state_bytes) snaps = max / c->state_bytes;
    }
    c->n_snap = (int32_t)(snaps < MAX_SNAPS ? snaps : MAX_SNAPS);
    const uint64_t rest = max - (uint64_t)c->n_snap * c->state_bytes;
    int32_t early = 0, late = 0;
    for (int32_t g = 0; g < c->n_group; g++) {
        group *p = &c->group[g];
        const long double share = (long double)rest * blocks_of_path(p, path) / bytes;
        p->n_block += (int32_t)(share < MAX_MORE_BLOCKS ? share : MAX_MORE_BLOCKS);
        int32_t *most = p->from ? &late : &early;
        *most = max_i32(*most, p->n_block);
    }
    /* a node a block, one for each end inside a block, and the paths of sequences that have no blocks left */
    c->tree.n_node =
        2 * (early + late) + c->n_seq * c->n_table + SNAP_NODES * c->n_snap + SPARE_NODES;
}

static cairn_status map_states(cache *c, cairn_diag *dg)
{
    size_t size;
    if (!c->state_bytes) return CAIRN_OK;
    if (!mul_size((size_t)c->n_seq, c->state_bytes, &size))
        return diag_set(dg, CAIRN_E_LIMIT, "%d recurrent states of %zu bytes overflow", c->n_seq,
                        c->state_bytes);
    c->states = mem_map(size, MEM_CACHE);
    if (!c->states) return diag_set(dg, CAIRN_E_NOMEM, "%zu bytes for recurrent states", size);
    for (int32_t i = 0; i < c->n_seq; i++)
        c->seq[i].state = (float *)(void *)(c->states + (size_t)i * c->state_bytes);
    return CAIRN_OK;
}

static cairn_status map_snaps(cache *c, cairn_diag *dg)
{
    const size_t size = (size_t)c->n_snap * c->state_bytes; /* at most prefix_bytes */
    c->snaps = mem_map(size, MEM_CACHE);
    c->free_snap = mem_calloc((size_t)c->n_snap + 1, sizeof *c->free_snap, MEM_CACHE);
    if (!c->snaps || !c->free_snap)
        return diag_set(dg, CAIRN_E_NOMEM, "%zu bytes for %d snapshots of states", size, c->n_snap);
    c->n_snap_free = c->n_snap;
    for (int32_t i = 0; i < c->n_snap; i++) c->free_snap[i] = c->n_snap - 1 - i;
    return CAIRN_OK;
}

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

static cairn_status check(const cachespec *s, const cache_opts *o, cairn_diag *dg)
{
    assert(o->max_seqs > 0 && o->max_step_rows > 0 && o->ctx_len > 0);
    if (s->n_layer < 1) return diag_set(dg, CAIRN_E_ARG, "a cache of %d layers", s->n_layer);
    for (int32_t i = 0; i < s->n_layer; i++) {
        const cache_layer_spec *l = &s->layer[i];
        const bool keys = l->n_kv_head > 0 && l->dk > 0 && l->dv >= 0 && l->window >= 0;
        const bool none = l->n_kv_head == 0 && l->dk == 0 && l->dv == 0 && l->window == 0;
        if (l->n_state < 0 || !(keys || none) || (l->latent && l->dv > l->dk))
            return diag_set(dg, CAIRN_E_ARG,
                            "cache layer %d: %d heads of %d and %d, window %d, state of %d", i,
                            l->n_kv_head, l->dk, l->dv, l->window, l->n_state);
    }
    return CAIRN_OK;
}

cairn_status cache_new(const cachespec *spec, const cache_opts *o, cache **out, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    TRY(check(spec, o, dg));
    cache *c = mem_calloc(1, sizeof *c, MEM_CACHE);
    if (!c) return diag_set(dg, CAIRN_E_NOMEM, "no memory for a cache");
    c->opts = *o;
    c->n_layer = spec->n_layer;
    c->state_bytes = cache_state_bytes(spec);
    c->n_seq = fitting_seqs(spec, o, c->state_bytes);
    c->n_table = o->ctx_len / KV_BLOCK + 1;
    c->layer = mem_calloc((size_t)c->n_layer, 2 * sizeof *c->layer, MEM_CACHE);
    c->group = mem_calloc((size_t)c->n_layer, 2 * sizeof *c->group, MEM_CACHE);
    if (c->layer && c->group) lay_out(c, spec);
    const size_t lanes = (size_t)c->n_seq * (size_t)c->n_group;
    c->seq = mem_calloc((size_t)c->n_seq, sizeof *c->seq, MEM_CACHE);
    c->ints = mem_calloc(lanes, 2 * sizeof *c->ints, MEM_CACHE);
    c->tables = mem_calloc(lanes, (size_t)c->n_table * sizeof *c->tables, MEM_CACHE);
    c->views = mem_calloc(lanes, sizeof *c->views, MEM_CACHE);
    if (!c->layer || !c->group || !c->seq || !c->ints || !c->tables || !c->views) {
        st = diag_set(dg, CAIRN_E_NOMEM, "no memory for cache tables of %d sequences", c->n_seq);
        goto out;
    }
    hand_out_tables(c);
    size_pools(c);
    TRY_GOTO(map_states(c, dg), out);
    c->keeps = o->prefix_bytes > 0;
    if (c->keeps) {
        add_prefix_room(c);
        TRY_GOTO(map_snaps(c, dg), out);
        TRY_GOTO(tree_new(c, dg), out);
    }
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
    mem_unmap(c->snaps, (size_t)c->n_snap * c->state_bytes, MEM_CACHE);
    mem_free(c->free_snap);
    mem_unmap(c->states, (size_t)c->n_seq * c->state_bytes, MEM_CACHE);
    mem_free(c->views);
    mem_free(c->tables);
    mem_free(c->ints);
    mem_free(c->seq);
    mem_free(c->group);
    mem_free(c->layer);
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
    uint64_t sum = open_states(c) + (uint64_t)(c->n_snap - c->n_snap_free) * c->state_bytes;
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
    uint64_t sum = (uint64_t)(c->n_seq + c->n_snap) * c->state_bytes;
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
        p->n_reserved += sign * worst_blocks(p, c->opts.max_step_rows, n_pos);
        assert(p->n_reserved >= 0 && p->n_reserved <= p->n_block);
    }
}

int32_t cache_worst_blocks(const cache *c, int32_t g, int32_t n_pos)
{
    return worst_blocks(&c->group[g], c->opts.max_step_rows, n_pos);
}

cairn_status cache_open(cache *c, int32_t n_pos, seq_id *out)
{
    if (n_pos < 1 || n_pos > c->opts.ctx_len) return CAIRN_E_LIMIT;
    cache_arrive(c); /* what was closed while it was read gives its room back */
    bool room = true;
    for (int32_t g = 0; g < c->n_group; g++) {
        const group *p = &c->group[g];
        const int32_t need = worst_blocks(p, c->opts.max_step_rows, n_pos);
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
    q->node = NO_NODE;
    q->n_pos = n_pos;
    if (q->state) memset(q->state, 0, c->state_bytes);
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
    if (q->node != NO_NODE) prefix_leave(c, q);
    q->open = false;
    if (c->keeps) prefix_trim(c);
}

void cache_reserve(cache *c, seq_id s, int32_t n_rows)
{
    seq *q = cache_seq(c, s);
    assert(n_rows > 0 && n_rows <= c->opts.max_step_rows && !q->reading);
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
    q->reserved_rows = n_rows;
}

void cache_commit(cache *c, seq_id s, int32_t n_rows)
{
    seq *q = cache_seq(c, s);
    assert(n_rows >= 0 && n_rows <= q->reserved_rows);
    assert(!q->state || n_rows == q->reserved_rows); /* the state has gone through all */
    q->len += n_rows;
    q->reserved_rows = 0;
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
