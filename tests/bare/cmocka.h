/* What the kernel tests use of cmocka, for machines that have a C library and no more: BARE=1 of the
   Makefile puts it before the real one.  A failed check ends its test by longjmp; the totals are
   printed in cmocka's words, which tools/run-tests counts. */
#ifndef TESTS_BARE_CMOCKA_H
#define TESTS_BARE_CMOCKA_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*test_func)(void **state);
};
#define cmocka_unit_test(f)                                                                        \
    {                                                                                              \
#f, f                                                                                      \
    }

enum { BARE_PASSED, BARE_FAILED, BARE_SKIPPED };
static jmp_buf bare_end;

static inline void bare_stop(int how)
{
    longjmp(bare_end, how);
}

#define print_message printf
#define skip()        bare_stop(BARE_SKIPPED)
#define fail_msg(...)                                                                              \
    do {                                                                                           \
        printf("%s:%d: ", __FILE__, __LINE__);                                                     \
        printf(__VA_ARGS__);                                                                       \
        printf("\n");                                                                              \
        bare_stop(BARE_FAILED);                                                                    \
    } while (0)
#define assert_true(x)                                                                             \
    do {                                                                                           \
        if (!(x)) fail_msg("%s", #x);                                                              \
    } while (0)
#define assert_false(x)              assert_true(!(x))
#define assert_non_null(x)           assert_true((x) != NULL)
#define assert_int_equal(a, b)       assert_true((a) == (b))
#define assert_string_equal(a, b)    assert_true(strcmp(a, b) == 0)
#define assert_memory_equal(a, b, n) assert_true(memcmp(a, b, n) == 0)

static inline int cmocka_run_group_tests_(const struct CMUnitTest *t, size_t n)
{
    static const char *const word[] = {"PASSED  ", "FAILED  ", "SKIPPED "};
    volatile int count[3] = {0};
    for (volatile size_t i = 0; i < n; i++) {
        const int how = setjmp(bare_end);
        if (how == BARE_PASSED) t[i].test_func(&(void *){NULL});
        if (how != BARE_PASSED) printf("%s%s\n", word[how], t[i].name);
        count[how]++;
    }
    for (int k = 0; k < 3; k++) printf("[  %s] %d test(s).\n", word[k], count[k]);
    return count[BARE_FAILED];
}
#define cmocka_run_group_tests(tests, setup, teardown)                                             \
    cmocka_run_group_tests_(tests, sizeof(tests) / sizeof *(tests))

#endif
