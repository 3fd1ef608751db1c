/* Whose a checkpoint's file is, where processes share a folder: whoever has it locked.  An attempt that runs holds
   the lock of its key's file, which the system lets go when the process ends, however it ends.  So nobody
   goes on with an answer that another process makes, replaces its file or removes it, and what a dead one left is
   anybody's.  A name passes from file to file only under the lock of the one that has it, or while none has. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/ckpt_priv.h"

enum { MAX_TRIES = 8 /* each means that the file was replaced or removed in between */ };

bool ckpt_has_name(int folder, const char *name, int fd)
{
    struct stat named, open;
    return fd >= 0 && fstat(fd, &open) == 0 &&
           fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_ino == open.st_ino &&
           named.st_dev == open.st_dev;
}

/* EINTR as a result: try again. */
static int lock_named(int folder, const char *name, int fd)
{
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) return errno;
    return ckpt_has_name(folder, name, fd) ? 0 : EINTR;
}

static bool is_no_file(int e)
{
    return e == ELOOP || e == EISDIR || e == EACCES || e == ENXIO;
}

ckpt_whose ckpt_hold(int folder, const char *name, int *out)
{
    *out = -1;
    for (int tries = 0; tries < MAX_TRIES; tries++) {
        const int fd = store_open_to_lock(folder, name);
        if (fd < 0 && errno == ENOENT) return CKPT_NONE;
        if (fd < 0) return is_no_file(errno) ? CKPT_OURS : CKPT_UNKNOWN;
        const int e = lock_named(folder, name, fd);
        if (e == 0) {
            *out = fd;
            return CKPT_OURS;
        }
        (void)close(fd);
        errno = e;
        if (e != EINTR) return e == EWOULDBLOCK ? CKPT_THEIRS : CKPT_UNKNOWN;
    }
    return CKPT_THEIRS;
}

/* 0 or an errno; EEXIST: somebody was faster. */
static int name_new(int folder, const char *tmp, const char *name)
{
    if (renameat2(folder, tmp, folder, name, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return errno;
    return renameat(folder, tmp, folder, name) == 0 ? 0 : errno; /* it cannot tell */
}

static int take_name(int folder, const char *tmp, const char *name, int held)
{
    int e = EEXIST;
    if (ckpt_has_name(folder, name, held))
        return renameat(folder, tmp, folder, name) == 0 ? 0 : errno;
    for (int tries = 0; e == EEXIST && tries < MAX_TRIES; tries++) {
        int fd;
        const ckpt_whose w = ckpt_hold(folder, name, &fd);
        if (w == CKPT_THEIRS) return CKPT_ELSEWHERE;
        if (w == CKPT_UNKNOWN) return errno;
        if (w == CKPT_NONE)
            e = name_new(folder, tmp, name);
        else
            e = renameat(folder, tmp, folder, name) == 0 ? 0 : errno;
        if (w == CKPT_OURS && fd >= 0) (void)close(fd);
    }
    return e;
}

int ckpt_land(int folder, const char *tmp, const char *name, int *fd, int held)
{
    const int e = take_name(folder, tmp, name, held);
    if (e != 0) {
        (void)unlinkat(folder, tmp, 0);
        (void)close(*fd);
        *fd = -1;
        return e;
    }
    /* EINVAL: it has no such thing */
    return fsync(folder) != 0 && errno != EINVAL ? errno : 0;
}

bool ckpt_remove_this(int folder, const char *name, int fd)
{
    int held = -1;
    const bool ours = ckpt_hold(folder, name, &held) == CKPT_OURS;
    const bool gone = ours && ckpt_has_name(folder, name, fd) && unlinkat(folder, name, 0) == 0;
    if (held >= 0) (void)close(held);
    return gone;
}

bool ckpt_remove(int folder, const char *name, int held)
{
    int fd = -1;
    const ckpt_whose w =
        ckpt_has_name(folder, name, held) ? CKPT_OURS : ckpt_hold(folder, name, &fd);
    if (w != CKPT_OURS) return w != CKPT_UNKNOWN;
    const bool gone = unlinkat(folder, name, 0) == 0 || errno == ENOENT;
    if (fd >= 0) (void)close(fd);
    return gone;
}
