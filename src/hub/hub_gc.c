/* What no name in the shared cache leads to any more: snapshots that no ref names, then blobs that no
   surviving snapshot links.  Deciding comes first and touches nothing; deleting follows the list.

   Invariant: a repository whose refs resolve to no snapshot is left alone, and so are .incomplete and
   .lock files, and a snapshot with a file name that the kept ones lack (unless forced). */
#include "hub/hub_gc.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/map.h"
#include "base/str.h"
#include "hub/hub_env.h"
#include "hub/hub_part.h"
#include "hub/hub_repo.h"

/* One repository while it is looked at. */
typedef struct repo_gc {
    const hub_gc_opts *o;
    hub_gc_result *r;
    buf *out;
    const char *folder; /* models--ORG--NAME */
    buf dir, path;
    arena mem;       /* the keys below */
    map kept;        /* commits that a ref names and that are there */
    map files;       /* names of files in kept snapshots */
    map blobs;       /* names of blobs that surviving snapshots link */
    cairn_status st; /* memory that ran out */
} repo_gc;

typedef void (*file_fn)(repo_gc *g, const FTSENT *e, const char *name);

static void keep_key(repo_gc *g, map *m, cairn_str s)
{
    const char *copy = arena_strdup(&g->mem, s);
    cairn_status st = CAIRN_E_NOMEM;
    if (copy) st = map_put(m, (cairn_str){copy, s.len}, 1);
    if (st != CAIRN_OK) g->st = st;
}

static bool has_key(const map *m, const char *name)
{
    uint32_t v;
    return map_get(m, str_of(name), &v);
}

/* "DIR/a" or "DIR/a/b" in g->path. */
static const char *path_of(repo_gc *g, const char *a, const char *b)
{
    buf_clear(&g->path);
    buf_printf(&g->path, "%s/%s%s%s", g->dir.ptr, a, b ? "/" : "", b ? b : "");
    if (buf_status(&g->path) != CAIRN_OK) g->st = CAIRN_E_NOMEM;
    return g->st == CAIRN_OK ? g->path.ptr : "";
}

/* What cannot be looked through may hold a link: then nothing of the repository is judged. */
static void unread(repo_gc *g)
{
    if (g->st == CAIRN_OK) g->st = CAIRN_E_IO;
}

/* Every file and link below; `name` is its path from `root` on.  A root that is absent holds none. */
static void each_file(repo_gc *g, const char *root, file_fn fn)
{
    char *roots[2] = {(char *)(uintptr_t)root, NULL}; /* not written to */
    const size_t skip = strlen(root) + 1;
    FTS *f = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (!f) unread(g);
    for (FTSENT *e = f ? fts_read(f) : NULL; e; e = fts_read(f)) {
        if (e->fts_info == FTS_F || e->fts_info == FTS_SL || e->fts_info == FTS_SLNONE)
            fn(g, e, e->fts_path + skip);
        const bool absent =
            e->fts_level == 0 && (e->fts_errno == ENOENT || e->fts_errno == ENOTDIR);
        if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR || (e->fts_info == FTS_NS && !absent))
            unread(g);
    }
    if (f) (void)fts_close(f);
}

static void on_ref(repo_gc *g, const FTSENT *e, const char *name)
{
    buf text;
    (void)name;
    buf_init(&text, MEM_IO);
    if (file_read(e->fts_path, HUB_COMMIT_LEN + 2, &text, NULL) == CAIRN_OK) {
        const cairn_str commit = str_trim(buf_view(&text));
        if (hub_is_hex(commit, HUB_COMMIT_LEN)) {
            char word[HUB_COMMIT_LEN + 1] = "";
            memcpy(word, commit.ptr, commit.len);
            if (file_is_dir(path_of(g, "snapshots", word))) keep_key(g, &g->kept, commit);
        }
    }
    buf_deinit(&text);
}

static void on_kept_file(repo_gc *g, const FTSENT *e, const char *name)
{
    (void)e;
    keep_key(g, &g->files, str_of(name));
}

static void on_link(repo_gc *g, const FTSENT *e, const char *name)
{
    char to[512];
    (void)name;
    const ssize_t n = readlink(e->fts_path, to, sizeof to - 1);
    if (n < 0 && errno == EINVAL) return; /* a file itself: nothing to keep for it */
    if (n <= 0 || (size_t)n == sizeof to - 1) {
        unread(g);
        return;
    }
    to[n] = '\0';
    const char *slash = strrchr(to, '/');
    keep_key(g, &g->blobs, str_of(slash ? slash + 1 : to));
}

/* The first name that only this snapshot has. */
typedef struct lacking {
    char name[HUB_FILE_LEN];
} lacking;

static bool lacks(const repo_gc *g, const char *root, lacking *out)
{
    char *roots[2] = {(char *)(uintptr_t)root, NULL};
    const size_t skip = strlen(root) + 1;
    bool found = false;
    FTS *f = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    for (FTSENT *e = f ? fts_read(f) : NULL; e && !found; e = fts_read(f)) {
        if (e->fts_info == FTS_D || e->fts_info == FTS_DP) continue;
        found = !has_key(&g->files, e->fts_path + skip);
        if (found) (void)snprintf(out->name, sizeof out->name, "%s", e->fts_path + skip);
    }
    if (f) (void)fts_close(f);
    return found;
}

static void say(repo_gc *g, const char *verb, const char *what, const char *name, uint64_t size)
{
    buf_printf(g->out, "%-7s %9.1f MB  %s/%s/%s\n", verb, (double)size / 1e6, g->folder, what,
               name);
}

static void drop(repo_gc *g, const char *what, const char *name, uint64_t size)
{
    const char *path = path_of(g, what, name);
    if (g->st != CAIRN_OK) return;
    if (g->o->yes) path_remove_tree(path);
    if (g->o->yes && file_exists(path)) {
        say(g, "failed", what, name, size);
        g->r->n_failed++;
        return;
    }
    say(g, g->o->yes ? "deleted" : "would", what, name, size);
    g->r->bytes += size;
    g->r->n++;
}

static void judge_snapshot(repo_gc *g, const char *commit)
{
    lacking l;
    const char *path = path_of(g, "snapshots", commit);
    if (!has_key(&g->kept, commit) && (g->o->force || !lacks(g, path, &l))) {
        drop(g, "snapshots", commit, path_tree_size(path));
        return;
    }
    if (!has_key(&g->kept, commit))
        buf_printf(g->out, "kept    %s/snapshots/%s: only it has %s (--force deletes it too)\n",
                   g->folder, commit, l.name);
    each_file(g, path_of(g, "snapshots", commit), on_link);
}

static void judge_blob(repo_gc *g, const char *name)
{
    struct stat s;
    const cairn_str n = str_of(name);
    if (has_key(&g->blobs, name) || str_ends(n, STR_LIT(".incomplete")) ||
        str_ends(n, STR_LIT(".lock")))
        return;
    if (lstat(path_of(g, "blobs", name), &s) == 0 && S_ISREG(s.st_mode))
        drop(g, "blobs", name, (uint64_t)s.st_size);
}

/* Names first, then what happens to them: deleting changes the folder that is read. */
static void each_name(repo_gc *g, const char *what, void (*fn)(repo_gc *, const char *))
{
    buf names;
    buf_init(&names, MEM_IO);
    DIR *d = opendir(path_of(g, what, NULL));
    if (!d && errno != ENOENT && errno != ENOTDIR) unread(g);
    for (const char *e = hub_next_name(d); e; e = hub_next_name(d))
        if (e[0] != '.') buf_put(&names, e, strlen(e) + 1);
    if (d) (void)closedir(d);
    if (buf_status(&names) != CAIRN_OK) g->st = buf_status(&names);
    for (size_t at = 0; g->st == CAIRN_OK && at < names.len; at += strlen(names.ptr + at) + 1)
        fn(g, names.ptr + at);
    buf_deinit(&names);
}

static void keep_files(repo_gc *g, const char *commit)
{
    if (has_key(&g->kept, commit)) each_file(g, path_of(g, "snapshots", commit), on_kept_file);
}

/* Whether somebody holds a lock on one of the repository's files right now. */
static bool is_busy(const char *cache, const char *folder)
{
    buf dir, path;
    bool busy = false;
    buf_init(&dir, MEM_IO);
    buf_init(&path, MEM_IO);
    buf_printf(&dir, "%s/.locks/%s", cache, folder);
    DIR *d = buf_status(&dir) == CAIRN_OK ? opendir(dir.ptr) : NULL;
    for (const char *e = hub_next_name(d); e && !busy; e = hub_next_name(d)) {
        if (!str_ends(str_of(e), STR_LIT(".lock")) || !path_join(&path, dir.ptr, e)) continue;
        const int fd = open(path.ptr, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        busy = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        if (fd >= 0) (void)close(fd);
    }
    if (d) (void)closedir(d);
    buf_deinit(&dir);
    buf_deinit(&path);
    return busy;
}

static cairn_status look_at(repo_gc *g, const char *cache)
{
    if (!path_join(&g->dir, cache, g->folder)) return CAIRN_E_NOMEM;
    if (is_busy(cache, g->folder)) {
        buf_printf(g->out, "kept    %s: it is being fetched\n", g->folder);
        return CAIRN_OK;
    }
    buf refs;
    buf_init(&refs, MEM_IO);
    if (path_join(&refs, g->dir.ptr, "refs"))
        each_file(g, refs.ptr, on_ref);
    else
        g->st = CAIRN_E_NOMEM;
    buf_deinit(&refs);
    if (g->st != CAIRN_OK || g->kept.n == 0) return g->st;
    each_name(g, "snapshots", keep_files);
    each_name(g, "snapshots", judge_snapshot);
    each_name(g, "blobs", judge_blob);
    return g->st;
}

static cairn_status one_repo(const char *cache, const char *folder, const hub_gc_opts *o,
                             hub_gc_result *r, buf *out)
{
    repo_gc g = {.o = o, .r = r, .out = out, .folder = folder};
    buf_init(&g.dir, MEM_IO);
    buf_init(&g.path, MEM_IO);
    arena_init(&g.mem, MEM_IO);
    map_init(&g.kept, MEM_IO);
    map_init(&g.files, MEM_IO);
    map_init(&g.blobs, MEM_IO);
    const cairn_status st = look_at(&g, cache);
    map_deinit(&g.kept);
    map_deinit(&g.files);
    map_deinit(&g.blobs);
    arena_deinit(&g.mem);
    buf_deinit(&g.path);
    buf_deinit(&g.dir);
    return st;
}

cairn_status hub_gc(const hub_gc_opts *o, buf *out, hub_gc_result *r, cairn_diag *dg)
{
    buf cache;
    cairn_status st;
    *r = (hub_gc_result){0};
    buf_init(&cache, MEM_IO);
    TRY_GOTO(hub_env_cache(&cache, dg), out);
    DIR *d = opendir(cache.ptr); /* no cache is an empty cache */
    for (const char *e = hub_next_name(d); e && st == CAIRN_OK; e = hub_next_name(d))
        if (str_starts(str_of(e), STR_LIT("models--"))) st = one_repo(cache.ptr, e, o, r, out);
    if (d) (void)closedir(d);
    if (st == CAIRN_OK) st = buf_status(out);
    if (st == CAIRN_E_IO)
        (void)diag_set(dg, st, "%s: a part of it cannot be read; nothing there was judged",
                       cache.ptr);
    else if (st != CAIRN_OK)
        (void)diag_set(dg, st, "%s: no memory to look through it", cache.ptr);
    if (st == CAIRN_OK && r->n_failed)
        st = diag_set(dg, CAIRN_E_IO, "%s: %zu entries could not be deleted; expected none",
                      cache.ptr, r->n_failed);
out:
    buf_deinit(&cache);
    return st;
}
