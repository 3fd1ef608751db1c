/* Borrowed strings, with NULs inside and with nothing at all. */
#include "test.h"

#include <stdio.h>

static const cairn_str nothing = {NULL, 0};

static void compares(void **state)
{
    (void)state;
    static const struct {
        cairn_str a, b;
        int sign;
    } cases[] = {
        {STR_LIT("a"), STR_LIT("b"), -1},      {STR_LIT("ab"), STR_LIT("a"), 1},
        {STR_LIT(""), STR_LIT("a"), -1},       {STR_LIT("a\0b"), STR_LIT("a\0c"), -1},
        {STR_LIT("\x80"), STR_LIT("\x7f"), 1}, {STR_LIT("x"), STR_LIT("x"), 0},
        {{NULL, 0}, STR_LIT(""), 0},           {{NULL, 0}, STR_LIT("a"), -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int c = str_cmp(cases[i].a, cases[i].b), d = str_cmp(cases[i].b, cases[i].a);
        assert_int_equal((c > 0) - (c < 0), cases[i].sign);
        assert_int_equal((d > 0) - (d < 0), -cases[i].sign);
        assert_int_equal(str_eq(cases[i].a, cases[i].b), cases[i].sign == 0);
    }
    assert_true(str_is(STR_LIT("word"), "word"));
    assert_false(str_is(STR_LIT("word\0"), "word"));
    assert_int_equal(str_of(NULL).len, 0);
}

static void starts_and_ends(void **state)
{
    (void)state;
    const cairn_str s = STR_LIT("<think>");
    assert_true(str_starts(s, STR_LIT("<th")));
    assert_true(str_starts(s, nothing));
    assert_true(str_starts(nothing, nothing));
    assert_false(str_starts(STR_LIT("<t"), STR_LIT("<th")));
    assert_false(str_starts(s, STR_LIT("th")));
    assert_true(str_ends(s, STR_LIT("nk>")));
    assert_true(str_ends(s, nothing));
    assert_false(str_ends(s, STR_LIT("nk")));
    assert_false(str_ends(STR_LIT(">"), STR_LIT("k>")));
    assert_str(str_sub(s, 1, 5), "think");
}

static void finds(void **state)
{
    (void)state;
    const cairn_str hay = STR_LIT("abcabc");
    assert_int_equal(str_find(hay, STR_LIT("abc"), 0), 0);
    assert_int_equal(str_find(hay, STR_LIT("abc"), 1), 3);
    assert_int_equal(str_find(hay, STR_LIT("abc"), 4), SIZE_MAX);
    assert_int_equal(str_find(hay, STR_LIT("c"), 5), 5);
    assert_int_equal(str_find(hay, STR_LIT("c"), 6), SIZE_MAX);
    assert_int_equal(str_find(hay, nothing, 6), 6);
    assert_int_equal(str_find(hay, nothing, 7), SIZE_MAX);
    assert_int_equal(str_find(hay, STR_LIT("abcabcd"), 0), SIZE_MAX);
    assert_int_equal(str_find(nothing, STR_LIT("a"), 0), SIZE_MAX);
    assert_int_equal(str_find(nothing, nothing, 0), 0);
}

static void trims(void **state)
{
    (void)state;
    assert_str(str_trim(STR_LIT(" \t\r\n\v\f a b \n")), "a b");
    assert_str(str_trim(STR_LIT("a")), "a");
    assert_int_equal(str_trim(STR_LIT(" \n ")).len, 0);
    assert_int_equal(str_trim(nothing).len, 0);
    assert_str(str_trim(STR_LIT("\xc2\xa0")), "\xc2\xa0"); /* ASCII only */
}

static void long_ones_are_cut_for_messages(void **state)
{
    (void)state;
    static char many[5000];
    char text[1000];
    memset(many, 'm', sizeof many);
    const cairn_str s = {many, sizeof many};
    assert_int_equal(snprintf(text, sizeof text, "%.*s", STR_ARG(s)), 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compares),
        cmocka_unit_test(starts_and_ends),
        cmocka_unit_test(finds),
        cmocka_unit_test(trims),
        cmocka_unit_test(long_ones_are_cut_for_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
