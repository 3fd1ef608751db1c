/* Safetensors as a source: a directory with config.json beside one file or shards with their index,
   or one file alone.  Parsing a file is safetensors_parse.c's, config.json hfconfig.c's. */
#include <string.h>

#include "base/diag.h"
#include "base/json.h"
#include "base/str.h"
#include "format/format.h"
#include "format/format_priv.h"
#include "format/hfconfig.h"
#include "format/safetensors_priv.h"

enum {
    MAX_INDEX_BYTES = 24 << 20, /* that of 140,000 tensors has 16 MB */
    MAX_SHARDS = 1000,          /* the largest public set has 163 */
};

typedef struct st_source {
    hfconfig *config;
    safetensors_file one; /* for the metadata of a file alone */
    void (*close_build)(source *s);
    source_build *build;
} st_source;

static void st_close(source *s)
{
    st_source *d = s->impl;
    hfconfig_close(d->config);
    d->close_build(s);
}

static cairn_status st_new(const char *path, st_source **out, cairn_diag *dg)
{
    source_build *b;
    st_source *d;

    TRY(source_build_new(SOURCE_SAFETENSORS, path, &b, dg));
    d = arena_calloc(&b->mem, 1, sizeof *d);
    if (!d) {
        source_close(&b->src);
        return diag_set(dg, CAIRN_E_NOMEM, "%s: no memory to open it", path);
    }
    d->close_build = b->src.close;
    d->build = b;
    b->src.close = st_close;
    b->src.impl = d;
    *out = d;
    return CAIRN_OK;
}

/* Maps and parses one file. */
static cairn_status st_map(source_build *b, const char *path, safetensors_file *out, cairn_diag *dg)
{
    const char *kept = arena_strdup(&b->mem, str_of(path));
    file_map m;

    if (!kept) return diag_set(dg, CAIRN_E_NOMEM, "%s: no memory to open it", path);
    TRY(source_map_file(b, kept, &m, dg));
    return safetensors_parse(kept, m.ptr, m.size, &b->mem, out, dg);
}

static cairn_status st_add_all(source_build *b, const safetensors_file *f, cairn_diag *dg)
{
    TRY(source_reserve(b, f->n_tensor, dg));
    for (size_t i = 0; i < f->n_tensor; i++) TRY(source_add(b, &f->tensor[i], dg));
    return CAIRN_OK;
}

/* What an index file says: which shard holds which tensor. */
typedef struct shard_set {
    const char *path; /* of the index */
    json_doc *doc;
    json_val weight_map;
    map where;   /* tensor → place in `name` */
    map by_name; /* the same for shards */
    cairn_str *name;
    size_t n_shard;
} shard_set;

static void shard_set_deinit(shard_set *s)
{
    map_deinit(&s->where);
    map_deinit(&s->by_name);
    mem_free(s->name);
    if (s->doc) json_free(s->doc);
}

/* A shard lies beside its index: no way out of the directory. */
static bool is_plain_name(cairn_str s)
{
    return s.len > 0 && s.len < 256 && s.ptr[0] != '.' && !memchr(s.ptr, '/', s.len) &&
           !memchr(s.ptr, 0, s.len);
}

static cairn_status shard_add(shard_set *s, cairn_str tensor, json_val v, cairn_diag *dg)
{
    const cairn_str file = json_str(v);
    uint32_t i;

    if (json_typeof(v) != JSON_STR || !is_plain_name(file))
        return diag_set(dg, CAIRN_E_CORRUPT,
                        "%s: weight_map: %.*s: expected the name of a file beside it", s->path,
                        STR_ARG(tensor));
    if (!map_get(&s->by_name, file, &i)) {
        i = (uint32_t)s->n_shard;
        if (i == MAX_SHARDS)
            return diag_set(dg, CAIRN_E_LIMIT, "%s: weight_map: over %d files", s->path,
                            MAX_SHARDS);
        s->name[s->n_shard++] = file;
        if (map_put(&s->by_name, file, i) != CAIRN_OK)
            return diag_set(dg, CAIRN_E_NOMEM, "%s: no memory to read it", s->path);
    }
    if (map_put(&s->where, tensor, i) != CAIRN_OK)
        return diag_set(dg, CAIRN_E_NOMEM, "%s: no memory to read it", s->path);
    return CAIRN_OK;
}

static cairn_status shard_set_parse(shard_set *s, cairn_str text, cairn_diag *dg)
{
    const cairn_status st = json_parse(text, &s->doc, dg);
    json_iter it;
    cairn_str key;
    json_val v;

    if (st != CAIRN_OK) return diag_prefix(dg, st, "%s", s->path);
    s->weight_map = json_get(json_root(s->doc), "weight_map");
    if (json_typeof(s->weight_map) != JSON_OBJ)
        return diag_set(dg, CAIRN_E_CORRUPT, "%s: weight_map: expected an object, found %s",
                        s->path, json_type_name(json_typeof(s->weight_map)));
    if (json_size(s->weight_map) > FORMAT_MAX_TENSORS)
        return diag_set(dg, CAIRN_E_LIMIT, "%s: weight_map: over %d tensors", s->path,
                        FORMAT_MAX_TENSORS);
    s->name = mem_calloc(MAX_SHARDS, sizeof *s->name, MEM_SCRATCH);
    if (!s->name) return diag_set(dg, CAIRN_E_NOMEM, "%s: no memory to read it", s->path);
    it = json_each(s->weight_map);
    while (json_next_member(&it, &key, &v)) TRY(shard_add(s, key, v, dg));
    return CAIRN_OK;
}

static cairn_status shard_path(buf *b, const char *dir, cairn_str file, cairn_diag *dg)
{
    buf_clear(b);
    buf_printf(b, "%s/", dir);
    buf_str(b, file);
    return buf_status(b) == CAIRN_OK ? CAIRN_OK : diag_set(dg, CAIRN_E_NOMEM, "%s: path", dir);
}

static cairn_status check_shards(const shard_set *s, const char *dir, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    size_t missing = 0;
    buf path, list;

    buf_init(&path, MEM_SCRATCH);
    buf_init(&list, MEM_SCRATCH);
    for (size_t i = 0; i < s->n_shard; i++) {
        TRY_GOTO(shard_path(&path, dir, s->name[i], dg), out);
        if (file_exists(path.ptr)) continue;
        if (missing++ < 3)
            buf_printf(&list, "%s%.*s", missing > 1 ? ", " : "", STR_ARG(s->name[i]));
    }
    if (missing > 3) buf_printf(&list, " and %zu more", missing - 3);
    if (missing)
        st = diag_set(dg, CAIRN_E_NOTFOUND, "%s: %zu of %zu files missing: %s", s->path, missing,
                      s->n_shard, list.ptr ? list.ptr : "?");
out:
    buf_deinit(&path);
    buf_deinit(&list);
    return st;
}

/* The index decides which of two tensors of one name counts; one that it does not list counts
   too. */
static cairn_status add_shard(source_build *b, const shard_set *s, size_t i, const char *path,
                              cairn_diag *dg)
{
    safetensors_file f;
    uint32_t where;

    TRY(st_map(b, path, &f, dg));
    TRY(source_reserve(b, f.n_tensor, dg));
    for (size_t k = 0; k < f.n_tensor; k++)
        if (!map_get(&s->where, f.tensor[k].name, &where) || where == i)
            TRY(source_add(b, &f.tensor[k], dg));
    return CAIRN_OK;
}

static cairn_status check_index(const source_build *b, const shard_set *s, cairn_diag *dg)
{
    json_iter it = json_each(s->weight_map);
    cairn_str key;
    json_val v;
    uint32_t i;

    while (json_next_member(&it, &key, &v))
        if (!map_get(&b->src.index, key, &i))
            return diag_set(dg, CAIRN_E_CORRUPT,
                            "%s: weight_map: tensor %.*s: expected in %.*s, which does not hold it",
                            s->path, STR_ARG(key), STR_ARG(json_str(v)));
    return CAIRN_OK;
}

static cairn_status add_sharded(source_build *b, const char *dir, const char *index, cairn_diag *dg)
{
    shard_set s = {.path = index};
    cairn_status st;
    buf text, path;

    buf_init(&text, MEM_SCRATCH);
    buf_init(&path, MEM_SCRATCH);
    map_init(&s.where, MEM_SCRATCH);
    map_init(&s.by_name, MEM_SCRATCH);
    TRY_GOTO(file_read(index, MAX_INDEX_BYTES, &text, dg), out);
    TRY_GOTO(shard_set_parse(&s, buf_view(&text), dg), out);
    TRY_GOTO(check_shards(&s, dir, dg), out);
    for (size_t i = 0; i < s.n_shard; i++) {
        TRY_GOTO(shard_path(&path, dir, s.name[i], dg), out);
        TRY_GOTO(add_shard(b, &s, i, path.ptr, dg), out);
    }
    st = check_index(b, &s, dg);
out:
    shard_set_deinit(&s);
    buf_deinit(&text);
    buf_deinit(&path);
    return st;
}

static cairn_status add_weights(source_build *b, const char *dir, cairn_diag *dg)
{
    safetensors_file f;
    cairn_status st;
    buf path;

    buf_init(&path, MEM_SCRATCH);
    if (!path_join(&path, dir, "model.safetensors")) {
        st = diag_set(dg, CAIRN_E_NOMEM, "%s: path", dir);
    } else if (file_exists(path.ptr)) {
        st = st_map(b, path.ptr, &f, dg);
        if (st == CAIRN_OK) st = st_add_all(b, &f, dg);
    } else {
        buf_clear(&path);
        if (!path_join(&path, dir, "model.safetensors.index.json"))
            st = diag_set(dg, CAIRN_E_NOMEM, "%s: path", dir);
        else if (file_exists(path.ptr))
            st = add_sharded(b, dir, path.ptr, dg);
        else
            st = diag_set(dg, CAIRN_E_NOTFOUND,
                          "%s: expected model.safetensors or model.safetensors.index.json, found "
                          "neither",
                          dir);
    }
    buf_deinit(&path);
    return st;
}

cairn_status safetensors_open_dir(const char *dir, source **out, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    st_source *d = NULL;
    buf path;

    buf_init(&path, MEM_SCRATCH);
    TRY_GOTO(st_new(dir, &d, dg), out);
    if (!path_join(&path, dir, "config.json")) {
        st = diag_set(dg, CAIRN_E_NOMEM, "%s: path", dir);
        goto out;
    }
    TRY_GOTO(hfconfig_open(path.ptr, &d->config, dg), out);
    TRY_GOTO(add_weights(d->build, dir, dg), out);
    d->build->src.meta = hfconfig_meta(d->config);
    *out = &d->build->src;
    d = NULL;
out:
    if (d) source_close(&d->build->src);
    buf_deinit(&path);
    return st;
}

static bool pair_get(const void *self, const char *key, meta *out)
{
    const safetensors_file *f = self;
    for (size_t i = 0; i < f->n_pair; i++) {
        if (!str_is(f->pair[i].key, key)) continue;
        *out = (meta){.type = META_STR, .u.s = f->pair[i].value};
        return true;
    }
    return false;
}

static bool pair_at(const void *self, const meta *arr, size_t i, meta *out)
{
    (void)self;
    (void)arr;
    (void)i;
    (void)out;
    return false; /* there are strings only */
}

cairn_status safetensors_open_file(const char *path, source **out, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    st_source *d = NULL;

    TRY(st_new(path, &d, dg));
    TRY_GOTO(st_map(d->build, path, &d->one, dg), out);
    TRY_GOTO(st_add_all(d->build, &d->one, dg), out);
    d->build->src.meta = (meta_view){&d->one, pair_get, pair_at};
    *out = &d->build->src;
    d = NULL;
out:
    if (d) source_close(&d->build->src);
    return st;
}
