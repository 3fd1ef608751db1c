/* Arrays and archives byte for byte as numpy and Python's zipfile write them, and full or absent disks. */
#include "test.h"
#include "tmp.h"

#include <unistd.h>

#include "base/file.h"
#include "format/format.h"

#define DATA "tests/unit/format/data/"

static void read_all(const char *path, buf *b)
{
    buf_clear(b);
    assert_ok(file_read(path, 1 << 20, b, NULL));
}

/* Byte for byte what numpy.save writes. */
static void npy_equals_numpy(void **state)
{
    static const float ramp[6] = {0, 1, 2, 3, 4, 5}, scalar = 2.5f;
    static const struct {
        const char *golden;
        const float *p;
        size_t dim[2], n_dim;
    } c[] = {{DATA "ramp.npy", ramp, {2, 3}, 2},
             {DATA "row.npy", ramp, {5}, 1},
             {DATA "scalar.npy", &scalar, {0}, 0}};
    tmp_dir dir;
    buf got, want;

    (void)state;
    assert_true(tmp_make(&dir));
    const char *path = tmp_path(&dir, "x");
    buf_init(&got, MEM_MISC);
    buf_init(&want, MEM_MISC);
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        assert_ok(npy_write_f32(path, c[i].p, c[i].dim, c[i].n_dim, NULL));
        read_all(path, &got);
        read_all(c[i].golden, &want);
        assert_int_equal(got.len, want.len);
        assert_memory_equal(got.ptr, want.ptr, want.len);
    }
    buf_deinit(&got);
    buf_deinit(&want);
    assert_true(tmp_drop(&dir));
}

static uint32_t u32_at(const buf *b, size_t at)
{
    uint32_t u;
    assert_true(at + 4 <= b->len);
    memcpy(&u, b->ptr + at, 4);
    return u;
}

/* Places and checksums as Python's zipfile wrote the same three arrays. */
static void npz_is_a_stored_zip(void **state)
{
    static const int32_t ids[4] = {7, -1, 3, 9};
    static const float logits[4] = {1.5f, 0.25f, 8.0f, -2.0f}, lse[2] = {2.0f, 9.0f};
    tmp_dir dir;
    buf b, golden;

    (void)state;
    assert_true(tmp_make(&dir));
    const char *path = tmp_path(&dir, "x");
    buf_init(&b, MEM_MISC);
    buf_init(&golden, MEM_MISC);
    assert_ok(npz_write_top(path, ids, logits, lse, 2, 2, NULL));
    read_all(path, &b);
    read_all(DATA "top.npz", &golden);
    assert_int_equal(b.len, golden.len);
    assert_memory_equal(b.ptr, golden.ptr, b.len);
    assert_int_equal(u32_at(&b, 0), 0x04034b50);
    buf_deinit(&b);
    buf_deinit(&golden);
    assert_true(tmp_drop(&dir));
}

static void errors(void **state)
{
    const size_t big[2] = {SIZE_MAX / 2, 8}, one = 1;
    const float x = 1.0f;
    cairn_diag dg = {0};

    (void)state;
    assert_int_equal(npy_write_f32("/dev/null/x.npy", &x, &one, 1, &dg), CAIRN_E_IO);
    assert_says(&dg, "/dev/null/x.npy: opening for writing");
    assert_int_equal(npy_write_f32("/dev/null/x.npy", &x, big, 2, &dg), CAIRN_E_ARG);
    assert_int_equal(npz_write_top("/dev/null/x.npz", NULL, &x, &x, 1 << 20, 1 << 20, &dg),
                     CAIRN_E_LIMIT);
    if (access("/dev/full", W_OK) == 0) {
        /* the header alone fits the stream's buffer: the error comes when it is closed */
        assert_int_equal(npy_write_f32("/dev/full", &x, &one, 1, &dg), CAIRN_E_IO);
        assert_says(&dg, "No space left");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(npy_equals_numpy),
        cmocka_unit_test(npz_is_a_stored_zip),
        cmocka_unit_test(errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
