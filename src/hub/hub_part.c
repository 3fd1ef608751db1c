/* Files in the making, and the few things that all fetches do with files.

   Invariant: a file has its final name only once its size and hash were right and its bytes synced. */
#include "hub/hub_part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/file.h"

enum { CHUNK = 1 << 18 };

static cairn_status io_error(cairn_diag *dg, const char *path, const char *verb)
{
    const int e = errno;
    char reason[128];
    return diag_set(dg, CAIRN_E_IO, "%s: cannot %s: %s", path, verb,
                    strerror_r(e, reason, sizeof reason));
}

/* The hash goes on from the bytes that are kept. */
static cairn_status hash_kept(hub_part *p, uint64_t keep, cairn_diag *dg)
{
    uint8_t *chunk = mem_alloc(CHUNK, MEM_IO);
    cairn_status st = CAIRN_OK;
    if (!chunk) return diag_set(dg, CAIRN_E_NOMEM, "%s: no memory to read it", p->path.ptr);
    while (p->size < keep && st == CAIRN_OK) {
        const uint64_t left = keep - p->size;
        const ssize_t n = pread(p->fd, chunk, left < CHUNK ? (size_t)left : CHUNK, (off_t)p->size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            st = io_error(dg, p->path.ptr, "read");
            break;
        }
        sha256_add(&p->hash, chunk, (size_t)n);
        p->size += (uint64_t)n;
    }
    mem_free(chunk);
    return st;
}

cairn_status hub_part_open(hub_part *p, const char *path, uint64_t keep, uint64_t limit,
                           cairn_diag *dg)
{
    struct stat s;
    cairn_status st = CAIRN_OK;
    *p = (hub_part){.fd = -1, .limit = limit};
    sha256_init(&p->hash);
    buf_init(&p->path, MEM_IO);
    buf_puts(&p->path, path);
    if (buf_status(&p->path) != CAIRN_OK) {
        st = diag_set(dg, CAIRN_E_NOMEM, "%s: no memory for a path", path);
        goto out;
    }
    p->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (p->fd < 0 || fstat(p->fd, &s) != 0) {
        st = io_error(dg, path, "open");
        goto out;
    }
    const uint64_t there = (uint64_t)s.st_size;
    if (keep == HUB_KEEP_ALL) keep = there;
    if (keep > there || keep > limit) keep = 0;
    if (ftruncate(p->fd, (off_t)keep) != 0)
        st = io_error(dg, path, "cut");
    else
        st = hash_kept(p, keep, dg);
    if (st == CAIRN_OK && lseek(p->fd, (off_t)keep, SEEK_SET) < 0) st = io_error(dg, path, "seek");
out:
    if (st != CAIRN_OK) hub_part_close(p);
    return st;
}

cairn_status hub_part_add(hub_part *p, const void *bytes, size_t n, cairn_diag *dg)
{
    const char *at = bytes;
    if (n > p->limit - p->size)
        return diag_set(dg, CAIRN_E_CORRUPT, "%s: grows over the %llu bytes expected", p->path.ptr,
                        (unsigned long long)p->limit);
    while (n > 0) {
        const ssize_t put = write(p->fd, at, n);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return io_error(dg, p->path.ptr, "write");
        sha256_add(&p->hash, at, (size_t)put);
        p->size += (uint64_t)put;
        at += put;
        n -= (size_t)put;
    }
    return CAIRN_OK;
}

cairn_status hub_part_restart(hub_part *p, cairn_diag *dg)
{
    if (ftruncate(p->fd, 0) != 0 || lseek(p->fd, 0, SEEK_SET) != 0)
        return io_error(dg, p->path.ptr, "empty");
    p->size = 0;
    sha256_init(&p->hash);
    return CAIRN_OK;
}

cairn_status hub_part_sync(hub_part *p, cairn_diag *dg)
{
    return fsync(p->fd) == 0 ? CAIRN_OK : io_error(dg, p->path.ptr, "write");
}

cairn_status hub_part_finish(hub_part *p, uint64_t size, const char *sha, const char *name,
                             cairn_diag *dg)
{
    uint8_t digest[32];
    char hex[65];
    cairn_status st;
    sha256_end(&p->hash, digest);
    sha256_hex(digest, hex);
    if (p->size != size)
        st = diag_set(dg, CAIRN_E_CORRUPT, "%s: %llu bytes; expected %llu; nothing kept", name,
                      (unsigned long long)p->size, (unsigned long long)size);
    else if (sha && strcasecmp(sha, hex) != 0)
        st = diag_set(dg, CAIRN_E_CORRUPT, "%s: SHA-256 is %s; expected %s; nothing kept", name,
                      hex, sha);
    else
        st = hub_part_sync(p, dg);
    if (st == CAIRN_E_CORRUPT) (void)unlink(p->path.ptr);
    if (st == CAIRN_OK && rename(p->path.ptr, name) != 0) st = io_error(dg, name, "put in place");
    if (st == CAIRN_OK) file_sync_folder(name);
    hub_part_close(p);
    return st;
}

void hub_part_close(hub_part *p)
{
    if (p->fd >= 0) (void)close(p->fd);
    p->fd = -1;
    buf_deinit(&p->path);
}

cairn_status hub_lock(const char *path, const char *what, const hub_report *r, int *fd,
                      cairn_diag *dg)
{
    char line[300];
    const int f = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (f < 0) return io_error(dg, path, "open");
    int e = flock(f, LOCK_EX | LOCK_NB);
    if (e != 0 && errno == EWOULDBLOCK) {
        (void)snprintf(line, sizeof line, "%s: another process is fetching it; waiting", what);
        if (r->note) r->note(r->ctx, line);
        do e = flock(f, LOCK_EX);
        while (e != 0 && errno == EINTR);
    }
    if (e != 0) {
        const cairn_status st = io_error(dg, path, "lock");
        (void)close(f);
        return st;
    }
    *fd = f;
    return CAIRN_OK;
}

void hub_unlock(int fd)
{
    if (fd >= 0) (void)close(fd); /* the lock ends with it; the file stays, others may wait on it */
}

const char *hub_next_name(DIR *d)
{
    /* glibc's is safe as long as nobody else reads from d */
    const struct dirent *e = d ? readdir(d) : NULL; /* NOLINT(concurrency-mt-unsafe) */
    return e ? e->d_name : NULL;
}

cairn_status hub_room(const char *folder, uint64_t need, cairn_diag *dg)
{
    struct statvfs v;
    if (statvfs(folder, &v) != 0) return CAIRN_OK; /* writing will tell */
    const uint64_t left = (uint64_t)v.f_bavail * v.f_frsize;
    if (need <= left) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_IO, "%s: %.1f MB are free; expected room for %.1f MB", folder,
                    (double)left / 1e6, (double)need / 1e6);
}
