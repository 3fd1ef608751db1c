/* Counters are exact by tag, the hook fails the call it names and no other, sizes that overflow are
   refused. */
#include "test.h"

static void counters_are_exact(void **state)
{
    (void)state;
    assert_int_equal(mem_used_all(), 0);
    char *a = mem_alloc(100, MEM_TEXT);
    char *b = mem_calloc(7, 11, MEM_IO);
    assert_int_equal(mem_used(MEM_TEXT), 100);
    assert_int_equal(mem_used(MEM_IO), 77);
    assert_int_equal(mem_used(MEM_JSON), 0);
    assert_int_equal(mem_used_all(), 177);
    for (int i = 0; i < 77; i++) assert_int_equal(b[i], 0);
    memset(a, 'x', 100);
    a = mem_realloc(a, 5000, MEM_TEXT);
    for (int i = 0; i < 100; i++) assert_int_equal(a[i], 'x');
    assert_int_equal(mem_used(MEM_TEXT), 5000);
    a = mem_realloc(a, 10, MEM_CACHE); /* the new size is the new tag's */
    assert_int_equal(mem_used(MEM_TEXT), 0);
    assert_int_equal(mem_used(MEM_CACHE), 10);
    mem_free(a);
    mem_free(b);
    mem_free(NULL);
    assert_int_equal(mem_used_all(), 0);
}

static void nothing_is_something(void **state)
{
    (void)state;
    void *a = mem_alloc(0, MEM_MISC), *b = mem_alloc(0, MEM_MISC), *c = mem_calloc(0, 8, MEM_MISC);
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    assert_ptr_not_equal(a, b);
    mem_free(a);
    mem_free(b);
    mem_free(c);
    void *d = mem_realloc(NULL, 3, MEM_MISC);
    assert_int_equal(mem_used(MEM_MISC), 3);
    mem_free(d);
}

static void aligned_to_16(void **state)
{
    (void)state;
    for (size_t n = 0; n < 70; n++) {
        void *p = mem_alloc(n, MEM_MISC);
        assert_int_equal((uintptr_t)p % 16, 0);
        p = mem_realloc(p, n * 3, MEM_MISC);
        assert_int_equal((uintptr_t)p % 16, 0);
        mem_free(p);
    }
}

static void overflow_is_refused(void **state)
{
    (void)state;
    char *p = mem_alloc(4, MEM_MISC);
    memcpy(p, "abcd", 4);
    assert_null(mem_alloc(SIZE_MAX, MEM_MISC));
    assert_null(mem_alloc(SIZE_MAX - 8, MEM_MISC));
    assert_null(mem_calloc(SIZE_MAX / 2, 3, MEM_MISC));
    assert_null(mem_calloc(1, SIZE_MAX, MEM_MISC));
    assert_null(mem_realloc(p, SIZE_MAX, MEM_MISC));
    assert_memory_equal(p, "abcd", 4); /* kept on failure */
    assert_int_equal(mem_used(MEM_MISC), 4);
    mem_free(p);
}

static void hook_fails_the_nth_once(void **state)
{
    (void)state;
    void *p[6] = {NULL};
    mem_fail_nth(3);
    p[0] = mem_alloc(1, MEM_MISC);
    p[1] = mem_calloc(1, 1, MEM_MISC);
    assert_int_equal(mem_calls(), 2);
    p[2] = mem_realloc(p[1], 50, MEM_MISC);
    assert_null(p[2]);
    p[3] = mem_realloc(p[1], 50, MEM_MISC);
    assert_non_null(p[3]);
    assert_int_equal(mem_calls(), 4);
    mem_fail_nth(1);
    assert_null(mem_map(4096, MEM_MISC));
    mem_fail_nth(1);
    assert_null(mem_realloc(NULL, 5, MEM_MISC));
    mem_fail_nth(0);
    p[4] = mem_alloc(1, MEM_MISC);
    assert_non_null(p[4]);
    assert_int_equal(mem_calls(), 1);
    mem_free(p[0]);
    mem_free(p[3]);
    mem_free(p[4]);
    assert_int_equal(mem_used_all(), 0);
}

static void maps_are_zero_and_counted(void **state)
{
    (void)state;
    const size_t n = (size_t)5 << 20;
    unsigned char *p = mem_map(n, MEM_WEIGHTS);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % (2 << 20), 0); /* at a huge page, from that size on */
    assert_int_equal(mem_used(MEM_WEIGHTS), n);
    assert_int_equal(p[0], 0);
    assert_int_equal(p[n - 1], 0);
    p[n - 1] = 1;
    mem_unmap(p, n, MEM_WEIGHTS);
    assert_int_equal(mem_used_all(), 0);
    void *empty = mem_map(0, MEM_WEIGHTS);
    assert_non_null(empty);
    mem_unmap(empty, 0, MEM_WEIGHTS);
    mem_unmap(NULL, 100, MEM_WEIGHTS);
    assert_null(mem_map(SIZE_MAX / 2, MEM_WEIGHTS));
    assert_int_equal(mem_used_all(), 0);
}

/* From some size on blocks are mappings: what is in them must survive every way from one kind to the other. */
static void big_blocks_keep_their_bytes(void **state)
{
    (void)state;
    static const size_t size[] = {100, (size_t)5 << 20, ((size_t)9 << 20) + 3, (size_t)4 << 20, 70};
    uint32_t *p = mem_calloc(1, (size_t)6 << 20, MEM_TEXT);
    for (size_t i = 0; i < ((size_t)6 << 20) / sizeof *p; i++) assert_int_equal(p[i], 0);
    mem_free(p);
    p = NULL;
    for (size_t k = 0; k < sizeof size / sizeof size[0]; k++) {
        const size_t had = k ? size[k - 1] / sizeof *p : 0, n = size[k] / sizeof *p;
        p = mem_realloc(p, size[k], MEM_TEXT);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        assert_int_equal(mem_used(MEM_TEXT), size[k]);
        for (size_t i = 0; i < had && i < n; i++)
            assert_int_equal(p[i], (uint32_t)(i * 2654435761u));
        for (size_t i = 0; i < n; i++) p[i] = (uint32_t)(i * 2654435761u);
    }
    mem_free(p);
    assert_int_equal(mem_used_all(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_are_exact),
        cmocka_unit_test(nothing_is_something),
        cmocka_unit_test(aligned_to_16),
        cmocka_unit_test(overflow_is_refused),
        cmocka_unit_test(hook_fails_the_nth_once),
        cmocka_unit_test(maps_are_zero_and_counted),
        cmocka_unit_test(big_blocks_keep_their_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
