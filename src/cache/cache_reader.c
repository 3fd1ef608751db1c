/* The thread that reads prefixes from files while the engine's goes on with other sequences.  Sequences that
   wait take turns, an entry each, so that a short prompt does not wait for a long one.  Between reader_put and
   reader_take a sequence's blocks are the reader's to write: they go back to their pools only after that. */
#include "base/alloc.h"
#include "base/diag.h"
#include "cache/cache.h"
#include "cache/cache_disk.h"

static void append(disk *d, restore *r)
{
    r->next = NULL;
    *(d->first ? &d->last->next : &d->first) = r;
    d->last = r;
}

/* With mu held, which is let go meanwhile. */
static void read_next(cache *c, restore *r)
{
    disk *d = c->disk;
    void (*before)(void *) = d->before_read;
    void *ctx = d->before_ctx;
    const bool wanted = !r->unwanted;
    mutex_unlock(&d->mu);
    if (wanted && before) before(ctx);
    const bool more = wanted && restore_step(c, r);
    mutex_lock(&d->mu);
    if (more) {
        append(d, r);
        return;
    }
    r->over = true;
    mutex_unlock(&d->mu);
    if (d->arrived) d->arrived(d->ctx);
    mutex_lock(&d->mu);
}

static void *read_all(void *ctx)
{
    cache *c = ctx;
    disk *d = c->disk;
    mutex_lock(&d->mu);
    while (!d->stop) {
        restore *r = d->first;
        if (!r) {
            cond_wait(&d->work, &d->mu);
            continue;
        }
        d->first = r->next;
        read_next(c, r);
    }
    mutex_unlock(&d->mu);
    return NULL;
}

cairn_status reader_start(cache *c, cairn_diag *dg)
{
    disk *d = c->disk;
    mutex_init(&d->mu);
    cond_init(&d->work);
    d->restore = mem_calloc((size_t)c->n_seq, sizeof *d->restore, MEM_CACHE);
    bool ok = d->restore != NULL;
    for (int32_t i = 0; ok && i < c->n_seq; i++) {
        restore *r = &d->restore[i];
        r->ids = mem_calloc((size_t)c->opts.ctx_len, sizeof *r->ids, MEM_CACHE);
        r->entry = mem_calloc((size_t)c->n_table, sizeof *r->entry, MEM_CACHE);
        r->fresh = mem_calloc((size_t)c->n_table, sizeof *r->fresh, MEM_CACHE);
        ok = r->ids && r->entry && r->fresh;
    }
    if (!ok) return diag_set(dg, CAIRN_E_NOMEM, "no memory for a disk cache");
    const cairn_status st = thread_start(&d->reader, "cairn-reader", read_all, c);
    return st == CAIRN_OK ? st : diag_set(dg, st, "the disk cache's reader could not be started");
}

uint64_t restores_bytes(const cache *c)
{
    const restore *r = NULL; /* for its sizes */
    const uint64_t table = (uint64_t)c->n_table * (sizeof *r->entry + sizeof *r->fresh);
    return (uint64_t)c->n_seq * (sizeof *r + (uint64_t)c->opts.ctx_len * sizeof *r->ids + table);
}

void reader_stop(cache *c)
{
    disk *d = c->disk;
    mutex_lock(&d->mu);
    d->stop = true;
    cond_signal(&d->work);
    mutex_unlock(&d->mu);
    thread_join(&d->reader);
    for (int32_t i = 0; d->restore && i < c->n_seq; i++) {
        mem_free(d->restore[i].ids);
        mem_free(d->restore[i].entry);
        mem_free(d->restore[i].fresh);
    }
    mem_free(d->restore);
    cond_deinit(&d->work);
    mutex_deinit(&d->mu);
}

void reader_put(disk *d, restore *r)
{
    mutex_lock(&d->mu);
    r->over = r->unwanted = false;
    append(d, r);
    cond_signal(&d->work);
    mutex_unlock(&d->mu);
}

void reader_drop(disk *d, restore *r)
{
    mutex_lock(&d->mu);
    r->unwanted = true;
    mutex_unlock(&d->mu);
}

bool reader_take(disk *d, restore *r)
{
    mutex_lock(&d->mu);
    const bool over = r->over;
    mutex_unlock(&d->mu);
    return over;
}
