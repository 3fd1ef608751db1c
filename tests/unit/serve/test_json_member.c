/* A member's text out of JSON in pieces is what the parser says it is, however the pieces fall. */
#include "test.h"

#include <stdio.h>

#include "base/json.h"
#include "base/str.h"
#include "serve/json_member.h"

static const char *const with_input[] = {
    "{\"input\": \"plain\"}",
    "{\"input\":\"\"}",
    " {\n\"a\" : {\"input\": \"no\", \"b\": [\"}\", {\"input\": 1}]}, \"input\" : \"yes\", \"c\": "
    "2}",
    "{\"inputs\": \"no\", \"inpu\": \"no\", \"\": \"no\", \"input\": "
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}",
    "{\"n\": -1.5e3, \"t\": true, \"z\": null, \"input\": \"\\u0041\\u00e9\\u6f22\\ud83d\\ude42\"}",
    "{\"a\\\\\": \"\\\"\", \"input\": \"\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x99\x82 } ] { [ ,\"}",
};

static void feed(const char *json, size_t piece, buf *out, bool *found)
{
    const cairn_str s = str_of(json);
    json_member m;

    buf_init(out, MEM_SERVE);
    json_member_init(&m, "input");
    for (size_t i = 0; i < s.len; i += piece)
        json_member_feed(&m, str_sub(s, i, s.len - i < piece ? s.len - i : piece), out);
    *found = m.found;
    assert_int_equal(buf_status(out), CAIRN_OK);
}

static void test_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof with_input / sizeof with_input[0]; i++) {
        json_doc *d = NULL;
        assert_ok(json_parse(str_of(with_input[i]), &d, NULL));
        for (size_t piece = 1; piece < 40; piece++) {
            bool found;
            buf out;
            feed(with_input[i], piece, &out, &found);
            assert_true(found);
            assert_true(str_eq(buf_view(&out), json_str(json_get(json_root(d), "input"))));
            buf_deinit(&out);
        }
        json_free(d);
    }
}

static void test_not_found(void **state)
{
    static const char *const without[] = {"",
                                          "{}",
                                          "[\"input\", \"x\"]",
                                          "{\"input\": 7}",
                                          "{\"input\": {\"input\": \"x\"}}",
                                          "\"input\"",
                                          "{\"a\": [{\"input\": \"x\"}]}",
                                          "{\"inp\\u0075t\": \"x\"}",
                                          "nonsense",
                                          "{,"};

    (void)state;
    for (size_t i = 0; i < sizeof without / sizeof without[0]; i++) {
        bool found;
        buf out;
        feed(without[i], 1, &out, &found);
        assert_false(found);
        assert_int_equal(out.len, 0);
        buf_deinit(&out);
    }
}

/* Halves of pairs that no parser takes; and an end that never comes. */
static void test_broken(void **state)
{
    static const struct {
        const char *json, *text;
    } cases[] = {
        {"{\"input\": \"\\ud83d\"}", "\xef\xbf\xbd"},
        {"{\"input\": \"\\ud83dx\\ude42\"}", "\xef\xbf\xbdx\xef\xbf\xbd"},
        {"{\"input\": \"\\ud83d\\ud83d\\ude42\"}", "\xef\xbf\xbd\xf0\x9f\x99\x82"},
        {"{\"input\": \"\\ud83d\\n\"}", "\xef\xbf\xbd\n"},
        {"{\"input\": \"a\\u00g0b\"}", "a"},
        {"{\"input\": \"a\\xb\"}", "a"},
        {"{\"input\": \"cut he", "cut he"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool found;
        buf out;
        feed(cases[i].json, 1, &out, &found);
        assert_true(found);
        assert_string_equal(out.ptr, cases[i].text);
        buf_deinit(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_found),
                                       cmocka_unit_test(test_not_found),
                                       cmocka_unit_test(test_broken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
