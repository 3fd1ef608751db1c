/* How a cache is laid out, and all its sizes: which layers share a group (those of one window, and of one part of
   a path where their codec is delayed), how many blocks and snapshots there are, and what the tables for them take.
   Allocates the layers' and groups' lists and nothing else, so that the memory guard can ask before there is a
   cache. */
#include <assert.h>

#include "base/alloc.h"
#include "base/diag.h"
#include "base/num.h"
#include "cache/cache_priv.h"

enum {
    STATE_ALIGN = 64,          /* a cache line, and the widest register */
    MAX_SNAPS = 1 << 16,       /* of 32 million positions, as add_prefix_room has them */
    MAX_MORE_BLOCKS = 1 << 17, /* of 8 million positions: nodes for them take some 100 MB */
    SNAP_NODES = 16,           /* the blocks between two snapshots, each of which may end a path */
    LATE_PATH =
        4, /* of a path with a delayed codec a quarter lies before the start: prompts of a few
                        thousand tokens, where a start is worth having */
    SPARE_NODES = 64 /* roots, one a cache space that is in use; more of them take others' nodes */
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
int32_t layout_worst(const group *p, int32_t max_step_rows, int32_t n_pos)
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
            sum += layer_bytes(&l) * (uint64_t)layout_worst(&g, max_step_rows, n_pos);
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
            p->block_bytes * (uint64_t)layout_worst(p, o->max_step_rows, o->ctx_len);
        *(p->window ? &windowed : &full) += one;
    }
    const uint64_t n = (uint64_t)c->n_seq;
    const bool windows_whole = windowed * n + full <= max_bytes;
    for (int32_t g = 0; g < c->n_group; g++) {
        group *p = &c->group[g];
        const uint64_t worst = (uint64_t)layout_worst(p, o->max_step_rows, o->ctx_len);
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

/* Attention costs a token what all else does at six times a model's width: 4 · width operations a position and layer
   beside 24 · width², of projections and an MLP of four times the width.  Of widths from 576 to 4,096 that is
   3,456 to 24,576 positions; layers that see a window or keep a state add nothing with depth. */
static double attend_cost(const cachespec *s)
{
    const double equal = 8192;
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_layer; i++) n += has_keys(&s->layer[i]) && !s->layer[i].window;
    return n / (equal * s->n_layer);
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

cairn_status layout_make(cache *c, const cachespec *spec, const cache_opts *o, cairn_diag *dg)
{
    TRY(check(spec, o, dg));
    c->opts = *o;
    c->n_layer = spec->n_layer;
    c->state_bytes = cache_state_bytes(spec);
    c->attend_cost = attend_cost(spec);
    c->n_seq = fitting_seqs(spec, o, c->state_bytes);
    c->n_table = o->ctx_len / KV_BLOCK + 1;
    c->layer = mem_calloc((size_t)c->n_layer, 2 * sizeof *c->layer, MEM_CACHE);
    c->group = mem_calloc((size_t)c->n_layer, 2 * sizeof *c->group, MEM_CACHE);
    if (!c->layer || !c->group)
        return diag_set(dg, CAIRN_E_NOMEM, "no memory for a cache of %d layers", c->n_layer);
    lay_out(c, spec);
    size_pools(c);
    c->keeps = o->prefix_bytes > 0;
    if (c->keeps) add_prefix_room(c);
    c->states.block_bytes = c->state_bytes;
    c->states.n_block = c->state_bytes ? c->n_seq + c->n_snap : 0;
    return CAIRN_OK;
}

void layout_free(cache *c)
{
    mem_free(c->group);
    mem_free(c->layer);
}

/* What cache_new allocates beside pools and states. */
static uint64_t table_bytes(const cache *c)
{
    const uint64_t lanes = (uint64_t)c->n_seq * (uint64_t)c->n_group;
    const uint64_t layers = 2 * (uint64_t)c->n_layer * (sizeof *c->layer + sizeof *c->group);
    const uint64_t lane =
        2 * sizeof *c->ints + (uint64_t)c->n_table * sizeof *c->tables + sizeof *c->views;
    uint64_t sum = sizeof *c + layers + (uint64_t)c->n_seq * sizeof *c->seq + lanes * lane;
    for (int32_t g = 0; g < c->n_group; g++) sum += block_list_bytes(&c->group[g]);
    if (c->state_bytes) sum += block_list_bytes(&c->states);
    if (c->keeps) sum += tree_bytes(c);
    return sum;
}

cairn_status cache_overhead(const cachespec *spec, const cache_opts *o, bool disk, uint64_t *out,
                            cairn_diag *dg)
{
    cache c = {.n_layer = 0};
    const cairn_status st = layout_make(&c, spec, o, dg);
    if (st == CAIRN_OK) *out = table_bytes(&c) + (disk && c.keeps ? disk_bytes(&c) : 0);
    layout_free(&c);
    return st;
}
