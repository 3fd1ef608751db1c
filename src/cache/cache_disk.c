/* Writing prefixes behind: runs of blocks that are not on disk yet are copied, while nothing else is to do,
   and handed to the store, the latest used first and beginnings before what follows them.  Copies, since a
   block that the store reads could not be given up for a request that needs its room; few at a time, since
   the store writes only while nothing else is to do either. */
#include "cache/cache_disk.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/num.h"

enum {
    STAGES = 2,             /* one is filled while the other is written */
    STAGE_BYTES = 32 << 20, /* a disk's full rate needs no more at once */
    STAGE_STATES = 4,       /* of a run: the turns of 1,024 positions */
    SCAN_MS = 200,          /* 10,000 headers and more */
    ROUND_MS = 100          /* of a flush, before finished stages are filled again */
};

typedef struct saved_node {
    int32_t node;
    uint32_t birth;
} saved_node;

/* A run on its way. */
typedef struct stage {
    bool busy;
    uint8_t *bytes;  /* of states, then of blocks */
    int32_t n_saved; /* nodes that it holds */
    saved_node saved[STORE_MAX_BLOCKS + STAGE_STATES];
} stage;

struct disk_writer {
    size_t block_bytes; /* of all groups */
    int32_t run_blocks; /* in a stage at most */
    size_t stage_bytes;
    stage stage[STAGES];
};

static size_t stage_size(const cache *c, const disk_writer *w)
{
    return (size_t)w->run_blocks * w->block_bytes + STAGE_STATES * c->state_bytes;
}

static void size_stages(const cache *c, disk_writer *w)
{
    for (int32_t g = 0; g < c->n_group; g++) w->block_bytes += c->group[g].block_bytes;
    w->run_blocks = w->block_bytes
                        ? (int32_t)min_size(STAGE_BYTES / w->block_bytes, STORE_MAX_BLOCKS)
                        : STORE_MAX_BLOCKS;
    if (w->run_blocks < 1) w->run_blocks = 1;
    w->stage_bytes = stage_size(c, w);
}

uint64_t disk_bytes(const cache *c)
{
    disk_writer w = {.block_bytes = 0};
    size_stages(c, &w);
    const uint64_t item = store_item_bytes(w.run_blocks * c->n_group);
    return sizeof(disk) + sizeof w + (uint64_t)c->n_table * sizeof *c->disk->ram +
           restores_bytes(c) + store_bytes() + STAGES * (w.stage_bytes + item);
}

static cairn_status make_writer(const cache *c, disk *d, cairn_diag *dg)
{
    disk_writer *w = mem_calloc(1, sizeof *w, MEM_CACHE);
    d->writer = w;
    if (!w) return diag_set(dg, CAIRN_E_NOMEM, "no memory for a disk cache");
    size_stages(c, w);
    for (int32_t i = 0; i < STAGES; i++) {
        w->stage[i].bytes = mem_map(w->stage_bytes, MEM_CACHE);
        if (!w->stage[i].bytes)
            return diag_set(dg, CAIRN_E_NOMEM, "%zu bytes for what goes to disk", w->stage_bytes);
    }
    return CAIRN_OK;
}

cairn_status cache_add_disk(cache *c, const cache_disk_opts *o, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    size_t block_bytes[STORE_MAX_GROUPS];
    assert(c->keeps && !c->disk);
    if (c->n_group > STORE_MAX_GROUPS)
        return diag_set(dg, CAIRN_E_LIMIT, "%d groups of layers; a disk cache takes %d", c->n_group,
                        STORE_MAX_GROUPS);
    disk *d = c->disk = mem_calloc(1, sizeof *d, MEM_CACHE);
    if (!d) return diag_set(dg, CAIRN_E_NOMEM, "no memory for a disk cache");
    d->arrived = o->arrived;
    d->ctx = o->ctx;
    TRY_GOTO(reader_start(c, dg), out);
    d->ram = mem_calloc((size_t)c->n_table, sizeof *d->ram, MEM_CACHE);
    if (!d->ram) {
        st = diag_set(dg, CAIRN_E_NOMEM, "no memory for a disk cache");
        goto out;
    }
    TRY_GOTO(make_writer(c, d, dg), out);
    for (int32_t g = 0; g < c->n_group; g++) block_bytes[g] = c->group[g].block_bytes;
    store_opts so = {.dir = o->dir,
                     .numerics = o->numerics,
                     .scheme = o->scheme,
                     .n_group = c->n_group,
                     .block_bytes = block_bytes,
                     .state_bytes = c->state_bytes,
                     .max_bytes = o->max_bytes,
                     .queue_bytes = STAGES * (d->writer->stage_bytes + (1 << 20))};
    memcpy(so.fingerprint, o->fingerprint, sizeof so.fingerprint);
    st = store_open(&so, &d->store, dg);
    if (st == CAIRN_OK)
        (void)store_scanned(d->store, SCAN_MS); /* then the first prompt finds all */
out:
    if (st != CAIRN_OK) disk_free(c);
    return st;
}

void disk_free(cache *c)
{
    disk *d = c->disk;
    if (!d) return;
    reader_stop(c);
    store_close(d->store); /* reads no stage from here on */
    for (int32_t i = 0; d->writer && i < STAGES; i++)
        mem_unmap(d->writer->stage[i].bytes, d->writer->stage_bytes, MEM_CACHE);
    mem_free(d->writer);
    mem_free(d->ram);
    mem_free(d);
    c->disk = NULL;
}

/* Whether a file should hold the path up to this node's end: full blocks, and where one can go on from. */
static bool worth_saving(const cache *c, const prefix_node *v)
{
    if (v->n == 0 || v->saved != SAVED_NOT) return false;
    return v->lo + v->n == KV_BLOCK || v->snap != NO_SNAP ||
           (v->child == NO_NODE && !c->state_bytes);
}

/* The nodes of a path, by block: the last one of each number. */
static void note_path(cache *c, int32_t node)
{
    const tree *t = &c->tree;
    for (int32_t i = tree_before(t, node, INT32_MAX); i != NO_NODE; i = tree_next_block(t, i))
        c->disk->ram[t->node[i].i_block] = i;
}

static int32_t root_of(const tree *t, int32_t node)
{
    while (t->node[node].parent != NO_NODE) node = t->node[node].parent;
    return node;
}

/* Tokens of the block number that ends with `node`; answers how many. */
static int32_t block_tokens(const tree *t, int32_t node, int32_t out[KV_BLOCK])
{
    const int32_t n = t->node[node].lo + t->node[node].n, i_block = t->node[node].i_block;
    for (int32_t i = node; t->node[i].n > 0 && t->node[i].i_block == i_block; i = t->node[i].parent)
        memcpy(out + t->node[i].lo, tree_tok(t, i), (size_t)t->node[i].n * sizeof *out);
    return n;
}

static store_key key_before(const cache *c, store_key root, int32_t i_block)
{
    int32_t tok[KV_BLOCK];
    store_key k = root;
    for (int32_t i = 0; i < i_block; i++) {
        const int32_t n = block_tokens(&c->tree, c->disk->ram[i], tok);
        k = store_block_key(k, tok, n);
    }
    return k;
}

static void note_saved(cache *c, stage *s, int32_t node)
{
    c->tree.node[node].saved = SAVED_SOON;
    s->saved[s->n_saved++] = (saved_node){node, c->tree.node[node].birth};
}

static bool has_new_state(const prefix_node *v)
{
    return v->snap != NO_SNAP && v->saved == SAVED_NOT;
}

/* States at the ends of the run's blocks, the rest of `at` behind them. */
static int32_t stage_states(cache *c, stage *s, uint8_t **at, int32_t first, int32_t n_block,
                            store_state *out)
{
    int32_t n = 0;
    for (int32_t i = first; i < first + n_block && n < STAGE_STATES; i++) {
        const int32_t node = c->disk->ram[i];
        const prefix_node *v = &c->tree.node[node];
        if (!has_new_state(v)) continue;
        memcpy(*at, block_at(&c->states, v->snap), c->state_bytes);
        out[n++] = (store_state){tree_end(v), *at};
        *at += c->state_bytes;
        note_saved(c, s, node);
    }
    return n;
}

static cairn_status put_run(cache *c, stage *s, int32_t node, int32_t first, int32_t n_block,
                            bool urgent)
{
    disk *d = c->disk;
    const tree *t = &c->tree;
    const uint8_t *block[STORE_MAX_BLOCKS * STORE_MAX_GROUPS];
    int32_t tok[STORE_MAX_BLOCKS * KV_BLOCK], n_tok = 0;
    store_state state[STAGE_STATES];
    uint8_t *at = s->bytes;
    s->n_saved = 0;
    const int32_t n_state = stage_states(c, s, &at, first, n_block, state);
    for (int32_t i = 0; i < n_block; i++) {
        const int32_t end = d->ram[first + i];
        n_tok += block_tokens(t, end, tok + n_tok);
        for (int32_t g = 0; g < c->n_group; g++) {
            const int32_t b = tree_block(c, end, g);
            const uint8_t **cell = &block[i * c->n_group + g];
            *cell = NULL;
            if (b == NO_BLOCK) continue;
            memcpy(at, block_at(&c->group[g], b), c->group[g].block_bytes);
            *cell = at;
            at += c->group[g].block_bytes;
        }
        if (t->node[end].saved == SAVED_NOT && !has_new_state(&t->node[end])) note_saved(c, s, end);
    }
    const store_key root = t->node[root_of(t, node)].ns;
    const store_run r = {.root = root,
                         .parent = key_before(c, root, first),
                         .first_block = first,
                         .n_block = n_block,
                         .token = tok,
                         .n_tok = n_tok,
                         .block = block,
                         .state = state,
                         .n_state = n_state,
                         .urgent = urgent};
    return store_put(d->store, &r, s);
}

static void settle(cache *c, const stage *s, int32_t saved)
{
    for (int32_t i = 0; i < s->n_saved; i++) {
        prefix_node *v = &c->tree.node[s->saved[i].node];
        if (v->birth == s->saved[i].birth && v->saved == SAVED_SOON) v->saved = saved;
    }
}

/* A state inside a block is found by the key of what the block has up to there: a run ends with it. */
static bool ends_inside(const prefix_node *v)
{
    return v->snap != NO_SNAP && v->lo + v->n < KV_BLOCK;
}

/* From the first node of a path that no file holds down to where a run ends: at the last one worth saving
   among its next blocks, along any children, with no more states than a stage takes. */
static int32_t end_of_run(const cache *c, int32_t i)
{
    const tree *t = &c->tree;
    const int32_t most = t->node[i].i_block + c->disk->writer->run_blocks;
    int32_t end = i, n_state = has_new_state(&t->node[i]);
    for (int32_t k = t->node[i].child;
         k != NO_NODE && t->node[k].i_block < most && !ends_inside(&t->node[end]);
         k = t->node[k].child) {
        n_state += has_new_state(&t->node[k]);
        if (n_state > STAGE_STATES) break;
        if (worth_saving(c, &t->node[k])) end = k;
    }
    return end;
}

/* The first blocks that no file holds of a path down to where a run from `i` on ends. */
static bool put_from(cache *c, stage *s, int32_t i, bool urgent)
{
    disk *d = c->disk;
    const tree *t = &c->tree;
    const int32_t end = end_of_run(c, i), last = t->node[end].i_block;
    int32_t first = 0;
    note_path(c, end);
    while (first < last && t->node[d->ram[first]].saved != SAVED_NOT) first++;
    const int32_t n = min_i32(last + 1 - first, d->writer->run_blocks);
    s->busy = put_run(c, s, end, first, n, urgent) == CAIRN_OK;
    if (!s->busy) settle(c, s, SAVED_NOT);
    return s->busy;
}

/* Of the path used last. */
static bool put_next(cache *c, stage *s)
{
    for (int32_t i = tree_newest(&c->tree); i != NO_NODE; i = tree_older(&c->tree, i))
        if (worth_saving(c, &c->tree.node[i])) return put_from(c, s, i, false);
    return false;
}

static void take_note(cache *c)
{
    store_done done;
    while (store_poll(c->disk->store, &done)) {
        stage *s = done.user;
        settle(c, s,
               done.result == STORE_DURABLE   ? SAVED
               : done.result == STORE_NO_ROOM ? SAVED_NO_ROOM
                                              : SAVED_NOT);
        s->busy = false;
    }
}

bool cache_write_behind(cache *c, bool idle)
{
    disk *d = c->disk;
    bool busy = false;
    if (!d) return false;
    store_idle(d->store, idle);
    take_note(c);
    for (int32_t i = 0; i < STAGES; i++) {
        stage *s = &d->writer->stage[i];
        if (idle && !s->busy) (void)put_next(c, s);
        busy |= s->busy;
    }
    return busy;
}

/* The topmost node above `i`, or it, that no file holds and one should. */
static int32_t first_unsaved(const cache *c, int32_t i)
{
    int32_t first = NO_NODE;
    for (; c->tree.node[i].n > 0; i = c->tree.node[i].parent)
        if (worth_saving(c, &c->tree.node[i])) first = i;
    return first;
}

bool cache_write_now(cache *c, seq_id s)
{
    disk *d = c->disk;
    const seq *q = cache_seq(c, s);
    if (!d || q->node == NO_NODE) return false;
    take_note(c);
    const int32_t from = first_unsaved(c, q->node);
    for (int32_t i = 0; from != NO_NODE && i < STAGES; i++)
        if (!d->writer->stage[i].busy) return put_from(c, &d->writer->stage[i], from, true);
    return from != NO_NODE;
}

static uint32_t count_unsaved(const cache *c, uint32_t *no_room)
{
    const tree *t = &c->tree;
    uint32_t n = 0;
    for (int32_t i = tree_newest(t); i != NO_NODE; i = tree_older(t, i)) {
        n += worth_saving(c, &t->node[i]);
        *no_room += t->node[i].saved == SAVED_NO_ROOM;
    }
    return n;
}

/* Whether a file holds the path up to this node's end, whose block comes after `before`. */
static bool is_in_a_file(const cache *c, store_key root, store_key before, int32_t node)
{
    int32_t tok[KV_BLOCK];
    store_id found[DISK_MAX_FOUND];
    store_info info;
    const prefix_node *v = &c->tree.node[node];
    const store_key key = store_block_key(before, tok, block_tokens(&c->tree, node, tok));
    const int32_t n = store_find(c->disk->store, root, key, found, DISK_MAX_FOUND);
    bool there = n > 0 && v->snap == NO_SNAP;
    for (int32_t i = 0; i < n && !there; i++)
        for (int32_t k = 0; store_get_info(c->disk->store, found[i], &info) && k < info.n_state;
             k++)
            there |= info.state_pos[k] == tree_end(v);
    return there;
}

/* Of the path to a leaf: what files have lost is to be written again. */
static void recheck_path(cache *c, int32_t leaf)
{
    const tree *t = &c->tree;
    const store_key root = t->node[root_of(t, leaf)].ns;
    store_key key = root;
    note_path(c, leaf);
    for (int32_t i = 0; i <= t->node[leaf].i_block; i++) {
        int32_t tok[KV_BLOCK];
        const int32_t last = c->disk->ram[i];
        for (int32_t k = last; t->node[k].n > 0 && t->node[k].i_block == i; k = t->node[k].parent)
            if (t->node[k].saved == SAVED && !is_in_a_file(c, root, key, k))
                t->node[k].saved = SAVED_NOT;
        key = store_block_key(key, tok, block_tokens(t, last, tok));
    }
}

/* What was durable may be so no more, and what had no room may have it now. */
static void recheck(cache *c)
{
    const tree *t = &c->tree;
    const bool lost = store_count_lost(c->disk->store) > 0;
    for (int32_t i = tree_newest(t); i != NO_NODE; i = tree_older(t, i)) {
        prefix_node *v = &t->node[i];
        if (v->saved == SAVED_NO_ROOM) v->saved = SAVED_NOT;
        if (lost && v->child == NO_NODE && v->n > 0) recheck_path(c, i);
    }
}

void cache_flush(cache *c, uint32_t wait_ms, store_flushed *out)
{
    *out = (store_flushed){0};
    if (!c->disk) return;
    const uint64_t end_ns = clock_ns() + (uint64_t)wait_ms * 1000000;
    store_flushed round;
    recheck(c);
    store_flush(c->disk->store, 0, &round); /* what failed before may be tried again */
    out->durable = round.durable;
    for (bool more = true; more;) {
        more = cache_write_behind(c, true);
        const uint64_t now_ns = clock_ns();
        const uint64_t left_ms = now_ns < end_ns ? (end_ns - now_ns) / 1000000 : 0;
        store_flush(c->disk->store, left_ms < ROUND_MS ? (uint32_t)left_ms : ROUND_MS, &round);
        out->durable += round.durable;
        out->dropped += round.dropped;
        out->failed += round.failed;
        if (round.failed || round.dropped || now_ns >= end_ns) break;
    }
    take_note(c);
    if (!store_in_place(c->disk->store)) recheck(c); /* meanwhile: none of it is durable */
    out->n_entry = round.n_entry;
    out->longest = round.longest;
    out->pending = round.pending + count_unsaved(c, &out->dropped);
    store_idle(c->disk->store, false); /* an idle engine says so again */
}

bool cache_disk_stats(const cache *c, store_stats *out)
{
    if (c->disk) store_get_stats(c->disk->store, out);
    return c->disk != NULL;
}
