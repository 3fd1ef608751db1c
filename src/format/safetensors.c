/* Safetensors as a source: a directory with config.json beside one file or shards with their index,
   or one file alone.  Parsing a file is safetensors_parse.c's, config.json hfconfig.c's. */
#include "base/diag.h"
#include "base/map.h"
#include "base/str.h"
#include "format/format.h"
#include "format/format_priv.h"
#include "format/genconfig.h"
#include "format/hfconfig.h"
#include "format/modules.h"
#include "format/quant.h"
#include "format/safetensors_priv.h"
#include "format/shardindex.h"

enum { MAX_INDEX_BYTES = 24 << 20 }; /* that of 140,000 tensors has 16 MB */

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
    TRY(safetensors_parse(kept, m.ptr, m.size, &b->mem, out, dg));
    for (size_t i = 0; i < out->n_pair; i++)
        if (str_is(out->pair[i].key, "format") && str_is(out->pair[i].value, "mlx"))
            b->src.mlx = true;
    return CAIRN_OK;
}

static cairn_status st_add_all(source_build *b, const safetensors_file *f, cairn_diag *dg)
{
    TRY(source_reserve(b, f->n_tensor, dg));
    for (size_t i = 0; i < f->n_tensor; i++) TRY(source_add(b, &f->tensor[i], dg));
    return CAIRN_OK;
}

cairn_status safetensors_add_file(source_build *b, const char *path, const char *front,
                                  cairn_diag *dg)
{
    safetensors_file f;
    cairn_status st = CAIRN_OK;
    buf name;

    buf_init(&name, MEM_SCRATCH);
    TRY_GOTO(st_map(b, path, &f, dg), out);
    for (size_t i = 0; i < f.n_tensor; i++) {
        buf_clear(&name);
        buf_printf(&name, "%s.%s", front, f.tensor[i].name.ptr);
        const char *kept =
            buf_status(&name) == CAIRN_OK ? arena_strdup(&b->mem, buf_view(&name)) : NULL;
        if (!kept) {
            st = diag_set(dg, CAIRN_E_NOMEM, "%s: names", path);
            goto out;
        }
        f.tensor[i].name = str_of(kept);
    }
    st = st_add_all(b, &f, dg);
out:
    buf_deinit(&name);
    return st;
}

static cairn_status shard_path(buf *b, const char *dir, cairn_str file, cairn_diag *dg)
{
    buf_clear(b);
    buf_printf(b, "%s/", dir);
    buf_str(b, file);
    return buf_status(b) == CAIRN_OK ? CAIRN_OK : diag_set(dg, CAIRN_E_NOMEM, "%s: path", dir);
}

static cairn_status check_shards(const shard_index *s, const char *dir, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    size_t missing = 0;
    buf path, list;

    buf_init(&path, MEM_SCRATCH);
    buf_init(&list, MEM_SCRATCH);
    for (size_t i = 0; i < s->n_shard; i++) {
        TRY_GOTO(shard_path(&path, dir, s->shard[i], dg), out);
        if (file_exists(path.ptr)) continue;
        if (missing++ < 3)
            buf_printf(&list, "%s%.*s", missing > 1 ? ", " : "", STR_ARG(s->shard[i]));
    }
    if (missing > 3) buf_printf(&list, " and %zu more", missing - 3);
    if (missing)
        st = diag_set(dg, CAIRN_E_NOTFOUND, "%s: %zu of %zu files missing; expected %s", s->path,
                      missing, s->n_shard, list.ptr ? list.ptr : "?");
out:
    buf_deinit(&path);
    buf_deinit(&list);
    return st;
}

/* The index decides which of two tensors of one name counts; one that it does not list counts
   too. */
static cairn_status add_shard(source_build *b, const shard_index *s, size_t i, const char *path,
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

static cairn_status check_index(const source_build *b, const shard_index *s, cairn_diag *dg)
{
    uint32_t i;
    for (size_t k = 0; k < s->n_tensor; k++)
        if (!map_get(&b->src.index, s->tensor[k].name, &i))
            return diag_set(dg, CAIRN_E_CORRUPT,
                            "%s: weight_map: tensor %.*s: expected in %.*s, which does not hold it",
                            s->path, STR_ARG(s->tensor[k].name),
                            STR_ARG(s->shard[s->tensor[k].shard]));
    return CAIRN_OK;
}

static cairn_status read_index(const char *path, shard_index *out, cairn_diag *dg)
{
    file_map m;
    cairn_status st = file_map_open(path, &m, dg);
    *out = (shard_index){.path = path};
    if (st != CAIRN_OK) return st;
    if (m.size > MAX_INDEX_BYTES)
        st = diag_set(dg, CAIRN_E_LIMIT, "%s: found %zu bytes; expected at most %d", path, m.size,
                      MAX_INDEX_BYTES);
    else
        st = shard_index_parse(path, (cairn_str){(const char *)m.ptr, m.size}, out, dg);
    file_map_close(&m);
    return st;
}

static cairn_status add_sharded(source_build *b, const char *dir, const char *index, cairn_diag *dg)
{
    shard_index s;
    cairn_status st;
    buf path;

    buf_init(&path, MEM_SCRATCH);
    TRY_GOTO(read_index(index, &s, dg), out);
    TRY_GOTO(check_shards(&s, dir, dg), out);
    for (size_t i = 0; i < s.n_shard; i++) {
        TRY_GOTO(shard_path(&path, dir, s.shard[i], dg), out);
        TRY_GOTO(add_shard(b, &s, i, path.ptr, dg), out);
    }
    st = check_index(b, &s, dg);
out:
    shard_index_deinit(&s);
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
    if (!file_exists(path.ptr)) {
        st = diag_set(dg, CAIRN_E_NOTFOUND,
                      "%s: no such file; expected the folder of a checkpoint, or a .gguf file",
                      path.ptr);
        goto out;
    }
    TRY_GOTO(hfconfig_open(path.ptr, &d->config, dg), out);
    TRY_GOTO(genconfig_check_ids(path.ptr, d->config, dg), out);
    TRY_GOTO(add_weights(d->build, dir, dg), out);
    d->build->src.meta = hfconfig_meta(d->config);
    TRY_GOTO(quant_join(d->build, &d->build->src.meta, dg), out);
    TRY_GOTO(modules_read(d->build, dir, dg), out);
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
