/* Files.  Messages carry path and reason.  A mapped file that shrinks under us is the one thing
   that cannot be checked here: model files are expected to be replaced, not rewritten in place. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"

enum { READ_CHUNK = 1 << 16 };

static cairn_status io_error(cairn_diag *dg, const char *path, const char *verb)
{
    const int e = errno;
    char reason[128];
    const cairn_status st = e == ENOENT || e == ENOTDIR ? CAIRN_E_NOTFOUND
                            : e == ENOMEM               ? CAIRN_E_NOMEM
                                                        : CAIRN_E_IO;
    return diag_set(dg, st, "%s: cannot %s: %s", path, verb, strerror_r(e, reason, sizeof reason));
}

static int open_retry(const char *path, int flags, mode_t mode)
{
    int fd;
    do fd = open(path, flags | O_CLOEXEC, mode);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* What the file is, when it is none of bytes. */
static const char *odd_kind(mode_t mode)
{
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISFIFO(mode)) return "a pipe";
    if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
    return "a socket";
}

cairn_status file_map_open(const char *path, file_map *out, cairn_diag *dg)
{
    struct stat s;
    cairn_status st = CAIRN_OK;
    void *p = NULL;
    const int fd = open_retry(path, O_RDONLY | O_NONBLOCK, 0); /* a pipe must not hang here */
    if (fd < 0) return io_error(dg, path, "open");
    if (fstat(fd, &s) != 0) {
        st = io_error(dg, path, "stat");
    } else if (!S_ISREG(s.st_mode)) {
        st = diag_set(dg, CAIRN_E_IO, "%s: found %s; expected a regular file", path,
                      odd_kind(s.st_mode));
    } else if (s.st_size > 0) {
        p = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED) st = io_error(dg, path, "map");
    }
    (void)close(fd);
    if (st == CAIRN_OK) *out = (file_map){p, (size_t)s.st_size};
    return st;
}

/* The mapping was made from a non-const pointer: giving it back drops a const of our own. */
static void *own(const void *p)
{
    return (void *)(uintptr_t)p;
}

void file_map_close(file_map *m)
{
    if (m->ptr) (void)munmap(own(m->ptr), m->size);
    *m = (file_map){NULL, 0};
}

void file_map_drop(const void *p, size_t n)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t from = ((uintptr_t)p + page - 1) & ~(page - 1);
    const uintptr_t to = ((uintptr_t)p + n) & ~(page - 1);
    if (to > from) (void)madvise((void *)from, to - from, MADV_DONTNEED); /* advice only */
}

static cairn_status too_big(const char *path, const char *more, uint64_t n, size_t max,
                            cairn_diag *dg)
{
    return diag_set(dg, CAIRN_E_LIMIT, "%s: found %s%llu bytes; expected at most %zu", path, more,
                    (unsigned long long)n, max);
}

static cairn_status read_all(int fd, const char *path, size_t max, buf *out, cairn_diag *dg)
{
    const size_t start = out->len;
    for (;;) {
        char *at = buf_grow(out, READ_CHUNK);
        if (!at) return diag_set(dg, buf_status(out), "%s: no room for its bytes", path);
        const ssize_t got = read(fd, at, READ_CHUNK);
        const int e = errno;
        buf_cut(out, out->len - READ_CHUNK + (got > 0 ? (size_t)got : 0));
        errno = e;
        if (got < 0 && e != EINTR) return io_error(dg, path, "read");
        if (got == 0) return CAIRN_OK;
        if (out->len - start > max) return too_big(path, "more than ", max, max, dg);
    }
}

/* A pipe without a writer must not hang: it reads as empty, which is said. */
static cairn_status read_stream(int fd, const char *path, mode_t mode, size_t max, buf *out,
                                cairn_diag *dg)
{
    const size_t start = out->len;
    if (max > FILE_STREAM_MAX) max = FILE_STREAM_MAX;
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK); /* its writer is waited for */
    TRY(read_all(fd, path, max, out, dg));
    if (out->len > start || !S_ISFIFO(mode)) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_IO, "%s: found an empty pipe; expected one with text in it", path);
}

static cairn_status read_opened(int fd, const char *path, bool stream, size_t max, buf *out,
                                cairn_diag *dg)
{
    struct stat s;
    if (fstat(fd, &s) != 0) return io_error(dg, path, "stat");
    if (S_ISREG(s.st_mode)) {
        if ((uint64_t)s.st_size > max) return too_big(path, "", (uint64_t)s.st_size, max, dg);
        const size_t start = out->len;
        /* One block from the start; read_all says it where there is none. */
        if (buf_grow(out, (size_t)s.st_size + READ_CHUNK)) buf_cut(out, start);
        return read_all(fd, path, max, out, dg);
    }
    if (stream && (S_ISFIFO(s.st_mode) || S_ISCHR(s.st_mode)))
        return read_stream(fd, path, s.st_mode, max, out, dg);
    return diag_set(dg, CAIRN_E_IO, "%s: found %s; expected a regular file", path,
                    odd_kind(s.st_mode));
}

static cairn_status open_and_read(const char *path, bool stream, size_t max, buf *out,
                                  cairn_diag *dg)
{
    const size_t start = out->len;
    const int fd = open_retry(path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0) return io_error(dg, path, "open");
    const cairn_status st = read_opened(fd, path, stream, max, out, dg);
    if (st != CAIRN_OK) buf_cut(out, start);
    (void)close(fd);
    return st;
}

cairn_status file_read(const char *path, size_t max, buf *out, cairn_diag *dg)
{
    return open_and_read(path, false, max, out, dg);
}

cairn_status file_read_input(const char *path, size_t max, buf *out, cairn_diag *dg)
{
    const size_t start = out->len;
    struct stat s;
    if (strcmp(path, "-") != 0) return open_and_read(path, true, max, out, dg);
    if (fstat(STDIN_FILENO, &s) != 0) return io_error(dg, "standard input", "stat");
    if (!S_ISREG(s.st_mode) && max > FILE_STREAM_MAX) max = FILE_STREAM_MAX;
    const cairn_status st = read_all(STDIN_FILENO, "standard input", max, out, dg);
    if (st != CAIRN_OK) buf_cut(out, start);
    return st;
}

static bool write_all(int fd, const char *p, size_t n)
{
    while (n) {
        const ssize_t put = write(fd, p, n);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        p += put;
        n -= (size_t)put;
    }
    return true;
}

void file_sync_folder(const char *path)
{
    buf dir;
    buf_init(&dir, MEM_IO);
    const char *slash = strrchr(path, '/');
    buf_put(&dir, slash ? path : ".", slash && slash > path ? (size_t)(slash - path) : 1);
    const int fd =
        buf_status(&dir) == CAIRN_OK ? open_retry(dir.ptr, O_RDONLY | O_DIRECTORY, 0) : -1;
    if (fd >= 0) {
        (void)fsync(fd); /* some file systems have no such thing */
        (void)close(fd);
    }
    buf_deinit(&dir);
}

cairn_status file_replace(const char *path, const void *p, size_t n, cairn_diag *dg)
{
    static _Atomic unsigned serial;
    cairn_status st = CAIRN_OK;
    bool made = false;
    int fd = -1;
    struct stat s;
    buf tmp;
    if (stat(path, &s) == 0 && !S_ISREG(s.st_mode)) /* a device must not become a file */
        return diag_set(dg, CAIRN_E_IO, "%s: found %s; expected a regular file or none", path,
                        odd_kind(s.st_mode));
    buf_init(&tmp, MEM_IO);
    buf_printf(&tmp, "%s.%ld-%u.tmp", path, (long)getpid(), atomic_fetch_add(&serial, 1));
    if (buf_status(&tmp) != CAIRN_OK) {
        st = diag_set(dg, buf_status(&tmp), "%s: no memory for a name", path);
        goto out;
    }
    fd = open_retry(tmp.ptr, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (fd < 0) {
        st = io_error(dg, tmp.ptr, "create");
        goto out;
    }
    made = true;
    if (!write_all(fd, p, n) || fsync(fd) != 0) {
        st = io_error(dg, tmp.ptr, "write");
        goto out;
    }
    const int closed = close(fd);
    fd = -1;
    if (closed != 0) {
        st = io_error(dg, tmp.ptr, "close");
        goto out;
    }
    if (rename(tmp.ptr, path) != 0) {
        st = io_error(dg, path, "replace");
        goto out;
    }
    made = false;
    file_sync_folder(path); /* the rename itself must survive a crash */
out:
    if (fd >= 0) (void)close(fd);
    if (made) (void)unlink(tmp.ptr);
    buf_deinit(&tmp);
    return st;
}

bool file_exists(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0;
}

bool file_is_dir(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

const char *path_join(buf *b, const char *dir, const char *name)
{
    buf_clear(b);
    buf_puts(b, dir);
    if (b->len && b->ptr[b->len - 1] != '/') buf_byte(b, '/');
    buf_puts(b, name);
    return buf_status(b) == CAIRN_OK ? b->ptr : NULL;
}

static cairn_status make_dirs(char *path, cairn_diag *dg)
{
    for (char *p = path + 1;; p++) {
        if (*p != '/' && *p != '\0') continue;
        const char c = *p;
        *p = '\0';
        const int e = mkdir(path, 0700) == 0 ? 0 : errno;
        const bool ok = e == 0 || file_is_dir(path); /* which sets errno anew */
        errno = e;
        const cairn_status st = ok ? CAIRN_OK : io_error(dg, path, "create");
        *p = c;
        if (!ok || c == '\0') return st;
    }
}

cairn_status path_make_dirs(const char *path, cairn_diag *dg)
{
    buf b;
    buf_init(&b, MEM_IO);
    buf_puts(&b, path);
    cairn_status st = buf_status(&b);
    if (st != CAIRN_OK)
        st = diag_set(dg, st, "%s: no memory for a path", path);
    else if (path[0] != '/')
        st = diag_set(dg, CAIRN_E_ARG, "%s: expected an absolute path", path);
    else
        st = make_dirs(b.ptr, dg);
    buf_deinit(&b);
    return st;
}

cairn_status path_cache_dir(buf *b, cairn_diag *dg)
{
    /* nothing changes the environment: setenv is banned */
    const char *xdg = getenv("XDG_CACHE_HOME"); /* NOLINT(concurrency-mt-unsafe) */
    const char *home = getenv("HOME");          /* NOLINT(concurrency-mt-unsafe) */
    buf_clear(b);
    if (xdg && xdg[0] == '/') { /* its specification: a relative path is to be ignored */
        buf_puts(b, xdg);
        buf_puts(b, "/cairn");
    } else if (home && home[0] == '/') {
        buf_puts(b, home);
        buf_puts(b, "/.cache/cairn");
    } else {
        return diag_set(dg, CAIRN_E_NOTFOUND,
                        "no cache folder: neither XDG_CACHE_HOME nor HOME is an absolute path");
    }
    if (buf_status(b) != CAIRN_OK) return diag_set(dg, buf_status(b), "no memory for a path");
    return make_dirs(b->ptr, dg);
}

static FTS *walk(const char *path)
{
    char *roots[2] = {(char *)(uintptr_t)path, NULL}; /* not written to */
    return fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
}

uint64_t path_tree_size(const char *path)
{
    uint64_t sum = 0;
    FTS *f = walk(path);
    for (FTSENT *e = f ? fts_read(f) : NULL; e; e = fts_read(f))
        if (e->fts_info == FTS_F) sum += (uint64_t)e->fts_statp->st_size;
    if (f) (void)fts_close(f);
    return sum;
}

void path_remove_tree(const char *path)
{
    FTS *f = walk(path);
    for (FTSENT *e = f ? fts_read(f) : NULL; e; e = fts_read(f))
        if (e->fts_info == FTS_DP)
            (void)rmdir(e->fts_accpath);
        else if (e->fts_info != FTS_D)
            (void)unlink(e->fts_accpath);
    if (f) (void)fts_close(f);
}
