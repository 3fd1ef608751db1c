/* Which models there are.  A request's name is compared with what was found here, and reaches no file by itself. */
#include "cli/serve_scan.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/str.h"

enum { DEPTH = 4 }; /* of folders: owner, model, and two more */

static cairn_status copy(const char *from, size_t len, char **out, cairn_diag *dg)
{
    *out = mem_alloc(len + 1, MEM_SERVE);
    if (!*out) return diag_set(dg, CAIRN_E_NOMEM, "%s: no memory for a model's name", from);
    memcpy(*out, from, len);
    (*out)[len] = '\0';
    return CAIRN_OK;
}

static size_t without_end(const char *name)
{
    const size_t n = strlen(name), end = sizeof ".gguf" - 1;
    return n > end && strcmp(name + n - end, ".gguf") == 0 ? n - end : n;
}

static cairn_status add(serve_list *l, const char *word, const char *name, cairn_diag *dg)
{
    const size_t len = without_end(name);
    char *id;
    if (l->n == SERVE_MAX_KNOWN)
        return diag_set(dg, CAIRN_E_LIMIT, "%s: more than %d models; expected at most so many",
                        word, SERVE_MAX_KNOWN);
    if (len >= SERVE_ID_MAX)
        return diag_set(dg, CAIRN_E_LIMIT, "%s: the name has %zu bytes; expected at most %d", word,
                        len, SERVE_ID_MAX - 1);
    TRY(copy(name, len, &id, dg));
    l->item[l->n].id = id;
    const cairn_status st = copy(word, strlen(word), &l->item[l->n].word, dg);
    if (st == CAIRN_OK) l->n++;
    if (st != CAIRN_OK) mem_free(id);
    return st;
}

cairn_status serve_list_add(serve_list *l, const char *word, cairn_diag *dg)
{
    size_t end = strlen(word), from;
    char *name;
    while (end > 1 && word[end - 1] == '/') end--;
    for (from = end; from && word[from - 1] != '/';) from--;
    if (from == end) from = 0; /* the root */
    TRY(copy(word + from, end - from, &name, dg));
    const cairn_status st = add(l, word, name, dg);
    mem_free(name);
    return st;
}

/* "-00002-of-00003.gguf": the first part stands for all. */
static bool is_later_part(const char *name)
{
    const size_t n = strlen(name), end = sizeof "-00002-of-00003.gguf" - 1;
    const char *p = n > end ? name + n - end : NULL;
    if (!p || p[0] != '-' || strncmp(p + 6, "-of-", 4) != 0) return false;
    for (size_t i = 1; i < 15; i++)
        if ((i < 6 || i > 9) && !str_is_digit(p[i])) return false;
    return strncmp(p + 1, "00001", 5) != 0;
}

static bool is_gguf(const char *name)
{
    return without_end(name) < strlen(name) && !is_later_part(name) &&
           strncmp(name, "mmproj", 6) != 0;
}

/* A word goes before what is found by its name. */
static bool known(const serve_list *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (strlen(l->item[i].id) == without_end(name) &&
            strncmp(l->item[i].id, name, without_end(name)) == 0)
            return true;
    return false;
}

/* The folders that a path has gone through: links may lead back to them. */
typedef struct trail {
    const struct trail *up; /* NULL: the first */
    dev_t dev;
    ino_t ino;
    int depth;
} trail;

static cairn_status scan(serve_list *l, const char *path, const char *id, const trail *up,
                         cairn_diag *dg);

static cairn_status look_at(serve_list *l, const char *path, const char *id, const char *name,
                            const trail *at, cairn_diag *dg)
{
    buf inner, inner_id;
    cairn_status st = CAIRN_OK;
    buf_init(&inner, MEM_SERVE);
    buf_init(&inner_id, MEM_SERVE);
    (void)path_join(&inner, path, name);
    buf_printf(&inner_id, "%s%s%s", id, id[0] ? "/" : "", name);
    if (buf_status(&inner) != CAIRN_OK || buf_status(&inner_id) != CAIRN_OK)
        st = diag_set(dg, CAIRN_E_NOMEM, "%s: no memory for a path", path);
    else if (file_is_dir(inner.ptr))
        st = scan(l, inner.ptr, inner_id.ptr, at, dg);
    else if (is_gguf(name) && !known(l, inner_id.ptr))
        st = add(l, inner.ptr, inner_id.ptr, dg);
    buf_deinit(&inner);
    buf_deinit(&inner_id);
    return st;
}

static bool is_model_dir(const char *path)
{
    buf b;
    buf_init(&b, MEM_SERVE);
    const char *config = path_join(&b, path, "config.json");
    const bool is = buf_status(&b) == CAIRN_OK && file_exists(config);
    buf_deinit(&b);
    return is;
}

/* Names in d, each with its NUL; their number. */
static size_t read_names(DIR *d, buf *out)
{
    const struct dirent *e;
    size_t n = 0;
    /* this thread alone has d: NOLINTNEXTLINE(concurrency-mt-unsafe) */
    while ((e = readdir(d))) {
        if (e->d_name[0] == '.') continue;
        buf_put(out, e->d_name, strlen(e->d_name) + 1);
        n++;
    }
    return n;
}

/* By bytes: a folder goes before the file of its name and ".gguf", as its name is the shorter one. */
static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* In the order of names, so that of two with one id the same one has it, wherever the folder was copied to. */
static cairn_status scan_all(serve_list *l, DIR *d, const char *path, const char *id,
                             const trail *here, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    const char **name = NULL;
    buf names;
    buf_init(&names, MEM_SERVE);
    const size_t n = read_names(d, &names);
    if (buf_status(&names) == CAIRN_OK) name = mem_calloc(n + 1, sizeof *name, MEM_SERVE);
    if (!name) st = diag_set(dg, CAIRN_E_NOMEM, "%s: no memory for %zu names", path, n);
    const char *at = names.ptr;
    for (size_t i = 0; name && i < n; i++, at += strlen(at) + 1) name[i] = at;
    if (name) qsort(name, n, sizeof *name, by_name);
    for (size_t i = 0; i < n && st == CAIRN_OK; i++) st = look_at(l, path, id, name[i], here, dg);
    mem_free(name);
    buf_deinit(&names);
    return st;
}

static bool was_here(const trail *t, dev_t dev, ino_t ino)
{
    for (; t; t = t->up)
        if (t->dev == dev && t->ino == ino) return true;
    return false;
}

static cairn_status scan(serve_list *l, const char *path, const char *id, const trail *up,
                         cairn_diag *dg)
{
    if (id[0] && is_model_dir(path)) return known(l, id) ? CAIRN_OK : add(l, path, id, dg);
    if (up && up->depth == DEPTH) return CAIRN_OK;
    struct stat s;
    DIR *d = opendir(path);
    if (!d && id[0]) return CAIRN_OK; /* a folder inside that is not ours to read */
    if (!d || fstat(dirfd(d), &s) != 0) {
        const int e = errno;
        if (d) closedir(d);
        return diag_set(dg, CAIRN_E_IO, "%s: %s", path, strerrordesc_np(e));
    }
    const trail here = {up, s.st_dev, s.st_ino, up ? up->depth + 1 : 0};
    cairn_status st = CAIRN_OK;
    if (!was_here(up, s.st_dev, s.st_ino)) st = scan_all(l, d, path, id, &here, dg);
    closedir(d);
    return st;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const serve_found *)a)->id, ((const serve_found *)b)->id);
}

cairn_status serve_list_scan(serve_list *l, const char *dir, cairn_diag *dg)
{
    const size_t from = l->n;
    TRY(scan(l, dir, "", NULL, dg));
    qsort(l->item + from, l->n - from, sizeof *l->item, by_id);
    return CAIRN_OK;
}

const serve_found *serve_list_find(const serve_list *l, const char *id)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->item[i].id, id) == 0) return &l->item[i];
    return NULL;
}

void serve_list_deinit(serve_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        mem_free(l->item[i].word);
        mem_free(l->item[i].id);
    }
    l->n = 0;
}
