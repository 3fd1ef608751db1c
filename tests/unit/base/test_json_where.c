/* What is refused as JSON, with the place and the reason. */
#include "test.h"

#include <stdio.h>

#include "base/json.h"

static void refused(cairn_str text, cairn_status want, size_t at, const char *what)
{
    json_doc *d = NULL;
    cairn_diag dg = {0};
    char place[64];
    assert_int_equal(json_parse(text, &d, &dg), want);
    assert_null(d);
    assert_int_equal(dg.status, want);
    (void)snprintf(place, sizeof place, "JSON, byte %zu (", at);
    assert_says(&dg, place);
    assert_says(&dg, what);
    assert_int_equal(json_parse(text, &d, NULL), want);
    assert_int_equal(mem_used_all(), 0);
}

static void mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t at;
        const char *what;
    } cases[] = {
        {"", 0, "ends before a value"},
        {"  ", 2, "ends before a value"},
        {"{", 1, "expected a member's name"},
        {"[", 1, "ends before a value"},
        {"[1", 2, "expected ',' or ']'"},
        {"[1 2]", 3, "expected ',' or ']'"},
        {"[1,]", 3, "unexpected character"},
        {"[,1]", 1, "unexpected character"},
        {"[1}", 2, "expected ',' or ']'"},
        {"{\"a\":1]", 6, "expected ',' or '}'"},
        {"{\"a\"}", 4, "expected ':'"},
        {"{\"a\" 1}", 5, "expected ':'"},
        {"{\"a\":}", 5, "unexpected character"},
        {"{\"a\":1,}", 7, "expected a member's name"},
        {"{a:1}", 1, "expected a member's name"},
        {"{1:1}", 1, "expected a member's name"},
        {"{} {}", 3, "something after the value"},
        {"1 x", 2, "something after the value"},
        {"nul", 0, "unexpected character"},
        {"True", 0, "unexpected character"},
        {"NaN", 0, "unexpected character"},
        {"[Infinity]", 1, "unexpected character"},
        {"+1", 0, "unexpected character"},
        {"\xef\xbb\xbf{}", 0, "byte order mark"},
        {"[01]", 1, "leading zero"},
        {"[1.]", 1, "digits after its point"},
        {"[.5]", 1, "unexpected character"},
        {"[1e]", 1, "digits in its exponent"},
        {"[1e+]", 1, "digits in its exponent"},
        {"[-]", 1, "unexpected character"},
        {"[1e999]", 1, "out of range"},
        {"[-1e999]", 1, "out of range"},
        {"\"abc", 0, "string without an end"},
        {"[\"a\\\"]", 1, "string without an end"},
        {"\"a\\x\"", 2, "unknown escape"},
        {"\"\\u12g4\"", 1, "four hexadecimal digits"},
        {"\"\\ud800\"", 1, "half of a surrogate pair"},
        {"\"\\udc00\"", 1, "half of a surrogate pair"},
        {"\"\\ud800\\u0041\"", 1, "half of a surrogate pair"},
        {"\"a\nb\"", 2, "control character in a string"},
        {"\"a\xff\"", 2, "not UTF-8"},
        {"\"\xc3\"", 1, "not UTF-8"},
        {"\"\xed\xa0\x80\"", 1, "not UTF-8"},
        {"\"\xf4\x90\x80\x80\"", 1, "not UTF-8"},
        {"'a'", 0, "unexpected character"},
        {"[1,//x\n2]", 3, "unexpected character"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(str_of(cases[i].text), CAIRN_E_CORRUPT, cases[i].at, cases[i].what);
}

static void zero_bytes(void **state)
{
    (void)state;
    refused(STR_LIT("[1\0]"), CAIRN_E_CORRUPT, 2, "expected ',' or ']'");
    refused(STR_LIT("\0"), CAIRN_E_CORRUPT, 0, "unexpected character");
    refused(STR_LIT("\"a\0b\""), CAIRN_E_CORRUPT, 2, "control character");
    refused((cairn_str){NULL, 0}, CAIRN_E_CORRUPT, 0, "ends before a value");
    refused((cairn_str){"[1,2]", 4}, CAIRN_E_CORRUPT, 4,
            "expected ',' or ']'"); /* the length counts */
}

static void lines_and_columns(void **state)
{
    (void)state;
    json_doc *d;
    cairn_diag dg = {0};
    assert_int_equal(json_parse(STR_LIT("{\n  \"a\": 1,\n  \"b\": oops\n}"), &d, &dg),
                     CAIRN_E_CORRUPT);
    assert_string_equal(dg.message, "JSON, byte 19 (line 3, column 8): unexpected character");
}

static void depth_is_limited(void **state)
{
    (void)state;
    enum { N = 100000, OVER = JSON_MAX_DEPTH + 1 };
    static char text[2 * N + 1];
    memset(text, '[', N);
    text[N] = '1';
    memset(text + N + 1, ']', N);
    refused((cairn_str){text, 2 * N + 1}, CAIRN_E_LIMIT, JSON_MAX_DEPTH, "nested too deeply");
    refused((cairn_str){text + N - OVER, 2 * OVER + 1}, CAIRN_E_LIMIT, JSON_MAX_DEPTH,
            "nested too deeply");
    /* behind an integer of more than 64 bits, which takes a second reading */
    enum { LONG = 22 };
    memcpy(text, "[18446744073709551616,", LONG);
    refused((cairn_str){text, 2 * N + 1}, CAIRN_E_LIMIT, LONG + JSON_MAX_DEPTH - 1,
            "nested too deeply");
    memset(text, '[', LONG);
    /* without an end it is malformed first of all */
    refused((cairn_str){text, N}, CAIRN_E_CORRUPT, JSON_MAX_DEPTH, "nested too deeply");
    for (size_t i = 0; i + 5 <= N; i += 5) memcpy(text + i, "{\"a\":", 5);
    refused((cairn_str){text, N}, CAIRN_E_CORRUPT, (size_t)5 * JSON_MAX_DEPTH, "nested too deeply");
}

/* Every prefix of a document is refused, somewhere inside, without a crash. */
static void every_cut(void **state)
{
    (void)state;
    static const char text[] = "{\"a\":[1,-2.5e3,true,null,\"x\\u00e9\xc3\xa9\"],\"b\":{\"c\":{}}}";
    const size_t n = sizeof text - 1;
    json_doc *d;
    for (size_t cut = 0; cut < n; cut++) {
        cairn_diag dg = {0};
        assert_int_equal(json_parse((cairn_str){text, cut}, &d, &dg), CAIRN_E_CORRUPT);
        assert_says(&dg, "JSON, byte ");
    }
    assert_ok(json_parse((cairn_str){text, n}, &d, NULL));
    json_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes),          cmocka_unit_test(zero_bytes),
        cmocka_unit_test(lines_and_columns), cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(every_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
