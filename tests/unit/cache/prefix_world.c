/* The world of prefix_world.h. */
#include "prefix_world.h"

#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "base/rng.h"

static const cache_layer_spec full[] = {{2, 4, 4, .window = 0}};
static const cache_layer_spec two[] = {
    {1, 4, 4, .window = 0}, {2, 4, 4, .window = 90}, {1, 4, 4, .window = 1}};
static const cache_layer_spec windows[] = {{1, 4, 4, .window = 70}};
static const cache_layer_spec latent[] = {{1, 6, 4, .latent = true}};
static const cache_layer_spec hybrid[] = {{.n_state = 3}, {1, 4, 4, .window = 0}};
static const cache_layer_spec hybrid_window[] = {{.n_state = 3}, {1, 4, 4, .window = 33}};
static const cache_layer_spec states[] = {{.n_state = 20}};
/* Positions before a start lie in blocks of a group, those behind it in smaller ones of another. */
static const kv_pair coded[] = {
    {{KV_Q8, 4}, {KV_Q8, 4}}, {{KV_Q8, 4}, {KV_Q8, 4}}, {{KV_Q8, 4}, {KV_Q8, 4}}};
static const int32_t late[] = {128, 64, 448};
const kind world_kinds[N_KIND] = {
    {"full", {1, full}, {.layer = NULL}, true},
    {"full and windows", {3, two}, {.layer = NULL}, false},
    {"windows", {1, windows}, {.layer = NULL}, false},
    {"latent", {1, latent}, {.layer = NULL}, true},
    {"hybrid", {2, hybrid}, {.layer = NULL}, false},
    {"hybrid with a window", {2, hybrid_window}, {.layer = NULL}, false},
    {"states", {1, states}, {.layer = NULL}, false},
    {"delayed", {1, full}, {.layer = coded, .start = late}, true},
    {"delayed, full and windows", {3, two}, {.layer = coded, .start = late}, false},
    {"delayed, hybrid with a window", {2, hybrid_window}, {.layer = coded, .start = late}, false}};

static int32_t below(world *w, int32_t n)
{
    return (int32_t)(rng_u64(w->seed, w->i, w->draw++) % (uint64_t)n);
}

static const cache_ns spaces[2] = {{1, 2}, {1, 3}};

/* What the rows up to n of a sequence must hold at the last of them. */
static void hashes(const int32_t *ids, int32_t n, uint32_t *out)
{
    uint32_t h = 77;
    for (int32_t i = 0; i < n; i++) {
        h = (h ^ (uint32_t)ids[i]) * 2654435761u;
        h ^= h >> 15;
        out[i] = h;
    }
}

static uint32_t *cell(const world *w, const naive *q, int32_t g, int32_t pos)
{
    uint8_t *block = cache_blocks(w->c, q->id)[g][pos / KV_BLOCK];
    assert_non_null(block);
    return (uint32_t *)(void *)block + pos % KV_BLOCK;
}

static int32_t state_floats(const world *w)
{
    return (int32_t)(w->c->state_bytes / sizeof(float));
}

/* All of it is what the row with that hash left. */
static void check_state(const world *w, const naive *q, uint32_t hash)
{
    const float *from = cache_state_before(w->c, q->id),
                *state = from ? from : cache_state(w->c, q->id);
    for (int32_t i = 0; i < state_floats(w); i++) {
        uint32_t now;
        memcpy(&now, &state[i], sizeof now);
        assert_int_equal(now, hash ? hash + (uint32_t)i : 0);
    }
}

static void write_state(const world *w, const naive *q, uint32_t hash)
{
    float *state = cache_state(w->c, q->id);
    for (int32_t i = 0; state && i < state_floats(w); i++) {
        const uint32_t now = hash + (uint32_t)i;
        memcpy(&state[i], &now, sizeof now);
    }
}

static void verify(const world *w, const naive *q)
{
    uint32_t h[CTX];
    assert_int_equal(cache_len(w->c, q->id), q->len);
    hashes(q->ids, q->len, h);
    for (int32_t g = 0; g < w->c->n_group; g++) {
        const int32_t window = w->c->group[g].window;
        for (int32_t p = window ? max_i32(0, q->len - window + 1) : 0; p < q->len; p++)
            if (group_has(&w->c->group[g], p / KV_BLOCK)) assert_int_equal(*cell(w, q, g, p), h[p]);
    }
    if (cache_state(w->c, q->id) && q->len > 0) check_state(w, q, h[q->len - 1]);
}

/* References of pins: to the deepest block of each number that is still seen. */
static void count_pins(const world *w, int32_t g, int32_t *by_seq)
{
    const cache *c = w->c;
    for (int32_t k = 0; k < w->n_pin; k++) {
        const int32_t n = w->pin[k].n, low = block_lowest_seen(&c->group[g], n);
        int32_t last = INT32_MAX;
        for (int32_t i = w->pin[k].pin; i != NO_NODE && c->tree.node[i].n;
             i = c->tree.node[i].parent) {
            const int32_t at = c->tree.node[i].i_block;
            if (low < n && at < last && at >= low / KV_BLOCK && group_has(&c->group[g], at))
                by_seq[tree_block(c, i, g)]++;
            last = at;
        }
    }
}

static int32_t next_listed(const cache *c, int32_t i)
{
    const int32_t nodes = c->n_group + 1;
    if (i == NO_NODE) return c->tree.list[nodes][LIST_KEPT].first;
    return c->tree.link[i * c->tree.n_thing + nodes].next;
}

/* A parent comes behind its children; leaves are all that have none, in order of use. */
static void check_lists(const cache *c)
{
    const tree *t = &c->tree;
    int32_t leaves = 0, listed = 0;
    bool *seen = mem_calloc((size_t)t->n_node, sizeof *seen, MEM_MISC);
    for (int32_t i = NO_NODE; (i = next_listed(c, i)) != NO_NODE;) {
        const int32_t up = t->node[i].parent;
        assert_true(up == NO_NODE || !seen[up]);
        seen[i] = true;
        leaves += t->node[i].child == NO_NODE;
    }
    uint64_t used = 0;
    for (int32_t i = t->list[tree_leaves(t)][LIST_KEPT].first; i != NO_NODE;
         i = tree_link(t, i, tree_leaves(t))->next) {
        assert_true(seen[i] && t->node[i].child == NO_NODE && t->node[i].used > used);
        used = t->node[i].used;
        listed++;
    }
    assert_int_equal(listed, leaves);
    mem_free(seen);
}

/* Each open sequence has one of its own; what nodes keep, or kept and sequences read, has its limit. */
static void count_states(const cache *c)
{
    const group *p = &c->states;
    int32_t *by_seq = mem_calloc((size_t)p->n_block + 1, 2 * sizeof *by_seq, MEM_MISC);
    int32_t *by_tree = by_seq + p->n_block, own = 0, kept = 0, unused = 0;
    for (int32_t s = 0; p->n_block && s < c->n_seq; s++) {
        const seq *q = &c->seq[s];
        if (!q->open) continue;
        assert_true(p->by_seq[q->own] == 1 && p->by_tree[q->own] == 0);
        by_seq[q->own]++;
        own++;
        if (q->from != NO_SNAP) by_seq[q->from]++;
    }
    for (int32_t i = NO_NODE; (i = next_listed(c, i)) != NO_NODE;)
        if (c->tree.node[i].snap != NO_SNAP) by_tree[c->tree.node[i].snap]++;
    for (int32_t b = 0; b < p->n_block; b++) {
        assert_int_equal(by_seq[b], p->by_seq[b]);
        assert_int_equal(by_tree[b], p->by_tree[b]);
        kept += !by_seq[b] && by_tree[b];
        unused += !by_seq[b] && !by_tree[b];
    }
    assert_int_equal(kept, p->n_kept);
    assert_int_equal(unused, p->n_free);
    assert_true(p->n_block - unused - own <= c->n_snap);
    mem_free(by_seq);
}

/* Every reference is counted, once; every block, node and state is somewhere. */
void world_count(const world *w)
{
    const cache *c = w->c;
    int32_t nodes = c->tree.n_free, i = NO_NODE;
    for (int32_t g = 0; g < c->n_group; g++) {
        const group *p = &c->group[g];
        int32_t *by_seq = mem_calloc((size_t)p->n_block, 2 * sizeof *by_seq, MEM_MISC);
        int32_t *by_tree = by_seq + p->n_block, kept = 0, free_blocks = 0;
        for (int32_t s = 0; s < c->n_seq; s++)
            for (int32_t k = c->seq[s].first[g]; c->seq[s].open && k < c->seq[s].end[g]; k++)
                if (group_has(p, k)) by_seq[block_index(p, *table_slot(c, &c->seq[s], g, k))]++;
        count_pins(w, g, by_seq);
        while ((i = next_listed(c, i)) != NO_NODE)
            if (tree_block(c, i, g) != NO_BLOCK) by_tree[tree_block(c, i, g)]++;
        for (int32_t b = 0; b < p->n_block; b++) {
            assert_int_equal(by_seq[b], p->by_seq[b]);
            assert_int_equal(by_tree[b], p->by_tree[b]);
            kept += !by_seq[b] && by_tree[b];
            free_blocks += !by_seq[b] && !by_tree[b];
        }
        assert_int_equal(kept, p->n_kept);
        assert_int_equal(free_blocks, p->n_free);
        mem_free(by_seq);
    }
    while ((i = next_listed(c, i)) != NO_NODE) nodes++;
    check_lists(c);
    assert_int_equal(nodes, c->tree.n_node);
    count_states(c);
    assert_true(cache_used(c) <= cache_total(c));
}

/* A new prompt: the beginning of an older one, or of one that runs now, and something else. */
static void make_prompt(world *w, naive *q)
{
    int32_t n = 0;
    q->ns = below(w, 8) == 0;
    if (w->n_past && below(w, 4)) {
        const int32_t k = below(w, w->n_past);
        n = below(w, 3) ? w->past[k].n : below(w, w->past[k].n + 1);
        memcpy(q->ids, w->past[k].ids, (size_t)n * sizeof *q->ids);
    } else {
        const naive *o = &w->seq[below(w, SEQS)];
        if (o->open && o != q) {
            n = o->len;
            memcpy(q->ids, o->ids, (size_t)n * sizeof *q->ids);
        }
    }
    for (int32_t i = n; i < CTX; i++) q->ids[i] = below(w, 2);
}

static int32_t longest_past(const world *w, const naive *q, int32_t limit)
{
    int32_t best = 0;
    for (int32_t k = 0; k < w->n_past; k++) {
        int32_t n = 0;
        if (w->past[k].ns != q->ns) continue;
        while (n < w->past[k].n && n < limit && w->past[k].ids[n] == q->ids[n]) n++;
        best = max_i32(best, n);
    }
    return best;
}

bool world_open(world *w, naive *q, int32_t n_ids, int32_t n_pos)
{
    const cache_ask a = {spaces[q->ns], spaces[0], q->ids, n_ids, n_pos};
    const cairn_status st = cache_open_on(w->c, &a, &q->id);
    assert_true(st == CAIRN_OK || st == CAIRN_E_BUSY);
    if (st != CAIRN_OK) return false;
    for (; !cache_ready(w->c, q->id); cache_arrive(w->c)) (void)usleep(20);
    q->open = true;
    q->n_pos = n_pos;
    q->len = q->furthest = q->hit = cache_len(w->c, q->id);
    assert_true(q->len < n_ids);
    w->hits += q->len;
    return true;
}

static void try_open(world *w, naive *q, bool ample)
{
    make_prompt(w, q);
    const int32_t n_ids = 1 + below(w, w->ctx), n_pos = min_i32(w->ctx, n_ids + below(w, 40));
    if (world_open(w, q, n_ids, n_pos) && ample)
        assert_true(q->len >= longest_past(w, q, n_ids - 1));
}

static void grow(world *w, naive *q)
{
    uint32_t h[CTX];
    const int32_t rows = min_i32(q->n_pos - q->len, 1 + below(w, below(w, 2) ? MAX_STEP : 2));
    const bool state = cache_state(w->c, q->id) != NULL;
    const int32_t commit = !state && below(w, 8) == 0 ? rows / 2 : rows;
    cache_reserve(w->c, q->id, rows);
    hashes(q->ids, q->len + rows, h);
    for (int32_t i = 0; i < rows; i++)
        for (int32_t g = 0; g < w->c->n_group; g++)
            if (group_has(&w->c->group[g], (q->len + i) / KV_BLOCK))
                *cell(w, q, g, q->len + i) = h[q->len + i];
    if (state) check_state(w, q, q->len ? h[q->len - 1] : 0);
    write_state(w, q, h[q->len + rows - 1]);
    cache_commit(w->c, q->id, commit);
    q->len += commit;
    q->furthest = max_i32(q->furthest, q->len + rows - commit);
    cache_publish(w->c, q->id, q->ids);
}

static void close_one(world *w, naive *q)
{
    const bool mark = below(w, 4) > 0;
    if (mark) cache_mark(w->c, q->id, q->ids, CACHE_TURN);
    cache_close(w->c, q->id);
    q->open = false;
    if (!mark) return;
    const int32_t k = w->n_past < PAST ? w->n_past++ : below(w, PAST);
    w->past[k].ns = q->ns;
    w->past[k].n = q->len;
    memcpy(w->past[k].ids, q->ids, sizeof q->ids);
}

static void pin_one(world *w, naive *q)
{
    const char *why;
    if (w->n_pin == PINS || q->len == 0) return;
    const int32_t k = w->n_pin;
    if (cache_pin(w->c, q->id, q->ids, &w->pin[k].pin, &why) != CAIRN_OK) return;
    w->pin[k].n = q->len;
    w->pin[k].ns = q->ns;
    memcpy(w->pin[k].ids, q->ids, sizeof q->ids);
    w->n_pin++;
    w->n_pinned++;
}

/* What is pinned is there, whole. */
static void use_pin(world *w, naive *q)
{
    if (!w->n_pin) return;
    const int32_t k = below(w, w->n_pin), n = w->pin[k].n;
    if (n + 1 >= w->ctx) return;
    memcpy(q->ids, w->pin[k].ids, sizeof q->ids);
    q->ns = w->pin[k].ns;
    if (world_open(w, q, n + 1, n + 1)) assert_int_equal(q->len, n);
}

static void unpin_one(world *w)
{
    if (!w->n_pin) return;
    const int32_t k = below(w, w->n_pin);
    cache_unpin(w->c, w->pin[k].pin);
    w->pin[k] = w->pin[--w->n_pin];
}

static void go_back(world *w, naive *q)
{
    const int32_t least = max_i32(q->hit, q->furthest - MAX_STEP);
    if (least >= q->len || cache_state(w->c, q->id)) return;
    q->len = least + below(w, q->len - least + 1);
    cache_rewind(w->c, q->id, q->len);
    for (int32_t i = q->len; i < CTX; i++) q->ids[i] = below(w, 2);
}

static void forget(world *w)
{
    cache_forget(w->c);
    w->n_past = 0;
}

void world_do(world *w, uint64_t i, bool ample)
{
    w->i = i;
    w->draw = 0;
    naive *q = &w->seq[below(w, SEQS)];
    const int32_t r = below(w, 100);
    if (!q->open && r < 20)
        use_pin(w, q);
    else if (!q->open)
        try_open(w, q, ample);
    else if (r < 3)
        pin_one(w, q);
    else if (r < 4)
        unpin_one(w);
    else if (r < 8)
        close_one(w, q);
    else if (r < 14)
        go_back(w, q);
    else if (r < 22)
        cache_mark(w->c, q->id, q->ids, r & 1 ? CACHE_TURN : CACHE_STEP);
    else if (r < 23 && !ample)
        forget(w);
    else if (q->len < q->n_pos)
        grow(w, q);
}

void world_open_cache(world *w)
{
    cairn_diag dg;
    assert_ok(cache_new(&w->k->spec, &w->opts, &w->c, &dg));
}

world *world_new(const kind *k, uint64_t seed, int32_t ctx, uint64_t n_seqs, uint64_t prefix_bytes)
{
    world *w = mem_calloc(1, sizeof *w, MEM_MISC);
    const uint64_t one = cache_bytes(&k->spec, &k->codec, MAX_STEP, ctx);
    w->opts = (cache_opts){k->codec, SEQS, ctx, MAX_STEP, n_seqs * one, prefix_bytes, prefix_bytes};
    w->k = k;
    w->seed = seed;
    w->ctx = ctx;
    world_open_cache(w);
    return w;
}

void world_free(world *w)
{
    cache_free(w->c);
    mem_free(w);
}

void world_verify(const world *w)
{
    for (int s = 0; s < SEQS; s++)
        if (w->seq[s].open) verify(w, &w->seq[s]);
}

void world_close_all(world *w)
{
    for (int s = 0; s < SEQS; s++) {
        if (w->seq[s].open) cache_close(w->c, w->seq[s].id);
        w->seq[s].open = false;
    }
    while (w->n_pin) unpin_one(w);
}
