/* The writer's thread: scans, then writes what is queued while the caller is idle or flushes, makes room
   for it, and removes files.  It alone writes, renames and removes, so that a name never changes hands
   between a check and a removal.  Bytes are borrowed from the caller: nothing is copied, and what is
   borrowed is bounded by queue_bytes.

   A write that fails turns the store read-only for a while that doubles: queued runs are handed back at
   once, since they hold the caller's memory. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "cache/store_priv.h"

enum {
    MAX_DOUBLINGS = 4, /* 8 minutes between tries by default: a disk that was mended is soon used */
    WRITER_NICE = 10,  /* hashing must not take a core from a step */
    /* Of joining what other processes write under one name meanwhile: the last takes the name whatever it holds, so
       writers that go on and on cost two extra writes, and what the other had besides. */
    MERGE_TRIES = 3
};

int64_t store_stamp(store *s)
{
    const int64_t now_ns = clock_unix_s() * 1000000000;
    s->touched_ns = now_ns > s->touched_ns ? now_ns : s->touched_ns + 1; /* a clock may go back */
    return s->touched_ns;
}

void store_doom(store *s, uint32_t slot)
{
    store_entry *e = index_take(&s->index, slot);
    e->next = s->doomed;
    s->doomed = e;
}

bool store_read_only(const store *s)
{
    return s->retry_at_ns && clock_ns() < s->retry_at_ns;
}

void store_end(store *s, store_item *it, store_result r)
{
    it->result = r;
    it->next = NULL;
    *(s->ended ? &s->last_ended->next : &s->ended) = it;
    s->last_ended = it;
    s->stats.queued_bytes -= it->bytes;
    s->stats.n_written += r == STORE_DURABLE;
    s->stats.n_failed += r == STORE_FAILED;
    s->n_urgent -= it->urgent;
    *(r == STORE_DURABLE   ? &s->since.durable
      : r == STORE_DROPPED ? &s->since.dropped
      : r == STORE_NO_ROOM ? &s->stats.n_no_room
                           : &s->since.failed) += 1;
    cond_signal(&s->done);
}

/* The folder may have been replaced under us: the next try opens it anew.  Reading goes on in the old one. */
static void write_failed(store *s, int e, const char *why)
{
    char reason[128];
    const bool first = !s->warned;
    const uint32_t wait_ms = s->retry_ms
                             << (s->n_retry < MAX_DOUBLINGS ? s->n_retry : MAX_DOUBLINGS);
    s->n_retry++;
    s->retry_at_ns = clock_ns() + (uint64_t)wait_ms * 1000000;
    s->warned = true;
    s->stats.read_only = true;
    s->reopen = true;
    if (!first) return;
    mutex_unlock(&s->mu);
    log_event(LOG_WARN, "store.read_only", "path=%s reason=\"%s\" retry_ms=%u", s->path,
              why ? why : strerror_r(e, reason, sizeof reason), wait_ms);
    mutex_lock(&s->mu);
}

static void write_succeeded(store *s)
{
    s->retry_at_ns = 0;
    s->n_retry = 0;
    s->warned = false;
    s->stats.read_only = false;
}

bool store_has_folder(store *s)
{
    int fd = -1;
    const char *why = NULL;
    if (s->folder >= 0 && !s->reopen) return true;
    mutex_unlock(&s->mu);
    const int e = store_open_folder(s->path, &fd, &why);
    mutex_lock(&s->mu);
    if (e != 0) {
        write_failed(s, e, why);
        return false;
    }
    if (s->folder >= 0) (void)close(s->folder);
    s->folder = fd;
    s->reopen = false;
    return true;
}

/* What was written anew meanwhile stays. */
static void remove_doomed(store *s)
{
    while (s->doomed && s->folder >= 0) {
        char name[STORE_NAME_BYTES];
        store_entry *e = s->doomed;
        s->doomed = e->next;
        if (!index_has_name(&s->index, e->name)) {
            store_name_text(e->name, name);
            mutex_unlock(&s->mu);
            (void)unlinkat(s->folder, name, 0);
            mutex_lock(&s->mu);
        }
        mem_free(e);
    }
}

void store_make_room(store *s, uint64_t bytes)
{
    while (s->index.bytes + bytes > s->max_bytes && s->index.oldest != STORE_NONE) {
        store_doom(s, s->index.oldest);
        s->stats.n_evicted++;
    }
}

/* All that the run has is in the store's entry of its name. */
static bool covers(const store *s, const store_meta *m)
{
    const uint32_t slot = index_named(&s->index, m->root, store_name_of(m));
    if (slot == STORE_NONE || m->companion) return false;
    const store_entry *e = s->index.slot[slot];
    for (int32_t g = 0; g < s->conf.n_group; g++)
        if (m->here[g] & ~e->here[g]) return false;
    int32_t k = 0;
    for (int32_t i = 0; i < m->n_state; i++) {
        while (k < e->n_state && e->state_pos[k] < m->state_pos[i]) k++;
        if (k == e->n_state || e->state_pos[k] != m->state_pos[i]) return false;
    }
    return true;
}

/* Another process may have removed it. */
static bool still_there(store *s, const store_meta *m)
{
    char name[STORE_NAME_BYTES];
    struct stat st;
    store_name_text(store_name_of(m), name);
    mutex_unlock(&s->mu);
    const bool there = fstatat(s->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    mutex_lock(&s->mu);
    return there;
}

/* The file of this name has been replaced. */
static void enter(store *s, store_entry *e)
{
    const uint32_t old = index_named(&s->index, e->root, e->name);
    if (old != STORE_NONE) mem_free(index_take(&s->index, old));
    index_touch(&s->index, index_add(&s->index, e));
}

static bool has_leave(const store *s)
{
    return s->idle || s->flushing || s->n_urgent > 0;
}

static bool may_write(void *ctx)
{
    store *s = ctx;
    mutex_lock(&s->mu);
    while (!s->stop && !has_leave(s)) cond_wait(&s->work, &s->mu);
    const bool go = !s->stop;
    mutex_unlock(&s->mu);
    return go;
}

/* The file of the item's name, if it has anything that belongs to it; what the new one will have, in
   s->writing. */
static store_former open_former(store *s, const store_item *it)
{
    char text[STORE_NAME_BYTES];
    const char *why;
    struct stat st;
    store_former f = {.fd = -1, .x = s->former};
    const store_name name = store_name_of(&it->meta);
    store_name_text(name, text);
    if (fstatat(s->folder, text, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        f.dev = st.st_dev;
        f.ino = st.st_ino;
    }
    const int fd = store_open_file(s->folder, text);
    if (fd >= 0 && store_load_head(&s->conf, fd, name, s->former, &why) == STORE_GOOD &&
        store_merge(&it->meta, &s->former->meta, &s->writing->meta)) {
        f.fd = fd;
        return f;
    }
    if (fd >= 0) (void)close(fd);
    s->writing->meta = it->meta;
    return f;
}

static int try_write(store *s, store_item *it, store_former former)
{
    int rc = STORE_NO_MEMORY;
    const uint64_t bytes = store_file_bytes(&s->conf, &s->writing->meta);
    const uint32_t before =
        index_before(&s->index, it->meta.root, it->meta.parent, it->meta.first_block);
    /* Without what precedes it a run is good for nothing: it does not take its room. */
    if (bytes + index_path_bytes(&s->index, before) > s->max_bytes) return STORE_TOO_MUCH;
    index_touch(&s->index, before);
    store_entry *e = index_entry(&s->writing->meta, bytes);
    store_make_room(s, bytes);
    remove_doomed(s);
    if (e && index_reserve(&s->index)) {
        it->stamp_ns = store_stamp(s);
        mutex_unlock(&s->mu);
        rc = store_save(&s->conf, s->folder, it, former, s->writing, may_write, s);
        mutex_lock(&s->mu);
    }
    if (rc == 0)
        enter(s, e);
    else
        mem_free(e);
    return rc;
}

static int merge_and_write(store *s, store_item *it, bool any)
{
    mutex_unlock(&s->mu);
    store_former former = open_former(s, it);
    mutex_lock(&s->mu);
    former.any = any;
    int rc = try_write(s, it, former);
    if (former.fd >= 0) (void)close(former.fd);
    if (rc == STORE_FORMER_BAD) {
        s->writing->meta = it->meta;
        former.fd = -1;
        rc = try_write(s, it, former);
    }
    return rc;
}

static store_result write_new(store *s, store_item *it)
{
    int rc = STORE_FORMER_NEW;
    for (int i = 1; rc == STORE_FORMER_NEW && i <= MERGE_TRIES; i++)
        rc = merge_and_write(s, it, i == MERGE_TRIES);
    if (rc == 0) {
        write_succeeded(s);
        return STORE_DURABLE;
    }
    if (rc == STORE_STOPPED) return STORE_DROPPED;
    if (rc == STORE_TOO_MUCH) return STORE_NO_ROOM;
    if (rc > 0) write_failed(s, rc, NULL);
    return STORE_FAILED;
}

static store_result write_item(store *s, store_item *it)
{
    if (store_read_only(s)) return STORE_DROPPED;
    if (!store_has_folder(s)) return STORE_FAILED;
    if (!covers(s, &it->meta) || !still_there(s, &it->meta)) return write_new(s, it);
    const uint32_t slot = index_named(&s->index, it->meta.root, store_name_of(&it->meta));
    if (slot == STORE_NONE) return write_new(s, it); /* a reader found it damaged just now */
    index_touch(&s->index, slot);
    return STORE_DURABLE;
}

static store_item *take_first(store *s)
{
    store_item *it = s->first;
    s->first = it->next;
    if (!s->first) s->last = NULL;
    s->busy = it;
    return it;
}

void *store_run_writer(void *ctx)
{
    store *s = ctx;
    thread_be_nice(WRITER_NICE);
    store_scan(s);
    mutex_lock(&s->mu);
    while (!s->stop) {
        if (s->doomed && s->folder >= 0) {
            remove_doomed(s);
            cond_signal(&s->done);
        } else if (s->first && (has_leave(s) || store_read_only(s))) {
            store_item *it = take_first(s);
            const store_result r = write_item(s, it);
            s->busy = NULL;
            store_end(s, it, r);
        } else {
            cond_wait(&s->work, &s->mu);
        }
    }
    mutex_unlock(&s->mu);
    return NULL;
}
