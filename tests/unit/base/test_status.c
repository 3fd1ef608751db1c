/* Every status has a text of its own; what was given away can be given back, twice. */
#include "test.h"

#include "cairn/cairn.h"

static void texts(void **state)
{
    (void)state;
    assert_string_equal(cairn_status_text(CAIRN_OK), "ok");
    assert_string_equal(cairn_status_text(CAIRN_E_CORRUPT), "malformed data");
    for (int i = 0; i < CAIRN_STATUS_COUNT; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(cairn_status_text((cairn_status)i),
                                    cairn_status_text((cairn_status)k));
    assert_string_equal(cairn_status_text(CAIRN_STATUS_COUNT), "unknown status");
    assert_string_equal(cairn_status_text((cairn_status)9999), "unknown status");
    assert_true(CAIRN_OK == 0);
}

static void gives_back(void **state)
{
    (void)state;
    cairn_bytes b = {mem_alloc(3, MEM_TEXT), 3};
    cairn_ids ids = {mem_alloc(8, MEM_TEXT), 2};
    cairn_bytes_free(&b);
    cairn_ids_free(&ids);
    assert_int_equal(mem_used_all(), 0);
    assert_true(!b.ptr && b.len == 0 && !ids.ptr && ids.len == 0);
    cairn_bytes_free(&b);
    cairn_ids_free(&ids);
    cairn_bytes_free(NULL);
    cairn_ids_free(NULL);
}

static void version_is_three_numbers(void **state)
{
    (void)state;
    const char *v = cairn_version();
    assert_int_equal(strspn(v, "0123456789."), strlen(v));
    int dots = 0;
    for (; *v; v++) dots += *v == '.';
    assert_int_equal(dots, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(gives_back),
        cmocka_unit_test(version_is_three_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
