/* The doors of the disk tier: what its callers' threads call.  Owns the store's lifetime and the reading of
   entries; store_queue.c has the writer's thread, store_index.c what is there. */
#include "cache/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/log.h"
#include "cache/store_priv.h"

#define DEFAULT_MAX_BYTES ((uint64_t)32 << 30) /* some days of agents' conversations */
#define DEFAULT_QUEUE_BYTES                                                                        \
    ((uint64_t)2 << 30)                    /* what a slow disk takes within a drain's two minutes */
#define MAX_TENSOR_BYTES ((size_t)1 << 36) /* so that no sum of sizes overflows */
enum { DEFAULT_RETRY_MS = 30000 /* a full disk is not made room on within seconds */ };

static cairn_status read_opts(store *s, const store_opts *o, cairn_diag *dg)
{
    store_conf *c = &s->conf;
    bool fits =
        o->n_group >= 0 && o->n_group <= STORE_MAX_GROUPS && o->state_bytes < MAX_TENSOR_BYTES;
    for (int32_t g = 0; fits && g < o->n_group; g++) {
        c->block_bytes[g] = o->block_bytes[g];
        fits = c->block_bytes[g] > 0 && c->block_bytes[g] < MAX_TENSOR_BYTES;
    }
    if (!fits)
        return diag_set(
            dg, CAIRN_E_LIMIT,
            "%s: found %d groups of blocks, states of %zu bytes; expected at most %d, of "
            "less than %zu bytes each",
            o->dir, o->n_group, o->state_bytes, STORE_MAX_GROUPS, MAX_TENSOR_BYTES);
    memcpy(c->fingerprint, o->fingerprint, sizeof c->fingerprint);
    c->scheme = hash128_of(o->scheme, strlen(o->scheme));
    c->numerics = o->numerics;
    c->companion = o->companion_codec;
    c->n_group = o->n_group;
    c->state_bytes = o->state_bytes;
    c->unverified = o->unverified;
    s->max_bytes = o->max_bytes ? o->max_bytes : DEFAULT_MAX_BYTES;
    s->queue_bytes = o->queue_bytes ? o->queue_bytes : DEFAULT_QUEUE_BYTES;
    s->retry_ms = o->retry_ms ? o->retry_ms : DEFAULT_RETRY_MS;
    return CAIRN_OK;
}

cairn_status store_open(const store_opts *o, store **out, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    store *s = mem_calloc(1, sizeof *s, MEM_CACHE);
    if (!s) return diag_set(dg, CAIRN_E_NOMEM, "%s: no memory for a store", o->dir);
    mutex_init(&s->mu);
    cond_init(&s->work);
    cond_init(&s->done);
    index_init(&s->index);
    s->folder = -1;
    TRY_GOTO(read_opts(s, o, dg), out);
    TRY_GOTO(store_folder_name(o->dir, o->fingerprint, "", &s->path, dg), out);
    s->reading = mem_alloc(sizeof *s->reading, MEM_CACHE);
    s->writing = mem_alloc(sizeof *s->writing, MEM_CACHE);
    s->former = mem_alloc(sizeof *s->former, MEM_CACHE);
    st = s->reading && s->writing && s->former
             ? thread_start(&s->writer, "cairn-store", store_run_writer, s)
             : CAIRN_E_NOMEM;
    if (st != CAIRN_OK) {
        (void)diag_set(dg, st, "%s: no memory for a store", o->dir);
        goto out;
    }
    *out = s;
    s = NULL;
out:
    store_close(s);
    return st;
}

static void free_items(store_item *it)
{
    while (it) {
        store_item *next = it->next;
        mem_free(it);
        it = next;
    }
}

void store_close(store *s)
{
    if (!s) return;
    mutex_lock(&s->mu);
    s->stop = true;
    cond_signal(&s->work);
    mutex_unlock(&s->mu);
    thread_join(&s->writer);
    free_items(s->first);
    free_items(s->ended);
    while (s->doomed) { /* the next start meets their files again */
        store_entry *e = s->doomed;
        s->doomed = e->next;
        mem_free(e);
    }
    if (s->folder >= 0) (void)close(s->folder);
    index_deinit(&s->index);
    cond_deinit(&s->done);
    cond_deinit(&s->work);
    mutex_deinit(&s->mu);
    mem_free(s->reading);
    mem_free(s->writing);
    mem_free(s->former);
    mem_free(s->path);
    mem_free(s);
}

/* Waits on `done` until then; false: too late. */
static bool wait_until(store *s, uint64_t end_ns)
{
    const uint64_t now_ns = clock_ns();
    if (now_ns >= end_ns) return false;
    (void)cond_wait_ms(&s->done, &s->mu, (uint32_t)((end_ns - now_ns) / 1000000 + 1));
    return true;
}

bool store_scanned(store *s, uint32_t wait_ms)
{
    const uint64_t end_ns = clock_ns() + (uint64_t)wait_ms * 1000000;
    mutex_lock(&s->mu);
    while (!s->scanned && wait_until(s, end_ns)) {
    }
    const bool scanned = s->scanned;
    mutex_unlock(&s->mu);
    return scanned;
}

uint64_t store_bytes(void)
{
    return sizeof(store) + 3 * sizeof(store_scratch);
}

uint64_t store_item_bytes(int32_t n_cell)
{
    const store_item *it = NULL; /* for its size */
    return sizeof *it + (uint64_t)n_cell * sizeof *it->block;
}

/* What a caller of ours may not do is asserted: none of it comes from outside. */
static store_item *make_item(const store_conf *c, const store_run *r, void *user)
{
    assert(r->n_block > 0 && r->n_block <= STORE_MAX_BLOCKS && r->first_block >= 0);
    assert(r->n_tok > (r->n_block - 1) * KV_BLOCK && r->n_tok <= r->n_block * KV_BLOCK);
    assert(r->n_state >= 0 && r->n_state <= (c->state_bytes ? STORE_MAX_STATES : 0));
    assert(r->first_block > 0 || hash128_same(r->root, r->parent));
    assert((r->companion.codec == 0) == (r->companion.n_bytes == 0));
    assert(r->companion.n_bytes <= STORE_MAX_COMPANION);
    const int32_t n_cell = r->n_block * c->n_group;
    store_item *it = mem_calloc(1, store_item_bytes(n_cell), MEM_CACHE);
    if (!it) return NULL;
    store_meta *m = &it->meta;
    it->user = user;
    it->urgent = r->urgent;
    it->block = (const uint8_t **)(void *)(it + 1);
    m->root = r->root;
    m->parent = r->parent;
    m->first_block = r->first_block;
    m->n_block = r->n_block;
    m->n_tok = r->n_tok;
    memcpy(m->token, r->token, (size_t)r->n_tok * sizeof *r->token);
    for (int32_t i = 0; i < n_cell; i++) {
        it->block[i] = r->block[i];
        if (r->block[i]) m->here[i % c->n_group] |= (uint16_t)(1u << (i / c->n_group));
    }
    m->n_state = r->n_state;
    for (int32_t i = 0, low = r->first_block * KV_BLOCK; i < r->n_state; i++) {
        assert(r->state[i].pos > low && r->state[i].pos <= r->first_block * KV_BLOCK + r->n_tok);
        low = m->state_pos[i] = r->state[i].pos;
        it->state[i] = r->state[i].bytes;
    }
    m->companion = r->companion.codec;
    m->companion_bytes = r->companion.n_bytes;
    it->companion = r->companion.bytes;
    store_keys_fill(m);
    it->bytes = store_file_bytes(c, m);
    return it;
}

cairn_status store_put(store *s, const store_run *r, void *user)
{
    cairn_status st = CAIRN_OK;
    store_item *it = make_item(&s->conf, r, user);
    mutex_lock(&s->mu);
    if (!it)
        st = CAIRN_E_NOMEM;
    else if (it->bytes > s->max_bytes || it->bytes > s->queue_bytes)
        st = CAIRN_E_LIMIT;
    else if (it->bytes > s->queue_bytes - s->stats.queued_bytes || store_read_only(s))
        st = CAIRN_E_BUSY;
    if (st == CAIRN_OK) {
        s->stats.queued_bytes += it->bytes;
        s->n_urgent += it->urgent;
        *(s->last ? &s->last->next : &s->first) = it;
        s->last = it;
        cond_signal(&s->work);
        it = NULL;
    } else {
        s->since.dropped++;
    }
    mutex_unlock(&s->mu);
    mem_free(it);
    return st;
}

bool store_poll(store *s, store_done *out)
{
    mutex_lock(&s->mu);
    store_item *it = s->ended;
    if (it) s->ended = it->next;
    mutex_unlock(&s->mu);
    if (!it) return false;
    *out = (store_done){it->user, it->result};
    mem_free(it);
    return true;
}

void store_idle(store *s, bool idle)
{
    mutex_lock(&s->mu);
    if (idle && !s->idle) cond_signal(&s->work);
    s->idle = idle;
    mutex_unlock(&s->mu);
}

void store_flush(store *s, uint32_t wait_ms, store_flushed *out)
{
    const uint64_t end_ns = clock_ns() + (uint64_t)wait_ms * 1000000;
    mutex_lock(&s->mu);
    s->flushing = true;
    s->retry_at_ns = 0; /* who flushes wants to know whether it works now */
    cond_signal(&s->work);
    while ((!s->scanned || s->first || s->busy || (s->doomed && s->folder >= 0)) &&
           wait_until(s, end_ns)) {
    }
    s->flushing = false;
    *out = s->since;
    for (const store_item *it = s->first; it; it = it->next) out->pending++;
    out->pending += s->busy != NULL;
    out->n_entry = s->index.n;
    out->longest = index_longest(&s->index);
    s->since = (store_flushed){.pending = 0};
    mutex_unlock(&s->mu);
}

bool store_in_place(store *s)
{
    mutex_lock(&s->mu);
    const bool in_place = store_is_in_place(s->folder, s->path);
    mutex_unlock(&s->mu);
    return in_place;
}

uint32_t store_count_lost(store *s)
{
    char name[STORE_NAME_BYTES];
    struct stat st;
    mutex_lock(&s->mu);
    const bool in_place = store_is_in_place(s->folder, s->path);
    s->reopen |= !in_place;
    for (uint32_t i = s->index.newest, older; i != STORE_NONE; i = older) {
        older = s->index.slot[i]->older;
        store_name_text(s->index.slot[i]->name, name);
        if (in_place &&
            (fstatat(s->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT))
            continue;
        mem_free(index_take(&s->index, i));
        s->n_lost++;
    }
    const uint32_t n = s->n_lost;
    s->n_lost = 0;
    mutex_unlock(&s->mu);
    return n;
}

int32_t store_find(store *s, store_key root, store_key key, store_id *out, int32_t max)
{
    int32_t n = 0, block;
    mutex_lock(&s->mu);
    for (uint32_t at = STORE_NONE; n < max;) {
        at = index_find(&s->index, root, key, at, &block);
        if (at == STORE_NONE) break;
        out[n++] = index_id(&s->index, at / STORE_MAX_BLOCKS);
    }
    mutex_unlock(&s->mu);
    return n;
}

bool store_get_info(store *s, store_id id, store_info *out)
{
    mutex_lock(&s->mu);
    const uint32_t slot = index_slot(&s->index, id);
    if (slot != STORE_NONE) {
        const store_entry *e = s->index.slot[slot];
        out->first_block = e->first_block;
        out->n_block = e->n_block;
        out->n_tok = e->n_tok;
        out->n_state = e->n_state;
        memcpy(out->here, e->here, sizeof out->here);
        memcpy(out->state_pos, e->state_pos, (size_t)e->n_state * sizeof *e->state_pos);
    }
    mutex_unlock(&s->mu);
    return slot != STORE_NONE;
}

void store_get_stats(store *s, store_stats *out)
{
    mutex_lock(&s->mu);
    *out = s->stats;
    out->bytes = s->index.bytes;
    out->n_entry = s->index.n;
    out->max_bytes = s->max_bytes;
    out->n_foreign = s->index.n_foreign;
    mutex_unlock(&s->mu);
}

/* Opens an entry's file; -1 with errno. */
static int open_entry(store *s, store_id id, store_name *n, char text[STORE_NAME_BYTES])
{
    int fd = -1, e = ENOENT;
    mutex_lock(&s->mu);
    const uint32_t slot = index_slot(&s->index, id);
    if (slot != STORE_NONE) {
        *n = s->index.slot[slot]->name;
        store_name_text(*n, text);
        fd = store_open_file(s->folder, text);
        e = errno;
    }
    mutex_unlock(&s->mu);
    errno = e;
    return fd;
}

static void use(store *s, uint32_t slot, int64_t stamp_ns)
{
    store_entry *e = s->index.slot[slot];
    e->mtime_ns = stamp_ns;
    e->used = true;
    e->stale = false;
    index_touch(&s->index, slot);
}

/* The order of use after a good read; after another the entry goes, a damaged one with its file. */
static void account(store *s, store_id id, int fd, cairn_status st)
{
    int64_t stamp_ns = 0;
    mutex_lock(&s->mu);
    const uint32_t slot = index_slot(&s->index, id);
    *(st == CAIRN_OK ? &s->stats.n_read : &s->stats.n_miss) += 1;
    s->stats.n_corrupt += st == CAIRN_E_CORRUPT;
    s->n_lost += st == CAIRN_E_CORRUPT || (st == CAIRN_E_NOTFOUND && fd < 0);
    if (st == CAIRN_OK) stamp_ns = store_stamp(s);
    if (slot != STORE_NONE && st == CAIRN_OK)
        use(s, slot, stamp_ns);
    else if (slot != STORE_NONE && st == CAIRN_E_CORRUPT)
        store_doom(s, slot);
    else if (slot != STORE_NONE && st == CAIRN_E_NOTFOUND && fd < 0)
        mem_free(index_take(&s->index, slot));
    if (s->doomed) cond_signal(&s->work);
    mutex_unlock(&s->mu);
    if (st == CAIRN_OK) store_touch_file(fd, stamp_ns);
}

static cairn_status load_whole(const store_conf *c, int fd, store_name n, store_scratch *x,
                               const store_dest *d, cairn_diag *dg)
{
    const char *why = NULL;
    const store_verdict v = store_load_head(c, fd, n, x, &why);
    if (v != STORE_GOOD)
        return diag_set(dg, v == STORE_BAD ? CAIRN_E_CORRUPT : CAIRN_E_NOTFOUND, "%s", why);
    return store_load(c, fd, x, d, dg);
}

cairn_status store_read(store *s, store_id id, const store_dest *d, cairn_diag *dg)
{
    char text[STORE_NAME_BYTES] = "";
    char reason[128];
    store_name n = {.n_block = 0};
    cairn_status st;
    const int fd = open_entry(s, id, &n, text);
    const int e = errno;
    if (fd >= 0)
        st = load_whole(&s->conf, fd, n, s->reading, d, dg);
    else
        st = diag_set(dg, e == ENOENT ? CAIRN_E_NOTFOUND : CAIRN_E_IO, "opening: %s",
                      strerror_r(e, reason, sizeof reason));
    account(s, id, fd, st);
    if (fd >= 0) (void)close(fd);
    if (st == CAIRN_OK) return st;
    if (st == CAIRN_E_CORRUPT)
        log_event(LOG_WARN, "store.damaged", "path=\"%s/%s\" removed=1", s->path, text);
    return diag_prefix(dg, st, "%s/%s", s->path, text);
}
