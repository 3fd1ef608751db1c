/* What the reference writes reads back; damaged headers and directories are refused, and named. */
#include "test.h"
#include "tmp.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "format/format.h"
#include "format/safetensors_priv.h"
#include "format/shardindex.h"

#define SMALL   "tests/fuzz/corpus/safetensors/small.safetensors"
#define SHARDED "tests/unit/format/data/sharded"

static const tensor_desc *need(const source *s, const char *name, dtype t, int32_t n_dim)
{
    const tensor_desc *d = source_find(s, name);
    if (!d) fail_msg("no tensor %s", name);
    assert_int_equal(d->type, t);
    assert_int_equal(d->n_dim, n_dim);
    return d;
}

static float f32_of(const tensor_desc *t, size_t i)
{
    float y;
    dtype_to_f32(t->type, t->data + 4 * i, &y, 1);
    return y;
}

static void reads_what_the_reference_writes(void **state)
{
    cairn_diag dg = {0};
    source *s;
    meta m;

    (void)state;
    assert_ok(safetensors_open_file(SMALL, &s, &dg));
    assert_int_equal(s->format, SOURCE_SAFETENSORS);
    assert_int_equal(s->n_tensor, 9);
    const tensor_desc *t = need(s, "f32", DT_F32, 2);
    assert_int_equal(t->dim[0], 2);
    assert_int_equal(t->dim[1], 3);
    assert_true(f32_of(t, 5) == 5.0f);
    assert_int_equal(need(s, "f16", DT_F16, 1)->size, 8);
    assert_int_equal(need(s, "i64", DT_I64, 1)->size, 16);
    assert_int_equal(need(s, "u8", DT_U8, 1)->data[2], 3);
    assert_int_equal(need(s, "b", DT_BOOL, 1)->data[1], 0);
    assert_true(f32_of(need(s, "scalar", DT_F32, 0), 0) == 2.5f);
    assert_int_equal(need(s, "empty", DT_F32, 2)->size, 0);
    t = need(s, "five", DT_F32, 4); /* [1,2,3,1,2]: the leading 1 falls away */
    assert_true(t->dim[0] == 2 && t->dim[1] == 3 && t->dim[2] == 1 && t->dim[3] == 2);
    t = need(s, "six", DT_F32, 4); /* [2,1,2,1,2,2]: the last become one */
    assert_true(t->dim[0] == 2 && t->dim[1] == 1 && t->dim[2] == 2 && t->dim[3] == 4);
    assert_str(meta_str(&s->meta, "note", (cairn_str){NULL, 0}), "made by numpy");
    assert_false(meta_get(&s->meta, "nothing", &m));
    source_close(s);
}

static void shards(void **state)
{
    cairn_diag dg = {0};
    source *s;

    (void)state;
    assert_ok(source_open(SHARDED, &s, &dg));
    assert_int_equal(s->n_tensor, 3);
    assert_int_equal(meta_int(&s->meta, "hidden_size", 0), 4);
    assert_true(f32_of(need(s, "a", DT_F32, 2), 3) == 3.0f);
    assert_true(f32_of(need(s, "b", DT_F32, 1), 3) == 3.0f);
    /* both shards have it; the index names the second */
    assert_true(f32_of(need(s, "twice", DT_F32, 1), 0) == 7.0f);
    assert_non_null(strstr(source_find(s, "b")->file, "model-00002-of-00002.safetensors"));
    source_close(s);
}

/* A directory for one test. */
static void put(const tmp_dir *t, const char *name, cairn_str text)
{
    assert_ok(file_replace(tmp_path(t, name), text.ptr, text.len, NULL));
}

static void bad_directories(void **state)
{
    static const struct {
        const char *index, *says;
        cairn_status st;
    } c[] = {
        {"{\"weight_map\":{\"a\":\"y.safetensors\",\"b\":\"z.safetensors\"}}",
         "2 of 2 files missing; expected y.safetensors, z.safetensors", CAIRN_E_NOTFOUND},
        {"{\"weight_map\":{\"a\":\"../y.safetensors\"}}",
         "a: found ../y.safetensors; expected the name of a file beside", CAIRN_E_CORRUPT},
        {"{\"weight_map\":{\"a\":7}}", "a: found an integer; expected the name of a file",
         CAIRN_E_CORRUPT},
        {"{\"weight_map\":[]}", "weight_map: found an array; expected an object", CAIRN_E_CORRUPT},
        {"{", "does not end", CAIRN_E_CORRUPT},
        {"", "expected a JSON object", CAIRN_E_CORRUPT},
        {"[1]", "expected a JSON object", CAIRN_E_CORRUPT},
        {"{}", "weight_map: found nothing; expected an object", CAIRN_E_CORRUPT},
        {"{\"metadata\":{\"a\":},\"weight_map\":{}}", "without its weight_map: JSON",
         CAIRN_E_CORRUPT},
        {"{\"weight_map\":{\"a\":}}", "weight_map from byte 0: JSON", CAIRN_E_CORRUPT},
        {"{\"weight_map\":{\"a\":\"x\" \"b\"}}", "weight_map from byte 0: JSON", CAIRN_E_CORRUPT},
        {"{\"weight_map\":{}]", "expected }, found ]", CAIRN_E_CORRUPT},
        {"{\"weight_map\":{}}x", "nothing after the object", CAIRN_E_CORRUPT},
        {"{\"weight_map\":{\"nix\":\"x.safetensors\"}}",
         "tensor nix: expected in x.safetensors, which does not hold it", CAIRN_E_CORRUPT},
    };
    tmp_dir dir;
    cairn_diag dg = {0};
    source *s;
    buf one;

    (void)state;
    buf_init(&one, MEM_MISC);
    assert_ok(file_read("tests/fuzz/corpus/safetensors/one.safetensors", 1 << 20, &one, NULL));
    assert_true(tmp_make(&dir));
    assert_int_equal(source_open(dir.path, &s, &dg), CAIRN_E_NOTFOUND);
    assert_says(&dg, "config.json");
    put(&dir, "config.json", STR_LIT("[1]"));
    assert_int_equal(source_open(dir.path, &s, &dg), CAIRN_E_CORRUPT);
    assert_says(&dg, "config.json: expected an object, found");
    put(&dir, "config.json", STR_LIT("{}"));
    assert_int_equal(source_open(dir.path, &s, &dg), CAIRN_E_NOTFOUND);
    assert_says(&dg, "found neither");
    put(&dir, "x.safetensors", buf_view(&one));
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        put(&dir, "model.safetensors.index.json", str_of(c[i].index));
        assert_int_equal(source_open(dir.path, &s, &dg), c[i].st);
        assert_says(&dg, "model.safetensors.index.json");
        if (!strstr(dg.message, c[i].says)) fail_msg("%s", dg.message);
    }
    assert_true(tmp_drop(&dir));
    buf_deinit(&one);
}

/* The index of a model of 10^12 parameters: its memory is that of its names. */
static void big_index(void **state)
{
    (void)state;
    enum { TENSORS = 140000, MOST = 60 << 20 };
    cairn_diag dg = {0};
    shard_index x;
    uint32_t at;
    buf b;
    buf_init(&b, MEM_MISC);
    buf_puts(&b, "{\"metadata\":{\"total_size\":1},\"weight_map\":{");
    for (int i = 0; i < TENSORS; i++)
        buf_printf(
            &b,
            "%s\n    \"language_model.model.layers.%d.mlp.experts.%d.down_proj.weight_packed\":"
            " \"model-%05d-of-00163.safetensors\"",
            i ? "," : "", i / 2000, i, i % 163);
    buf_puts(&b, "\n  }\n}\n");
    assert_true(b.len > 15 << 20 && b.len < 24 << 20);
    assert_ok(shard_index_parse("i.json", buf_view(&b), &x, &dg));
    assert_int_equal(x.n_tensor, TENSORS);
    assert_int_equal(x.n_shard, 163);
    assert_true(map_get(&x.where,
                        STR_LIT("language_model.model.layers.69.mlp.experts.139999.down_proj."
                                "weight_packed"),
                        &at));
    assert_str(x.shard[at], "model-00145-of-00163.safetensors");
    assert_true(mem_used_all() - b.cap < MOST);
    shard_index_deinit(&x);
    /* cut short anywhere it is refused, soon */
    b.ptr[b.len / 2] = '\0';
    assert_int_equal(shard_index_parse("i.json", (cairn_str){b.ptr, b.len / 2}, &x, &dg),
                     CAIRN_E_CORRUPT);
    assert_says(&dg, "i.json: the object that begins at byte 0 does not end");
    shard_index_deinit(&x);
    buf_deinit(&b);
}

static void parse(const char *header, size_t n_data, cairn_status want, const char *says)
{
    const size_t n = strlen(header), size = 8 + n + n_data;
    uint8_t *p = mem_calloc(1, size, MEM_MISC); /* exactly sized: a sanitizer sees a step beyond */
    cairn_diag dg = {0};
    safetensors_file f;
    arena a;

    for (int i = 0; i < 8; i++) p[i] = (uint8_t)((uint64_t)n >> 8 * i);
    memcpy(p + 8, header, n);
    arena_init(&a, MEM_MODEL);
    const cairn_status st = safetensors_parse("x.safetensors", p, size, &a, &f, &dg);
    if (st != want || !strstr(dg.message, says))
        fail_msg("%s: expected %d \"%s\", got %d \"%s\"", header, want, says, st, dg.message);
    if (want != CAIRN_OK) assert_says(&dg, "x.safetensors");
    arena_deinit(&a);
    mem_free(p);
}

static void bad_headers(void **state)
{
#define T(dtype, shape, at) "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" at "}"
    static const struct {
        const char *header;
        size_t n_data;
        cairn_status st;
        const char *says;
    } c[] = {
        {"{\"t\":" T("F32", "[2]", "[0,8]") "}", 8, CAIRN_OK, ""},
        {"{}", 0, CAIRN_OK, ""},
        {"{\"__metadata__\":null}", 0, CAIRN_OK, ""},
        {"{\"t\":" T("F32", "[2]", "[0,8]") "}", 7, CAIRN_E_CORRUPT,
         "expected at most 7, the bytes of data"},
        {"{\"t\":" T("F32", "[2]", "[0,8]") "}", 9, CAIRN_E_CORRUPT, "9 bytes of data, expected 8"},
        {"{\"t\":" T("F32", "[2]", "[0,9]") "}", 9, CAIRN_E_CORRUPT,
         "found 9 bytes; expected for its shape and"},
        {"{\"t\":" T("F32", "[2]", "[8,0]") "}", 8, CAIRN_E_CORRUPT, "found 8 to 0"},
        {"{\"t\":" T("F32", "[2]", "[-8,0]") "}", 8, CAIRN_E_CORRUPT, "whole numbers"},
        {"{\"t\":" T("F32", "[2]", "[0]") "}", 8, CAIRN_E_CORRUPT, "an array of two"},
        {"{\"t\":" T("F32", "[2]", "[0.5,8]") "}", 8, CAIRN_E_CORRUPT, "whole numbers"},
        {"{\"t\":" T("F32", "[-2]", "[0,8]") "}", 8, CAIRN_E_CORRUPT, "shape: expected whole"},
        {"{\"t\":" T("F32", "\"2\"", "[0,8]") "}", 8, CAIRN_E_CORRUPT, "shape: expected an array"},
        {"{\"t\":" T("F32", "[4294967296,4294967296]", "[0,8]") "}", 8, CAIRN_E_CORRUPT,
         "overflow"},
        {"{\"t\":" T("F64", "[2305843009213693952]", "[0,8]") "}", 8, CAIRN_E_CORRUPT, "overflow"},
        {"{\"t\":" T("F32", "[0,1,1,2147483648,2147483648,2147483648]", "[0,0]") "}", 0,
         CAIRN_E_CORRUPT, "overflow"},
        {"{\"t\":" T("F31", "[2]", "[0,8]") "}", 8, CAIRN_E_UNSUPPORTED, "dtype: found F31"},
        {"{\"t\":" T("Q4_0", "[32]", "[0,18]") "}", 18, CAIRN_E_UNSUPPORTED, "dtype: found Q4_0"},
        {"{\"t\":{\"shape\":[],\"data_offsets\":[0,4]}}", 4, CAIRN_E_CORRUPT,
         "dtype: expected a st"},
        {"{\"t\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, CAIRN_E_CORRUPT,
         "shape: expected"},
        {"{\"t\":{\"dtype\":\"F32\",\"shape\":[]}}", 4, CAIRN_E_CORRUPT, "data_offsets: expected"},
        {"{\"t\":5}", 0, CAIRN_E_CORRUPT, "entry: expected an object"},
        {"{\"\":" T("F32", "[]", "[0,4]") "}", 4, CAIRN_E_CORRUPT, "name has 0 bytes"},
        {"{\"t\":" T("F32", "[1]", "[0,4]") ",\"u\":" T("F32", "[1]", "[2,6]") "}", 6,
         CAIRN_E_CORRUPT, "tensor u: data_offsets: begins at 2, inside tensor t"},
        {"{\"t\":" T("F32", "[1]", "[0,4]") ",\"u\":" T("F32", "[1]", "[8,12]") "}", 12,
         CAIRN_E_CORRUPT, "tensor u: data_offsets: begins at 8, expected 4 (no holes)"},
        {"{\"__metadata__\":{\"a\":1}}", 0, CAIRN_E_CORRUPT, "__metadata__: a: expected a string"},
        {"{\"__metadata__\":[]}", 0, CAIRN_E_CORRUPT, "__metadata__: expected an object"},
        {" {}", 0, CAIRN_E_CORRUPT, "expected it to begin with {"},
        {"{\"t\":", 0, CAIRN_E_CORRUPT, "header from byte 0: the object that begins"},
        {"{\"t\":}", 0, CAIRN_E_CORRUPT, "header from byte 0: JSON, byte"},
        {"{}x", 0, CAIRN_E_CORRUPT, "expected nothing after the object"},
        {"{,}", 0, CAIRN_E_CORRUPT, "header from byte 0: JSON, byte"},
        {"", 0, CAIRN_E_CORRUPT, "length 0"},
    };
#undef T
    (void)state;
    for (size_t i = 0; i < sizeof c / sizeof *c; i++)
        parse(c[i].header, c[i].n_data, c[i].st, c[i].says);
}

static void lying_lengths(void **state)
{
    static const struct {
        uint8_t bytes[10];
        size_t n;
        cairn_status st;
        const char *says;
    } c[] = {
        {{2, 0, 0}, 3, CAIRN_E_CORRUPT, "3 bytes; expected at least 8"},
        {{3, 0, 0, 0, 0, 0, 0, 0, '{', '}'},
         10,
         CAIRN_E_CORRUPT,
         "length 3; expected at most the 2 bytes"},
        {{0, 0, 0, 0, 0, 0, 0, 16, '{', '}'}, 10, CAIRN_E_LIMIT, "expected at most 100000000"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        cairn_diag dg = {0};
        safetensors_file f;
        arena a;
        arena_init(&a, MEM_MODEL);
        assert_int_equal(safetensors_parse("x", c[i].bytes, c[i].n, &a, &f, &dg), c[i].st);
        assert_says(&dg, c[i].says);
        arena_deinit(&a);
    }
}

static cairn_status open_close(void *ctx)
{
    source *s;
    const cairn_status st = source_open(ctx, &s, NULL);
    if (st == CAIRN_OK) source_close(s);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    char dir[] = SHARDED;
    (void)state;
    assert_true(fault_loop(open_close, dir) > 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_the_reference_writes),
        cmocka_unit_test(shards),
        cmocka_unit_test(bad_directories),
        cmocka_unit_test(big_index),
        cmocka_unit_test(bad_headers),
        cmocka_unit_test(lying_lengths),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
