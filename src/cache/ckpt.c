/* The doors of checkpoints: attempts begin, save and end here, on the caller's thread.  ckpt_write.c has the
   thread that writes and removes files.

   Invariants: of a key's attempts at most one is not stale, and it alone saves; at most one holds the key's file
   (ckpt_hold.c), for all of them.  An attempt is freed once the caller let it go and the writer has neither to
   write it nor to clean up after it. */
#include "cache/ckpt.h"

#include <assert.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/log.h"
#include "base/num.h"
#include "cache/ckpt_priv.h"

#define DEFAULT_MAX_BYTES ((uint64_t)256 << 20) /* CKPT_MAX_FILES answers of 64 Ki tokens */
#define DEFAULT_MAX_AGE_S (7 * 24 * 3600)       /* nobody waits longer for an answer */

static cairn_status fill(ckpt *c, const ckpt_opts *o, cairn_diag *dg)
{
    c->conf = (ckpt_conf){.numerics = o->numerics, .sampler = o->sampler, .vocab = o->vocab};
    memcpy(c->conf.fingerprint, o->fingerprint, sizeof c->conf.fingerprint);
    c->max_files = o->max_files ? o->max_files : CKPT_MAX_FILES;
    c->max_bytes = o->max_bytes ? o->max_bytes : DEFAULT_MAX_BYTES;
    c->max_age_s = o->max_age_s ? o->max_age_s : DEFAULT_MAX_AGE_S;
    c->landing = o->landing;
    c->ctx = o->ctx;
    c->entry = mem_calloc((size_t)c->max_files + 1, sizeof *c->entry, MEM_CACHE);
    if (!c->entry) return diag_set(dg, CAIRN_E_NOMEM, "%s: no memory for checkpoints", o->dir);
    return store_folder_name(o->dir, o->fingerprint, "/checkpoints", &c->path, dg);
}

cairn_status ckpt_open(const ckpt_opts *o, ckpt **out, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    ckpt *c = mem_calloc(1, sizeof *c, MEM_CACHE);
    if (!c) return diag_set(dg, CAIRN_E_NOMEM, "%s: no memory for checkpoints", o->dir);
    mutex_init(&c->mu);
    cond_init(&c->work);
    cond_init(&c->done);
    buf_init(&c->file, MEM_CACHE);
    buf_init(&c->found, MEM_CACHE);
    c->folder = -1;
    TRY_GOTO(fill(c, o, dg), out);
    ckpt_scan(c);
    st = thread_start(&c->writer, "cairn-ckpt", ckpt_run_writer, c);
    if (st != CAIRN_OK) {
        (void)diag_set(dg, st, "%s: the thread for checkpoints could not be started", o->dir);
        goto out;
    }
    *out = c;
    c = NULL;
out:
    ckpt_close(c);
    return st;
}

static void attempt_free(ckpt_attempt *a)
{
    if (!a) return;
    if (a->held >= 0) (void)close(a->held);
    mem_free(a->ids);
    mem_free(a);
}

void ckpt_close(ckpt *c)
{
    if (!c) return;
    mutex_lock(&c->mu);
    c->stop = true;
    cond_signal(&c->work);
    mutex_unlock(&c->mu);
    thread_join(&c->writer);
    while (c->all) {
        ckpt_attempt *a = c->all;
        c->all = a->next;
        attempt_free(a);
    }
    if (c->folder >= 0) (void)close(c->folder);
    cond_deinit(&c->done);
    cond_deinit(&c->work);
    mutex_deinit(&c->mu);
    buf_deinit(&c->found);
    buf_deinit(&c->file);
    mem_free(c->entry);
    mem_free(c->path);
    mem_free(c);
}

ckpt_entry *ckpt_entry_of(const ckpt *c, hash128 key)
{
    for (uint32_t i = 0; i < c->n_entry; i++)
        if (hash128_same(c->entry[i].key, key)) return &c->entry[i];
    return NULL;
}

void ckpt_entry_drop(ckpt *c, ckpt_entry *e)
{
    c->stats.bytes -= e->bytes;
    *e = c->entry[--c->n_entry];
}

int64_t ckpt_stamp(ckpt *c)
{
    const int64_t now_ns = clock_unix_s() * 1000000000;
    c->stamp_ns = now_ns > c->stamp_ns ? now_ns : c->stamp_ns + 1; /* a clock may go back */
    return c->stamp_ns;
}

ckpt_attempt *ckpt_holder_of(const ckpt *c, hash128 key)
{
    ckpt_attempt *a = c->all;
    while (a && (a->held < 0 || !hash128_same(a->meta.key, key))) a = a->next;
    return a;
}

static void dequeue(ckpt *c, ckpt_attempt *a)
{
    if (!a->queued) return;
    ckpt_attempt *before = NULL;
    for (ckpt_attempt *at = c->first; at != a; at = at->next_queued) before = at;
    *(before ? &before->next_queued : &c->first) = a->next_queued;
    if (c->last == a) c->last = before;
    a->queued = false;
}

static void enqueue(ckpt *c, ckpt_attempt *a)
{
    a->failed = false;
    if (a->queued) return;
    a->queued = true;
    a->next_queued = NULL;
    *(c->first ? &c->last->next_queued : &c->first) = a;
    c->last = a;
    cond_signal(&c->work);
}

void ckpt_free_if_over(ckpt *c, ckpt_attempt *a)
{
    if (!a->let_go || a->queued || a->writing || a->barrier) return;
    ckpt_attempt **at = &c->all;
    while (*at != a) at = &(*at)->next;
    *at = a->next;
    ckpt_attempt *heir = a->held >= 0 ? c->all : NULL;
    while (heir && !hash128_same(heir->meta.key, a->meta.key)) heir = heir->next;
    if (heir) {
        heir->held = a->held;
        a->held = -1;
    }
    attempt_free(a);
}

static void clean_up(ckpt *c, ckpt_attempt *a)
{
    a->barrier = c->stats.barrier = ++c->barrier;
    cond_signal(&c->work);
}

/* A file that may have its name in a moment, of this attempt or of one before. */
static bool is_written(const ckpt *c, hash128 key)
{
    const ckpt_attempt *a = c->all;
    while (a && !(a->writing && hash128_same(a->meta.key, key))) a = a->next;
    return a != NULL;
}

/* Nobody goes on from it any more: what its key has on disk goes, and what is being written. */
static void retire(ckpt *c, ckpt_attempt *a)
{
    ckpt_entry *e = ckpt_entry_of(c, a->meta.key);
    a->stale = a->completed = true;
    dequeue(c, a);
    if (e || is_written(c, a->meta.key) || ckpt_holder_of(c, a->meta.key)) clean_up(c, a);
    if (e) ckpt_entry_drop(c, e);
}

static ckpt_attempt *former_of(const ckpt *c, hash128 key)
{
    ckpt_attempt *a = c->all;
    while (a && (a->stale || !hash128_same(a->meta.key, key))) a = a->next;
    return a;
}

/* Reads a file into c->found: at most what q has room for. */
static store_verdict load(ckpt *c, int fd, const ckpt_ask *q, ckpt_meta *m, const char **why)
{
    struct stat st;
    uint8_t *p = NULL;
    *why = "it cannot be read";
    const size_t most = CKPT_HEAD + 4 * (size_t)q->max_new;
    const bool known = fstat(fd, &st) == 0;
    const size_t n = known ? min_size((size_t)st.st_size, most) : 0;
    buf_clear(&c->found);
    if (known) p = buf_grow(&c->found, most);
    const bool whole = p && store_read_some(fd, p, n, 0) == n;
    return whole ? ckpt_head_parse(&c->conf, p, n, (uint64_t)st.st_size, m, why) : STORE_FOREIGN;
}

/* Whether it is of the request that asks, and has some of its answer left to be made. */
static bool agrees(const ckpt_meta *m, const ckpt_ask *q)
{
    return hash128_same(m->key, q->key) && m->n_prompt == q->n_prompt && m->n_new < q->max_new &&
           m->seed_given == q->seed_given && (!m->seed_given || m->seed == q->seed);
}

/* What a file has for q, into ids.  BAD: it is damaged, or not q's. */
static store_verdict take_from_file(ckpt *c, int fd, const ckpt_ask *q, int32_t *ids, ckpt_meta *m,
                                    const char **why)
{
    const store_verdict v = load(c, fd, q, m, why);
    if (v != STORE_GOOD) return v;
    *why = "inconsistent with its request";
    if (!agrees(m, q)) return STORE_BAD;
    *why = "the hash of its ids differs";
    const uint8_t *p = (const uint8_t *)c->found.ptr + CKPT_HEAD;
    return ckpt_ids_parse(&c->conf, m, p, ids) ? STORE_GOOD : STORE_BAD;
}

static void note_found(ckpt *c, ckpt_attempt *a, const ckpt_meta *m, ckpt_found *out)
{
    a->meta = *m;
    *out = (ckpt_found){m->n_new, m->seed, m->sampler};
    c->stats.n_found++;
}

/* Its file is to be removed: nothing to go on from, whether or not that works. */
static bool is_ineligible(const ckpt *c, hash128 key)
{
    const ckpt_attempt *a = c->all;
    while (a && !(a->barrier && hash128_same(a->meta.key, key))) a = a->next;
    return a != NULL;
}

/* A lock of this process's own, which an attempt that ended left to one that was superseded, keeps nobody out: the
   file is lent, and that one still its holder. */
static ckpt_whose take_file(const ckpt *c, hash128 key, int *fd)
{
    char name[CKPT_NAME_BYTES];
    ckpt_name_text(key, name);
    ckpt_attempt *mine = ckpt_holder_of(c, key);
    if (mine && is_written(c, key)) return CKPT_UNKNOWN; /* the writer looks at what it holds */
    if (!mine) return ckpt_hold(c->folder, name, fd);
    *fd = mine->held;
    if (ckpt_has_name(c->folder, name, *fd)) return CKPT_OURS;
    mine->held = -1;
    (void)close(*fd);
    return ckpt_hold(c->folder, name, fd);
}

/* From the file, of whatever process that is gone, with mu held; answers why it was dropped, NULL: it was not. */
static const char *go_on_from_file(ckpt *c, ckpt_attempt *a, const ckpt_ask *q, ckpt_found *out)
{
    const char *why = NULL;
    ckpt_meta m;
    int fd = -1;
    if (c->folder < 0 || is_ineligible(c, q->key)) return NULL;
    const ckpt_whose w = take_file(c, q->key, &fd);
    a->elsewhere = w == CKPT_THEIRS;
    if (w != CKPT_OURS || fd < 0) return NULL;
    ckpt_attempt *lender = ckpt_holder_of(c, q->key);
    const store_verdict v = take_from_file(c, fd, q, a->ids, &m, &why);
    if (v == STORE_GOOD) {
        if (lender) lender->held = -1;
        note_found(c, a, &m, out);
        a->saved = true;
        a->held = fd;
        return NULL;
    }
    if (!lender) (void)close(fd);
    if (v != STORE_BAD) return NULL;
    ckpt_entry *e = ckpt_entry_of(c, q->key);
    if (e) ckpt_entry_drop(c, e);
    c->stats.n_corrupt++;
    clean_up(c, a);
    return why;
}

/* What a former attempt left, in memory or in a file; it is stale from now on. */
static const char *take_over(ckpt *c, ckpt_attempt *a, const ckpt_ask *q, ckpt_found *out)
{
    ckpt_attempt *former = former_of(c, q->key);
    const char *why = NULL;
    const bool other = former && !former->let_go && !q->seed_given; /* another answer is wanted */
    if (!other && former && former->meta.n_new > 0 && former->meta.n_new < q->max_new) {
        memcpy(a->ids, former->ids, (size_t)former->meta.n_new * sizeof *a->ids);
        note_found(c, a, &former->meta, out);
        enqueue(c, a); /* the former's own write may be one of those that are cancelled */
    } else if (!other) {
        why = go_on_from_file(c, a, q, out);
    }
    if (other) retire(c, former); /* it runs on, and nobody would remove its file when it is done */
    if (former) {
        ckpt_attempt *holder = ckpt_holder_of(c, q->key);
        if (holder) {
            a->held = holder->held;
            holder->held = -1;
        }
        former->stale = true;
        dequeue(c, former);
        ckpt_free_if_over(c, former);
    }
    return why;
}

ckpt_attempt *ckpt_begin(ckpt *c, const ckpt_ask *q, int32_t *ids, ckpt_found *out)
{
    assert(q->n_prompt > 0 && q->max_new > 0 && q->max_new <= CKPT_MAX_NEW);
    *out = (ckpt_found){.seed = q->seed};
    ckpt_attempt *a = mem_calloc(1, sizeof *a, MEM_CACHE);
    if (a) a->held = -1;
    if (a) a->ids = mem_alloc((size_t)q->max_new * sizeof *a->ids, MEM_CACHE);
    if (!a || !a->ids) {
        attempt_free(a);
        return NULL;
    }
    a->max_new = q->max_new;
    a->meta = (ckpt_meta){
        .key = q->key, .n_prompt = q->n_prompt, .seed = q->seed, .seed_given = q->seed_given};
    mutex_lock(&c->mu);
    const char *why = take_over(c, a, q, out);
    a->born = c->barrier;
    a->next = c->all;
    c->all = a;
    memcpy(ids, a->ids, (size_t)out->n_new * sizeof *ids);
    const bool elsewhere = a->elsewhere;
    mutex_unlock(&c->mu);
    char name[CKPT_NAME_BYTES];
    ckpt_name_text(q->key, name);
    if (why)
        log_event(LOG_WARN, "checkpoint.damaged", "path=\"%s/%s\" why=\"%s\" removed=1", c->path,
                  name, why);
    if (elsewhere) log_event(LOG_INFO, "checkpoint.elsewhere", "path=\"%s/%s\"", c->path, name);
    return a;
}

void ckpt_save(ckpt *c, ckpt_attempt *a, const int32_t *ids, int32_t n_new,
               const ckpt_sampler *sampler)
{
    const int32_t n_had = a->meta.n_new; /* this thread alone changes it */
    assert(n_new >= n_had && n_new <= a->max_new);
    assert(!sampler || sampler->version == c->conf.sampler);
    mutex_lock(&c->mu);
    if (!a->stale && n_new > n_had) {
        memcpy(a->ids + n_had, ids + n_had, (size_t)(n_new - n_had) * sizeof *ids);
        a->meta.n_new = n_new;
        if (sampler) a->meta.sampler = *sampler;
        enqueue(c, a);
    }
    mutex_unlock(&c->mu);
}

void ckpt_end(ckpt *c, ckpt_attempt *a, bool completed)
{
    if (!a) return;
    mutex_lock(&c->mu);
    a->let_go = true;
    if (completed && !a->stale) retire(c, a);
    ckpt_free_if_over(c, a);
    mutex_unlock(&c->mu);
}

static bool is_there(const ckpt *c, const ckpt_attempt *a)
{
    char name[CKPT_NAME_BYTES];
    const ckpt_attempt *holder = ckpt_holder_of(c, a->meta.key);
    ckpt_name_text(a->meta.key, name);
    return holder && ckpt_has_name(c->folder, name, holder->held);
}

/* Who flushes wants to know whether it works now, and what others left of what was written: the folder itself
   may have been removed. */
static void try_again(ckpt *c)
{
    const bool in_place = store_is_in_place(c->folder, c->path);
    c->reopen |= !in_place;
    while (!in_place && c->n_entry > 0) ckpt_entry_drop(c, &c->entry[c->n_entry - 1]);
    for (ckpt_attempt *a = c->all; a; a = a->next) {
        const bool lost = a->saved && !(in_place && is_there(c, a));
        if (lost) a->saved = false;
        if ((lost || a->failed || a->elsewhere) && a->meta.n_new > 0 && !a->stale) enqueue(c, a);
        if (a->dirty) c->cleaned = 0;
    }
    cond_signal(&c->work);
}

void ckpt_flush(ckpt *c, uint32_t wait_ms, ckpt_flushed *out)
{
    const uint64_t end_ns = clock_ns() + (uint64_t)wait_ms * 1000000;
    *out = (ckpt_flushed){0};
    mutex_lock(&c->mu);
    try_again(c);
    while (c->first || c->busy || ckpt_cleanup_due(c)) {
        const uint64_t now_ns = clock_ns();
        if (now_ns >= end_ns) break;
        (void)cond_wait_ms(&c->done, &c->mu, (uint32_t)((end_ns - now_ns) / 1000000 + 1));
    }
    const bool in_place = store_is_in_place(c->folder, c->path); /* or else nothing is durable */
    out->failed = c->n_lost;
    c->n_lost = 0;
    for (const ckpt_attempt *a = c->all; a; a = a->next) {
        const bool pending = a->queued || a->writing;
        out->cleanups += a->barrier != 0 && a->dirty;
        out->pending += a->barrier != 0 && !a->dirty;
        if (a->stale) continue;
        out->pending += pending;
        out->failed += !pending && a->failed;
        out->durable += !pending && !a->failed && a->saved && in_place;
        out->pending += !pending && !a->failed && a->saved && !in_place;
    }
    mutex_unlock(&c->mu);
}

void ckpt_get_stats(ckpt *c, ckpt_stats *out)
{
    mutex_lock(&c->mu);
    *out = c->stats;
    out->n_file = c->n_entry;
    mutex_unlock(&c->mu);
}
