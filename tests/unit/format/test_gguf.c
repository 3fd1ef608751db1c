/* GGUF against files that the reference wrote, and hand-made headers with every kind of damage. */
#include "test.h"
#include "tmp.h"

#include <stdio.h>

#include "base/file.h"
#include "format/format.h"
#include "format/gguf_priv.h"
#include "gguf_head.h"

#define SMALL "tests/fuzz/corpus/gguf/small.gguf"
#define DATA  "tests/unit/format/data/"

static int64_t int_of(const source *s, const char *key)
{
    meta m;
    if (!meta_get(&s->meta, key, &m) || m.type != META_INT) fail_msg("%s is no integer", key);
    return m.u.i;
}

static double num_of(const source *s, const char *key)
{
    meta m;
    if (!meta_get(&s->meta, key, &m) || m.type != META_FLOAT) fail_msg("%s is no float", key);
    return m.u.f;
}

static void check_scalars(const source *s)
{
    assert_int_equal(int_of(s, "test.u8"), 200);
    assert_int_equal(int_of(s, "test.i8"), -100);
    assert_int_equal(int_of(s, "test.u16"), 60000);
    assert_int_equal(int_of(s, "test.i16"), -30000);
    assert_int_equal(int_of(s, "test.u32"), 4000000000);
    assert_int_equal(int_of(s, "test.i32"), -2000000000);
    assert_true(int_of(s, "test.i64") == -(INT64_C(1) << 62));
    assert_true(num_of(s, "test.f32") == 0.15625);
    assert_true(num_of(s, "test.f64") == 0.1);
    assert_true(num_of(s, "test.u64") == 18446744073709551615.0);
    assert_true(meta_bool(&s->meta, "test.bool", false));
    assert_str(meta_str(&s->meta, "test.str", (cairn_str){NULL, 0}), "h\xc3\xa9llo");
}

static meta array_of(const source *s, const char *key, size_t n)
{
    meta m;
    if (!meta_get(&s->meta, key, &m) || m.type != META_ARR) fail_msg("%s is no array", key);
    assert_int_equal(m.u.n, n);
    return m;
}

static meta elem(const source *s, const meta *arr, size_t i)
{
    meta e;
    assert_true(meta_at(&s->meta, arr, i, &e));
    return e;
}

static void check_arrays(const source *s)
{
    meta a = array_of(s, "test.ints", 3), e;
    assert_int_equal(elem(s, &a, 1).u.i, -2);
    assert_false(meta_at(&s->meta, &a, 3, &e));
    a = array_of(s, "test.floats", 2);
    assert_true(elem(s, &a, 1).u.f == 1.5);
    a = array_of(s, "test.bools", 2);
    assert_true(elem(s, &a, 0).u.b);
    assert_false(elem(s, &a, 1).u.b);
    a = array_of(s, "test.strings", 4);
    assert_int_equal(elem(s, &a, 0).u.s.len, 0);
    assert_str(elem(s, &a, 2).u.s, "bc");
    assert_str(elem(s, &a, 3).u.s, "\xc3\xa9");
    a = array_of(s, "test.nested", 2);
    e = elem(s, &a, 0);
    assert_int_equal(e.u.n, 3);
    assert_int_equal(elem(s, &e, 2).u.i, 3);
    e = elem(s, &a, 1);
    assert_int_equal(elem(s, &e, 0).u.i, 4);
}

static void check_tensors(const source *s)
{
    float y[64];

    assert_int_equal(s->n_tensor, 3);
    const tensor_desc *t = source_find(s, "token_embd.weight");
    assert_non_null(t);
    assert_int_equal(t->n_dim, 2);
    assert_int_equal(t->dim[0], 5);
    assert_int_equal(t->dim[1], 32);
    dtype_to_f32(t->type, t->data + 128, y, 32);
    assert_true(y[0] == 32.0f && y[31] == 63.0f);
    t = source_find(s, "blk.0.norm");
    assert_int_equal(t->type, DT_F16);
    assert_string_equal(t->name.ptr, "blk.0.norm");
    t = source_find(s, "blk.0.q8");
    assert_int_equal(t->type, DT_Q8_0);
    assert_int_equal(t->size, 68);
    dtype_to_f32(t->type, t->data, y, 64);
    assert_true(y[63] > 0.98f && y[63] < 0.99f);
    assert_null(source_find(s, "blk.0"));
}

static void reads_what_gguf_py_writes(void **state)
{
    static const char *const path[] = {SMALL, "tests/fuzz/corpus/gguf/small-v2.gguf"};
    cairn_diag dg = {0};
    source *s;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        assert_ok(source_open(path[i], &s, &dg));
        assert_int_equal(s->format, SOURCE_GGUF);
        check_scalars(s);
        check_arrays(s);
        check_tensors(s);
        source_close(s);
    }
    assert_ok(gguf_open("tests/fuzz/corpus/gguf/vocab.gguf", &s, &dg));
    assert_int_equal(s->n_tensor, 0);
    source_close(s);
}

static void any_part_opens_the_set(void **state)
{
    cairn_diag dg = {0};
    char path[128];

    (void)state;
    for (int part = 1; part <= 3; part++) {
        source *s;
        snprintf(path, sizeof path, DATA "split-%05d-of-00003.gguf", part);
        assert_ok(gguf_open(path, &s, &dg));
        assert_int_equal(s->n_tensor, 3);
        assert_str(meta_str(&s->meta, "general.name", (cairn_str){NULL, 0}), "three parts");
        for (int i = 0; i < 3; i++) {
            float y;
            char name[8];
            snprintf(name, sizeof name, "t%d", i);
            const tensor_desc *t = source_find(s, name);
            assert_non_null(t);
            dtype_to_f32(t->type, t->data + 4, &y, 1);
            assert_true(y == (float)(100 * i + 1));
        }
        source_close(s);
    }
}

static void copy_file(const char *from, const tmp_dir *dir, const char *name)
{
    buf b;

    buf_init(&b, MEM_MISC);
    assert_ok(file_read(from, 1 << 20, &b, NULL));
    assert_ok(file_replace(tmp_path(dir, name), b.ptr, b.len, NULL));
    buf_deinit(&b);
}

static void missing_parts_are_named(void **state)
{
    tmp_dir dir;
    cairn_diag dg = {0};
    source *s;

    (void)state;
    assert_true(tmp_make(&dir));
    copy_file(DATA "split-00002-of-00003.gguf", &dir, "m-00002-of-00003.gguf");
    assert_int_equal(gguf_open(tmp_path(&dir, "m-00002-of-00003.gguf"), &s, &dg), CAIRN_E_NOTFOUND);
    assert_says(&dg, "2 of 3 parts missing");
    assert_says(&dg, "/m: ");
    assert_says(&dg, "expected m-00001-of-00003.gguf, m-00003-of-00003.gguf");
    /* a part under another part's name */
    copy_file(DATA "split-00003-of-00003.gguf", &dir, "m-00001-of-00003.gguf");
    copy_file(DATA "split-00001-of-00003.gguf", &dir, "m-00003-of-00003.gguf");
    assert_int_equal(gguf_open(tmp_path(&dir, "m-00002-of-00003.gguf"), &s, &dg), CAIRN_E_CORRUPT);
    assert_says(&dg, "split.no 2");
    copy_file(DATA "split-00001-of-00003.gguf", &dir, "alone.gguf");
    assert_int_equal(gguf_open(tmp_path(&dir, "alone.gguf"), &s, &dg), CAIRN_E_CORRUPT);
    assert_says(&dg, "expected a name that ends in");
    assert_true(tmp_drop(&dir));
}

static void tensor(buf *b, const char *name, uint32_t type, uint64_t dim, uint64_t at)
{
    gguf_put_str(b, name);
    gguf_put_int(b, 1, 4);
    gguf_put_int(b, dim, 8);
    gguf_put_int(b, type, 4);
    gguf_put_int(b, at, 8);
}

static void refuses(const buf *b, cairn_status want, const char *says)
{
    /* exactly sized, so that a sanitizer sees any step beyond */
    uint8_t *p = mem_alloc(b->len, MEM_MISC);
    cairn_diag dg = {0};
    gguf_file f;
    arena a;

    memcpy(p, b->ptr, b->len);
    arena_init(&a, MEM_MODEL);
    const uint64_t before = mem_used_all();
    const cairn_status st = gguf_parse("x.gguf", p, b->len, &a, &f, &dg);
    assert_true(mem_used_all() - before < 1 << 20);
    if (st != want || !strstr(dg.message, says))
        fail_msg("expected %d \"%s\", got %d \"%s\"", want, says, st, dg.message);
    if (want != CAIRN_OK) assert_says(&dg, "x.gguf");
    gguf_file_deinit(&f);
    arena_deinit(&a);
    mem_free(p);
}

static void bad_headers(void **state)
{
    buf b;

    (void)state;
    buf_init(&b, MEM_MISC);
    buf_puts(&b, "GGML");
    refuses(&b, CAIRN_E_CORRUPT, "not a GGUF");
    gguf_put_head(&b, 3, 0, 0);
    b.len--;
    refuses(&b, CAIRN_E_CORRUPT, "header: the file ends");
    gguf_put_head(&b, 1, 0, 0);
    refuses(&b, CAIRN_E_UNSUPPORTED, "version 1");
    gguf_put_head(&b, 4, 0, 0);
    refuses(&b, CAIRN_E_UNSUPPORTED, "expected 2 or 3");
    gguf_put_head(&b, UINT32_C(3) << 24, 0, 0);
    refuses(&b, CAIRN_E_UNSUPPORTED, "big-endian");
    gguf_put_head(&b, 3, UINT64_C(1) << 60, 0);
    refuses(&b, CAIRN_E_CORRUPT, "claims 1152921504606846976 tensors");
    gguf_put_head(&b, 3, 0, UINT64_C(1) << 60);
    refuses(&b, CAIRN_E_CORRUPT, "claims 1152921504606846976 metadata keys");
    gguf_put_head(&b, 3, 0, 0);
    refuses(&b, CAIRN_OK, "");
    buf_deinit(&b);
}

static void bad_metadata(void **state)
{
    buf b;

    (void)state;
    buf_init(&b, MEM_MISC);
    gguf_put_head(&b, 3, 0, 1);
    gguf_put_int(&b, UINT64_C(1) << 62, 8);
    gguf_put_int(&b, 0, 16);
    refuses(&b, CAIRN_E_CORRUPT, "a string of 4611686018427387904 bytes");
    gguf_put_head(&b, 3, 0, 1);
    gguf_put_key(&b, "k", 13);
    refuses(&b, CAIRN_E_CORRUPT, "k: unknown metadata type 13");
    gguf_put_head(&b, 3, 0, 1);
    gguf_put_key(&b, "k", 7);
    gguf_put_int(&b, 2, 1);
    refuses(&b, CAIRN_E_CORRUPT, "a bool of value 2");
    gguf_put_head(&b, 3, 0, 2);
    for (int i = 0; i < 2; i++) {
        gguf_put_key(&b, "k", 4);
        gguf_put_int(&b, 1, 4);
    }
    refuses(&b, CAIRN_E_CORRUPT, "k: second metadata key");
    gguf_put_head(&b, 3, 0, 1);
    gguf_put_key(&b, "k", 9);
    gguf_put_int(&b, 8, 4);
    gguf_put_int(&b, UINT64_C(1) << 60, 8);
    refuses(&b, CAIRN_E_CORRUPT, "an array of 1152921504606846976 elements");
    gguf_put_head(&b, 3, 0, 1);
    gguf_put_key(&b, "k", 9);
    for (int i = 0; i < 5; i++) {
        gguf_put_int(&b, 9, 4);
        gguf_put_int(&b, 1, 8);
    }
    gguf_put_int(&b, 0, 64);
    refuses(&b, CAIRN_E_LIMIT, "expected at most 4 deep");
    gguf_put_head(&b, 3, 0, 1);
    gguf_put_key(&b, "general.alignment", 4);
    gguf_put_int(&b, 48, 4);
    refuses(&b, CAIRN_E_CORRUPT, "general.alignment: expected a power of two");
    buf_deinit(&b);
}

/* One tensor's record, then data of n bytes from a multiple of 32 on. */
static void with_tensor(buf *b, const char *name, uint32_t type, uint64_t dim, uint64_t at,
                        size_t n)
{
    gguf_put_head(b, 3, 1, 0);
    tensor(b, name, type, dim, at);
    while (b->len % 32) buf_byte(b, 0);
    for (size_t i = 0; i < n; i++) buf_byte(b, 0);
}

static void bad_tensors(void **state)
{
    buf b;

    (void)state;
    buf_init(&b, MEM_MISC);
    with_tensor(&b, "t", 0, 8, 0, 32);
    refuses(&b, CAIRN_OK, "");
    with_tensor(&b, "t", 0, 8, 0, 31);
    refuses(&b, CAIRN_E_CORRUPT, "32 bytes at offset 0 of the data; expected at most the 31");
    with_tensor(&b, "t", 0, 8, 16, 64);
    refuses(&b, CAIRN_E_CORRUPT, "offset 16; expected a multiple of 32");
    with_tensor(&b, "t", 0, 8, UINT64_MAX - 31, 64);
    refuses(&b, CAIRN_E_CORRUPT, "t: 32 bytes at offset");
    with_tensor(&b, "t", 4, 8, 0, 32);
    refuses(&b, CAIRN_E_UNSUPPORTED, "unknown type 4");
    with_tensor(&b, "t", 2, 33, 0, 64);
    refuses(&b, CAIRN_E_CORRUPT, "rows of 33 elements; expected for Q4_0 a multiple of 32");
    with_tensor(&b, "t", 0, 0, 0, 32);
    refuses(&b, CAIRN_E_CORRUPT, "dimension 0 is 0");
    with_tensor(&b, "t", 0, UINT64_C(1) << 62, 0, 32);
    refuses(&b, CAIRN_E_CORRUPT, "size overflows");
    gguf_put_head(&b, 3, 1, 0);
    gguf_put_str(&b, "t");
    gguf_put_int(&b, 2, 4);
    gguf_put_int(&b, UINT64_C(1) << 62, 8);
    gguf_put_int(&b, 64, 8);
    refuses(&b, CAIRN_E_CORRUPT, "t: dimension 0 is 4611686018427387904; expected at least 1 and");
    with_tensor(&b, "", 0, 8, 0, 32);
    refuses(&b, CAIRN_E_CORRUPT, "name has 0 bytes");
    gguf_put_head(&b, 3, 1, 0);
    gguf_put_str(&b, "t");
    gguf_put_int(&b, 5, 4);
    gguf_put_int(&b, 1, 64);
    refuses(&b, CAIRN_E_CORRUPT, "5 dimensions; expected at most 4");
    gguf_put_head(&b, 3, 2, 0);
    tensor(&b, "t", 0, 16, 0);
    tensor(&b, "u", 0, 16, 32);
    gguf_put_int(&b, 0, 256);
    for (int i = 0; i < 256; i++) buf_byte(&b, 0);
    refuses(&b, CAIRN_E_CORRUPT,
            "tensor u: begins at offset 32, inside tensor t, which ends at 64");
    buf_deinit(&b);
}

static void same_name_twice(void **state)
{
    tmp_dir dir;
    cairn_diag dg = {0};
    source *s;
    buf b;

    (void)state;
    assert_true(tmp_make(&dir));
    const char *path = tmp_path(&dir, "x.gguf");
    buf_init(&b, MEM_MISC);
    gguf_put_head(&b, 3, 2, 0);
    tensor(&b, "t", 0, 8, 0);
    tensor(&b, "t", 0, 8, 32);
    for (int i = 0; i < 128; i++) buf_byte(&b, 0);
    assert_ok(file_replace(path, b.ptr, b.len, NULL));
    assert_int_equal(gguf_open(path, &s, &dg), CAIRN_E_CORRUPT);
    assert_says(&dg, "tensor t: second of that name");
    buf_deinit(&b);
    assert_true(tmp_drop(&dir));
}

static cairn_status open_close(void *ctx)
{
    source *s;
    const cairn_status st = gguf_open(ctx, &s, NULL);
    if (st == CAIRN_OK) source_close(s);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    char small[] = SMALL, split[] = DATA "split-00002-of-00003.gguf";

    (void)state;
    assert_true(fault_loop(open_close, small) > 5);
    assert_true(fault_loop(open_close, split) > 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_gguf_py_writes),
        cmocka_unit_test(any_part_opens_the_set),
        cmocka_unit_test(missing_parts_are_named),
        cmocka_unit_test(bad_headers),
        cmocka_unit_test(bad_metadata),
        cmocka_unit_test(bad_tensors),
        cmocka_unit_test(same_name_twice),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
