/* The way through json.h from text to values, and numbers beyond any type. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/str.h"

static void smoke(void **state)
{
    (void)state;
    json_doc *d = NULL;
    cairn_diag dg = {0};
    const char *text = "{\"a\":[1,2.5,\"x\\n\\u00e9\",true,null,18446744073709551615],\"a "
                       "b\":{\"c\":-3},\"f\":1.0}";
    assert_int_equal(json_parse(str_of(text), &d, &dg), CAIRN_OK);
    buf b;
    buf_init(&b, MEM_JSON);
    json_writer w = json_write(&b);
    json_w_val(&w, json_root(d));
    assert_int_equal(buf_status(&b), CAIRN_OK);
    assert_string_equal(b.ptr, "{\"a\":[1,2.5,\"x\\n\xc3\xa9\",true,null,18446744073709551615],\"a "
                               "b\":{\"c\":-3},\"f\":1.0}");
    buf_deinit(&b);
    assert_int_equal(json_int(json_path(json_root(d), "a b.c"), 0), -3);
    json_free(d);
    assert_int_equal(json_parse(STR_LIT("{\"a\":\n 1e999}"), &d, &dg), CAIRN_E_CORRUPT);
    assert_string_equal(dg.message, "JSON, byte 7 (line 2, column 2): number out of range");
    assert_int_equal(mem_used_all(), 0);
}

/* Python writes integers of any length: model_max_length is often 10^30. */
static void long_integers(void **state)
{
    (void)state;
    json_doc *d;
    const char *text = "{\"s\":\"1000000000000000019884624838656\\\"\","
                       "\"a\":1000000000000000019884624838656,\"b\":[-9223372036854775809],"
                       "\"c\":9223372036854775807,\"d\":18446744073709551616}";
    assert_int_equal(json_parse(str_of(text), &d, NULL), CAIRN_OK);
    const json_val r = json_root(d);
    assert_true(json_num(json_get(r, "a"), 0) == 1e30);
    assert_true(json_num(json_at(json_get(r, "b"), 0), 0) == -9223372036854775808.0);
    assert_int_equal(json_int(json_get(r, "c"), 0), INT64_MAX);
    assert_true(json_num(json_get(r, "d"), 0) == 18446744073709551616.0);
    assert_int_equal(json_str(json_get(r, "s")).len, 32);
    json_free(d);
    cairn_diag dg = {0};
    text = "[1000000000000000000000, x]";
    assert_int_equal(json_parse(str_of(text), &d, &dg), CAIRN_E_CORRUPT);
    assert_string_equal(dg.message, "JSON, byte 25 (line 1, column 26): unexpected character");
    assert_int_equal(mem_used_all(), 0);
}

static void utf8(void **state)
{
    static const char *const bad[] = {"\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                                      "\x80"};
    char text[100];

    (void)state;
    assert_true(json_utf8_valid((cairn_str){NULL, 0}));
    assert_true(json_utf8_valid(STR_LIT("\0 \x7F \xC3\xA9 \xE2\x96\x81 \xF0\x9F\x98\x80")));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        for (size_t at = 0; at + strlen(bad[i]) <= sizeof text; at++) {
            memset(text, 'a', sizeof text);
            memcpy(text + at, bad[i], strlen(bad[i]));
            assert_false(json_utf8_valid((cairn_str){text, sizeof text}));
        }
}

/* What Python's json takes for infinite; the parser for files refuses it. */
static void infinite(void **state)
{
    static const char text[] =
        "{\"a\":[1e400,-1e400,1e308,1E+0999,1e-400],\"s\":\"1e400\\\"\",\"b\":";
    json_doc *d;
    cairn_diag dg = {0};
    buf b, out;
    json_writer w;

    (void)state;
    buf_init(&b, MEM_JSON);
    buf_init(&out, MEM_JSON);
    buf_puts(&b, text);
    for (int i = 0; i < 400; i++) buf_byte(&b, '7');
    buf_puts(&b, ",\"c\":18446744073709551616,\"d\":2}");
    assert_int_equal(json_parse(buf_view(&b), &d, &dg), CAIRN_E_CORRUPT);
    assert_non_null(strstr(dg.message, "number out of range"));
    assert_int_equal(json_parse_any(buf_view(&b), &d, &dg), CAIRN_OK);
    const json_val r = json_root(d), a = json_get(r, "a");
    assert_true(json_num(json_at(a, 0), 0) == HUGE_VAL && json_num(json_at(a, 1), 0) == -HUGE_VAL);
    assert_true(json_num(json_at(a, 2), 0) == 1e308 && json_num(json_at(a, 3), 0) == HUGE_VAL);
    assert_true(json_num(json_at(a, 4), 1) == 0 && json_int(json_at(a, 0), 5) == 5);
    assert_true(json_num(json_get(r, "b"), 0) == HUGE_VAL);
    assert_int_equal(json_digits(json_get(r, "b")).len, 400);
    assert_int_equal(json_digits(json_at(a, 0)).len, 0);
    assert_int_equal(json_digits(json_get(r, "c")).len, 20);
    assert_int_equal(json_int(json_get(r, "d"), 0), 2);
    w = json_write(&out);
    json_w_val(&w, a);
    assert_true(str_is(buf_view(&out), "[1e999,-1e999,1e+308,1e999,0.0]"));
    json_free(d);

    assert_int_equal(json_parse_any(STR_LIT("[1e400, 01e400]"), &d, &dg), CAIRN_E_CORRUPT);
    assert_string_equal(dg.message, "JSON, byte 8 (line 1, column 9): number with a leading zero");
    assert_int_equal(json_parse_any(STR_LIT("[1e400e5]"), &d, &dg), CAIRN_E_CORRUPT);
    buf_deinit(&b);
    buf_deinit(&out);
    assert_int_equal(mem_used_all(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smoke),
        cmocka_unit_test(long_integers),
        cmocka_unit_test(infinite),
        cmocka_unit_test(utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
