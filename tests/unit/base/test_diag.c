/* Messages: one line, whole characters, and a prefix that keeps what was said. */
#include "test.h"

#include "base/utf8.h"

static void sets_and_answers(void **state)
{
    (void)state;
    cairn_diag dg = {0};
    assert_int_equal(diag_set(&dg, CAIRN_E_LIMIT, "%s: %d of %d", "x", 5, 4), CAIRN_E_LIMIT);
    assert_int_equal(dg.status, CAIRN_E_LIMIT);
    assert_string_equal(dg.message, "x: 5 of 4");
    assert_int_equal(diag_set(NULL, CAIRN_E_IO, "%s", "nobody listens"), CAIRN_E_IO);
    assert_int_equal(diag_set(&dg, CAIRN_E_ARG, "again: %s", dg.message), CAIRN_E_ARG);
    assert_string_equal(dg.message, "again: x: 5 of 4");
}

static void control_characters_become_marks(void **state)
{
    (void)state;
    cairn_diag dg = {0};
    (void)diag_set(&dg, CAIRN_E_CORRUPT, "%s", "a\nb\r\tc\x1b[1m\x7f\x01 \xc3\xa9");
    assert_string_equal(dg.message, "a?b??c?[1m?? \xc3\xa9");
}

static void long_ones_are_cut_between_characters(void **state)
{
    (void)state;
    cairn_diag dg = {0};
    char text[700] = "";
    for (size_t shift = 0; shift < 4; shift++) {
        memset(text, 'x', shift);
        for (size_t i = shift; i + 4 < sizeof text; i += 4) memcpy(text + i, "\xf0\x9f\x99\x82", 5);
        (void)diag_set(&dg, CAIRN_E_CORRUPT, "%s", text);
        const size_t n = strlen(dg.message);
        assert_true(utf8_valid((cairn_str){dg.message, n}));
        assert_in_range(n, sizeof dg.message - 4, sizeof dg.message - 1);
        assert_memory_equal(dg.message, text, n);
    }
}

static void prefix_goes_before(void **state)
{
    (void)state;
    cairn_diag dg = {0};
    (void)diag_set(&dg, CAIRN_E_CORRUPT, "%s", "bad size");
    assert_int_equal(diag_prefix(&dg, CAIRN_E_CORRUPT, "tensor %d", 3), CAIRN_E_CORRUPT);
    assert_int_equal(diag_prefix(&dg, CAIRN_E_CORRUPT, "file\n"), CAIRN_E_CORRUPT);
    assert_string_equal(dg.message, "file?: tensor 3: bad size");
    assert_int_equal(diag_prefix(NULL, CAIRN_E_IO, "x"), CAIRN_E_IO);
    for (int i = 0; i < 300; i++) (void)diag_prefix(&dg, CAIRN_E_CORRUPT, "level %d", i);
    assert_int_equal(strlen(dg.message), sizeof dg.message - 1);
    assert_memory_equal(dg.message, "level 299: level 298: ", 22);
}

static cairn_status step(cairn_status st)
{
    return st;
}

static cairn_status tries(cairn_status first, cairn_status second, int *reached)
{
    cairn_status st = CAIRN_OK;
    TRY(step(first));
    *reached = 1;
    TRY_GOTO(step(second), out);
    *reached = 2;
out:
    return st;
}

static void try_stops_at_the_first_failure(void **state)
{
    (void)state;
    int reached = 0;
    assert_int_equal(tries(CAIRN_E_IO, CAIRN_OK, &reached), CAIRN_E_IO);
    assert_int_equal(reached, 0);
    assert_int_equal(tries(CAIRN_OK, CAIRN_E_ARG, &reached), CAIRN_E_ARG);
    assert_int_equal(reached, 1);
    assert_ok(tries(CAIRN_OK, CAIRN_OK, &reached));
    assert_int_equal(reached, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_and_answers),
        cmocka_unit_test(control_characters_become_marks),
        cmocka_unit_test(long_ones_are_cut_between_characters),
        cmocka_unit_test(prefix_goes_before),
        cmocka_unit_test(try_stops_at_the_first_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
