/* JSON that ends early: every beginning of an object becomes an object, and whole ones stay as they are. */
#include "test.h"

#include "base/json.h"
#include "serve/json_cut.h"

static void check(const char *text, const char *want)
{
    buf b;

    buf_init(&b, MEM_SERVE);
    buf_puts(&b, text);
    json_cut_close(&b);
    assert_str(buf_view(&b), want);
    buf_deinit(&b);
}

static void test_cases(void **state)
{
    (void)state;
    check("", "{}");
    check("{", "{}");
    check("{\"a", "{}");
    check("{\"a\": \"x,y{", "{}");
    check("{\"a\": 1", "{}"); /* it might have become 12 */
    check("{\"a\": 1,", "{\"a\": 1}");
    check("{\"a\": 1, \"b\": [1, {\"c\": tr", "{\"a\": 1, \"b\": [1, {}]}");
    check("{\"a\": {\"b\": \"\\\"}\"}", "{\"a\": {\"b\": \"\\\"}\"}}");
    check("{\"a\": [[1, 2], 3], \"b\": 4}", "{\"a\": [[1, 2], 3], \"b\": 4}");
}

static void test_every_beginning(void **state)
{
    static const char text[] =
        "{\"a\": {\"b\\\\\": [1, \"x\\\"]}\", null, {}, []], \"c\": -1.5e3}, \"d\": "
        "[{\"e\": [true, \"\\u00e9\"]}]}";
    (void)state;
    for (size_t n = 0; n < sizeof text; n++) {
        json_doc *doc = NULL;
        buf b;

        buf_init(&b, MEM_SERVE);
        buf_put(&b, text, n);
        json_cut_close(&b);
        assert_ok(json_parse(buf_view(&b), &doc, NULL));
        assert_int_equal(json_typeof(json_root(doc)), JSON_OBJ);
        json_free(doc);
        buf_deinit(&b);
    }
}

static void test_too_deep(void **state)
{
    buf b;

    (void)state;
    buf_init(&b, MEM_SERVE);
    for (int i = 0; i < 2 * JSON_MAX_DEPTH; i++) buf_byte(&b, '[');
    json_cut_close(&b);
    assert_int_equal(b.len, 2 * JSON_MAX_DEPTH);
    buf_deinit(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases),
                                       cmocka_unit_test(test_every_beginning),
                                       cmocka_unit_test(test_too_deep)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
