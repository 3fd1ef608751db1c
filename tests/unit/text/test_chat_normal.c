/* What a server does to messages and tools, case by case; big integers and everything else stay. */
#include "base/json.h"
#include "cairn/text.h"
#include "test.h"
#include "text/chat_normal.h"

typedef struct one {
    const char *in, *want;
} one;

typedef cairn_status normal_fn(json_val v, buf *out, cairn_diag *dg);

static void check(normal_fn *fn, const one *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        json_doc *d = NULL;
        cairn_diag dg = {0};
        buf out;
        buf_init(&out, MEM_TEXT);
        assert_int_equal(json_parse(str_of(c[i].in), &d, &dg), CAIRN_OK);
        assert_int_equal(fn(json_root(d), &out, &dg), CAIRN_OK);
        if (!str_is(buf_view(&out), c[i].want))
            fail_msg("%s\n  gave %.*s\n  want %s", c[i].in, STR_ARG(buf_view(&out)), c[i].want);
        buf_deinit(&out);
        json_free(d);
    }
}

static void messages(void **state)
{
    static const one cases[] = {
        {"[]", "[]"},
        {"[{\"role\":\"developer\",\"content\":\"d\"}]",
         "[{\"role\":\"system\",\"content\":\"d\"}]"},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\","
         "\"text\":"
         "\"b\"}]}]",
         "[{\"role\":\"user\",\"content\":\"ab\"}]"},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"\"}]}]",
         "[{\"role\":\"user\",\"content\":\"\"}]"},
        {"[{\"content\":[{\"type\":\"refusal\",\"refusal\":\"no\"}]}]", "[{\"content\":\"no\"}]"},
        {"[{\"content\":[{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"a\"}]}]",
         "[{\"content\":[{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"a\"}]}]"},
        {"[{\"content\":[]}]", "[{\"content\":[]}]"},
        {"[{\"content\":null,\"x\":1.0,\"y\":123456789012345678901234567890}]",
         "[{\"content\":null,\"x\":1.0,\"y\":123456789012345678901234567890}]"},
        {"[{\"tool_calls\":[{\"id\":\"1\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\": "
         "18446744073709551616}\"}}]}]",
         "[{\"tool_calls\":[{\"id\":\"1\",\"function\":{\"name\":\"f\",\"arguments\":{\"a\":"
         "18446744073709551616}}}]}]"},
        {"[{\"tool_calls\":[{\"function\":{\"arguments\":\"{broken\"}}]}]",
         "[{\"tool_calls\":[{\"function\":{\"arguments\":\"{broken\"}}]}]"},
        {"[{\"tool_calls\":[{\"function\":{\"arguments\":\"[1]\"}}]}]",
         "[{\"tool_calls\":[{\"function\":{\"arguments\":\"[1]\"}}]}]"},
        {"[{\"tool_calls\":[{\"function\":{\"arguments\":\"{\\\"x\\\":-1e400}\"}}]}]",
         "[{\"tool_calls\":[{\"function\":{\"arguments\":{\"x\":-1e999}}}]}]"},
        {"[{\"tool_calls\":[{\"function\":{\"arguments\":\"{\\\"x\\\":Infinity}\"}}]}]",
         "[{\"tool_calls\":[{\"function\":{\"arguments\":\"{\\\"x\\\":Infinity}\"}}]}]"},
        {"[{\"tool_calls\":null,\"function_call\":{\"arguments\":\"{}\"}}]",
         "[{\"tool_calls\":null,\"function_call\":{\"arguments\":{}}}]"},
        {"[{\"tool_calls\":[{\"function\":{\"name\":\"f\"}},{\"function\":{\"arguments\":\"\"}},"
         "{\"function\":{\"arguments\":null}},{\"function\":1}]}]",
         "[{\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{}}},{\"function\":{"
         "\"arguments\":{}}},{\"function\":{\"arguments\":{}}},{\"function\":1}]}]"},
    };
    (void)state;
    check(chat_normal_messages, cases, sizeof cases / sizeof cases[0]);
}

#define TOOL(schema)                                                                               \
    "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":" schema "}}]"

static void tools(void **state)
{
    static const one cases[] = {
        {"[]", "[]"},
        {TOOL("{\"properties\":{\"a\":{\"enum\":[1,2]},\"b\":{\"const\":\"x\"},\"c\":{}}}"),
         TOOL("{\"properties\":{\"a\":{\"enum\":[1,2],\"type\":\"integer\"},\"b\":{\"const\":\"x\","
              "\"type\":\"string\"},\"c\":{\"type\":\"string\"}},\"type\":\"object\"}")},
        {TOOL("{\"type\":\"object\",\"properties\":{\"a\":{\"items\":{\"properties\":{}}}}}"),
         TOOL("{\"type\":\"object\",\"properties\":{\"a\":{\"items\":{\"properties\":{},\"type\":"
              "\"object\"},\"type\":\"array\"}}}")},
        {TOOL("{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"number\"}]}"),
         TOOL("{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"number\"}],\"type\":\"number\"}")},
        {TOOL("{\"$ref\":\"#/$defs/x\",\"additionalProperties\":false}"),
         TOOL("{\"$ref\":\"#/$defs/x\",\"additionalProperties\":false}")},
        {TOOL("{\"type\":[\"string\",\"null\"]}"), TOOL("{\"type\":[\"string\",\"null\"]}")},
    };
    (void)state;
    check(chat_normal_tools, cases, sizeof cases / sizeof cases[0]);
}

static void public_face(void **state)
{
    cairn_bytes out = {0};
    cairn_diag dg = {0};
    (void)state;
    assert_int_equal(cairn_normalise_messages(STR_LIT("[{\"role\":\"developer\"}]"), &out, &dg),
                     CAIRN_OK);
    assert_true(str_is((cairn_str){out.ptr, out.len}, "[{\"role\":\"system\"}]"));
    cairn_bytes_free(&out);
    assert_int_equal(cairn_normalise_messages(STR_LIT("{}"), &out, &dg), CAIRN_E_ARG);
    assert_int_equal(cairn_normalise_messages(STR_LIT("[1]"), &out, &dg), CAIRN_E_ARG);
    assert_int_equal(cairn_normalise_messages(STR_LIT("["), &out, &dg), CAIRN_E_CORRUPT);
    assert_int_equal(
        cairn_normalise_tools(STR_LIT("[{\"function\":{\"parameters\":{}}}]"), &out, &dg),
        CAIRN_OK);
    assert_true(str_is((cairn_str){out.ptr, out.len},
                       "[{\"function\":{\"parameters\":{\"type\":\"object\"}}}]"));
    cairn_bytes_free(&out);
}

int main(void)
{
    const struct CMUnitTest list[] = {
        cmocka_unit_test(messages),
        cmocka_unit_test(tools),
        cmocka_unit_test(public_face),
    };
    return cmocka_run_group_tests(list, NULL, NULL);
}
