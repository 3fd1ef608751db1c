/* Writes model.safetensors from weights.json, byte for byte what tools/golden/weights.py writes:
   tensors in the order of their names, packed, little-endian, the header as Python's json.dumps
   prints it.  Used by tests only; a manifest is our own file, but is checked all the same. */
#include "golden/mkweights.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/half.h"
#include "base/json.h"
#include "base/num.h"
#include "base/str.h"

enum { MAX_MANIFEST = 16 << 20, MAX_TENSORS = 4096 };
static const uint64_t golden_ratio = UINT64_C(0x9E3779B97F4A7C15);

typedef struct entry {
    cairn_str name, dtype, kind;
    json_val shape;
    double a, b;
    size_t n_elem, elem_bytes;
} entry;

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

static uint64_t stream_state(uint64_t seed, cairn_str name)
{
    uint64_t h = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < name.len; i++) h = (h ^ (uint8_t)name.ptr[i]) * UINT64_C(0x100000001B3);
    return mix((seed ^ h) + golden_ratio);
}

static uint64_t word(uint64_t state, uint64_t i)
{
    return mix(state + (i + 1) * golden_ratio);
}

static void put_le(uint8_t *p, uint32_t v, size_t n)
{
    for (size_t i = 0; i < n; i++) p[i] = (uint8_t)(v >> 8 * i);
}

/* The word's four 16-bit fields summed: near enough to a normal draw. */
static float normal(uint64_t w, double a, double b)
{
    const uint64_t s = (w & 0xffff) + (w >> 16 & 0xffff) + (w >> 32 & 0xffff) + (w >> 48);
    return (float)(a + b * (((double)s - 131070.0) / 37837.22688));
}

static bool is_whole(cairn_str kind)
{
    return str_is(kind, "pair") || str_is(kind, "ramp") || str_is(kind, "stride");
}

static void draw(const entry *e, uint64_t seed, uint8_t *out)
{
    const uint64_t state = stream_state(seed, e->name);

    if (str_is(e->kind, "normal")) {
        for (size_t i = 0; i < e->n_elem; i++, out += e->elem_bytes) {
            const float v = normal(word(state, i), e->a, e->b);
            put_le(out,
                   str_is(e->dtype, "BF16")  ? bf16_from_f32(v)
                   : str_is(e->dtype, "F16") ? f16_from_f32(v)
                                             : f32_bits(v),
                   e->elem_bytes);
        }
        return;
    }
    /* all other kinds have whole ones */
    const uint64_t lo = (uint64_t)e->a, by = (uint64_t)e->b, span = by - lo + 1;
    if (is_whole(e->kind)) {
        for (uint64_t i = 0; i < e->n_elem; i++, out += e->elem_bytes) {
            const uint64_t v = str_is(e->kind, "pair")   ? (i ? by : lo)
                               : str_is(e->kind, "ramp") ? i / lo % by
                                                         : i * lo % by;
            memset(out, 0, e->elem_bytes);
            put_le(out, (uint32_t)v, 4);
        }
        return;
    }
    const uint64_t sign = str_is(e->kind, "fp8") ? 0x80 : 0;
    for (size_t i = 0; i < e->n_elem * e->elem_bytes; i++) {
        const uint64_t w = word(state, i);
        out[i] = (uint8_t)((lo + (w >> 8) % span) | (w & sign));
    }
}

static size_t dtype_size(cairn_str d)
{
    if (str_is(d, "U8") || str_is(d, "I8") || str_is(d, "F8_E4M3")) return 1;
    if (str_is(d, "BF16") || str_is(d, "F16")) return 2;
    if (str_is(d, "I64")) return 8;
    return str_is(d, "F32") || str_is(d, "U32") || str_is(d, "I32") ? 4 : 0;
}

static cairn_status read_entry(cairn_str name, json_val v, entry *e, cairn_diag *dg)
{
    const json_val how = json_get(v, "draw");
    json_iter it;
    json_val d;

    *e = (entry){.name = name,
                 .dtype = json_str(json_get(v, "dtype")),
                 .kind = json_str(json_at(how, 0)),
                 .shape = json_get(v, "shape"),
                 .n_elem = 1};
    e->a = json_num(json_at(how, 1), 0.0);
    e->b = json_num(json_at(how, 2), 0.0);
    e->elem_bytes = dtype_size(e->dtype);
    for (it = json_each(e->shape); json_next(&it, &d);) {
        const int64_t n = json_int(d, -1);
        if (n < 0 || !mul_size(e->n_elem, (size_t)n, &e->n_elem) || e->n_elem > SIZE_MAX / 16)
            return diag_set(dg, CAIRN_E_CORRUPT, "%.*s: shape", STR_ARG(name));
    }
    if (is_whole(e->kind)) {
        if (e->elem_bytes >= 4 && e->a >= 1 && e->b >= 1 && e->a < 1e9 && e->b < 1e9)
            return CAIRN_OK;
        return diag_set(dg, CAIRN_E_CORRUPT, "%.*s: whole numbers", STR_ARG(name));
    }
    if (!e->elem_bytes ||
        !(str_is(e->kind, "normal") || str_is(e->kind, "bytes") || str_is(e->kind, "fp8")))
        return diag_set(dg, CAIRN_E_CORRUPT, "%.*s: dtype %.*s, draw %.*s", STR_ARG(name),
                        STR_ARG(e->dtype), STR_ARG(e->kind));
    if (!str_is(e->kind, "normal") && !(e->a >= 0 && e->b >= e->a && e->b <= 255))
        return diag_set(dg, CAIRN_E_CORRUPT, "%.*s: range of bytes", STR_ARG(name));
    return CAIRN_OK;
}

static int by_name(const void *x, const void *y)
{
    return str_cmp(((const entry *)x)->name, ((const entry *)y)->name);
}

static cairn_status read_entries(json_val root, entry *e, size_t *n, cairn_diag *dg)
{
    json_iter it = json_each(json_get(root, "tensors"));
    cairn_str name;
    json_val v;

    *n = 0;
    while (json_next_member(&it, &name, &v)) {
        if (*n == MAX_TENSORS) return diag_set(dg, CAIRN_E_LIMIT, "over %d tensors", MAX_TENSORS);
        TRY(read_entry(name, v, &e[(*n)++], dg));
    }
    qsort(e, *n, sizeof *e, by_name);
    return CAIRN_OK;
}

static void put_header(buf *out, cairn_str format, const entry *e, size_t n)
{
    size_t at = 0;
    buf h;

    buf_init(&h, MEM_MISC);
    buf_printf(&h, "{\"__metadata__\": {\"format\": \"%.*s\"}", STR_ARG(format));
    for (size_t i = 0; i < n; i++) {
        const size_t end = at + e[i].n_elem * e[i].elem_bytes;
        const char *sep = "";
        json_iter it = json_each(e[i].shape);
        json_val d;
        buf_printf(&h, ", \"%.*s\": {\"dtype\": \"%.*s\", \"shape\": [", STR_ARG(e[i].name),
                   STR_ARG(e[i].dtype));
        for (; json_next(&it, &d); sep = ", ")
            buf_printf(&h, "%s%lld", sep, (long long)json_int(d, 0));
        buf_printf(&h, "], \"data_offsets\": [%zu, %zu]}", at, end);
        at = end;
    }
    buf_byte(&h, '}');
    while (h.len % 8 && buf_status(&h) == CAIRN_OK) buf_byte(&h, ' ');
    for (int i = 0; i < 8; i++) buf_byte(out, (char)((uint64_t)h.len >> 8 * i));
    buf_str(out, buf_view(&h));
    buf_deinit(&h);
}

cairn_status mkweights_write(const char *weights_json, const char *out_path, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    json_doc *doc = NULL;
    entry *e = mem_calloc(MAX_TENSORS, sizeof *e, MEM_MISC);
    size_t n = 0;
    buf text, out;

    buf_init(&text, MEM_MISC);
    buf_init(&out, MEM_MISC);
    if (!e) {
        st = diag_set(dg, CAIRN_E_NOMEM, "manifest");
        goto out;
    }
    TRY_GOTO(file_read(weights_json, MAX_MANIFEST, &text, dg), out);
    TRY_GOTO(json_parse(buf_view(&text), &doc, dg), out);
    TRY_GOTO(read_entries(json_root(doc), e, &n, dg), out);
    const cairn_str format = json_str(json_get(json_root(doc), "format"));
    const uint64_t seed = (uint64_t)json_int(json_get(json_root(doc), "seed"), 0);
    put_header(&out, format.len ? format : STR_LIT("pt"), e, n);
    for (size_t i = 0; i < n; i++) {
        uint8_t *p = buf_grow(&out, e[i].n_elem * e[i].elem_bytes);
        if (p) draw(&e[i], seed, p);
    }
    TRY_GOTO(buf_status(&out), out);
    st = file_replace(out_path, out.ptr, out.len, dg);
out:
    if (doc) json_free(doc);
    mem_free(e);
    buf_deinit(&text);
    buf_deinit(&out);
    return st;
}

static cairn_status copy_file(const char *from, const char *to, cairn_diag *dg)
{
    cairn_status st;
    buf text;
    buf_init(&text, MEM_MISC);
    st = file_read(from, MAX_MANIFEST, &text, dg);
    if (st == CAIRN_OK) st = file_replace(to, text.ptr, text.len, dg);
    buf_deinit(&text);
    return st;
}

/* Calls fn for every entry of a folder, with its path. */
static cairn_status each_entry(const char *dir, const char *other,
                               cairn_status (*fn)(const char *path, const char *name,
                                                  const char *other, cairn_diag *dg),
                               cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    char path[2 * MKWEIGHTS_PATH];
    DIR *d = opendir(dir);
    if (!d) return diag_set(dg, CAIRN_E_IO, "%s: cannot be read", dir);
    for (struct dirent *e; st == CAIRN_OK && (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        (void)snprintf(path, sizeof path, "%s/%.200s", dir, e->d_name);
        st = fn(path, e->d_name, other, dg);
    }
    (void)closedir(d);
    return st;
}

/* What a checkpoint has, of what a golden has: JSON files, weights, folders with the same. */
static cairn_status make_entry(const char *path, const char *name, const char *to_dir,
                               cairn_diag *dg)
{
    char to[2 * MKWEIGHTS_PATH];
    const bool weights = strcmp(name, "weights.json") == 0;
    (void)snprintf(to, sizeof to, "%.255s/%.200s", to_dir, weights ? "model.safetensors" : name);
    if (weights) return mkweights_write(path, to, dg);
    if (str_ends(str_of(name), STR_LIT(".json"))) return copy_file(path, to, dg);
    if (!file_is_dir(path)) return CAIRN_OK;
    if (mkdir(to, 0700) != 0) return diag_set(dg, CAIRN_E_IO, "%s: cannot be made", to);
    return each_entry(path, to, make_entry, dg);
}

cairn_status mkweights_temp(const char *golden_dir, char out_dir[MKWEIGHTS_PATH], cairn_diag *dg)
{
    const char *tmp = getenv("TMPDIR");
    if (snprintf(out_dir, MKWEIGHTS_PATH, "%s/cairn-golden-XXXXXX", tmp ? tmp : "/tmp") >=
            MKWEIGHTS_PATH ||
        !mkdtemp(out_dir))
        return diag_set(dg, CAIRN_E_IO, "%s: cannot make a temporary directory", out_dir);
    const cairn_status st = each_entry(golden_dir, out_dir, make_entry, dg);
    if (st != CAIRN_OK) mkweights_remove(out_dir);
    return st;
}

static cairn_status remove_entry(const char *path, const char *name, const char *other,
                                 cairn_diag *dg)
{
    (void)name;
    if (unlink(path) == 0) return CAIRN_OK;
    (void)each_entry(path, other, remove_entry, dg);
    (void)rmdir(path);
    return CAIRN_OK;
}

void mkweights_remove(const char *dir)
{
    cairn_diag dg = {0};
    (void)each_entry(dir, NULL, remove_entry, &dg);
    (void)rmdir(dir);
}
