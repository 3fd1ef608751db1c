/* What an arena gives is aligned, disjoint and stays until deinit, which leaves nothing. */
#include "test.h"

#include "base/arena.h"

static void gives_disjoint_memory(void **state)
{
    (void)state;
    enum { N = 600 };
    unsigned char *p[N];
    arena a;
    arena_init(&a, MEM_MODEL);
    for (size_t i = 0; i < N; i++) {
        const size_t size = i * 37 % 1500;
        p[i] = arena_alloc(&a, size);
        assert_non_null(p[i]);
        assert_int_equal((uintptr_t)p[i] % 16, 0);
        memset(p[i], (int)(i % 251), size);
    }
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < i * 37 % 1500; k++) assert_int_equal(p[i][k], i % 251);
    assert_int_equal(mem_used(MEM_MODEL), mem_used_all());
    assert_true(a.used >= 600u * 700 && a.used < mem_used_all());
    arena_deinit(&a);
    assert_int_equal(mem_used_all(), 0);
    arena_deinit(&a); /* twice is fine */
    arena zero = {0};
    arena_deinit(&zero);
}

static void takes_big_and_small(void **state)
{
    (void)state;
    arena a;
    arena_init(&a, MEM_MISC);
    const size_t big = (size_t)9 << 20;
    char *first = arena_alloc(&a, 1);
    char *p = arena_alloc(&a, big);
    assert_non_null(p);
    p[0] = p[big - 1] = 'z';
    char *none = arena_alloc(&a, 0), *other = arena_alloc(&a, 0);
    assert_non_null(none);
    assert_ptr_not_equal(none, other);
    assert_ptr_not_equal(first, p);
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_null(arena_alloc(&a, SIZE_MAX - 15));
    assert_null(arena_alloc(&a, SIZE_MAX - 100));
    assert_null(arena_calloc(&a, SIZE_MAX / 2, 3));
    assert_int_equal(p[big - 1], 'z');
    arena_deinit(&a);
    assert_int_equal(mem_used_all(), 0);
}

static void calloc_zeroes_what_was_used(void **state)
{
    (void)state;
    arena a;
    arena_init(&a, MEM_MISC);
    memset(arena_alloc(&a, 640), 0xee, 640);
    arena_deinit(&a); /* the next block is likely the same memory */
    const char *p = arena_calloc(&a, 40, 16);
    for (int i = 0; i < 640; i++) assert_int_equal(p[i], 0);
    const char *z = arena_strdup(&a, (cairn_str){"ab\0cd", 5});
    assert_memory_equal(z, "ab\0cd", 6);
    assert_string_equal(arena_strdup(&a, (cairn_str){NULL, 0}), "");
    arena_deinit(&a);
}

static cairn_status use(void *ctx)
{
    (void)ctx;
    cairn_status st = CAIRN_OK;
    arena a;
    arena_init(&a, MEM_MISC);
    for (int i = 0; st == CAIRN_OK && i < 100; i++)
        if (!arena_alloc(&a, 900) || !arena_strdup(&a, STR_LIT("word"))) st = CAIRN_E_NOMEM;
    arena_deinit(&a);
    return st;
}

static void memory_may_fail(void **state)
{
    (void)state;
    assert_true(fault_loop(use, NULL) >= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_disjoint_memory),
        cmocka_unit_test(takes_big_and_small),
        cmocka_unit_test(calloc_zeroes_what_was_used),
        cmocka_unit_test(memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
