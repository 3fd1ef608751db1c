/* Opening a model by path, and what every reader needs: the list of tensors with its index, the
   mapped files, and the test for overlapping ranges.  Invariant: a source owns one arena and its
   maps; closing it frees both, in whatever state construction stopped. */
#include "format/format.h"

#include <stdlib.h>

#include "base/diag.h"
#include "base/map.h"
#include "base/str.h"
#include "format/format_priv.h"

static int by_begin(const void *x, const void *y)
{
    const byte_range *a = x, *b = y;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end) return a->end < b->end ? -1 : 1;
    return a->tensor < b->tensor ? -1 : a->tensor > b->tensor;
}

size_t ranges_first_overlap(byte_range *r, size_t n)
{
    if (n > 1) qsort(r, n, sizeof *r, by_begin);
    for (size_t i = 1; i < n; i++)
        if (r[i].begin < r[i - 1].end) return i;
    return n;
}

static void build_close(source *s)
{
    source_build *b = (source_build *)s;
    for (size_t i = 0; i < b->n_map; i++) file_map_close(&b->map[i]);
    map_deinit(&b->src.index);
    mem_free(b->map);
    mem_free(b->tensor);
    arena_deinit(&b->mem);
    mem_free(b);
}

cairn_status source_build_new(source_format format, const char *path, source_build **out,
                              cairn_diag *dg)
{
    source_build *b = mem_calloc(1, sizeof *b, MEM_MODEL);
    if (!b) return diag_set(dg, CAIRN_E_NOMEM, "%s: no memory to open it", path);
    arena_init(&b->mem, MEM_MODEL);
    map_init(&b->src.index, MEM_MODEL);
    b->src.format = format;
    b->src.close = build_close;
    b->src.impl = b;
    b->src.path = arena_strdup(&b->mem, str_of(path));
    if (!b->src.path) {
        build_close(&b->src);
        return diag_set(dg, CAIRN_E_NOMEM, "%s: no memory to open it", path);
    }
    *out = b;
    return CAIRN_OK;
}

cairn_status source_reserve(source_build *b, size_t n, cairn_diag *dg)
{
    tensor_desc *list;

    if (n > FORMAT_MAX_TENSORS - b->src.n_tensor)
        return diag_set(dg, CAIRN_E_LIMIT, "%s: %zu tensors; expected at most %d", b->src.path,
                        b->src.n_tensor + n, FORMAT_MAX_TENSORS);
    if (b->src.n_tensor + n <= b->cap) return CAIRN_OK;
    list = mem_realloc(b->tensor, (b->src.n_tensor + n) * sizeof *list, MEM_MODEL);
    if (!list) return diag_set(dg, CAIRN_E_NOMEM, "%s: list of %zu tensors", b->src.path, n);
    b->tensor = list;
    b->src.tensor = list;
    b->cap = b->src.n_tensor + n;
    if (map_reserve(&b->src.index, b->cap) != CAIRN_OK)
        return diag_set(dg, CAIRN_E_NOMEM, "%s: index of %zu tensors", b->src.path, n);
    return CAIRN_OK;
}

cairn_status source_add(source_build *b, const tensor_desc *t, cairn_diag *dg)
{
    uint32_t seen;

    if (map_get(&b->src.index, t->name, &seen))
        return diag_set(dg, CAIRN_E_CORRUPT,
                        "%s: tensor %.*s: second of that name (first in %s); expected one", t->file,
                        STR_ARG(t->name), b->tensor[seen].file);
    if (b->src.n_tensor == b->cap) TRY(source_reserve(b, 1, dg));
    if (map_put(&b->src.index, t->name, (uint32_t)b->src.n_tensor) != CAIRN_OK)
        return diag_set(dg, CAIRN_E_NOMEM, "%s: index of tensors", t->file);
    b->tensor[b->src.n_tensor++] = *t;
    return CAIRN_OK;
}

cairn_status source_map_file(source_build *b, const char *path, file_map *out, cairn_diag *dg)
{
    file_map *maps = mem_realloc(b->map, (b->n_map + 1) * sizeof *maps, MEM_MODEL);
    if (!maps) return diag_set(dg, CAIRN_E_NOMEM, "%s: no memory to open it", path);
    b->map = maps;
    TRY(file_map_open(path, &b->map[b->n_map], dg));
    *out = b->map[b->n_map++];
    return CAIRN_OK;
}

cairn_status source_open(const char *path, source **out, cairn_diag *dg)
{
    if (file_is_dir(path)) return safetensors_open_dir(path, out, dg);
    if (!file_exists(path))
        return diag_set(
            dg, CAIRN_E_NOTFOUND,
            "%s: no such file or directory; expected a .gguf file or a folder with config.json",
            path);
    if (str_ends(str_of(path), STR_LIT(".safetensors")))
        return diag_set(
            dg, CAIRN_E_UNSUPPORTED,
            "%s: found a part of a model; expected the folder around its .safetensors files", path);
    return gguf_open(path, out, dg);
}

void source_close(source *s)
{
    if (s) s->close(s);
}
