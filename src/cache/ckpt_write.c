/* The thread that writes, renames and removes checkpoints.  It alone does, one file at a time, and cleans up
   before it writes: what was still being written of a completed attempt has landed by then and goes, and a
   newer attempt of the same key is written after. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cache/ckpt_priv.h"

enum { WRITER_NICE = 10 /* as the disk tier's: a step must not lose a core to it */ };

/* Opens the folder where it is not, or may have been replaced; with mu held, let go meanwhile.  0 or an errno. */
static int want_folder(ckpt *c)
{
    int fd = -1;
    if (c->folder >= 0 && !c->reopen) return 0;
    mutex_unlock(&c->mu);
    const char *why = NULL;
    const int e = store_open_folder(c->path, &fd, &why);
    mutex_lock(&c->mu);
    c->why = why;
    if (e != 0) return e;
    if (c->folder >= 0) (void)close(c->folder);
    c->folder = fd;
    c->reopen = false;
    return 0;
}

/* 0, an errno or CKPT_ELSEWHERE; `*out` holds the new file, or is -1: it did not get its name. */
static int write_file(ckpt *c, const ckpt_meta *m, const int32_t *ids, int held, int64_t stamp_ns,
                      int *out)
{
    char name[CKPT_NAME_BYTES], tmp[NAME_MAX];
    int fd = -1;
    ckpt_encode(&c->conf, m, ids, &c->file);
    if (buf_status(&c->file) != CAIRN_OK) return ENOMEM;
    ckpt_name_text(m->key, name);
    int e = store_make_tmp(c->folder, name, tmp, &fd); /* this thread alone changes the folder */
    if (e != 0) return e;
    e = store_write_all(fd, c->file.ptr, c->file.len, 0);
    store_touch_file(fd, stamp_ns);
    if (e == 0 && fsync(fd) != 0) e = errno;
    if (c->landing) c->landing(c->ctx);
    if (e == 0) {
        e = ckpt_land(c->folder, tmp, name, &fd, held);
        *out = fd;
        return e;
    }
    (void)unlinkat(c->folder, tmp, 0);
    (void)close(fd);
    return e;
}

int ckpt_by_time(const void *a, const void *b)
{
    const ckpt_entry *x = a, *y = b;
    if (x->used_ns != y->used_ns) return x->used_ns < y->used_ns ? -1 : 1;
    return x->found_ns < y->found_ns ? -1 : x->found_ns > y->found_ns;
}

void ckpt_make_room(ckpt *c)
{
    while (c->n_entry > 1 && (c->n_entry > c->max_files || c->stats.bytes > c->max_bytes)) {
        char name[CKPT_NAME_BYTES];
        ckpt_entry *oldest = c->entry;
        for (uint32_t i = 1; i < c->n_entry; i++)
            if (ckpt_by_time(&c->entry[i], oldest) < 0) oldest = &c->entry[i];
        ckpt_name_text(oldest->key, name);
        ckpt_entry_drop(c, oldest);
        mutex_unlock(&c->mu);
        (void)ckpt_remove(c->folder, name, -1); /* one that an answer holds stays */
        mutex_lock(&c->mu);
    }
}

/* The key has a new file, so whoever was to remove one from before its attempt began need not.  Whether
   it may stay. */
static bool settle_cleanups(ckpt *c, const ckpt_attempt *a)
{
    bool stays = true;
    ckpt_attempt *next;
    for (ckpt_attempt *at = c->all; at; at = next) {
        next = at->next;
        if (!at->barrier || !hash128_same(at->meta.key, a->meta.key)) continue;
        if (at == a ? a->completed : at->barrier > a->born) {
            stays = false;
            continue;
        }
        at->barrier = 0;
        at->dirty = false;
        if (at != a) ckpt_free_if_over(c, at);
    }
    return stays;
}

static void hold(ckpt *c, ckpt_attempt *a, int fd)
{
    ckpt_attempt *before = ckpt_holder_of(c, a->meta.key);
    if (before) {
        (void)close(before->held);
        before->held = -1;
    }
    a->held = fd;
}

static void landed(ckpt *c, ckpt_attempt *a, int fd, int64_t stamp_ns)
{
    hold(c, a, fd);
    a->saved = true;
    a->elsewhere = false;
    c->warned = false;
    c->stats.n_written++;
    if (!settle_cleanups(c, a)) return;
    ckpt_entry *e = ckpt_entry_of(c, a->meta.key);
    if (e) ckpt_entry_drop(c, e);
    c->entry[c->n_entry++] =
        (ckpt_entry){.key = a->meta.key, .bytes = c->file.len, .used_ns = stamp_ns};
    c->stats.bytes += c->file.len;
    ckpt_make_room(c);
}

static void warn(ckpt *c, int error)
{
    char reason[128];
    const char *why = c->why;
    const bool first = !c->warned;
    c->warned = true;
    if (!first) return;
    mutex_unlock(&c->mu);
    log_event(LOG_WARN, "checkpoint.failed", "path=%s reason=\"%s\"", c->path,
              why ? why : strerror_r(error, reason, sizeof reason));
    mutex_lock(&c->mu);
}

static void write_first(ckpt *c)
{
    ckpt_attempt *a = c->first;
    c->first = a->next_queued;
    if (!c->first) c->last = NULL;
    a->queued = false;
    a->writing = true;
    int e = want_folder(c), fd = -1;
    const int64_t stamp_ns = ckpt_stamp(c);
    if (e == 0) {
        const ckpt_meta m = a->meta; /* ids before m.n_new never change */
        const ckpt_attempt *holder =
            ckpt_holder_of(c, m.key); /* its heir is `a`, so held stays open */
        const int held = holder ? holder->held : -1;
        mutex_unlock(&c->mu);
        e = write_file(c, &m, a->ids, held, stamp_ns, &fd);
        mutex_lock(&c->mu);
    }
    if (e == 0) {
        landed(c, a, fd, stamp_ns);
    } else if (e == CKPT_ELSEWHERE) { /* until that one ends, or dies */
        a->elsewhere = true;
        a->saved = false;
    } else {
        if (fd >= 0) hold(c, a, fd); /* who completes it has something to remove */
        a->failed = c->reopen = true;
        c->stats.n_failed++;
        warn(c, e); /* lets mu go: the attempt may end meanwhile */
        c->n_lost += a->let_go && !a->stale && !a->queued; /* nobody will try again */
    }
    a->writing = false;
    ckpt_free_if_over(c, a);
}

bool ckpt_cleanup_due(const ckpt *c)
{
    return c->cleaned < c->barrier;
}

static ckpt_attempt *next_to_clean(const ckpt *c)
{
    ckpt_attempt *a = c->all;
    while (a && (!a->barrier || a->tried == c->round)) a = a->next;
    return a;
}

/* All that was asked for by now, what failed before included: a barrier that succeeds leaves none behind. */
static void clean(ckpt *c)
{
    ckpt_attempt *a;
    c->cleaned = c->barrier;
    c->round++;
    const int bad = want_folder(c);
    while ((a = next_to_clean(c)) != NULL) {
        char name[CKPT_NAME_BYTES];
        const uint64_t barrier = a->barrier;
        const ckpt_attempt *holder = ckpt_holder_of(c, a->meta.key);
        const int held = holder ? holder->held : -1; /* `a` stays, and is its heir */
        ckpt_name_text(a->meta.key, name);
        mutex_unlock(&c->mu);
        const bool gone = !bad && ckpt_remove(c->folder, name, held);
        mutex_lock(&c->mu);
        a->tried = c->round;
        a->dirty = !gone;
        if (gone && a->barrier == barrier) a->barrier = 0;
        ckpt_free_if_over(c, a);
    }
    if (bad) c->reopen = true;
    mutex_unlock(&c->mu);
    if (!bad) (void)fsync(c->folder); /* some file systems have no such thing */
    mutex_lock(&c->mu);
}

void *ckpt_run_writer(void *ctx)
{
    ckpt *c = ctx;
    thread_be_nice(WRITER_NICE);
    mutex_lock(&c->mu);
    while (!c->stop) {
        c->busy = c->first || ckpt_cleanup_due(c);
        if (!c->busy)
            cond_wait(&c->work, &c->mu);
        else if (ckpt_cleanup_due(c))
            clean(c);
        else
            write_first(c);
        c->busy = false;
        cond_signal(&c->done);
    }
    mutex_unlock(&c->mu);
    return NULL;
}
