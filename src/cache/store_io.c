/* Cache files on the disk: one read straight into its destinations; the folder opened, and cleared of what dead
   writers left.  Owns no handle past a call. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/file.h"
#include "base/num.h"
#include "cache/store_priv.h"

/* A read is small enough for what it brought to be in a near cache when it is hashed (a core's second level
   holds 512 KiB and more), and large enough for its call to cost nothing. */
enum { BATCH_PARTS = 64, BATCH_BYTES = 256 << 10 };

typedef struct part { /* a tensor or a piece of one */
    void *to;
    size_t bytes, gap; /* gap: up to the next tensor, behind a last piece */
    uint64_t sum;      /* of the whole tensor */
    bool first, last;
} part;

typedef struct batch { /* parts that lie side by side in a file */
    part part[BATCH_PARTS];
    int n;
    size_t bytes;
    uint64_t at, next;  /* of the first; where one more would lie */
    hash64_stream hash; /* of the tensor that goes on in the next batch */
} batch;

static int open_named(int folder, const char *name, int access)
{
    int fd;
    do fd = openat(folder, name, access | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    return fd;
}

int store_open_file(int folder, const char *name)
{
    return open_named(folder, name, O_RDONLY);
}

int store_open_to_lock(int folder, const char *name)
{
    return open_named(folder, name, O_RDWR);
}

size_t store_read_some(int fd, void *to, size_t n, uint64_t at)
{
    size_t got = 0;
    while (got < n) {
        const ssize_t k = pread(fd, (char *)to + got, n - got, (off_t)(at + got));
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) break;
        got += (size_t)k;
    }
    return got;
}

store_verdict store_load_head(const store_conf *c, int fd, store_name n, store_scratch *x,
                              const char **why)
{
    struct stat st;
    *why = "no regular file";
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return STORE_BAD;
    const size_t got = store_read_some(fd, x->head, sizeof x->head, 0);
    const store_verdict v =
        store_head_parse(c, x->head, got, (uint64_t)st.st_size, &x->meta, x->sum, why);
    if (v != STORE_GOOD) return v;
    const store_name said = store_name_of(&x->meta);
    *why = "the name of another content";
    return hash128_same(said.end, n.end) && said.n_block == n.n_block ? STORE_GOOD : STORE_BAD;
}

/* Gaps go to a page of nobody's.
   NOLINTNEXTLINE(readability-non-const-parameter): it is stored through */
static int list_parts(const batch *b, uint8_t *pad, struct iovec *io)
{
    int n = 0;
    for (int i = 0; i < b->n; i++) {
        const size_t gap = i + 1 < b->n ? b->part[i].gap : 0;
        io[n++] = (struct iovec){b->part[i].to, b->part[i].bytes};
        if (gap) io[n++] = (struct iovec){pad, gap};
    }
    return n;
}

static cairn_status read_parts(int fd, const batch *b, uint8_t *pad, cairn_diag *dg)
{
    struct iovec io[2 * BATCH_PARTS], *p = io;
    const struct iovec *end = io + list_parts(b, pad, io);
    uint64_t at = b->at;
    while (p < end) {
        ssize_t got = preadv(fd, p, (int)(end - p), (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return diag_set(dg, CAIRN_E_IO, "reading: errno %d", errno);
        if (got == 0) return diag_set(dg, CAIRN_E_CORRUPT, "it became shorter");
        at += (uint64_t)got;
        for (; p < end && (size_t)got >= p->iov_len; p++) got -= (ssize_t)p->iov_len;
        if (p == end || got == 0) continue;
        p->iov_base = (char *)p->iov_base + got;
        p->iov_len -= (size_t)got;
    }
    return CAIRN_OK;
}

static bool is_whole(batch *b, const part *p)
{
    if (p->first && p->last) return hash64(p->to, p->bytes, 0) == p->sum;
    if (p->first) hash64_begin(&b->hash);
    hash64_add(&b->hash, p->to, p->bytes);
    return !p->last || hash64_end(&b->hash) == p->sum;
}

static cairn_status finish_batch(const store_conf *c, int fd, batch *b, uint8_t *pad,
                                 cairn_diag *dg)
{
    if (!b->n) return CAIRN_OK;
    TRY(read_parts(fd, b, pad, dg));
    for (int i = 0; i < b->n && !c->unverified; i++)
        if (!is_whole(b, &b->part[i]))
            return diag_set(dg, CAIRN_E_CORRUPT, "the hash of a tensor differs");
    b->n = 0;
    b->bytes = 0;
    return CAIRN_OK;
}

/* Where the walk's tensor is wanted; NULL: nowhere. */
static void *wanted(const store_walk *w, const store_dest *d)
{
    if (w->block >= 0) return d->block ? d->block[w->block * w->c->n_group + w->group] : NULL;
    if (w->state >= 0) return w->m->state_pos[w->state] == d->state_pos ? d->state : NULL;
    return d->companion;
}

static int count_wanted(const store_conf *c, const store_meta *m, const store_dest *d)
{
    int n = (d->state != NULL) + (d->companion != NULL);
    for (int32_t i = 0; d->block && i < m->n_block * c->n_group; i++) n += d->block[i] != NULL;
    return n;
}

/* The entry begins with the tokens that d names, and d asks for nothing past them. */
static bool agrees(const store_conf *c, const store_meta *m, const store_dest *d)
{
    if (d->n_tok > m->n_tok || memcmp(d->token, m->token, (size_t)d->n_tok * sizeof *d->token) != 0)
        return false;
    if (d->state && d->state_pos > m->first_block * KV_BLOCK + d->n_tok) return false;
    for (int32_t i = (d->n_tok + KV_BLOCK - 1) / KV_BLOCK * c->n_group;
         d->block && i < m->n_block * c->n_group; i++)
        if (d->block[i]) return false;
    return !d->companion ||
           (m->companion == c->companion && m->companion_bytes == d->companion_bytes);
}

/* Whether the file has all that is wanted; the system begins with all of it, so that it reads
   while we hash. */
static bool all_there(const store_conf *c, int fd, const store_meta *m, const store_dest *d)
{
    int n = 0;
    uint64_t from = 0, end = 0;
    store_walk w = store_walk_of(c, m);
    while (store_walk_next(&w)) {
        if (!wanted(&w, d)) continue;
        if (n++ == 0) from = w.at;
        end = w.at + w.bytes;
    }
    if (n != count_wanted(c, m, d)) return false;
    if (n) (void)posix_fadvise(fd, (off_t)from, (off_t)(end - from), POSIX_FADV_WILLNEED);
    return true;
}

cairn_status store_load(const store_conf *c, int fd, store_scratch *x, const store_dest *d,
                        cairn_diag *dg)
{
    batch b;
    b.n = 0;
    b.bytes = 0;
    b.next = 0;
    if (!agrees(c, &x->meta, d) || !all_there(c, fd, &x->meta, d))
        return diag_set(dg, CAIRN_E_NOTFOUND, "it does not hold what is wanted");
    store_walk w = store_walk_of(c, &x->meta);
    while (store_walk_next(&w)) {
        char *to = wanted(&w, d);
        for (size_t at = 0, n; to && at < w.bytes; at += n) {
            if (b.n == BATCH_PARTS || b.bytes >= BATCH_BYTES || w.at + at != b.next)
                TRY(finish_batch(c, fd, &b, x->pad, dg));
            n = min_size(w.bytes - at, BATCH_BYTES - b.bytes);
            if (!b.n) b.at = w.at + at;
            const bool last = at + n == w.bytes;
            const size_t gap = last ? round_up(w.bytes, STORE_PAGE) - w.bytes : 0;
            b.part[b.n++] = (part){to + at, n, gap, x->sum[w.i_tensor], at == 0, last};
            b.bytes += n;
            b.next = w.at + at + n + gap;
        }
    }
    return finish_batch(c, fd, &b, x->pad, dg);
}

int64_t store_file_time(const struct stat *st)
{
    const int64_t most_s = INT64_MAX / 1000000000 - 1, s = st->st_mtim.tv_sec;
    const int64_t known_s = s > most_s ? most_s : s < -most_s ? -most_s : s;
    return known_s * 1000000000 + st->st_mtim.tv_nsec;
}

void store_touch_file(int fd, int64_t stamp_ns)
{
    const struct timespec t = {(time_t)(stamp_ns / 1000000000), (long)(stamp_ns % 1000000000)};
    (void)futimens(fd, (struct timespec[2]){t, t});
}

void store_touch_name(int folder, const char *name, int64_t stamp_ns)
{
    const struct timespec t = {(time_t)(stamp_ns / 1000000000), (long)(stamp_ns % 1000000000)};
    (void)utimensat(folder, name, (struct timespec[2]){t, t}, AT_SYMLINK_NOFOLLOW);
}

static const char *const above[] = {"..", "../.."};

/* A folder that was just made must survive a crash as its files do. */
static void sync_above(int folder)
{
    for (int i = 0; i < 2; i++) {
        const int fd = openat(folder, above[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) continue;
        (void)fsync(fd); /* some file systems have no such thing */
        (void)close(fd);
    }
}

/* What others may write is nothing to trust.  In a folder with the sticky bit they can make new names, but not
   rename or remove ours. */
static const char *distrust(int folder)
{
    struct stat st;
    if (fstat(folder, &st) != 0 || st.st_uid != geteuid()) return "it is another user's";
    if (st.st_mode & (S_IWGRP | S_IWOTH)) return "others may write in it";
    for (int i = 0; i < 2; i++) { /* the user's folder is the second one above checkpoints */
        if (fstatat(folder, above[i], &st, 0) != 0) return "a folder above it cannot be looked at";
        if (st.st_mode & (S_IWGRP | S_IWOTH) && !(st.st_mode & S_ISVTX))
            return "others may write in the folder above it";
    }
    return NULL;
}

int store_open_folder(const char *path, int *out, const char **why)
{
    const cairn_status made = path_make_dirs(path, NULL);
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return made == CAIRN_E_NOMEM ? ENOMEM : errno;
    *why = distrust(fd);
    if (!*why) {
        sync_above(fd);
        *out = fd;
        return 0;
    }
    (void)close(fd);
    return EACCES;
}

bool store_is_in_place(int folder, const char *path)
{
    struct stat named, open;
    return folder >= 0 && fstat(folder, &open) == 0 && stat(path, &named) == 0 &&
           named.st_ino == open.st_ino && named.st_dev == open.st_dev;
}

void store_drop_tmp(int folder, const char *name)
{
    const int fd = store_open_to_lock(folder, name);
    if (fd < 0) return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) (void)unlinkat(folder, name, 0);
    (void)close(fd);
}
