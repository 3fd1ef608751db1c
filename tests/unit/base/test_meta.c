/* Typed reads over a view that is a plain table here. */
#include "test.h"

#include <math.h>

#include "base/meta.h"

static const struct {
    const char *key;
    meta m;
} entries[] = {
    {"bool", {.type = META_BOOL, .u = {.b = true}}},
    {"int", {.type = META_INT, .u = {.i = -5}}},
    {"big", {.type = META_INT, .u = {.i = INT64_MAX}}},
    {"whole", {.type = META_FLOAT, .u = {.f = 4096.0}}},
    {"part", {.type = META_FLOAT, .u = {.f = 0.5}}},
    {"huge", {.type = META_FLOAT, .u = {.f = 0x1p63}}},
    {"least", {.type = META_FLOAT, .u = {.f = -0x1p63}}},
    {"nan", {.type = META_FLOAT, .u = {.f = (double)NAN}}},
    {"str", {.type = META_STR, .u = {.s = {"text", 4}}}},
    {"arr", {.type = META_ARR, .u = {.n = 3}}},
    {"obj", {.type = META_OBJ, .u = {.n = 0}}},
};

static bool get(const void *self, const char *key, meta *out)
{
    (void)self;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (strcmp(entries[i].key, key) == 0) {
            *out = entries[i].m;
            return true;
        }
    return false;
}

static bool at(const void *self, const meta *arr, size_t i, meta *out)
{
    (void)self;
    (void)arr;
    *out = (meta){.type = META_INT, .u = {.i = (int64_t)i * 10}};
    return true;
}

static const meta_view view = {NULL, get, at};

static void reads_by_type(void **state)
{
    (void)state;
    const cairn_str none = STR_LIT("none");
    assert_int_equal(meta_int(&view, "int", 9), -5);
    assert_int_equal(meta_int(&view, "whole", 9), 4096);
    assert_int_equal(meta_int(&view, "part", 9), 9);
    assert_int_equal(meta_int(&view, "huge", 9), 9); /* one past INT64_MAX */
    assert_true(meta_int(&view, "least", 9) == INT64_MIN);
    assert_true(meta_int(&view, "big", 9) == INT64_MAX);
    assert_int_equal(meta_int(&view, "str", 9), 9);
    assert_int_equal(meta_int(&view, "bool", 9), 9);
    assert_int_equal(meta_int(&view, "absent", 9), 9);
    assert_true(meta_bool(&view, "bool", false));
    assert_true(meta_bool(&view, "int", true));
    assert_false(meta_bool(&view, "absent", false));
    assert_str(meta_str(&view, "str", none), "text");
    assert_str(meta_str(&view, "int", none), "none");
    assert_str(meta_str(&view, "absent", none), "none");
}

static void elements_have_bounds(void **state)
{
    (void)state;
    meta arr = {0}, m = {0};
    assert_true(meta_get(&view, "arr", &arr));
    assert_true(meta_at(&view, &arr, 2, &m) && m.u.i == 20);
    assert_false(meta_at(&view, &arr, 3, &m));
    assert_false(meta_at(&view, &arr, SIZE_MAX, &m));
}

static void checked_integers(void **state)
{
    (void)state;
    cairn_diag dg = {0};
    int64_t i = 77;
    assert_ok(meta_want_int(&view, "absent", false, 0, 9, &i, &dg));
    assert_int_equal(i, 77);
    assert_int_equal(meta_want_int(&view, "absent", true, 0, 9, &i, &dg), CAIRN_E_CORRUPT);
    assert_says(&dg, "absent: found nothing; expected an integer from 0 to 9");
    assert_ok(meta_want_int(&view, "int", true, -5, -5, &i, &dg));
    assert_int_equal(i, -5);
    assert_int_equal(meta_want_int(&view, "int", false, -4, 9, &i, &dg), CAIRN_E_CORRUPT);
    assert_says(&dg, "int: found -5; expected an integer from -4 to 9");
    assert_int_equal(meta_want_int(&view, "part", true, 0, 9, &i, &dg), CAIRN_E_CORRUPT);
    assert_says(&dg, "part: found 0.5; expected an integer");
    static const char *const wrong[] = {"bool", "str", "arr", "obj"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        assert_int_equal(meta_want_int(&view, wrong[k], false, 0, 9, &i, &dg), CAIRN_E_CORRUPT);
    assert_says(&dg, "obj: found an object; expected");
    assert_int_equal(i, -5);
    assert_ok(meta_want_int(&view, "whole", true, 0, 5000, &i, NULL));
    assert_int_equal(i, 4096);
}

static void checked_numbers(void **state)
{
    (void)state;
    cairn_diag dg = {0};
    double x = 7;
    assert_ok(meta_want_num(&view, "absent", false, &x, &dg));
    assert_true(x == 7);
    assert_int_equal(meta_want_num(&view, "absent", true, &x, &dg), CAIRN_E_CORRUPT);
    assert_int_equal(meta_want_num(&view, "str", false, &x, &dg), CAIRN_E_CORRUPT);
    assert_says(&dg, "expected a number");
    assert_true(x == 7);
    assert_ok(meta_want_num(&view, "int", true, &x, &dg));
    assert_true(x == -5);
    assert_ok(meta_want_num(&view, "part", true, &x, &dg));
    assert_true(x == 0.5);
    assert_int_equal(meta_want_num(&view, "nan", false, &x, &dg), CAIRN_E_CORRUPT);
    assert_says(&dg, "nan: found NaN; expected a finite number");
    assert_true(x == 0.5);
}

static void values_in_words(void **state)
{
    (void)state;
    static const char long_text[] =
        "0123456789012345678901234567890123456789012345678901234567890123";
    const struct {
        meta m;
        const char *want;
    } c[] = {
        {{.type = META_NONE}, "nothing"},
        {{.type = META_NULL}, "null"},
        {{.type = META_BOOL, .u.b = true}, "true"},
        {{.type = META_INT, .u.i = INT64_MIN}, "-9223372036854775808"},
        {{.type = META_FLOAT, .u.f = 1e-6}, "1e-06"},
        {{.type = META_FLOAT, .u.f = (double)NAN}, "NaN"},
        {{.type = META_FLOAT, .u.f = (double)INFINITY}, "Infinity"},
        {{.type = META_FLOAT, .u.f = -(double)INFINITY}, "-Infinity"},
        {{.type = META_STR, .u.s = {"a", 1}}, "\"a\""},
        {{.type = META_STR, .u.s = {long_text, 64}},
         "\"012345678901234567890123456789012345678901234567890123456789...\""},
        {{.type = META_ARR, .u.n = 3}, "an array of 3"},
        {{.type = META_OBJ}, "an object"},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        char text[META_TEXT_LEN];
        meta_text(&c[i].m, text);
        assert_string_equal(text, c[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_by_type),    cmocka_unit_test(elements_have_bounds),
        cmocka_unit_test(checked_integers), cmocka_unit_test(checked_numbers),
        cmocka_unit_test(values_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
