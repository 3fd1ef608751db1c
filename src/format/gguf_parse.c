/* Reads the header of one GGUF file (versions 2 and 3, little-endian): key-values, then tensors.
   Owns every check on it; sources and split sets are gguf.c's.  Invariant: nothing is allocated
   whose size was not first compared with the bytes that are there, and every pointer that leaves
   here lies in the file. */
#include "format/gguf_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/num.h"
#include "base/reader.h"
#include "format/format_priv.h"

enum {
    MAX_KEYS = 1 << 16,  /* real files have under a hundred */
    MAX_KEY = 65535,     /* the format's own limit */
    MAX_ARRAY_DEPTH = 4, /* nothing known nests at all */
    MAX_ELEMS = 1 << 22, /* strings and arrays inside arrays, a file: 16 MB of index;
                               Gemma has 262,144 pieces and 514,906 merges */
    MAX_ALIGNMENT = 1 << 20,
    KEY_BYTES_MIN = 8 + 4 + 1,     /* empty key, type, one byte */
    TENSOR_BYTES_MIN = 8 + 4 + 12, /* empty name, no dimensions, type, offset */
};

typedef struct parser {
    reader r;
    arena *mem;
    gguf_file *f;
    size_t elems_left; /* of MAX_ELEMS */
    size_t names_left; /* of FORMAT_MAX_NAME_BYTES */
    cairn_diag *dg;
} parser;

static cairn_status cut(parser *p, const char *field)
{
    return diag_set(p->dg, CAIRN_E_CORRUPT,
                    "%s: %s: the file ends at byte %zu, in the middle of it; expected all of it",
                    p->f->path, field, p->r.len);
}

static cairn_status no_memory(parser *p, const char *what, size_t n)
{
    return diag_set(p->dg, CAIRN_E_NOMEM, "%s: %zu %s", p->f->path, n, what);
}

static bool type_known(uint32_t t)
{
    return t <= GGUF_F64;
}

/* A length and as many bytes. */
static cairn_status read_str(parser *p, const char *field, cairn_str *out)
{
    const uint64_t n = reader_u64(&p->r);
    if (!p->r.bad && n > reader_left(&p->r))
        return diag_set(p->dg, CAIRN_E_CORRUPT,
                        "%s: %s: a string of %" PRIu64
                        " bytes at byte %zu; expected at most the %zu that are left",
                        p->f->path, field, n, p->r.at - 8, reader_left(&p->r));
    const uint8_t *s = reader_bytes(&p->r, n);
    if (p->r.bad) return cut(p, field);
    *out = (cairn_str){(const char *)s, (size_t)n};
    return CAIRN_OK;
}

static cairn_status check_elems(parser *p, const char *field, uint64_t n, size_t bytes_min)
{
    if (n > reader_left(&p->r) / bytes_min)
        return diag_set(p->dg, CAIRN_E_CORRUPT,
                        "%s: %s: an array of %" PRIu64
                        " elements; expected what %zu bytes can hold",
                        p->f->path, field, n, reader_left(&p->r));
    return CAIRN_OK;
}

/* Takes n variable-sized elements from the file's allowance. */
static cairn_status take_elems(parser *p, const char *field, uint64_t n)
{
    if (n > p->elems_left)
        return diag_set(p->dg, CAIRN_E_LIMIT,
                        "%s: %s: %" PRIu64 " more strings in arrays; expected at most %d",
                        p->f->path, field, n, MAX_ELEMS);
    p->elems_left -= (size_t)n;
    return CAIRN_OK;
}

static cairn_status read_str_array(parser *p, const char *field, gguf_array *a)
{
    const size_t start = p->r.at;
    uint32_t *at;

    TRY(take_elems(p, field, a->n));
    at = arena_alloc(p->mem, a->n * sizeof *at);
    if (!at) return no_memory(p, "strings", a->n);
    for (size_t i = 0; i < a->n; i++) {
        cairn_str s;
        if (p->r.at - start > UINT32_MAX)
            return diag_set(p->dg, CAIRN_E_LIMIT, "%s: %s: strings of over 4 GiB; expected less",
                            p->f->path, field);
        at[i] = (uint32_t)(p->r.at - start);
        TRY(read_str(p, field, &s));
    }
    a->at = at;
    return CAIRN_OK;
}

static cairn_status read_array(parser *p, const char *field, int depth, gguf_array *a);

static cairn_status read_array_array(parser *p, const char *field, int depth, gguf_array *a)
{
    gguf_array *sub;

    if (depth >= MAX_ARRAY_DEPTH)
        return diag_set(p->dg, CAIRN_E_LIMIT, "%s: %s: arrays in arrays; expected at most %d deep",
                        p->f->path, field, MAX_ARRAY_DEPTH);
    TRY(take_elems(p, field, 10 * (uint64_t)a->n)); /* a record is ten times a string's */
    sub = arena_calloc(p->mem, a->n, sizeof *sub);
    if (!sub) return no_memory(p, "arrays", a->n);
    for (size_t i = 0; i < a->n; i++) TRY(read_array(p, field, depth + 1, &sub[i]));
    a->sub = sub;
    return CAIRN_OK;
}

static cairn_status read_array(parser *p, const char *field, int depth, gguf_array *a)
{
    const uint32_t elem = reader_u32(&p->r);
    const uint64_t n = reader_u64(&p->r);

    if (p->r.bad) return cut(p, field);
    if (!type_known(elem))
        return diag_set(p->dg, CAIRN_E_CORRUPT,
                        "%s: %s: array of unknown type %" PRIu32 "; expected 0 to 12", p->f->path,
                        field, elem);
    a->elem = (gguf_type)elem;
    a->data = p->r.ptr + p->r.at;
    const size_t bytes_min = a->elem == GGUF_STR   ? 8
                             : a->elem == GGUF_ARR ? 12
                                                   : gguf_type_bytes(a->elem);
    TRY(check_elems(p, field, n, bytes_min));
    a->n = (size_t)n;
    if (a->elem == GGUF_STR) return read_str_array(p, field, a);
    if (a->elem == GGUF_ARR) return read_array_array(p, field, depth, a);
    if (!reader_bytes(&p->r, n * bytes_min) && n) return cut(p, field);
    return CAIRN_OK;
}

static cairn_status read_value(parser *p, const char *field, gguf_kv *kv)
{
    cairn_str s;

    kv->value = p->r.ptr + p->r.at;
    if (kv->type == GGUF_ARR) return read_array(p, field, 1, &kv->array);
    if (kv->type == GGUF_STR) return read_str(p, field, &s);
    if (!reader_bytes(&p->r, gguf_type_bytes(kv->type))) return cut(p, field);
    if (kv->type == GGUF_BOOL && kv->value[0] > 1)
        return diag_set(p->dg, CAIRN_E_CORRUPT, "%s: %s: a bool of value %d; expected 0 or 1",
                        p->f->path, field, kv->value[0]);
    return CAIRN_OK;
}

static cairn_status read_kv(parser *p, size_t i)
{
    gguf_kv *kv = &p->f->kv[i];
    char field[160]; /* for messages: the key, or its number while that is not known */
    uint32_t type, seen;

    (void)snprintf(field, sizeof field, "metadata key %zu", i);
    TRY(read_str(p, field, &kv->key));
    if (kv->key.len == 0 || kv->key.len > MAX_KEY)
        return diag_set(p->dg, CAIRN_E_CORRUPT, "%s: %s: its name has %zu bytes; expected 1 to %d",
                        p->f->path, field, kv->key.len, MAX_KEY);
    (void)snprintf(field, sizeof field, "%.*s", (int)(kv->key.len > 120 ? 120 : kv->key.len),
                   kv->key.ptr);
    if (map_get(&p->f->kv_index, kv->key, &seen))
        return diag_set(p->dg, CAIRN_E_CORRUPT,
                        "%s: %s: second metadata key of that name; expected one", p->f->path,
                        field);
    type = reader_u32(&p->r);
    if (p->r.bad) return cut(p, field);
    if (!type_known(type))
        return diag_set(p->dg, CAIRN_E_CORRUPT,
                        "%s: %s: unknown metadata type %" PRIu32 "; expected 0 to 12", p->f->path,
                        field, type);
    kv->type = (gguf_type)type;
    TRY(read_value(p, field, kv));
    if (map_put(&p->f->kv_index, kv->key, (uint32_t)i) != CAIRN_OK)
        return no_memory(p, "metadata keys", i);
    return CAIRN_OK;
}

static cairn_status check_count(parser *p, const char *what, uint64_t n, uint64_t max,
                                size_t bytes_min)
{
    if (n > reader_left(&p->r) / bytes_min)
        return diag_set(p->dg, CAIRN_E_CORRUPT,
                        "%s: header claims %" PRIu64 " %s; expected what %zu bytes can hold",
                        p->f->path, n, what, p->r.len);
    if (n > max)
        return diag_set(p->dg, CAIRN_E_LIMIT, "%s: %" PRIu64 " %s; expected at most %" PRIu64 "",
                        p->f->path, n, what, max);
    return CAIRN_OK;
}

static cairn_status read_head(parser *p, uint64_t *n_tensor, uint64_t *n_kv)
{
    const uint8_t *magic = reader_bytes(&p->r, 4);
    const char *path = p->f->path;

    if (!magic || memcmp(magic, "GGUF", 4) != 0)
        return diag_set(p->dg, CAIRN_E_CORRUPT,
                        "%s: not a GGUF file: expected it to begin with GGUF", path);
    p->f->version = reader_u32(&p->r);
    *n_tensor = reader_u64(&p->r);
    *n_kv = reader_u64(&p->r);
    if (p->r.bad) return cut(p, "header");
    if (p->f->version && (p->f->version & 0xffff) == 0)
        return diag_set(p->dg, CAIRN_E_UNSUPPORTED, "%s: a big-endian GGUF; expected little-endian",
                        path);
    if (p->f->version < 2 || p->f->version > 3)
        return diag_set(p->dg, CAIRN_E_UNSUPPORTED, "%s: GGUF version %" PRIu32 "; expected 2 or 3",
                        path, p->f->version);
    TRY(check_count(p, "metadata keys", *n_kv, MAX_KEYS, KEY_BYTES_MIN));
    return check_count(p, "tensors", *n_tensor, FORMAT_MAX_TENSORS, TENSOR_BYTES_MIN);
}

static cairn_status read_alignment(parser *p)
{
    const meta_view v = gguf_meta(p->f);
    meta m;

    p->f->alignment = 32;
    if (!meta_get(&v, "general.alignment", &m)) return CAIRN_OK;
    if (m.type != META_INT || m.u.i < 1 || m.u.i > MAX_ALIGNMENT || (m.u.i & (m.u.i - 1)))
        return diag_set(p->dg, CAIRN_E_CORRUPT,
                        "%s: general.alignment: expected a power of two up to %d, found %lld",
                        p->f->path, MAX_ALIGNMENT, m.type == META_INT ? (long long)m.u.i : -1LL);
    p->f->alignment = (size_t)m.u.i;
    return CAIRN_OK;
}

static cairn_status read_dims(parser *p, tensor_desc *t, uint64_t *n_elem)
{
    const uint32_t n_dim = reader_u32(&p->r);
    uint64_t n = 1, most = 0;
    uint32_t i_most = 0; /* the one to blame for a product that is too large */

    if (p->r.bad) return cut(p, t->name.ptr);
    if (n_dim > 4)
        return diag_set(p->dg, CAIRN_E_CORRUPT,
                        "%s: tensor %s: %" PRIu32 " dimensions; expected at most 4", p->f->path,
                        t->name.ptr, n_dim);
    t->n_dim = (int32_t)n_dim;
    for (uint32_t i = 0; i < n_dim; i++) {
        const uint64_t d = reader_u64(&p->r);
        if (p->r.bad) return cut(p, t->name.ptr);
        if (d < 1 || d > most) {
            most = d;
            i_most = i;
        }
        if (d < 1 || d > INT64_MAX || __builtin_mul_overflow(n, d, &n) || n > INT64_MAX)
            return diag_set(p->dg, CAIRN_E_CORRUPT,
                            "%s: tensor %s: dimension %" PRIu32 " is %" PRIu64
                            "; expected at least 1 and a product under 2^63",
                            p->f->path, t->name.ptr, i_most, most);
        t->dim[n_dim - 1 - i] = (int64_t)d;
    }
    *n_elem = n;
    return CAIRN_OK;
}

static cairn_status read_type(parser *p, tensor_desc *t, uint64_t n_elem)
{
    const uint32_t type = reader_u32(&p->r);
    const int64_t row = t->n_dim ? t->dim[t->n_dim - 1] : 1;

    if (p->r.bad) return cut(p, t->name.ptr);
    if (!dtype_from_gguf(type, &t->type))
        return diag_set(p->dg, CAIRN_E_UNSUPPORTED,
                        "%s: tensor %s: unknown type %" PRIu32
                        "; expected one of ggml's up to NVFP4",
                        p->f->path, t->name.ptr, type);
    if (row % dtype_block(t->type) != 0)
        return diag_set(p->dg, CAIRN_E_CORRUPT,
                        "%s: tensor %s: rows of %lld elements; expected for %s a multiple of %d",
                        p->f->path, t->name.ptr, (long long)row, dtype_name(t->type),
                        dtype_block(t->type));
    if (!dtype_bytes(t->type, n_elem, &t->size))
        return diag_set(p->dg, CAIRN_E_CORRUPT,
                        "%s: tensor %s: its size overflows; expected less than 2^63 bytes",
                        p->f->path, t->name.ptr);
    return CAIRN_OK;
}

/* Name, shape, type; the offset goes to r, its end too. */
static cairn_status read_tensor(parser *p, size_t i, byte_range *r)
{
    tensor_desc *t = &p->f->tensor[i];
    char field[32];
    uint64_t n_elem = 0;

    (void)snprintf(field, sizeof field, "tensor %zu", i);
    TRY(read_str(p, field, &t->name));
    if (t->name.len == 0 || t->name.len > FORMAT_MAX_NAME || memchr(t->name.ptr, 0, t->name.len))
        return diag_set(p->dg, CAIRN_E_CORRUPT,
                        "%s: %s: its name has %zu bytes; expected 1 to %d and no NUL", p->f->path,
                        field, t->name.len, FORMAT_MAX_NAME);
    if (t->name.len > p->names_left)
        return diag_set(p->dg, CAIRN_E_LIMIT,
                        "%s: names of tensors: found over %d bytes; expected less", p->f->path,
                        FORMAT_MAX_NAME_BYTES);
    p->names_left -= t->name.len;
    t->name.ptr = arena_strdup(p->mem, t->name);
    if (!t->name.ptr) return no_memory(p, "tensors", p->f->n_tensor);
    t->file = p->f->path;
    TRY(read_dims(p, t, &n_elem));
    TRY(read_type(p, t, n_elem));
    r->begin = reader_u64(&p->r);
    r->tensor = (uint32_t)i;
    if (p->r.bad) return cut(p, t->name.ptr);
    if (r->begin % p->f->alignment)
        return diag_set(p->dg, CAIRN_E_CORRUPT,
                        "%s: tensor %s: offset %" PRIu64 "; expected a multiple of %zu", p->f->path,
                        t->name.ptr, r->begin, p->f->alignment);
    return CAIRN_OK;
}

/* Points tensors at their bytes once the data section's start is known. */
static cairn_status place_tensors(parser *p, byte_range *r)
{
    const size_t start =
        p->r.at > SIZE_MAX - p->f->alignment ? p->r.len : round_up(p->r.at, p->f->alignment);
    const size_t room = start < p->r.len ? p->r.len - start : 0;

    for (size_t i = 0; i < p->f->n_tensor; i++) {
        tensor_desc *t = &p->f->tensor[i];
        if (r[i].begin > room || t->size > room - r[i].begin)
            return diag_set(p->dg, CAIRN_E_CORRUPT,
                            "%s: tensor %s: %zu bytes at offset %" PRIu64
                            " of the data; expected at most the %zu that are there (cut short?)",
                            p->f->path, t->name.ptr, t->size, r[i].begin, room);
        r[i].end = r[i].begin + t->size;
        t->data = p->r.ptr + start + r[i].begin;
    }
    const size_t bad = ranges_first_overlap(r, p->f->n_tensor);
    if (bad < p->f->n_tensor)
        return diag_set(p->dg, CAIRN_E_CORRUPT,
                        "%s: tensor %s: begins at offset %" PRIu64
                        ", inside tensor %s, which ends at %" PRIu64,
                        p->f->path, p->f->tensor[r[bad].tensor].name.ptr, r[bad].begin,
                        p->f->tensor[r[bad - 1].tensor].name.ptr, r[bad - 1].end);
    return CAIRN_OK;
}

static cairn_status read_tensors(parser *p, size_t n)
{
    cairn_status st = CAIRN_OK;
    byte_range *r = mem_calloc(n, sizeof *r, MEM_SCRATCH);

    p->f->tensor = arena_calloc(p->mem, n, sizeof *p->f->tensor);
    if (!r || !p->f->tensor) {
        st = no_memory(p, "tensors", n);
        goto out;
    }
    p->f->n_tensor = n;
    for (size_t i = 0; i < n; i++) TRY_GOTO(read_tensor(p, i, &r[i]), out);
    TRY_GOTO(place_tensors(p, r), out);
out:
    mem_free(r);
    return st;
}

cairn_status gguf_parse(const char *path, const uint8_t *bytes, size_t size, arena *a,
                        gguf_file *out, cairn_diag *dg)
{
    parser p = {reader_of(bytes, size), a, out, MAX_ELEMS, FORMAT_MAX_NAME_BYTES, dg};
    uint64_t n_tensor = 0, n_kv = 0;

    *out = (gguf_file){.path = path};
    map_init(&out->kv_index, MEM_MODEL);
    TRY(read_head(&p, &n_tensor, &n_kv));
    out->kv = arena_calloc(a, (size_t)n_kv, sizeof *out->kv);
    if (!out->kv) return no_memory(&p, "metadata keys", (size_t)n_kv);
    for (; out->n_kv < n_kv; out->n_kv++) TRY(read_kv(&p, out->n_kv));
    TRY(read_alignment(&p));
    return read_tensors(&p, (size_t)n_tensor);
}

void gguf_file_deinit(gguf_file *f)
{
    map_deinit(&f->kv_index);
}
