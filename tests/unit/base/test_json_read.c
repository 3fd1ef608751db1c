/* Reading JSON: every getter on every type, members, iteration, numbers at their limits, depth. */
#include "test.h"

#include <math.h>

#include "base/json.h"

static json_doc *parse(const char *text)
{
    json_doc *d = NULL;
    cairn_diag dg = {0};
    assert_int_equal(json_parse(str_of(text), &d, &dg), CAIRN_OK);
    return d;
}

static void types(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        json_type type;
        const char *name;
    } cases[] = {
        {"null", JSON_NULL, "null"},
        {"true", JSON_BOOL, "a boolean"},
        {"false", JSON_BOOL, "a boolean"},
        {"-3", JSON_INT, "an integer"},
        {"9223372036854775807", JSON_INT, "an integer"},
        {"9223372036854775808", JSON_UINT, "an integer"},
        {"1.0", JSON_FLOAT, "a number"},
        {"1e2", JSON_FLOAT, "a number"},
        {"\"\"", JSON_STR, "a string"},
        {"[]", JSON_ARR, "an array"},
        {"{}", JSON_OBJ, "an object"},
        {" \t\r\n[ ] ", JSON_ARR, "an array"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_doc *d = parse(cases[i].text);
        assert_int_equal(json_typeof(json_root(d)), cases[i].type);
        assert_string_equal(json_type_name(cases[i].type), cases[i].name);
        assert_int_equal(json_size(json_root(d)), 0);
        json_free(d);
    }
    json_free(NULL);
}

static void absent_values_are_fine(void **state)
{
    (void)state;
    const json_val none = {NULL, 0};
    json_val v;
    cairn_str key;
    assert_int_equal(json_typeof(none), JSON_NONE);
    assert_string_equal(json_type_name(JSON_NONE), "nothing");
    assert_int_equal(json_typeof(json_get(none, "a")), JSON_NONE);
    assert_int_equal(json_typeof(json_path(none, "a.b")), JSON_NONE);
    assert_int_equal(json_typeof(json_at(none, 0)), JSON_NONE);
    assert_int_equal(json_size(none), 0);
    json_iter it = json_each(none);
    assert_false(json_next(&it, &v));
    assert_false(json_next_member(&it, &key, &v));
    assert_true(json_bool(none, true));
    assert_int_equal(json_int(none, 7), 7);
    assert_true(json_num(none, 7) == 7);
    assert_int_equal(json_str(none).len, 0);
    assert_non_null(json_str(none).ptr);
}

static void members(void **state)
{
    (void)state;
    json_doc *d =
        parse("{\"a\":1,\"b\":{\"c\":{\"d\":2},\"\":3},\"a\":4,\"x.y\":5,\"e\\u0000\":6}");
    const json_val r = json_root(d);
    assert_int_equal(json_size(r), 5);
    assert_int_equal(json_int(json_get(r, "a"), 0), 4); /* the last one, as in Python */
    assert_int_equal(json_int(json_path(r, "b.c.d"), 0), 2);
    assert_int_equal(json_int(json_path(r, "b."), 0), 3);
    assert_int_equal(json_int(json_get(r, "x.y"), 0), 5);
    assert_int_equal(json_typeof(json_path(r, "x.y")), JSON_NONE);
    assert_int_equal(json_typeof(json_path(r, "a.b")), JSON_NONE);
    assert_int_equal(json_typeof(json_get(r, "e")), JSON_NONE); /* its name is longer by a NUL */
    assert_int_equal(json_typeof(json_get(r, "B")), JSON_NONE);
    assert_int_equal(json_typeof(json_at(r, 0)), JSON_NONE); /* not an array */
    json_free(d);
}

static void iterates(void **state)
{
    (void)state;
    json_doc *d = parse("{\"k\":[1,[2,3],{\"m\":[]},18446744073709551615,-1.5,\"s\"],\"l\":{}}");
    json_iter it = json_each(json_root(d));
    json_val v;
    cairn_str key;
    assert_true(json_next_member(&it, &key, &v));
    assert_str(key, "k");
    static const json_type want[] = {JSON_INT, JSON_ARR, JSON_OBJ, JSON_UINT, JSON_FLOAT, JSON_STR};
    json_iter in = json_each(v);
    json_val item;
    for (size_t i = 0; i < 6; i++) {
        assert_true(json_next(&in, &item));
        assert_int_equal(json_typeof(item), want[i]);
        assert_int_equal(json_typeof(json_at(v, i)), want[i]);
    }
    assert_false(json_next(&in, &item));
    assert_false(json_next(&in, &item));
    assert_int_equal(json_typeof(json_at(v, 6)), JSON_NONE);
    assert_int_equal(json_size(v), 6);
    json_iter not_object = json_each(v);
    assert_false(json_next_member(&not_object, &key, &item));
    assert_true(json_next(&it, &v)); /* values of an object, without names */
    assert_int_equal(json_typeof(v), JSON_OBJ);
    assert_false(json_next(&it, &v));
    json_free(d);
}

static void numbers_at_their_limits(void **state)
{
    (void)state;
    json_doc *d = parse("[9223372036854775807,-9223372036854775808,18446744073709551615,"
                        "9223372036854775808.0,-9223372036854775808.0,3.0,3.5,-0.0,5e-324,"
                        "1.7976931348623157e308,0.1,1e-400,123456789012345678]");
    const json_val r = json_root(d);
    assert_true(json_int(json_at(r, 0), 0) == INT64_MAX);
    assert_true(json_int(json_at(r, 1), 0) == INT64_MIN);
    assert_int_equal(json_int(json_at(r, 2), 7), 7); /* does not fit */
    assert_true(json_num(json_at(r, 2), 0) == 18446744073709551615.0);
    assert_int_equal(json_int(json_at(r, 3), 7), 7);
    assert_true(json_int(json_at(r, 4), 0) == INT64_MIN);
    assert_int_equal(json_int(json_at(r, 5), 7), 3);
    assert_int_equal(json_int(json_at(r, 6), 7), 7);
    assert_true(json_num(json_at(r, 7), 7) == 0 && signbit(json_num(json_at(r, 7), 7)));
    assert_true(json_num(json_at(r, 8), 0) == 5e-324);
    assert_true(json_num(json_at(r, 9), 0) == 1.7976931348623157e308);
    assert_true(json_num(json_at(r, 10), 0) == 0.1);
    assert_true(json_num(json_at(r, 11), 7) == 0);
    assert_true(json_int(json_at(r, 12), 0) == 123456789012345678);
    json_free(d);
}

static void strings(void **state)
{
    (void)state;
    json_doc *d = parse("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\",\"\\u00e9\\ud83d\\ude42\",\"a\\u0000b\","
                        "\"\xe2\x82\xac\",1]");
    const json_val r = json_root(d);
    assert_str(json_str(json_at(r, 0)), "\"\\/\b\f\n\r\t");
    assert_str(json_str(json_at(r, 1)), "\xc3\xa9\xf0\x9f\x99\x82");
    assert_int_equal(json_str(json_at(r, 2)).len, 3);
    assert_memory_equal(json_str(json_at(r, 2)).ptr, "a\0b", 3);
    assert_str(json_str(json_at(r, 3)), "\xe2\x82\xac");
    assert_int_equal(json_str(json_at(r, 4)).len, 0);
    json_free(d);
}

static void checked_reads(void **state)
{
    (void)state;
    json_doc *d = parse("{\"b\":true,\"i\":5,\"f\":5.0,\"h\":0.5,\"big\":18446744073709551615,"
                        "\"n\":null,\"s\":\"x\",\"a\":[],\"e\":1e300}");
    const json_val r = json_root(d);
    cairn_diag dg = {0};
    bool b = false;
    int64_t i = 77;
    double x = 77;
    cairn_str s = STR_LIT("kept");
    assert_ok(json_want_bool(r, "b", &b, &dg));
    assert_true(b);
    assert_ok(json_want_int(r, "none", 0, 1, &i, &dg));
    assert_ok(json_want_int(r, "n", 0, 1, &i, &dg));
    assert_ok(json_want_num(r, "n", 0, 1, &x, &dg));
    assert_ok(json_want_str(r, "n", &s, &dg));
    assert_ok(json_want_bool(r, "n", &b, &dg));
    assert_true(i == 77 && x == 77 && b);
    assert_str(s, "kept");
    assert_ok(json_want_int(r, "f", 5, 5, &i, &dg));
    assert_int_equal(i, 5);
    assert_int_equal(json_want_int(r, "i", 6, 9, &i, &dg), CAIRN_E_ARG);
    assert_says(&dg, "`i` must be from 6 to 9, found 5");
    assert_int_equal(json_want_int(r, "h", 0, 9, &i, &dg), CAIRN_E_ARG);
    assert_says(&dg, "`h` must be an integer, found 0.5");
    assert_int_equal(json_want_int(r, "big", 0, INT64_MAX, &i, &dg), CAIRN_E_ARG);
    assert_int_equal(json_want_int(r, "e", INT64_MIN, INT64_MAX, &i, &dg), CAIRN_E_ARG);
    assert_says(&dg, "`e` must be from");
    assert_int_equal(json_want_int(r, "s", 0, 9, &i, &dg), CAIRN_E_ARG);
    assert_says(&dg, "`s` must be an integer, found a string");
    assert_int_equal(json_want_num(r, "s", 0, 9, &x, &dg), CAIRN_E_ARG);
    assert_says(&dg, "`s` must be a number, found a string");
    assert_int_equal(json_want_num(r, "h", 1, 2, &x, &dg), CAIRN_E_ARG);
    assert_says(&dg, "`h` must be from 1 to 2, found 0.5");
    assert_int_equal(json_want_bool(r, "i", &b, &dg), CAIRN_E_ARG);
    assert_says(&dg, "`i` must be a boolean, found an integer");
    assert_int_equal(json_want_str(r, "a", &s, &dg), CAIRN_E_ARG);
    assert_says(&dg, "`a` must be a string, found an array");
    assert_true(i == 5 && x == 77 && b); /* only written on success */
    assert_ok(json_want_num(r, "i", 0, 9, &x, &dg));
    assert_true(x == 5);
    json_free(d);
}

static void deepest(void **state)
{
    (void)state;
    char text[2 * JSON_MAX_DEPTH + 1];
    memset(text, '[', JSON_MAX_DEPTH);
    memset(text + JSON_MAX_DEPTH, ']', JSON_MAX_DEPTH);
    text[2 * JSON_MAX_DEPTH] = '\0';
    json_doc *d = parse(text);
    json_val v = json_root(d);
    for (int i = 1; i < JSON_MAX_DEPTH; i++) {
        assert_int_equal(json_size(v), 1);
        v = json_at(v, 0);
    }
    assert_int_equal(json_size(v), 0);
    assert_int_equal(json_typeof(v), JSON_ARR);
    json_free(d);
}

static cairn_status parse_once(void *ctx)
{
    json_doc *d;
    cairn_diag dg = {0};
    const cairn_status st = json_parse(str_of(ctx), &d, &dg);
    if (st == CAIRN_OK)
        json_free(d);
    else
        assert_int_equal(dg.status, st);
    return st;
}

static void memory_may_fail(void **state)
{
    (void)state;
    char text[] = "{\"a\":[1,2,{\"b\":\"c\"}]}";
    assert_true(fault_loop(parse_once, text) >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types),           cmocka_unit_test(absent_values_are_fine),
        cmocka_unit_test(members),         cmocka_unit_test(iterates),
        cmocka_unit_test(strings),         cmocka_unit_test(numbers_at_their_limits),
        cmocka_unit_test(checked_reads),   cmocka_unit_test(deepest),
        cmocka_unit_test(memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
