/* Names of repositories and of files in them, and the way from a name to a fetched snapshot.

   Invariant: nothing that came from a command line or a network becomes a path unless
   hub_ref_parse, hub_file_name_ok or hub_is_hex agreed to it. */
#include "hub/hub_repo.h"

#include <string.h>

#include "base/diag.h"
#include "base/file.h"
#include "base/str.h"
#include "hub/hub_env.h"
#include "hub/hub_part.h"

enum { PART_MAX = 96, NAME_PART_MAX = 255, NAME_DEPTH_MAX = 8 };

static bool word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || str_is_digit(c) || c == '.' ||
           c == '_' || c == '-';
}

/* Of org, name and revision: what the site itself allows, so never "..", never hidden. */
static bool part_ok(cairn_str s, size_t max)
{
    if (s.len == 0 || s.len > max || s.ptr[0] == '.' || s.ptr[0] == '-') return false;
    for (size_t i = 0; i < s.len; i++)
        if (!word_char(s.ptr[i])) return false;
    return str_find(s, STR_LIT(".."), 0) == SIZE_MAX;
}

bool hub_is_hex(cairn_str s, size_t n)
{
    if (s.len != n) return false;
    for (size_t i = 0; i < n; i++)
        if (!str_is_digit(s.ptr[i]) && !(s.ptr[i] >= 'a' && s.ptr[i] <= 'f')) return false;
    return true;
}

bool hub_file_name_ok(cairn_str name)
{
    size_t depth = 0, start = 0;
    if (name.len == 0 || name.len >= HUB_FILE_LEN) return false;
    for (size_t i = 0; i <= name.len; i++) {
        if (i < name.len && name.ptr[i] != '/') {
            const unsigned char c = (unsigned char)name.ptr[i];
            if (c < ' ' || c == 0x7f || c == '\\') return false;
            continue;
        }
        const size_t n = i - start;
        if (n == 0 || n > NAME_PART_MAX || name.ptr[start] == '.') return false;
        if (++depth > NAME_DEPTH_MAX) return false;
        start = i + 1;
    }
    return true;
}

static bool digits(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] < '0' || p[i] > '9') return false;
    return true;
}

/* Where "-00001-of-00003.gguf" begins; SIZE_MAX if the name does not end so. */
static size_t split_at(cairn_str s)
{
    enum { TAIL = 20 };
    if (s.len <= TAIL) return SIZE_MAX;
    const char *t = s.ptr + s.len - TAIL;
    const bool ok = t[0] == '-' && digits(t + 1, 5) && memcmp(t + 6, "-of-", 4) == 0 &&
                    digits(t + 10, 5) && memcmp(t + 15, ".gguf", 5) == 0;
    return ok ? s.len - TAIL : SIZE_MAX;
}

bool hub_same_split(cairn_str a, cairn_str b)
{
    const size_t at = split_at(a);
    if (a.len != b.len) return false;
    if (at == SIZE_MAX || split_at(b) != at) return str_eq(a, b);
    return memcmp(a.ptr, b.ptr, at) == 0 && memcmp(a.ptr + at + 6, b.ptr + at + 6, 14) == 0;
}

static void copy_str(char *out, cairn_str s)
{
    memcpy(out, s.ptr, s.len);
    out[s.len] = '\0';
}

cairn_status hub_ref_parse(const char *word, hub_ref *out, cairn_diag *dg)
{
    const cairn_str all = str_of(word);
    const char *colon = strchr(word, ':');
    const cairn_str head = {word, colon ? (size_t)(colon - word) : all.len};
    const cairn_str file = str_of(colon ? colon + 1 : "");
    const char *sign = memchr(head.ptr, '@', head.len);
    const cairn_str repo = {word, sign ? (size_t)(sign - word) : head.len};
    const cairn_str rev =
        sign ? str_sub(head, repo.len + 1, head.len - repo.len - 1) : STR_LIT("main");
    const char *slash = memchr(repo.ptr, '/', repo.len);
    const size_t org = slash ? (size_t)(slash - word) : 0;

    if (!slash || !part_ok(str_sub(repo, 0, org), PART_MAX) ||
        !part_ok(str_sub(repo, org + 1, repo.len - org - 1), PART_MAX) ||
        str_find(repo, STR_LIT("--"), 0) != SIZE_MAX)
        return diag_set(dg, CAIRN_E_ARG,
                        "%.200s: expected a repository as org/name[@REVISION][:FILE.gguf]", word);
    if (!part_ok(rev, HUB_REV_LEN - 1))
        return diag_set(dg, CAIRN_E_ARG, "%.200s: found revision \"%.*s\"; expected a plain word",
                        word, STR_ARG(rev));
    if (colon && (!hub_file_name_ok(file) || !str_ends(file, STR_LIT(".gguf"))))
        return diag_set(dg, CAIRN_E_ARG,
                        "%.200s: expected the name of a .gguf file after the colon", word);
    copy_str(out->repo, repo);
    copy_str(out->rev, rev);
    copy_str(out->file, file);
    return CAIRN_OK;
}

cairn_status hub_repo_dir(const hub_ref *ref, buf *b, cairn_diag *dg)
{
    const char *slash = strchr(ref->repo, '/');
    if (!slash) return diag_set(dg, CAIRN_E_ARG, "%s: expected org/name", ref->repo);
    TRY(hub_env_cache(b, dg));
    buf_printf(b, "/models--%.*s--%s", (int)(slash - ref->repo), ref->repo, slash + 1);
    return buf_status(b) == CAIRN_OK ? CAIRN_OK
                                     : diag_set(dg, CAIRN_E_NOMEM, "no memory for a path");
}

/* The commit that the revision named when it was fetched; path becomes its snapshot. */
static cairn_status find_snapshot(const hub_ref *ref, buf *path, cairn_diag *dg)
{
    buf file, text;
    cairn_status st;
    cairn_str commit = {ref->rev, strlen(ref->rev)};
    buf_init(&file, MEM_IO);
    buf_init(&text, MEM_IO);
    TRY_GOTO(hub_repo_dir(ref, path, dg), out);
    buf_printf(&file, "%s/refs/%s", path->ptr, ref->rev);
    TRY_GOTO(buf_status(&file), out);
    if (file_read(file.ptr, HUB_COMMIT_LEN + 2, &text, NULL) == CAIRN_OK)
        commit = str_trim(buf_view(&text));
    if (hub_is_hex(commit, HUB_COMMIT_LEN)) {
        buf_puts(path, "/snapshots/");
        buf_str(path, commit);
        TRY_GOTO(buf_status(path), out);
        if (file_is_dir(path->ptr)) goto out;
    }
    st = diag_set(dg, CAIRN_E_NOTFOUND,
                  "%s: no such file or directory, nor a repository fetched before; to fetch it: "
                  "cairn pull %s",
                  ref->repo, ref->repo);
out:
    buf_deinit(&file);
    buf_deinit(&text);
    return st;
}

/* The .gguf files right in the folder: `name` becomes the first of the only set. */
static size_t find_ggufs(const char *dir, buf *name)
{
    size_t sets = 0;
    DIR *d = opendir(dir);
    for (const char *e = hub_next_name(d); e; e = hub_next_name(d)) {
        const cairn_str s = str_of(e);
        if (!str_ends(s, STR_LIT(".gguf"))) continue;
        if (sets && hub_same_split(s, buf_view(name))) {
            if (str_cmp(s, buf_view(name)) >= 0) continue;
            sets--;
        }
        sets++;
        buf_clear(name);
        buf_str(name, s);
    }
    if (d) (void)closedir(d);
    return buf_status(name) == CAIRN_OK ? sets : 0;
}

cairn_status hub_repo_resolve(const hub_ref *ref, buf *path, cairn_diag *dg)
{
    buf name, file;
    cairn_status st = find_snapshot(ref, path, dg);
    if (st != CAIRN_OK) return st;
    buf_init(&name, MEM_IO);
    buf_init(&file, MEM_IO);
    buf_puts(&name, ref->file[0] ? ref->file : "config.json");
    TRY_GOTO(buf_status(&name), out);
    const bool there = path_join(&file, path->ptr, name.ptr) && file_exists(file.ptr);
    if (ref->file[0] && !there) {
        st = diag_set(dg, CAIRN_E_NOTFOUND, "%s: %s is not fetched yet; run: cairn pull %s:%s",
                      ref->repo, ref->file, ref->repo, ref->file);
    } else if (ref->file[0] || (!there && find_ggufs(path->ptr, &name) == 1)) {
        buf_byte(path, '/');
        buf_str(path, buf_view(&name));
        st = buf_status(path);
    }
out:
    buf_deinit(&name);
    buf_deinit(&file);
    return st;
}
