/* A folder of a test's own, under $TMPDIR or /tmp, and paths in it. */
#ifndef TESTS_TMP_H
#define TESTS_TMP_H

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/file.h"

typedef struct tmp_dir {
    char path[300];
} tmp_dir;

static inline bool tmp_make(tmp_dir *t)
{
    const char *at = getenv("TMPDIR");
    const int n =
        snprintf(t->path, sizeof t->path, "%s/cairn-test-XXXXXX", at && *at ? at : "/tmp");
    return n > 0 && (size_t)n < sizeof t->path && mkdtemp(t->path);
}

/* In memory, where the machine has a place for it: for tests that write much and wait until it is durable, which they
   do not look at.  A TMPDIR goes before. */
static inline bool tmp_make_quick(tmp_dir *t)
{
    const char *at = getenv("TMPDIR");
    const int n = snprintf(t->path, sizeof t->path, "/dev/shm/cairn-test-XXXXXX");
    return (!(at && *at) && n > 0 && mkdtemp(t->path)) || tmp_make(t);
}

static inline int tmp_remove(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

/* With everything in it; false: something stayed. */
static inline bool tmp_drop(const tmp_dir *t)
{
    return nftw(t->path, tmp_remove, 8, FTW_DEPTH | FTW_PHYS) == 0;
}

/* Valid during the next three calls. */
static inline const char *tmp_path(const tmp_dir *t, const char *name)
{
    static char path[4][400];
    static unsigned turn;
    char *p = path[turn++ % 4];
    (void)snprintf(p, sizeof path[0], "%s/%s", t->path, name);
    return p;
}

/* Writes the file `name`, which may have folders in front that are not there yet; false: it could not. */
static inline bool tmp_put(const tmp_dir *t, const char *name, const char *text)
{
    char path[1024], dir[1024];
    cairn_diag dg = {0};
    const int n = snprintf(path, sizeof path, "%s/%s", t->path, name);
    if (n < 0 || (size_t)n >= sizeof path) return false;
    memcpy(dir, path, sizeof dir);
    *strrchr(dir, '/') = '\0';
    return path_make_dirs(dir, &dg) == CAIRN_OK &&
           file_replace(path, text, strlen(text), &dg) == CAIRN_OK;
}

#endif
