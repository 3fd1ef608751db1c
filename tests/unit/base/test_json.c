/* The way through json.h from text to values, and whole numbers longer than any type. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smoke),
        cmocka_unit_test(long_integers),
        cmocka_unit_test(utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
