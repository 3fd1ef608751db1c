/* Messages: one clean line, and a status that survives a NULL diag. */
#include "test.h"

static void set_makes_one_line(void **state)
{
    (void)state;
    cairn_diag dg = {0};
    assert_int_equal(diag_set(&dg, CAIRN_E_CORRUPT, "a\nb\x7f%d", 3), CAIRN_E_CORRUPT);
    assert_string_equal(dg.message, "a?b?3");
    assert_int_equal(diag_set(NULL, CAIRN_E_LIMIT, "nobody listens"), CAIRN_E_LIMIT);
}

static void prefix_keeps_the_status(void **state)
{
    (void)state;
    cairn_diag dg = {0};
    (void)diag_set(&dg, CAIRN_E_CORRUPT, "bad");
    assert_int_equal(diag_prefix(&dg, CAIRN_E_CORRUPT, "file %d", 1), CAIRN_E_CORRUPT);
    assert_string_equal(dg.message, "file 1: bad");
    assert_int_equal(dg.status, CAIRN_E_CORRUPT);
    assert_int_equal(diag_prefix(NULL, CAIRN_E_CORRUPT, "file"), CAIRN_E_CORRUPT);
}

static void prefix_cuts_at_a_character(void **state)
{
    (void)state;
    cairn_diag dg = {0};
    char long_text[sizeof dg.message];
    memset(long_text, 'x', sizeof long_text);
    long_text[sizeof long_text - 1] = '\0';
    (void)diag_set(&dg, CAIRN_E_IO, "%s", long_text);
    assert_int_equal(strlen(dg.message), sizeof dg.message - 1);
    (void)diag_prefix(&dg, CAIRN_E_IO, "%.495s\xc3\xa9", long_text); /* 497 bytes and ": " */
    assert_int_equal(strlen(dg.message), sizeof dg.message - 1);
    (void)diag_prefix(&dg, CAIRN_E_IO, "%.498s\xc3\xa9", long_text); /* cut inside the letter */
    assert_int_equal(strlen(dg.message), 498);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_makes_one_line),
        cmocka_unit_test(prefix_keeps_the_status),
        cmocka_unit_test(prefix_cuts_at_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
