/* Reads the header of one safetensors file: a length, a JSON object, then the bytes of all tensors
   end to end.  Owns every check on it, which are those of the format's reference implementation.
   Invariant: whatever leaves here points into the file. */
#include "format/safetensors_priv.h"

#include <inttypes.h>

#include "base/diag.h"
#include "base/json.h"
#include "base/reader.h"
#include "base/str.h"
#include "format/format_priv.h"
#include "format/jsonsplit.h"

enum {
    MAX_HEADER = 100 * 1000 * 1000, /* the reference's own limit */
    MAX_PAIRS = 1 << 16,
    MAX_DIMS = 16, /* before folding; more than any framework's convolutions need */
};

typedef struct parser {
    const char *path;
    arena *mem;
    const uint8_t *data;
    uint64_t n_data;
    safetensors_file *f;
    byte_range *range;
    size_t n_max;      /* entries of both lists */
    size_t names_left; /* bytes */
    cairn_diag *dg;
} parser;

static cairn_status no_memory(const parser *p)
{
    return diag_set(p->dg, CAIRN_E_NOMEM, "%s: no memory for its header", p->path);
}

static cairn_status bad(const parser *p, const tensor_desc *t, const char *field, const char *want,
                        json_val found)
{
    return diag_set(p->dg, CAIRN_E_CORRUPT, "%s: tensor %s: %s: expected %s, found %s", p->path,
                    t->name.ptr, field, want, json_type_name(json_typeof(found)));
}

static cairn_status read_dtype(parser *p, tensor_desc *t, json_val v)
{
    const cairn_str name = json_str(v);

    if (json_typeof(v) != JSON_STR) return bad(p, t, "dtype", "a string", v);
    for (int i = 0; i < DT_COUNT; i++) {
        if (dtype_is_quant((dtype)i) || i == DT_PACKED || !str_is(name, dtype_name((dtype)i)))
            continue;
        t->type = (dtype)i;
        return CAIRN_OK;
    }
    return diag_set(p->dg, CAIRN_E_UNSUPPORTED,
                    "%s: tensor %s: dtype: found %.*s; expected one that is supported", p->path,
                    t->name.ptr, STR_ARG(name));
}

/* Squeezes n dimensions into four: leading ones fall away, then the last ones become one.  The
   bytes lie the same; who expects another rank sees a shape that does not fit. */
static void fold_dims(tensor_desc *t, const int64_t *dim, int32_t n)
{
    for (; n > 4 && *dim == 1; n--) dim++;
    t->n_dim = n < 4 ? n : 4;
    for (int32_t i = 0; i < t->n_dim; i++) t->dim[i] = dim[i];
    for (int32_t i = 4; i < n; i++) t->dim[3] *= dim[i];
}

static cairn_status read_shape(parser *p, tensor_desc *t, json_val v)
{
    int64_t dim[MAX_DIMS];
    uint64_t most =
        1; /* elements, a dimension of 0 counting as 1: dims are multiplied in any part */
    bool empty = false;
    int32_t n = 0;
    json_iter it = json_each(v);
    json_val e;

    if (json_typeof(v) != JSON_ARR) return bad(p, t, "shape", "an array", v);
    while (json_next(&it, &e)) {
        if (n == MAX_DIMS)
            return diag_set(p->dg, CAIRN_E_LIMIT,
                            "%s: tensor %s: shape: found more dimensions than expected, %d",
                            p->path, t->name.ptr, MAX_DIMS);
        if (json_typeof(e) != JSON_INT || json_int(e, -1) < 0)
            return bad(p, t, "shape", "whole numbers from 0 to 2^63-1", e);
        dim[n] = json_int(e, 0);
        empty |= dim[n] == 0;
        if (__builtin_mul_overflow(most, dim[n] ? (uint64_t)dim[n] : 1, &most) || most > INT64_MAX)
            return diag_set(p->dg, CAIRN_E_CORRUPT,
                            "%s: tensor %s: shape: its product overflows; expected less than 2^63",
                            p->path, t->name.ptr);
        n++;
    }
    if (!dtype_bytes(t->type, empty ? 0 : most, &t->size))
        return diag_set(p->dg, CAIRN_E_CORRUPT,
                        "%s: tensor %s: shape: its size overflows; expected less than 2^64 bytes",
                        p->path, t->name.ptr);
    fold_dims(t, dim, n);
    return CAIRN_OK;
}

static cairn_status read_offsets(parser *p, tensor_desc *t, json_val v, byte_range *r)
{
    const json_val b = json_at(v, 0), e = json_at(v, 1);

    if (json_typeof(v) != JSON_ARR || json_size(v) != 2)
        return bad(p, t, "data_offsets", "an array of two", v);
    if (json_typeof(b) != JSON_INT || json_int(b, -1) < 0)
        return bad(p, t, "data_offsets", "whole numbers from 0 to 2^63-1", b);
    if (json_typeof(e) != JSON_INT || json_int(e, -1) < 0)
        return bad(p, t, "data_offsets", "whole numbers from 0 to 2^63-1", e);
    r->begin = (uint64_t)json_int(b, 0);
    r->end = (uint64_t)json_int(e, 0);
    if (r->begin > r->end || r->end > p->n_data)
        return diag_set(p->dg, CAIRN_E_CORRUPT,
                        "%s: tensor %s: data_offsets: found %" PRIu64 " to %" PRIu64
                        "; expected at most %" PRIu64 ", the bytes of data (cut short?)",
                        p->path, t->name.ptr, r->begin, r->end, p->n_data);
    if (r->end - r->begin != t->size)
        return diag_set(p->dg, CAIRN_E_CORRUPT,
                        "%s: tensor %s: data_offsets: found %" PRIu64
                        " bytes; expected for its shape and dtype %s: %zu",
                        p->path, t->name.ptr, r->end - r->begin, dtype_name(t->type), t->size);
    t->data = p->data + r->begin;
    return CAIRN_OK;
}

static cairn_status read_tensor(parser *p, cairn_str name, json_val v)
{
    const size_t i = p->f->n_tensor;
    tensor_desc *t = &p->f->tensor[i];

    if (i == p->n_max) /* jsonsplit_count promises that it is not */
        return diag_set(p->dg, CAIRN_E_INTERNAL, "%s: header: over %zu entries", p->path, i);
    if (name.len == 0 || name.len > FORMAT_MAX_NAME || memchr(name.ptr, 0, name.len))
        return diag_set(p->dg, CAIRN_E_CORRUPT,
                        "%s: tensor %zu: its name has %zu bytes; expected 1 to %d and no NUL",
                        p->path, i, name.len, FORMAT_MAX_NAME);
    if (name.len > p->names_left)
        return diag_set(p->dg, CAIRN_E_LIMIT,
                        "%s: names of tensors: found over %d bytes; expected less", p->path,
                        FORMAT_MAX_NAME_BYTES);
    p->names_left -= name.len;
    t->name = (cairn_str){arena_strdup(p->mem, name), name.len};
    if (!t->name.ptr) return no_memory(p);
    t->file = p->path;
    if (json_typeof(v) != JSON_OBJ) return bad(p, t, "entry", "an object", v);
    TRY(read_dtype(p, t, json_get(v, "dtype")));
    TRY(read_shape(p, t, json_get(v, "shape")));
    TRY(read_offsets(p, t, json_get(v, "data_offsets"), &p->range[i]));
    p->range[i].tensor = (uint32_t)i;
    p->f->n_tensor++;
    return CAIRN_OK;
}

static cairn_status read_pairs(parser *p, json_val v)
{
    const size_t n = json_size(v);
    json_iter it = json_each(v);
    cairn_str key;
    json_val e;

    if (json_typeof(v) != JSON_OBJ)
        return diag_set(p->dg, CAIRN_E_CORRUPT, "%s: __metadata__: expected an object, found %s",
                        p->path, json_type_name(json_typeof(v)));
    if (n > MAX_PAIRS)
        return diag_set(p->dg, CAIRN_E_LIMIT, "%s: __metadata__: %zu entries; expected at most %d",
                        p->path, n, MAX_PAIRS);
    p->f->n_pair = 0;
    p->f->pair = arena_calloc(p->mem, n, sizeof *p->f->pair);
    if (!p->f->pair) return no_memory(p);
    while (json_next_member(&it, &key, &e)) {
        const cairn_str value = json_str(e);
        safetensors_pair *pair = &p->f->pair[p->f->n_pair++];
        if (json_typeof(e) != JSON_STR)
            return diag_set(p->dg, CAIRN_E_CORRUPT,
                            "%s: __metadata__: %.*s: expected a string, found %s", p->path,
                            STR_ARG(key), json_type_name(json_typeof(e)));
        pair->key = (cairn_str){arena_strdup(p->mem, key), key.len};
        pair->value = (cairn_str){arena_strdup(p->mem, value), value.len};
        if (!pair->key.ptr || !pair->value.ptr) return no_memory(p);
    }
    return CAIRN_OK;
}

/* Every byte of the data belongs to one tensor. */
static cairn_status check_cover(parser *p)
{
    const size_t n = p->f->n_tensor, twice = ranges_first_overlap(p->range, n);
    uint64_t end = 0;

    if (twice < n)
        return diag_set(p->dg, CAIRN_E_CORRUPT,
                        "%s: tensor %s: data_offsets: begins at %" PRIu64
                        ", inside tensor %s, which ends at %" PRIu64,
                        p->path, p->f->tensor[p->range[twice].tensor].name.ptr,
                        p->range[twice].begin, p->f->tensor[p->range[twice - 1].tensor].name.ptr,
                        p->range[twice - 1].end);
    for (size_t i = 0; i < n; end = p->range[i++].end)
        if (p->range[i].begin != end)
            return diag_set(p->dg, CAIRN_E_CORRUPT,
                            "%s: tensor %s: data_offsets: begins at %" PRIu64 ", expected %" PRIu64
                            " (no holes)",
                            p->path, p->f->tensor[p->range[i].tensor].name.ptr, p->range[i].begin,
                            end);
    if (end != p->n_data)
        return diag_set(p->dg, CAIRN_E_CORRUPT,
                        "%s: %" PRIu64 " bytes of data, expected %" PRIu64 " as its tensors say",
                        p->path, p->n_data, end);
    return CAIRN_OK;
}

/* The members of one piece of the header. */
static cairn_status read_members(parser *p, json_val root)
{
    json_iter it = json_each(root);
    cairn_str key;
    json_val v;

    while (json_next_member(&it, &key, &v)) {
        if (!str_is(key, "__metadata__"))
            TRY(read_tensor(p, key, v));
        else if (json_typeof(v) != JSON_NULL) /* which the reference lets pass */
            TRY(read_pairs(p, v));
    }
    return CAIRN_OK;
}

static cairn_status read_pieces(parser *p, cairn_str text)
{
    jsonsplit split = {.text = text};
    cairn_status st = CAIRN_OK;
    buf piece;

    buf_init(&piece, MEM_SCRATCH);
    while (!split.done && st == CAIRN_OK) {
        json_doc *doc = NULL;
        const size_t at = split.at;
        st = jsonsplit_next(&split, &piece, p->dg);
        if (st == CAIRN_OK) st = json_parse(buf_view(&piece), &doc, p->dg);
        if (st != CAIRN_OK) {
            (void)diag_prefix(p->dg, st, "%s: header from byte %zu", p->path, at);
            break;
        }
        st = read_members(p, json_root(doc));
        json_free(doc);
    }
    buf_deinit(&piece);
    return st;
}

static cairn_status read_header(parser *p, cairn_str text)
{
    const size_t n = jsonsplit_count(text);
    cairn_status st = CAIRN_OK;

    if (n > FORMAT_MAX_TENSORS)
        return diag_set(p->dg, CAIRN_E_LIMIT, "%s: header: %zu entries; expected at most %d",
                        p->path, n, FORMAT_MAX_TENSORS);
    p->f->tensor = arena_calloc(p->mem, n, sizeof *p->f->tensor);
    p->range = mem_calloc(n, sizeof *p->range, MEM_SCRATCH);
    p->n_max = n;
    if (p->f->tensor && p->range)
        st = read_pieces(p, text);
    else
        st = no_memory(p);
    if (st == CAIRN_OK) st = check_cover(p);
    mem_free(p->range);
    return st;
}

cairn_status safetensors_parse(const char *path, const uint8_t *bytes, size_t size, arena *a,
                               safetensors_file *out, cairn_diag *dg)
{
    reader r = reader_of(bytes, size);
    const uint64_t n = reader_u64(&r);
    parser p = {.path = path, .mem = a, .f = out, .names_left = FORMAT_MAX_NAME_BYTES, .dg = dg};
    const uint8_t *text;

    *out = (safetensors_file){.n_tensor = 0};
    if (r.bad)
        return diag_set(dg, CAIRN_E_CORRUPT, "%s: %zu bytes; expected at least 8", path, size);
    if (n > MAX_HEADER)
        return diag_set(dg, CAIRN_E_LIMIT, "%s: header: length %" PRIu64 "; expected at most %d",
                        path, n, MAX_HEADER);
    text = reader_bytes(&r, n);
    if (!text || n == 0)
        return diag_set(dg, CAIRN_E_CORRUPT,
                        "%s: header: length %" PRIu64 "; expected at most the %zu bytes after it",
                        path, n, size - 8);
    if (text[0] != '{')
        return diag_set(dg, CAIRN_E_CORRUPT, "%s: header: expected it to begin with {", path);
    p.data = bytes + r.at;
    p.n_data = reader_left(&r);
    return read_header(&p, (cairn_str){(const char *)text, (size_t)n});
}
