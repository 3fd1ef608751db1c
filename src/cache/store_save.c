/* A cache file is written beside and renamed, so that a reader sees a whole one or none.  While it is written it
   is locked, so that what a dead process left behind can be told from what a living one works on.  What an older
   file of the same name has besides goes into the new one: a name stands for tokens, and not for what is
   known of them.  Owns no handle past a call. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "cache/store_priv.h"

enum {
    /* Each fails only where a name or a lock was lost to another process just then. */
    TMP_TRIES = 8,
    /* A process has the folder for a look and a rename, unless it was stopped just then: 20 ms in all. */
    NAME_TRIES = 20,
    NAME_WAIT_NS = 1000000
};

/* Where the tensors of a file come from: the item's memory, else the former file, in whose order they are met. */
typedef struct source {
    const store_item *it;
    int fd; /* of the former; -1: there is none */
    const store_scratch *former;
    store_walk at;
} source;

int store_write_all(int fd, const void *from, size_t n, uint64_t at)
{
    const char *p = from;
    while (n) {
        const ssize_t put = pwrite(fd, p, n, (off_t)at);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return put < 0 ? errno : ENOSPC;
        p += put;
        n -= (size_t)put;
        at += (uint64_t)put;
    }
    return 0;
}

static int32_t state_index(const store_meta *m, int32_t pos)
{
    for (int32_t i = 0; i < m->n_state; i++)
        if (m->state_pos[i] == pos) return i;
    return -1;
}

/* NULL: the former file has it. */
static const void *item_bytes(const store_item *it, const store_walk *w)
{
    if (w->block >= 0) return it->block[w->block * w->c->n_group + w->group];
    if (w->state < 0) return it->companion;
    const int32_t i = state_index(&it->meta, w->m->state_pos[w->state]);
    return i >= 0 ? it->state[i] : NULL;
}

static bool same_tensor(const store_walk *a, const store_walk *b)
{
    if (a->block >= 0 || b->block >= 0) return a->block == b->block && a->group == b->group;
    if (a->state < 0 || b->state < 0) return a->state == b->state;
    return a->m->state_pos[a->state] == b->m->state_pos[b->state];
}

/* Copies the tensor of w from the former file, whose hash must hold. */
static int copy_former(source *from, int fd, const store_walk *w, uint8_t *piece, size_t n_piece,
                       uint64_t *sum)
{
    hash64_stream h;
    while (store_walk_next(&from->at) && !same_tensor(&from->at, w)) continue;
    hash64_begin(&h);
    for (size_t at = 0, n; at < w->bytes; at += n) {
        n = min_size(n_piece, w->bytes - at);
        if (pread(from->fd, piece, n, (off_t)(from->at.at + at)) != (ssize_t)n)
            return STORE_FORMER_BAD;
        hash64_add(&h, piece, n);
        const int e = store_write_all(fd, piece, n, w->at + at);
        if (e != 0) return e;
    }
    *sum = hash64_end(&h);
    return *sum == from->former->sum[from->at.i_tensor] ? 0 : STORE_FORMER_BAD;
}

bool store_merge(const store_meta *run, const store_meta *former, store_meta *out)
{
    int32_t n = 0, i = 0, k = 0;
    *out = *run;
    if (former->n_tok != run->n_tok || former->first_block != run->first_block ||
        !hash128_same(former->root, run->root) ||
        memcmp(former->token, run->token, (size_t)run->n_tok * sizeof *run->token) != 0)
        return false;
    for (int32_t g = 0; g < STORE_MAX_GROUPS; g++) out->here[g] |= former->here[g];
    while (i < run->n_state || k < former->n_state) {
        const int32_t a = i < run->n_state ? run->state_pos[i] : INT32_MAX;
        const int32_t b = k < former->n_state ? former->state_pos[k] : INT32_MAX;
        if (n == STORE_MAX_STATES) break;
        out->state_pos[n++] = min_i32(a, b);
        i += a <= b;
        k += b <= a;
    }
    out->n_state = n;
    if (!run->companion) {
        out->companion = former->companion;
        out->companion_bytes = former->companion_bytes;
    }
    return i == run->n_state && k == former->n_state;
}

/* Room first: a full disk then says so before anything is written, and the file lies in one piece. */
static int make_room(int fd, uint64_t bytes)
{
    int rc;
    do rc = fallocate(fd, 0, 0, (off_t)bytes);
    while (rc != 0 && errno == EINTR);
    if (rc == 0) return 0;
    if (errno != EOPNOTSUPP && errno != ENOSYS) return errno;
    return ftruncate(fd, (off_t)bytes) == 0 ? 0 : errno;
}

static int fill_file(const store_conf *c, int fd, source *from, store_scratch *x, store_gate gate,
                     void *ctx)
{
    int e = make_room(fd, store_file_bytes(c, &x->meta));
    store_walk w = store_walk_of(c, &x->meta);
    while (e == 0 && store_walk_next(&w)) {
        if (!gate(ctx)) return STORE_STOPPED;
        const void *bytes = item_bytes(from->it, &w);
        uint64_t *sum = &x->sum[w.i_tensor];
        if (bytes) {
            *sum = hash64(bytes, w.bytes, 0);
            e = store_write_all(fd, bytes, w.bytes, w.at);
        } else {
            e = copy_former(from, fd, &w, x->head, sizeof x->head, sum);
        }
    }
    if (e != 0) return e;
    e = store_write_all(fd, x->head, store_head_put(c, &x->meta, x->sum, x->head), 0);
    store_touch_file(fd, from->it->stamp_ns);
    if (e == 0 && fsync(fd) != 0) e = errno;
    /* what is in memory already needs no second place there */
    if (e == 0) (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    return e;
}

/* Between its making and its lock another process may take the new file for a dead one's. */
int store_make_tmp(int folder, const char *name, char tmp[NAME_MAX], int *out)
{
    for (int tries = 0; tries < TMP_TRIES; tries++) {
        struct stat st;
        (void)snprintf(tmp, NAME_MAX, "%s.tmp-%ld-%llx", name, (long)getpid(),
                       (unsigned long long)clock_ns());
        const int fd =
            openat(folder, tmp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 && (errno == EEXIST || errno == EINTR)) continue;
        if (fd < 0) return errno;
        const int e = flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
        if (e == 0 && fstat(fd, &st) == 0 && st.st_nlink == 1) {
            *out = fd;
            return 0;
        }
        (void)close(fd);
        (void)unlinkat(folder, tmp, 0);
        if (e != 0 && e != EWOULDBLOCK && e != EINTR) return e; /* nothing can be locked there */
    }
    return EBUSY;
}

/* What had the name went into the new file, unless another process has given it since. */
static bool is_as_it_was(int folder, const char *name, const store_former *f)
{
    struct stat st;
    if (f->any || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0) return true;
    return st.st_dev == f->dev && st.st_ino == f->ino;
}

/* Processes that share a folder give names one at a time. */
static int take_name(int folder, const char *tmp, const char *name, const store_former *former)
{
    int e = 0;
    bool locked = false;
    for (int i = 0; i < NAME_TRIES && !locked; i++) {
        locked = flock(folder, LOCK_EX | LOCK_NB) == 0;
        if (!locked && errno != EWOULDBLOCK && errno != EINTR) break; /* it has no such thing */
        if (!locked) (void)nanosleep(&(struct timespec){0, NAME_WAIT_NS}, NULL);
    }
    if (!is_as_it_was(folder, name, former))
        e = STORE_FORMER_NEW;
    else if (renameat(folder, tmp, folder, name) != 0)
        e = errno;
    if (locked) (void)flock(folder, LOCK_UN);
    return e;
}

/* It takes the name for good where e is 0, else it goes; closed in both cases. */
static int land(int folder, const char *tmp, const char *name, int fd, const store_former *former,
                int e)
{
    if (e == 0) e = take_name(folder, tmp, name, former);
    if (e != 0) (void)unlinkat(folder, tmp, 0);
    (void)close(fd); /* fsync has spoken */
    /* EINVAL: it has no such thing */
    return e == 0 && fsync(folder) != 0 && errno != EINVAL ? errno : e;
}

int store_save(const store_conf *c, int folder, const store_item *it, store_former former,
               store_scratch *x, store_gate gate, void *ctx)
{
    char name[STORE_NAME_BYTES], tmp[NAME_MAX];
    int fd = -1;
    source from = {.it = it, .fd = former.fd, .former = former.x};
    if (former.fd >= 0) from.at = store_walk_of(c, &former.x->meta);
    store_name_text(store_name_of(&it->meta), name);
    const int e = store_make_tmp(folder, name, tmp, &fd);
    if (e != 0) return e;
    return land(folder, tmp, name, fd, &former, fill_file(c, fd, &from, x, gate, ctx));
}
