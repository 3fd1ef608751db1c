/* Fetching a repository: its list of files, the choice of those it takes to run it, each file into
   blobs/, links to them in snapshots/COMMIT/, and last the revision's name in refs/: a revision that
   has a name is whole.

   Big files are checked by the SHA-256 that the list gives.  Small ones have only a git hash there
   (SHA-1, which we have no code for): those are checked by size alone. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "hub/hub_env.h"
#include "hub/hub_http.h"
#include "hub/hub_repo.h"

enum {
    LIST_MAX = 8 << 20, /* bytes of JSON; the largest lists are some hundred KB */
    FILES_MAX = 2000,   /* that are fetched */
    URL_MAX = 2048,
};
static const uint64_t file_max = (uint64_t)1 << 43;

typedef struct repo_file {
    const char *name;
    const char *blob; /* hex: SHA-256 of a big file, git's hash of a small one */
    bool sha256;
    uint64_t size;
} repo_file;

typedef struct repo_pull {
    const hub_ref *ref;
    const hub_report *r;
    cairn_diag *dg;
    hub_http *http;
    arena mem;
    json_doc *list;
    repo_file *file; /* those to fetch */
    size_t n;
    char commit[HUB_COMMIT_LEN + 1];
    buf endpoint, dir;
} repo_pull;

static bool starts_with(cairn_str s, const char *prefix)
{
    return str_starts(s, str_of(prefix));
}

static bool is_weights(cairn_str s)
{
    return str_ends(s, STR_LIT(".safetensors")) && !memchr(s.ptr, '/', s.len);
}

static bool is_gguf(cairn_str s)
{
    return str_ends(s, STR_LIT(".gguf"));
}

/* Small files right in the repository that say how to run the weights. */
static bool is_text(cairn_str s)
{
    static const char *const whole[] = {"config.json",
                                        "generation_config.json",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "vocab.json",
                                        "merges.txt",
                                        "model.safetensors.index.json"};
    if (memchr(s.ptr, '/', s.len)) return false;
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        if (str_is(s, whole[i])) return true;
    return starts_with(s, "tokenizer") || starts_with(s, "chat_template");
}

/* What the list as a whole decides. */
typedef struct choice {
    bool weights, model_weights; /* some .safetensors; some called model*.safetensors */
    cairn_str gguf;              /* the set to take */
} choice;

static cairn_str name_of(json_val sibling)
{
    return json_str(json_get(sibling, "rfilename"));
}

static cairn_status choose_gguf(const repo_pull *p, json_val siblings, choice *c)
{
    size_t sets = 0;
    json_val v;
    json_iter it = json_each(siblings);
    while (json_next(&it, &v)) {
        const cairn_str s = name_of(v);
        if (!is_gguf(s) || (p->ref->file[0] && !str_is(s, p->ref->file))) continue;
        if (sets && hub_same_split(s, c->gguf)) continue;
        sets++;
        c->gguf = s;
    }
    if (sets == 1) return CAIRN_OK;
    if (p->ref->file[0])
        return diag_set(p->dg, CAIRN_E_NOTFOUND, "%s: no file %s in it; expected one from its list",
                        p->ref->repo, p->ref->file);
    if (sets)
        return diag_set(p->dg, CAIRN_E_ARG,
                        "%s: %zu GGUF models in it; expected one to be named, as in %s:%.*s",
                        p->ref->repo, sets, p->ref->repo, STR_ARG(c->gguf));
    return diag_set(p->dg, CAIRN_E_UNSUPPORTED,
                    "%s: no .safetensors and no .gguf in it; expected a model's", p->ref->repo);
}

/* Several forms of the same weights may lie side by side: model*.safetensors is the usual one. */
static bool wanted(const choice *c, cairn_str s)
{
    if (c->gguf.len) return is_gguf(s) && hub_same_split(s, c->gguf);
    if (is_weights(s)) return !c->model_weights || starts_with(s, "model");
    return is_text(s);
}

static cairn_status add_file(repo_pull *p, json_val v)
{
    const cairn_str name = name_of(v), sha = json_str(json_path(v, "lfs.sha256")),
                    git = json_str(json_get(v, "blobId"));
    const int64_t size = json_int(json_get(v, "size"), -1);
    if (p->n == FILES_MAX)
        return diag_set(p->dg, CAIRN_E_LIMIT, "%s: found more files to fetch than expected, %d",
                        p->ref->repo, (int)FILES_MAX);
    if (!hub_file_name_ok(name))
        return diag_set(p->dg, CAIRN_E_CORRUPT, "%s: \"%.*s\" in its list; expected a file's name",
                        p->ref->repo, STR_ARG(name));
    const bool big = hub_is_hex(sha, 64);
    if (size < 0 || (uint64_t)size > file_max || (!big && !hub_is_hex(git, 40)))
        return diag_set(p->dg, CAIRN_E_CORRUPT, "%s: %.*s: expected a size and a hash in its list",
                        p->ref->repo, STR_ARG(name));
    p->file[p->n] = (repo_file){.name = arena_strdup(&p->mem, name),
                                .blob = arena_strdup(&p->mem, big ? sha : git),
                                .sha256 = big,
                                .size = (uint64_t)size};
    if (!p->file[p->n].name || !p->file[p->n].blob)
        return diag_set(p->dg, CAIRN_E_NOMEM, "%s: no memory for its list", p->ref->repo);
    p->n++;
    return CAIRN_OK;
}

static cairn_status choose(repo_pull *p)
{
    choice c = {0};
    json_val v, siblings = json_get(json_root(p->list), "siblings");
    json_iter it = json_each(siblings);
    while (json_next(&it, &v)) {
        const cairn_str s = name_of(v);
        if (!is_weights(s)) continue;
        c.weights = true;
        c.model_weights = c.model_weights || starts_with(s, "model");
    }
    if (p->ref->file[0] || !c.weights) TRY(choose_gguf(p, siblings, &c));
    p->file = arena_calloc(&p->mem, FILES_MAX, sizeof *p->file);
    if (!p->file) return diag_set(p->dg, CAIRN_E_NOMEM, "%s: no memory for its list", p->ref->repo);
    it = json_each(siblings);
    while (json_next(&it, &v))
        if (wanted(&c, name_of(v))) TRY(add_file(p, v));
    return CAIRN_OK;
}

/* Adds what the user can do about it to what the server answered. */
static cairn_status explain(const repo_pull *p, cairn_status st)
{
    const long code = hub_http_code(p->http);
    if (code == 401 || code == 403)
        return diag_set(p->dg, CAIRN_E_NOTFOUND,
                        "%s: access refused (HTTP %ld): gated, private, or not there; accept its "
                        "terms at %.150s/%s and set HF_TOKEN to a token of that account",
                        p->ref->repo, code, p->endpoint.ptr, p->ref->repo);
    if (code == 404)
        return diag_set(p->dg, CAIRN_E_NOTFOUND,
                        "%s: no such repository, or no revision %s in it, at %.150s; expected one "
                        "that is there",
                        p->ref->repo, p->ref->rev, p->endpoint.ptr);
    return diag_prefix(p->dg, st, "%s", p->ref->repo);
}

static cairn_status get_list(repo_pull *p)
{
    char url[URL_MAX];
    buf text;
    buf_init(&text, MEM_IO);
    (void)snprintf(url, sizeof url, "%.1000s/api/models/%s/revision/%s?blobs=true", p->endpoint.ptr,
                   p->ref->repo, p->ref->rev);
    cairn_status st = hub_http_text(p->http, url, LIST_MAX, &text, p->dg);
    if (st != CAIRN_OK) {
        st = explain(p, st);
        goto out;
    }
    st = json_parse(buf_view(&text), &p->list, p->dg);
    if (st != CAIRN_OK) {
        (void)diag_prefix(p->dg, st, "%s: its list of files", p->ref->repo);
        goto out;
    }
    const cairn_str sha = json_str(json_get(json_root(p->list), "sha"));
    if (!hub_is_hex(sha, HUB_COMMIT_LEN)) {
        st = diag_set(p->dg, CAIRN_E_CORRUPT, "%s: expected a commit's hash as \"sha\" in its list",
                      p->ref->repo);
        goto out;
    }
    memcpy(p->commit, sha.ptr, HUB_COMMIT_LEN);
out:
    buf_deinit(&text);
    return st;
}

/* A file's name in a URL. */
static void put_escaped(buf *b, const char *s)
{
    for (; *s; s++) {
        const char c = *s;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || str_is_digit(c) ||
            strchr("/._-~", c))
            buf_byte(b, c);
        else
            buf_printf(b, "%%%02X", (unsigned)(unsigned char)c);
    }
}

static bool have_blob(const char *path, const repo_file *f)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode) && (uint64_t)s.st_size == f->size;
}

static cairn_status download(repo_pull *p, const repo_file *f, const char *blob)
{
    char line[HUB_REPO_LEN + 250];
    buf url, part;
    hub_part out = {.fd = -1};
    cairn_status st;
    buf_init(&url, MEM_IO);
    buf_init(&part, MEM_IO);
    buf_printf(&url, "%s/%s/resolve/%s/", p->endpoint.ptr, p->ref->repo, p->commit);
    put_escaped(&url, f->name);
    buf_printf(&part, "%s.incomplete", blob);
    TRY_GOTO(buf_status(&url), out);
    TRY_GOTO(buf_status(&part), out);
    TRY_GOTO(hub_part_open(&out, part.ptr, HUB_KEEP_ALL, f->size, p->dg), out);
    TRY_GOTO(hub_room(p->dir.ptr, f->size - out.size, p->dg), out);
    (void)snprintf(line, sizeof line, "%s: fetching %.150s (%.1f MB)", p->ref->repo, f->name,
                   (double)f->size / 1e6);
    if (p->r->note) p->r->note(p->r->ctx, line);
    st = hub_http_file(p->http, url.ptr, &out, f->size, p->r, f->name, p->dg);
    if (st != CAIRN_OK) {
        const long code = hub_http_code(p->http);
        st = code == 401 || code == 403 ? explain(p, st)
                                        : diag_prefix(p->dg, st, "%s: %s", p->ref->repo, f->name);
        if (st == CAIRN_E_CORRUPT) (void)unlink(part.ptr);
        goto out;
    }
    st = hub_part_finish(&out, f->size, f->sha256 ? f->blob : NULL, blob, p->dg);
out:
    hub_part_close(&out);
    buf_deinit(&url);
    buf_deinit(&part);
    return st;
}

/* The same lock files as Hugging Face's own tools use, so that theirs and ours do not collide. */
static cairn_status get_blob(repo_pull *p, const repo_file *f)
{
    buf blob, lock;
    int fd = -1;
    cairn_status st;
    const char *slash = strrchr(p->dir.ptr, '/');
    buf_init(&blob, MEM_IO);
    buf_init(&lock, MEM_IO);
    buf_printf(&blob, "%s/blobs/%s", p->dir.ptr, f->blob);
    buf_printf(&lock, "%.*s/.locks%s", (int)(slash - p->dir.ptr), p->dir.ptr, slash);
    TRY_GOTO(buf_status(&blob), out);
    TRY_GOTO(buf_status(&lock), out);
    if (have_blob(blob.ptr, f)) goto out;
    TRY_GOTO(path_make_dirs(lock.ptr, p->dg), out);
    buf_printf(&lock, "/%s.lock", f->blob);
    TRY_GOTO(buf_status(&lock), out);
    TRY_GOTO(hub_lock(lock.ptr, f->name, p->r, &fd, p->dg), out);
    if (!have_blob(blob.ptr, f)) st = download(p, f, blob.ptr);
out:
    hub_unlock(fd);
    buf_deinit(&blob);
    buf_deinit(&lock);
    return st;
}

static cairn_status link_file(repo_pull *p, const repo_file *f)
{
    char reason[128];
    buf path, target;
    cairn_status st;
    buf_init(&path, MEM_IO);
    buf_init(&target, MEM_IO);
    buf_printf(&path, "%s/snapshots/%s/%s", p->dir.ptr, p->commit, f->name);
    TRY_GOTO(buf_status(&path), out);
    char *slash = strrchr(path.ptr, '/');
    *slash = '\0';
    st = path_make_dirs(path.ptr, p->dg);
    *slash = '/';
    if (st != CAIRN_OK) goto out;
    for (const char *s = f->name; *s; s++)
        if (*s == '/') buf_puts(&target, "../");
    buf_printf(&target, "../../blobs/%s", f->blob);
    TRY_GOTO(buf_status(&target), out);
    (void)unlink(path.ptr);
    if (symlink(target.ptr, path.ptr) != 0)
        st = diag_set(p->dg, CAIRN_E_IO, "%s: cannot link it: %s", path.ptr,
                      strerror_r(errno, reason, sizeof reason));
out:
    buf_deinit(&path);
    buf_deinit(&target);
    return st;
}

static cairn_status write_ref(repo_pull *p)
{
    buf path;
    cairn_status st;
    buf_init(&path, MEM_IO);
    buf_printf(&path, "%s/refs", p->dir.ptr);
    TRY_GOTO(buf_status(&path), out);
    TRY_GOTO(path_make_dirs(path.ptr, p->dg), out);
    buf_printf(&path, "/%s", p->ref->rev);
    TRY_GOTO(buf_status(&path), out);
    st = file_replace(path.ptr, p->commit, HUB_COMMIT_LEN, p->dg);
out:
    buf_deinit(&path);
    return st;
}

static cairn_status pull(repo_pull *p)
{
    buf blobs;
    cairn_status st;
    TRY(hub_env_endpoint(&p->endpoint, p->dg));
    TRY(hub_repo_dir(p->ref, &p->dir, p->dg));
    TRY(hub_http_open(p->endpoint.ptr, hub_env_token(), &p->http, p->dg));
    TRY(get_list(p));
    TRY(choose(p));
    buf_init(&blobs, MEM_IO);
    buf_printf(&blobs, "%s/blobs", p->dir.ptr);
    st = buf_status(&blobs);
    if (st == CAIRN_OK) st = path_make_dirs(blobs.ptr, p->dg);
    buf_deinit(&blobs);
    for (size_t i = 0; i < p->n && st == CAIRN_OK; i++) {
        st = get_blob(p, &p->file[i]);
        if (st == CAIRN_OK) st = link_file(p, &p->file[i]);
    }
    return st == CAIRN_OK ? write_ref(p) : st;
}

cairn_status hub_repo_pull(const hub_ref *ref, const hub_report *r, buf *path, cairn_diag *dg)
{
    repo_pull p = {.ref = ref, .r = r, .dg = dg};
    arena_init(&p.mem, MEM_IO);
    buf_init(&p.endpoint, MEM_IO);
    buf_init(&p.dir, MEM_IO);
    cairn_status st = pull(&p);
    json_free(p.list);
    hub_http_close(p.http);
    arena_deinit(&p.mem);
    buf_deinit(&p.endpoint);
    buf_deinit(&p.dir);
    return st == CAIRN_OK ? hub_repo_resolve(ref, path, dg) : st;
}
