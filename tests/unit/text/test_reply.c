/* The reply machine on texts written by hand: what golden turns cannot show, since no template writes
   it: malformed calls, text that looks like markup, cut ends, limits, schema types, budgets. */
#include "test.h"

#include <stdio.h>

#include "reply_record.h"

static const char tools[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{"
    "\"s\":{\"type\":\"string\"},\"n\":{\"type\":\"integer\"},\"u\":{\"type\":[\"string\",\"null\"]"
    "},"
    "\"e\":{\"enum\":[\"x\",\"y\"]},\"o\":{\"anyOf\":[{\"type\":\"object\"},{\"type\":\"null\"}]},"
    "\"any\":{}}}}},{\"name\":\"g\",\"input_schema\":{\"properties\":{\"s\":{\"type\":\"string\"}}}"
    "}]";

static cairn_reply_opts opts(const char *family)
{
    return (cairn_reply_opts){
        .struct_size = sizeof(cairn_reply_opts), .family = family, .tools = str_of(tools)};
}

static void run(record *r, const cairn_reply_opts *o, const char *text)
{
    assert_true(record_twice(r, o, str_of(text)));
}

typedef struct expected {
    const char *family, *prompt, *text;
    const char *thought, *answer;
    int n_calls;
    const char *args; /* of the first call */
    int end;          /* of the last */
} expected;

static void check(const expected *c)
{
    cairn_reply_opts o = opts(c->family);
    record r;
    o.prompt = str_of(c->prompt ? c->prompt : "");
    run(&r, &o, c->text);
    if (r.n_calls != c->n_calls)
        printf("%s: %s\n%.*s\n", c->family, c->text, STR_ARG(buf_view(&r.log)));
    assert_int_equal(r.n_calls, c->n_calls);
    assert_str(buf_view(&r.thought), c->thought);
    assert_str(buf_view(&r.answer), c->answer);
    if (c->args) assert_str(buf_view(&r.call[0].args), c->args);
    if (c->n_calls) assert_int_equal(r.call[c->n_calls - 1].end, c->end);
    record_deinit(&r);
}

static void check_all(const expected *c, size_t n)
{
    for (size_t i = 0; i < n; i++) check(&c[i]);
}
#define CHECK_ALL(cases) check_all(cases, sizeof(cases) / sizeof(cases)[0])

enum { DONE = CAIRN_CALL_DONE, CUT = CAIRN_CALL_CUT, BROKEN = CAIRN_CALL_BROKEN };

static void test_text(void **state)
{
    static const expected cases[] = {
        {"hermes", NULL, "plain <b>text</b> \n", "", "plain <b>text</b> \n", 0, NULL, 0},
        {"hermes", NULL, " \n<think>a</think>\n\nb", "a", "b", 0, NULL, 0},
        {"hermes", NULL, "about <think> tags", "", "about <think> tags", 0, NULL, 0},
        {"hermes", "x\n<think>\n", "a\n</think>\n\nb", "a", "b", 0, NULL, 0},
        {"hermes", "x\n<think>\n\n</think>\n\n", "b", "", "b", 0, NULL, 0},
        {"hermes", "x\n<think>\n", "never closed ", "never closed ", "", 0, NULL, 0},
        {"hermes", NULL, "<tool_call>\n{\"name\": \"unknown\", \"arguments\": {}}\n</tool_call>",
         "", "<tool_call>\n{\"name\": \"unknown\", \"arguments\": {}}\n</tool_call>", 0, NULL, 0},
        {"hermes", NULL, "a <tool_call> b", "", "a <tool_call> b", 0, NULL, 0},
        {"hermes", NULL, "a \n<tool_call>{\"x\": 1}</tool_call>", "",
         "a \n<tool_call>{\"x\": 1}</tool_call>", 0, NULL, 0},
        {"hermes", NULL, "<tool_call>\n{\"name\": \"f\"", "", "<tool_call>\n{\"name\": \"f\"", 0,
         NULL, 0},
        {"hermes", NULL, "<tool_ca", "", "<tool_ca", 0, NULL, 0},
        {"llama3", NULL, "{\"answer\": 42}", "", "{\"answer\": 42}", 0, NULL, 0},
        {"llama3", NULL, "[1] is a note", "", "[1] is a note", 0, NULL, 0},
        {"llama3", NULL, "see {\"name\": \"f\", \"parameters\": {}}", "",
         "see {\"name\": \"f\", \"parameters\": {}}", 0, NULL, 0},
        {"mistral", NULL, "[TOOL_CALLS]f and more", "", "[TOOL_CALLS]f and more", 0, NULL, 0},
        {"harmony", "<|start|>assistant", "no header", "", "no header", 0, NULL, 0},
        {"generic", NULL, "", "", "", 0, NULL, 0},
        {"generic", NULL, "{\"a\": 1}", "", "{\"a\": 1}", 0, NULL, 0},
        {"generic", NULL, "{\"name\": \"f\", \"arguments\": {}}", "", "", 1, "{}", DONE},
    };
    (void)state;
    CHECK_ALL(cases);
}

static void test_calls(void **state)
{
    static const expected cases[] = {
        /* a call after one that is none */
        {"hermes", NULL,
         "<tool_call> <tool_call>{\"name\": \"f\", \"arguments\": {\"s\": 1}}</tool_call>", "",
         "<tool_call>", 1, "{\"s\": 1}", DONE},
        /* the arguments first; as a string; null; missing; other names */
        {"hermes", NULL, "<tool_call>{\"arguments\": {\"s\": \"a\"}, \"name\": \"f\"}</tool_call>",
         "", "", 1, "{\"s\": \"a\"}", DONE},
        {"hermes", NULL,
         "<tool_call>{\"name\":\"f\",\"arguments\":\"{\\\"s\\\": "
         "\\\"\\\\u00e9\\\\n\\\"}\"}</tool_call>",
         "", "", 1, "{\"s\": \"\\u00e9\\n\"}", DONE},
        {"hermes", NULL, "<tool_call>{\"name\":\"f\",\"arguments\":null}</tool_call>", "", "", 1,
         "{}", DONE},
        {"hermes", NULL, "<tool_call>{\"name\":\"f\",\"arguments\":\"\"}</tool_call>", "", "", 1,
         "{}", DONE},
        {"hermes", NULL, "<tool_call>{\"id\": \"7\", \"name\":\"f\"}</tool_call>x", "", "x", 1,
         "{}", DONE},
        {"llama3", NULL, "{\"type\": \"function\", \"name\": \"f\", \"parameters\": {\"n\": 2}}",
         "", "", 1, "{\"n\": 2}", DONE},
        {"llama3", NULL,
         "{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\", \"parameters\": {}}", "", "", 2,
         "{}", DONE},
        {"llama3", NULL, "[f(s='it\\'s', n=-2, any=[True, None, {'a': (1, 2)}]), g()]", "", "", 2,
         "{\"s\":\"it's\",\"n\":-2,\"any\":[true,null,{\"a\":[1,2]}]}", DONE},
        {"llama3", NULL, "<|python_tag|>f.call(s=\"q\")", "", "", 1, "{\"s\":\"q\"}", DONE},
        {"llama3", NULL, "Now: <function=f>{\"s\": \"</function>\"}</function>", "", "Now:", 1,
         "{\"s\": \"</function>\"}", DONE},
        /* markup inside strings ends nothing */
        {"hermes", NULL,
         "<tool_call>{\"name\":\"f\",\"arguments\":{\"s\":\"</tool_call>}\"}}</tool_call>", "", "",
         1, "{\"s\":\"</tool_call>}\"}", DONE},
        {"kimi-k2", NULL,
         "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"
         "\"s\": \"<|tool_call_end|>\"}<|tool_call_end|><|tool_calls_section_end|>",
         "", "", 1, "{\"s\": \"<|tool_call_end|>\"}", DONE},
        /* a raw line end in a JSON string is written as JSON has it */
        {"hermes", NULL, "<tool_call>{\"name\":\"f\",\"arguments\":{\"s\":\"a\nb\"}}</tool_call>",
         "", "", 1, "{\"s\":\"a\\nb\"}", DONE},
        /* no closing marker, and another reply after */
        {"qwen3-coder", NULL, "<tool_call><function=f><parameter=s>a</parameter></tool_call>b", "",
         "b", 1, "{\"s\":\"a\"}", DONE},
        {"mistral", NULL, "[TOOL_CALLS]f{\"s\": \"a\"}[TOOL_CALLS]g[ARGS]{} ok", "", "ok", 2,
         "{\"s\": \"a\"}", DONE},
        {"phi4", NULL, "<|tool_call|>[{\"name\":\"f\",\"arguments\":{}}]<|/tool_call|>", "", "", 1,
         "{}", DONE},
        {"phi4", NULL, "functools[{\"name\":\"f\",\"arguments\":{}}]", "", "", 1, "{}", DONE},
        {"granite", NULL, "<|tool_call|>[{\"name\":\"f\",\"arguments\":{}}]", "", "", 1, "{}",
         DONE},
        {"granite", NULL, "<think>t</think><response>a</response>", "t", "a", 0, NULL, 0},
        {"ernie", NULL,
         "<think>t</think>\n<response>\na\n</"
         "response>\n<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>",
         "t", "a", 1, "{}", DONE},
        {"internlm", NULL,
         "a<|action_start|><|plugin|>{\"name\":\"f\",\"parameters\":{}}<|action_end|>", "", "a", 1,
         "{}", DONE},
        {"longcat", NULL,
         "<longcat_tool_call>f\n<longcat_arg_key>n</longcat_arg_key>\n<longcat_arg_value>3</"
         "longcat_arg_value>\n</longcat_tool_call>",
         "", "", 1, "{\"n\":3}", DONE},
        {"tool-calls", NULL, "<think>\nt\n</think>\n<answer>\na\n</answer>", "t", "a", 0, NULL, 0},
        {"harmony", "<|start|>assistant",
         "<|channel|>analysis<|message|>t<|end|><|start|>assistant<|channel|>commentary<|message|>"
         "p<|end|><|start|>assistant<|channel|>commentary to=functions.f "
         "<|constrain|>json<|message|>{\"n\":1}<|call|>",
         "t", "p", 1, "{\"n\":1}", DONE},
        {"harmony", "<|start|>assistant", " to=f<|channel|>analysis<|message|>{}", "", "", 1, "{}",
         DONE},
        {"harmony", "<|start|>assistant",
         "<|channel|>analysis<|message|>t<|end|><|start|>assistant "
         "to=shell<|channel|>commentary<|message|>ls",
         "t", "<|start|>assistant to=shell<|channel|>commentary<|message|>ls", 0, NULL, 0},
        {"deepseek", "<｜Assistant｜><think>\n",
         "t<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{}<｜tool▁call▁end｜><"
         "｜tool▁calls▁end｜>",
         "t", "", 1, "{}", DONE},
        {"gemma4", NULL,
         "<|tool_call>call:f{s:<|\"|>a}<tool_call|>{<|\"|>,any:{k:[1,true]}}<tool_call|>", "", "",
         1, "{\"s\":\"a}<tool_call|>{\",\"any\":{\"k\":[1,true]}}", DONE},
    };
    (void)state;
    CHECK_ALL(cases);
}

/* Once a name has been given out a call cannot be text again: it ends broken or cut. */
static void test_broken(void **state)
{
    static const expected cases[] = {
        {"hermes", NULL, "<tool_call>{\"name\":\"f\",\"arguments\":{\"s\":1,}} x", "", "}} x", 1,
         "{\"s\":1,", BROKEN},
        {"hermes", NULL, "<tool_call>{\"name\":\"f\",\"arguments\":{\"s\":\"a", "", "", 1,
         "{\"s\":\"a", CUT},
        {"hermes", NULL, "<tool_call>{\"name\":\"f\",\"arguments\":{\"s\":1}", "", "", 1,
         "{\"s\":1}", DONE},
        {"hermes", NULL, "<tool_call>{\"name\":\"f\",\"arguments\":{\"s\":1}</tool_call>y", "", "y",
         1, "{\"s\":1}", DONE},
        {"qwen3-coder", NULL, "<tool_call><function=f><parameter=s>a</parameter>oops</function>",
         "", "oops</function>", 1, "{\"s\":\"a\"", BROKEN},
        {"qwen3-coder", NULL, "<tool_call><function=f><parameter=s>a</par", "", "", 1, "{\"s\":\"a",
         CUT},
        {"qwen3-coder", NULL, "<tool_call><function=f><parameter=n>1", "", "", 1, "{\"n\":", CUT},
        {"qwen3-coder", NULL, "<tool_call><function=f", "", "<tool_call><function=f", 0, NULL, 0},
        {"llama3", NULL, "[f(s='a', 3)]", "", "3)]", 1, "{\"s\":\"a\"", BROKEN},
        {"gemma4", NULL, "<|tool_call>call:f{n:1", "", "", 1, "{\"n\":", CUT},
    };
    (void)state;
    CHECK_ALL(cases);
}

static void test_types(void **state)
{
    static const struct {
        const char *key, *value, *json;
    } cases[] = {
        {"s", "12", "\"12\""},
        {"s", "a \"b\"\\\n\tc", "\"a \\\"b\\\"\\\\\\n\\tc\""},
        {"s", "null", "\"null\""},
        {"s", "", "\"\""},
        {"n", "12", "12"},
        {"n", "12 days", "\"12 days\""},
        {"u", "null", "null"},
        {"u", "nul", "\"nul\""},
        {"u", "nulls\nx", "\"nulls\\nx\""},
        {"u", "", "\"\""},
        {"e", "x", "\"x\""},
        {"e", "1", "\"1\""},
        {"o", "{'a': [True]}", "{\"a\":[true]}"},
        {"o", "null", "null"},
        {"any", "{\"a\": 1}", "{\"a\":1}"},
        {"any", "[1, {bad}]", "\"[1, {bad}]\""},
        {"any", "True", "true"},
        {"any", "plain words", "\"plain words\""},
        {"other", "3.5", "3.5"},
        {"s", "</param> <", "\"</param> <\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256], want[256];
        const cairn_reply_opts o = opts("qwen3-coder");
        record r;
        snprintf(text, sizeof text,
                 "<tool_call>\n<function=f>\n<parameter=%s>\n%s\n</parameter>\n</function>\n</"
                 "tool_call>",
                 cases[i].key, cases[i].value);
        snprintf(want, sizeof want, "{\"%s\":%s}", cases[i].key, cases[i].json);
        run(&r, &o, text);
        assert_int_equal(r.n_calls, 1);
        assert_str(buf_view(&r.call[0].args), want);
        record_deinit(&r);
    }
}

static void feed(reply *p, const char *text, bool special)
{
    assert_ok(reply_feed(p, str_of(text), special));
}

/* Bytes of arguments leave in the feed that brings them. */
#define NS "]<]minimax[>["
#define M3(parameters)                                                                             \
    NS "<tool_call>\n" NS "<invoke name=\"f\">" parameters NS "</invoke>\n" NS "</tool_call>"
#define M3_TAG(name, value) NS "<" name ">" value NS "</" name ">"

/* Elements within elements: what no turn of the template shows. */
static void test_nested(void **state)
{
    static const expected cases[] = {
        {"minimax-m3", NULL, M3(M3_TAG("o", M3_TAG("o", M3_TAG("o", "1")) "\n")), "", "", 1,
         "{\"o\":{\"o\":{\"o\":1}}}", DONE},
        {"minimax-m3", NULL,
         M3(M3_TAG("any", M3_TAG("item", M3_TAG("item", "a b")) M3_TAG("item", ""))), "", "", 1,
         "{\"any\":[[\"a b\"],\"\"]}", DONE},
        {"minimax-m3", NULL, M3(M3_TAG("o", "") M3_TAG("any", "") M3_TAG("u", "null")), "", "", 1,
         "{\"o\":{},\"any\":\"\",\"u\":null}", DONE},
        {"minimax-m3", NULL, M3(M3_TAG("s", M3_TAG("a", "1"))), "",
         NS "</s>" NS "</invoke>\n" NS "</tool_call>", 1, "{\"s\":\"", BROKEN},
        {"minimax-m3", NULL, M3(M3_TAG("any", "x" M3_TAG("a", "1"))), "",
         NS "</any>" NS "</invoke>\n" NS "</tool_call>", 1, "{\"any\":", BROKEN},
        {"minimax-m3", NULL, M3(NS "<any>" NS "<a>1" NS "</b>" NS "</any>"), "",
         NS "</any>" NS "</invoke>\n" NS "</tool_call>", 1, "{\"any\":", BROKEN},
        {"minimax-m3", NULL,
         NS "<tool_call>\n" NS "<invoke name=\"f\">" NS "<any>" NS "<a>1" NS "</a>", "", "", 1,
         "{\"any\":", CUT},
    };

    (void)state;
    CHECK_ALL(cases);
}

static void test_streams(void **state)
{
    static const struct {
        const char *family, *before, *now, *args;
    } cases[] = {
        {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": ", "{", "{"},
        {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"s\": \"a", "b", "{\"s\": \"ab"},
        {"qwen3-coder", "<tool_call><function=f><parameter=s", ">", "{\"s\":\""},
        {"qwen3-coder", "<tool_call><function=f><parameter=s>x", "y", "{\"s\":\"xy"},
        {"llama3", "[f(s='a", "b", "{\"s\":\"ab"},
        {"gemma4", "<|tool_call>call:f{s:<|\"|>a", "b", "{\"s\":\"ab"},
        {"dsml",
         "<｜DSML｜function_calls><｜DSML｜invoke name=\"f\"><｜DSML｜parameter name=\"s\" "
         "string=\"true\">",
         "x", "{\"s\":\"x"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const cairn_reply_opts o = opts(cases[i].family);
        reply *p = NULL;
        record r;
        record_init(&r);
        assert_ok(reply_new(&o, record_event, &r, &p, NULL));
        feed(p, cases[i].before, false);
        feed(p, cases[i].now, false);
        assert_int_equal(r.n_calls, 1);
        assert_str(buf_view(&r.call[0].args), cases[i].args);
        reply_free(p);
        record_deinit(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),  cmocka_unit_test(test_calls),  cmocka_unit_test(test_broken),
        cmocka_unit_test(test_types), cmocka_unit_test(test_nested), cmocka_unit_test(test_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
