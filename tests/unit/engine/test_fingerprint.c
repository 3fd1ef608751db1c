/* A model's fingerprint: of its files' bytes, in an order that stands; reading them can be stopped. */
#include "test.h"
#include "tmp.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/file.h"
#include "engine/fingerprint.h"

enum { SIZE = (20 << 20) + 77 }; /* three pieces */

static tmp_dir dir;
static char path[2][600];
static uint8_t *bytes;

static int setup(void **state)
{
    (void)state;
    cairn_diag dg = {0};
    if (!tmp_make(&dir)) return -1;
    bytes = mem_calloc(1, SIZE, MEM_MISC);
    if (!bytes) return -1;
    for (size_t i = 0; i < SIZE; i += 4099) bytes[i] = (uint8_t)(i / 4099);
    for (int i = 0; i < 2; i++) (void)snprintf(path[i], sizeof path[i], "%s/part-%d", dir.path, i);
    if (file_replace(path[0], bytes, SIZE, &dg) != CAIRN_OK) return -1;
    return file_replace(path[1], "small", 5, &dg) == CAIRN_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    mem_free(bytes);
    return tmp_drop(&dir) ? 0 : -1;
}

typedef struct asked {
    int n, most; /* after so many the answer is no */
} asked;

static bool ask(void *ctx)
{
    asked *a = ctx;
    return a->n++ < a->most;
}

static cairn_status print_of(fingerprint_ask q, hash128 *out, cairn_diag *dg)
{
    tensor_desc t[3] = {{.file = path[0]}, {.file = path[1]}, {.file = path[0]}};
    source s = {.path = path[0], .tensor = t, .n_tensor = 3};
    const model m = {.src = &s};
    return fingerprint_of(&m, q, out, dg);
}

static void of_bytes(void **state)
{
    (void)state;
    hash128 sums[2], got;
    asked a = {0, 100};
    sums[0] = hash128_of(bytes, SIZE);
    sums[1] = hash128_of("small", 5);
    assert_ok(print_of((fingerprint_ask){ask, &a}, &got, NULL));
    assert_true(hash128_same(got, hash128_of(sums, sizeof sums))); /* each file once */
    assert_int_equal(a.n, 4);
    assert_ok(print_of((fingerprint_ask){0}, &got, NULL));
    assert_true(hash128_same(got, hash128_of(sums, sizeof sums)));
}

static void stopped(void **state)
{
    (void)state;
    const uint64_t before = mem_used_all();
    for (int n = 0; n < 4; n++) {
        asked a = {0, n};
        hash128 got = {7, 7};
        cairn_diag dg = {0};
        assert_int_equal(print_of((fingerprint_ask){ask, &a}, &got, &dg), CAIRN_E_CANCELLED);
        assert_int_equal(a.n, n + 1); /* nothing is read after a no */
        assert_true(got.lo == 7 && got.hi == 7);
        assert_says(&dg, n < 3 ? "part-0" : "part-1");
        assert_says(&dg, "cancelled");
    }
    assert_int_equal(mem_used_all(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_bytes), cmocka_unit_test(stopped)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
