/* GGUF as a source: one file, or a split set of which any part was named.  The first part holds the
   metadata; each part its own tensors.  Parsing one file is gguf_parse.c's. */
#include <inttypes.h>
#include <stdio.h>

#include "base/diag.h"
#include "base/str.h"
#include "format/format.h"
#include "format/format_priv.h"
#include "format/gguf_priv.h"

/* A part's mapping is kept for the model's life; the largest public set has 214. */
enum { MAX_PARTS = 1000 };

/* "-00001-of-00003.gguf" */
enum { SUFFIX_LEN = 20 };

typedef struct gguf_source {
    gguf_file file; /* of the part with the metadata */
    source_build *build;
    void (*close_build)(source *s);
} gguf_source;

static void gguf_close(source *s)
{
    gguf_source *g = s->impl;
    gguf_file_deinit(&g->file);
    g->close_build(s);
}

/* Maps, parses and adds one part's tensors. */
static cairn_status add_part(source_build *b, const char *path, gguf_file *out, cairn_diag *dg)
{
    const char *kept = arena_strdup(&b->mem, str_of(path));
    file_map m;

    if (!kept) return diag_set(dg, CAIRN_E_NOMEM, "%s: no memory to open it", path);
    TRY(source_map_file(b, kept, &m, dg));
    TRY(gguf_parse(kept, m.ptr, m.size, &b->mem, out, dg));
    TRY(source_reserve(b, out->n_tensor, dg));
    for (size_t i = 0; i < out->n_tensor; i++) TRY(source_add(b, &out->tensor[i], dg));
    return CAIRN_OK;
}

static cairn_status split_key(const gguf_file *f, const char *key, int64_t hi, int64_t *out,
                              cairn_diag *dg)
{
    const meta_view v = gguf_meta(f);
    const cairn_status st = meta_want_int(&v, key, false, 0, hi, out, dg);
    return st == CAIRN_OK ? st : diag_prefix(dg, st, "%s", f->path);
}

/* Whether the path ends as part i of n does, and which i. */
static bool parse_suffix(cairn_str path, unsigned n, unsigned *i_part)
{
    char want[SUFFIX_LEN + 12];
    if (path.len <= SUFFIX_LEN) return false;
    const char *end = path.ptr + path.len - SUFFIX_LEN;
    if (sscanf(end, "-%5u-of-", i_part) != 1) return false;
    (void)snprintf(want, sizeof want, "-%05u-of-%05u.gguf", *i_part, n);
    return strcmp(end, want) == 0 && *i_part >= 1 && *i_part <= n;
}

static void part_name(buf *b, cairn_str stem, unsigned i, unsigned n)
{
    buf_clear(b);
    buf_str(b, stem);
    buf_printf(b, "-%05u-of-%05u.gguf", i, n);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* One message for all that are missing: nobody wants to learn it part by part.  They are in the folder of `stem`. */
static cairn_status check_parts(cairn_str stem, unsigned n, buf *name, cairn_diag *dg)
{
    buf list;
    unsigned missing = 0;
    cairn_status st = CAIRN_OK;

    buf_init(&list, MEM_SCRATCH);
    for (unsigned i = 1; i <= n; i++) {
        part_name(name, stem, i, n);
        TRY_GOTO(buf_status(name), out);
        if (file_exists(name->ptr)) continue;
        if (missing++ < 3) buf_printf(&list, "%s%s", missing > 1 ? ", " : "", base_name(name->ptr));
    }
    if (missing > 3) buf_printf(&list, " and %u more", missing - 3);
    if (missing)
        st = diag_set(dg, CAIRN_E_NOTFOUND, "%.*s: %u of %u parts missing; expected %s",
                      (int)stem.len, stem.ptr, missing, n, list.ptr ? list.ptr : "?");
out:
    buf_deinit(&list);
    return st;
}

static cairn_status add_split_part(source_build *b, const char *path, unsigned i, unsigned n,
                                   gguf_file *out, cairn_diag *dg)
{
    int64_t no = -1, count = -1;

    TRY(add_part(b, path, out, dg));
    TRY(split_key(out, "split.no", UINT16_MAX, &no, dg));
    TRY(split_key(out, "split.count", UINT16_MAX, &count, dg));
    if (no != i - 1 || count != n)
        return diag_set(dg, CAIRN_E_CORRUPT,
                        "%s: split.no %" PRId64 " of split.count %" PRId64 "; expected %u of %u",
                        path, no, count, i - 1, n);
    return CAIRN_OK;
}

static cairn_status add_split_set(gguf_source *g, cairn_str stem, unsigned n, cairn_diag *dg)
{
    source_build *b = g->build;
    int64_t total = -1;
    buf name;
    cairn_status st = CAIRN_OK;

    buf_init(&name, MEM_SCRATCH);
    TRY_GOTO(check_parts(stem, n, &name, dg), out);
    for (unsigned i = 1; i <= n; i++) {
        gguf_file part = {.path = NULL};
        part_name(&name, stem, i, n);
        TRY_GOTO(buf_status(&name), out);
        st = add_split_part(b, name.ptr, i, n, i == 1 ? &g->file : &part, dg);
        if (i > 1) gguf_file_deinit(&part);
        if (st != CAIRN_OK) goto out;
    }
    TRY_GOTO(split_key(&g->file, "split.tensors.count", INT32_MAX, &total, dg), out);
    if (total >= 0 && (uint64_t)total != b->src.n_tensor)
        st = diag_set(dg, CAIRN_E_CORRUPT,
                      "%s: split.tensors.count %" PRId64 "; expected %zu, as the parts hold",
                      g->file.path, total, b->src.n_tensor);
out:
    buf_deinit(&name);
    return st;
}

/* How many parts the set has to which this file belongs; 1 for a file alone. */
static cairn_status count_parts(const char *path, unsigned *out, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    gguf_file f = {.path = path};
    file_map m = {NULL, 0};
    int64_t n = 1;
    arena mem;

    arena_init(&mem, MEM_SCRATCH);
    TRY_GOTO(file_map_open(path, &m, dg), out);
    TRY_GOTO(gguf_parse(path, m.ptr, m.size, &mem, &f, dg), out);
    TRY_GOTO(split_key(&f, "split.count", MAX_PARTS, &n, dg), out);
    *out = n > 1 ? (unsigned)n : 1;
out:
    gguf_file_deinit(&f);
    arena_deinit(&mem);
    file_map_close(&m);
    return st;
}

static cairn_status open_into(gguf_source *g, const char *path, cairn_diag *dg)
{
    const cairn_str s = str_of(path);
    unsigned n = 1, i;

    /* Only a name of that form can be one of several: a plain file is parsed once. */
    if (str_ends(s, STR_LIT(".gguf")) && s.len > SUFFIX_LEN && strstr(path, "-of-"))
        TRY(count_parts(path, &n, dg));
    if (n == 1) {
        int64_t count = 1;
        TRY(add_part(g->build, path, &g->file, dg));
        TRY(split_key(&g->file, "split.count", UINT16_MAX, &count, dg));
        if (count <= 1) return CAIRN_OK;
        n = (unsigned)count;
    }
    if (!parse_suffix(s, n, &i))
        return diag_set(dg, CAIRN_E_CORRUPT,
                        "%s: one part of %u; expected a name that ends in -0000N-of-%05u.gguf",
                        path, n, n);
    return add_split_set(g, str_sub(s, 0, s.len - SUFFIX_LEN), n, dg);
}

cairn_status gguf_open(const char *path, source **out, cairn_diag *dg)
{
    source_build *b;
    gguf_source *g;
    cairn_status st;

    TRY(source_build_new(SOURCE_GGUF, path, &b, dg));
    g = arena_calloc(&b->mem, 1, sizeof *g);
    if (!g) {
        source_close(&b->src);
        return diag_set(dg, CAIRN_E_NOMEM, "%s: no memory to open it", path);
    }
    g->build = b;
    g->close_build = b->src.close;
    b->src.close = gguf_close;
    b->src.impl = g;
    st = open_into(g, path, dg);
    if (st != CAIRN_OK) {
        source_close(&b->src);
        return st;
    }
    b->src.meta = gguf_meta(&g->file);
    *out = &b->src;
    return CAIRN_OK;
}
