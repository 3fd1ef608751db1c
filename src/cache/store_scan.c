/* The start of a store: what its folder holds, from names and headers alone.  Runs on the writer's thread;
   entries are found as they are met.  Files of other models lie in other folders and are left alone;
   whole ones of another version or scheme count and age with ours; damaged ones are removed. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "cache/store_priv.h"

/* Slots looked at under one lock: microseconds, where all files' calls would be a second and more, and 8 KiB of
   the stack. */
enum { BATCH_SLOTS = 256 };

typedef struct scan {
    store *s;
    int folder;
    uint32_t n_corrupt; /* removed */
    uint32_t n_kept;    /* would have been, but could not be */
    uint32_t n_left;    /* there is no room to remember them */
    const char *why;    /* of the last damaged one */
} scan;

static void remember(scan *sc, store_name name, const struct stat *st, store_verdict v)
{
    store *s = sc->s;
    const uint64_t bytes = (uint64_t)st->st_size;
    store_entry *e =
        v == STORE_GOOD ? index_entry(&s->writing->meta, bytes) : index_foreign(name, bytes);
    if (e) e->mtime_ns = store_file_time(st);
    mutex_lock(&s->mu);
    const bool room = e && index_reserve(&s->index);
    if (room) (void)index_add(&s->index, e);
    mutex_unlock(&s->mu);
    if (room) return;
    mem_free(e);
    sc->n_left++;
}

static void scan_file(scan *sc, const char *text, store_name name)
{
    struct stat st;
    const int fd = store_open_file(sc->folder, text);
    if (fd < 0) return;                               /* gone, or not for us */
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM); /* nothing behind the header is wanted */
    const char *why = NULL;
    const store_verdict v = store_load_head(&sc->s->conf, fd, name, sc->s->writing, &why);
    if (v == STORE_BAD) {
        *(unlinkat(sc->folder, text, 0) == 0 ? &sc->n_corrupt : &sc->n_kept) += 1;
        sc->why = why;
    } else if (fstat(fd, &st) == 0) {
        remember(sc, name, &st, v);
    }
    (void)close(fd);
}

static bool stopped(store *s)
{
    mutex_lock(&s->mu);
    const bool stop = s->stop;
    mutex_unlock(&s->mu);
    return stop;
}

static void scan_folder(scan *sc)
{
    const struct dirent *at;
    store_name name;
    const int fd = openat(sc->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        if (fd >= 0) (void)close(fd);
        return;
    }
    /* this thread alone has d: NOLINTNEXTLINE(concurrency-mt-unsafe) */
    while (!sc->n_left && !stopped(sc->s) && (at = readdir(d)) != NULL) {
        if (store_name_is_tmp(at->d_name))
            store_drop_tmp(sc->folder, at->d_name);
        else if (store_name_parse(at->d_name, &name))
            scan_file(sc, at->d_name, name);
    }
    (void)closedir(d);
}

/* A time of the future would make a file the latest at every start until then.  New times are later than all, and in
   the order of use, so what was read meanwhile gets another one too. */
static void give_times(store *s, int64_t now_ns)
{
    mutex_lock(&s->mu);
    for (uint32_t i = s->index.oldest; i != STORE_NONE; i = s->index.slot[i]->newer) {
        store_entry *e = s->index.slot[i];
        e->stale = e->used || e->mtime_ns > now_ns;
        if (e->stale)
            e->mtime_ns = store_stamp(s);
        else if (e->mtime_ns > s->touched_ns)
            s->touched_ns = e->mtime_ns;
    }
    mutex_unlock(&s->mu);
}

typedef struct given {
    store_name name;
    uint32_t slot;
    int64_t stamp_ns;
} given;

/* Of the slots from..from + BATCH_SLOTS - 1; answers how many, -1: there are no more slots, or the store closes. */
static int take_given(store *s, uint32_t from, given out[BATCH_SLOTS])
{
    int n = 0;
    mutex_lock(&s->mu);
    const bool more = from < s->index.cap && !s->stop;
    for (uint32_t i = from; more && i < s->index.cap && i - from < BATCH_SLOTS; i++) {
        const store_entry *e = s->index.slot[i];
        if (e && e->stale) out[n++] = (given){e->name, i, e->mtime_ns};
    }
    mutex_unlock(&s->mu);
    return more ? n : -1;
}

/* Those of them that were read meanwhile, with the time of that; answers how many. */
static int take_read(store *s, given *g, int n)
{
    int n_read = 0;
    mutex_lock(&s->mu);
    for (int i = 0; i < n; i++) {
        const store_entry *e = s->index.slot[g[i].slot];
        if (!e || !hash128_same(e->name.end, g[i].name.end) ||
            e->name.n_block != g[i].name.n_block || e->mtime_ns == g[i].stamp_ns)
            continue;
        g[n_read] = g[i];
        g[n_read++].stamp_ns = e->mtime_ns;
    }
    mutex_unlock(&s->mu);
    return n_read;
}

static void give(const given *g, int n, int folder)
{
    for (int i = 0; i < n; i++) {
        char name[STORE_NAME_BYTES];
        store_name_text(g[i].name, name);
        store_touch_name(folder, name, g[i].stamp_ns);
    }
}

/* The files' times without mu, which the thread that reads must not wait for.  One that it reads meanwhile may have
   got the earlier of both times last: it gets the later one again. */
static void correct_times(store *s, int folder, int64_t now_ns)
{
    given batch[BATCH_SLOTS];
    int n;
    give_times(s, now_ns);
    for (uint32_t from = 0; (n = take_given(s, from, batch)) >= 0; from += BATCH_SLOTS) {
        for (; n > 0; n = take_read(s, batch, n)) give(batch, n, folder);
    }
}

void store_scan(store *s)
{
    scan sc = {.s = s};
    mutex_lock(&s->mu);
    const bool open = store_has_folder(s);
    sc.folder = s->folder; /* this thread alone changes it */
    mutex_unlock(&s->mu);
    if (open) scan_folder(&sc);
    const int64_t now_ns = (clock_unix_s() + 1) * 1000000000; /* of all that began by now */
    mutex_lock(&s->mu);
    index_sort(&s->index, now_ns);
    store_make_room(s, 0); /* the limit may have been lowered */
    s->stats.n_corrupt += sc.n_corrupt;
    const uint32_t n = s->index.n, n_foreign = s->index.n_foreign;
    mutex_unlock(&s->mu);
    correct_times(s, sc.folder, now_ns);
    /* told before anyone is let on: who waits for the scan may then read what was said of it */
    if (sc.n_corrupt || sc.n_kept || sc.n_left)
        log_event(LOG_WARN, "store.scan",
                  "path=%s entries=%u foreign=%u removed=%u not_removed=%u why=\"%s\"%s", s->path,
                  n, n_foreign, sc.n_corrupt, sc.n_kept, sc.why ? sc.why : "",
                  sc.n_left ? " incomplete=1" : "");
    else
        log_event(LOG_INFO, "store.scan", "path=%s entries=%u foreign=%u", s->path, n, n_foreign);
    mutex_lock(&s->mu);
    s->scanned = true;
    cond_signal(&s->done);
    mutex_unlock(&s->mu);
}
