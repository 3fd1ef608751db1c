/* The reply machine on texts written by hand: what golden turns cannot show, since no template writes
   it: malformed calls, text that looks like markup, cut ends, limits, schema types, budgets. */
#include "test.h"

#include <stdio.h>

#include "base/json.h"
#include "cairn/reply.h"
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

/* Runs text whole and byte by byte, which must be the same and lose nothing. */
static void run(record *r, const cairn_reply_opts *o, const char *text)
{
    record bytes;
    record_init(r);
    record_init(&bytes);
    record_run(r, o, str_of(text), 0);
    record_run(&bytes, o, str_of(text), 1);
    assert_true(record_same(r, &bytes));
    assert_str(buf_view(&r->raw), text);
    assert_null(r->wrong);
    record_deinit(&bytes);
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

/* With marked special tokens, the same text spelled by others is text. */
static void test_special(void **state)
{
    cairn_reply_opts o = opts("gemma4");
    reply *p = NULL;
    record r;
    (void)state;
    o.marks_special = true;
    record_init(&r);
    assert_ok(reply_new(&o, record_event, &r, &p, NULL));
    feed(p, "write <|tool_call>call:f{} ", false);
    feed(p, "<|tool_call>", true);
    feed(p, "call:f{s:", false);
    feed(p, "<|\"|>", true);
    feed(p, "in <|\"|> text", false);
    feed(p, "<|\"|>", true);
    feed(p, "}", false);
    feed(p, "<tool_call|>", true);
    feed(p, "<|tool_call>", true);
    feed(p, "oops", false);
    feed(p, "<|channel>", true);
    feed(p, "thought\nwhy", false);
    feed(p, "<channel|>", true);
    assert_ok(reply_finish(p));
    assert_null(r.wrong);
    assert_int_equal(r.n_calls, 1);
    assert_str(buf_view(&r.call[0].args), "{\"s\":\"in <|\\\"|> text\"}");
    assert_str(buf_view(&r.answer), "write <|tool_call>call:f{}<|tool_call>oops");
    assert_str(buf_view(&r.thought), "why");
    reply_free(p);
    record_deinit(&r);
}

static void test_ids(void **state)
{
    static const char text[] = "[TOOL_CALLS][{\"name\":\"f\",\"arguments\":{}},{\"name\":\"g\","
                               "\"arguments\":{},\"id\":\"own123456\"}]";
    cairn_reply_opts o = opts("mistral");
    record a, b, c;
    (void)state;
    o.id_seed = 1;
    run(&a, &o, text);
    run(&b, &o, text);
    o.id_seed = 2;
    run(&c, &o, text);
    assert_int_equal(a.n_calls, 2);
    assert_string_equal(a.call[0].id, b.call[0].id);
    assert_string_not_equal(a.call[0].id, c.call[0].id);
    assert_int_equal(strlen(a.call[0].id), 9);
    assert_string_equal(a.call[1].id, "own123456");
    record_deinit(&a);
    record_deinit(&b);
    record_deinit(&c);
}

/* What closes a thought closes it, in every family that has thoughts, from its prompt on. */
static void test_budget(void **state)
{
    size_t n = 0;
    (void)state;
    for (size_t i = 0; tool_family_at(i); i++) {
        const tool_family *f = tool_family_at(i);
        cairn_reply_opts o = opts(f->name);
        cairn_reply_look look;
        reply *p = NULL;
        record r;
        if (!f->thought_end) continue;
        n++;
        record_init(&r);
        o.prompt = str_of(f->tail[0].lit);
        assert_ok(reply_new(&o, record_event, &r, &p, NULL));
        feed(p, "a b", false);
        reply_look(p, &look);
        assert_int_equal(look.where, CAIRN_IN_THOUGHT);
        assert_str(look.thought_end, f->thought_end);
        assert_ok(reply_feed(p, look.thought_end, false));
        feed(p, "c", false);
        reply_look(p, &look);
        assert_int_equal(look.where, CAIRN_IN_ANSWER);
        assert_int_equal(look.thought_bytes, 3);
        assert_int_equal(look.thought_end.len, 0);
        assert_ok(reply_finish(p));
        assert_str(buf_view(&r.thought), "a b");
        assert_str(buf_view(&r.answer), "c");
        reply_free(p);
        record_deinit(&r);
    }
    assert_true(n > 25);
}

/* The tables: targets exist, literals fit, and no chain of "" arms comes back to itself. */
static void test_tables(void **state)
{
    size_t n = 0;
    (void)state;
    for (; tool_family_at(n); n++) {
        const tool_family *f = tool_family_at(n);
        assert_ptr_equal(tool_family_find(f->name), f);
        assert_string_equal(cairn_reply_families(n), f->name);
        assert_true(f->start < f->n_states && f->answer < f->n_states);
        assert_int_equal(f->state[f->answer].op, TOOL_ANSWER);
        for (size_t i = 0; i < f->n_states; i++) {
            size_t at = i, steps = 0;
            for (const tool_arm *a = f->state[i].arm; a->lit; a++)
                assert_true(a->to < f->n_states && strlen(a->lit) <= TOOL_MAX_LITERAL);
            assert_true(f->state[i].next < f->n_states);
            for (const tool_arm *a = f->state[at].arm; a->lit && steps <= f->n_states;) {
                if (a->lit[0] || f->state[at].op != TOOL_SKIP) {
                    a++;
                    continue;
                }
                at = a->to;
                a = f->state[at].arm;
                steps++;
            }
            assert_true(steps <= f->n_states);
        }
    }
    assert_true(n > 30);
    assert_null(cairn_reply_families(n));
    assert_null(tool_family_find("no such"));
}

static void test_limits(void **state)
{
    buf text;
    (void)state;
    buf_init(&text, MEM_TEXT);
    /* a name that never ends, then a call */
    buf_puts(&text, "<function=");
    for (int i = 0; i < CAIRN_REPLY_MAX_NAME + 10; i++) buf_byte(&text, 'a');
    const size_t n = text.len;
    buf_puts(&text, "<tool_call>{\"name\":\"f\",\"arguments\":{\"s\":");
    for (int i = 0; i < CAIRN_REPLY_MAX_DEPTH + 1; i++) buf_byte(&text, '[');
    const cairn_reply_opts o = opts("hermes");
    record r;
    run(&r, &o, text.ptr);
    assert_int_equal(r.n_calls, 1);
    assert_int_equal(r.call[0].end, CAIRN_CALL_BROKEN);
    assert_true(str_starts(buf_view(&r.answer), str_sub(buf_view(&text), 0, n)));
    record_deinit(&r);
    /* arguments before the name, more than is kept */
    buf_cut(&text, 0);
    buf_puts(&text, "<tool_call>{\"arguments\":{\"s\":\"");
    for (int i = 0; i < CAIRN_REPLY_MAX_HELD + 10; i++) buf_byte(&text, 'a');
    record_init(&r);
    record_run(&r, &o, buf_view(&text), 1000);
    assert_int_equal(r.n_calls, 0);
    assert_true(str_eq(buf_view(&r.answer), buf_view(&text)));
    record_deinit(&r);
    buf_deinit(&text);
}

static void test_skip_and_bad_arguments(void **state)
{
    cairn_reply_opts o = opts("hermes");
    cairn_diag dg = {0};
    reply *p = NULL;
    record r;
    (void)state;
    record_init(&r);
    assert_ok(reply_new(&o, record_event, &r, &p, &dg));
    assert_ok(reply_skip(p, str_of("<think>old </th")));
    feed(p, "ink> new", false);
    assert_ok(reply_finish(p));
    assert_str(buf_view(&r.thought), "");
    assert_str(buf_view(&r.answer), "new");
    reply_free(p);
    record_deinit(&r);
    o.family = "nothing";
    assert_int_equal(reply_new(&o, record_event, &r, &p, &dg), CAIRN_E_NOTFOUND);
    assert_says(&dg, "nothing");
    o.family = NULL;
    o.tools = str_of("{}");
    assert_int_equal(reply_new(&o, record_event, &r, &p, &dg), CAIRN_E_ARG);
    o.tools = str_of("[");
    assert_int_equal(reply_new(&o, record_event, &r, &p, &dg), CAIRN_E_CORRUPT);
}

static cairn_status whole(void *ctx)
{
    static const char text[] =
        "t</think>a<tool_call>{\"arguments\":{\"s\":\"x\"},\"name\":\"f\"}</tool_call>"
        "<tool_call><function=f><parameter=any>[1]</parameter></function></tool_call> <tool_call>b";
    cairn_reply_opts o = opts("hermes");
    buf *out = ctx;
    o.prompt = str_of("<think>");
    buf_init(out, MEM_TEXT);
    const cairn_status st = reply_message(&o, str_of(text), out, NULL);
    buf_deinit(out);
    return st;
}

static void test_no_memory(void **state)
{
    buf out;
    (void)state;
    assert_true(fault_loop(whole, &out) > 8);
}

static void test_message(void **state)
{
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"<think>t</think>a<tool_call>{\"name\":\"f\",\"arguments\":{\"s\":\"x\"}}</tool_call>",
         "{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":\"t\",\"tool_calls\":[{"
         "\"id\":\"ID\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{"
         "\\\"s\\\":\\\"x\\\"}\"}}]}"},
        {"<think>t</think>\na <tool_call>{\"name\":\"f\",\"arguments\":{\"s\":,}}",
         "{\"role\":\"assistant\",\"content\":\"a "
         "<tool_call>{\\\"name\\\":\\\"f\\\",\\\"arguments\\\":{\\\"s\\\":,}}\",\"reasoning_"
         "content\":\"t\"}"},
        {"<tool_call>{\"name\":\"f\",\"arguments\":{\"s\":",
         "{\"role\":\"assistant\",\"content\":\"<tool_call>{\\\"name\\\":\\\"f\\\","
         "\\\"arguments\\\":{\\\"s\\\":\"}"},
        {"", "{\"role\":\"assistant\",\"content\":\"\"}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const cairn_reply_opts o = opts("hermes");
        cairn_bytes got;
        char want[512];
        assert_ok(cairn_reply_message(&o, str_of(cases[i].text), &got, NULL));
        const char *id = strstr(got.ptr, "call_"), *hole = strstr(cases[i].json, "ID");
        snprintf(want, sizeof want, "%s", cases[i].json);
        if (id && hole)
            snprintf(want, sizeof want, "%.*s%.21s%s", (int)(hole - cases[i].json), cases[i].json,
                     id, hole + 2);
        assert_string_equal(got.ptr, want);
        cairn_bytes_free(&got);
    }
}

static void test_kwargs(void **state)
{
    static const struct {
        const char *template_text;
        int think;
        const char *effort, *json;
    } cases[] = {
        {"{% if enable_thinking is defined %}x{% endif %}", 1, "", "{\"enable_thinking\":true}"},
        {"{% if enable_thinking is defined %}x{% endif %}", -1, "none",
         "{\"enable_thinking\":false}"},
        {"{% if enable_thinking is defined %}x{% endif %}", -1, "", "{}"},
        {"thinking {{ message.thinking }} {{ m['thinking'] }} {# thinking #}", 1, "high", "{}"},
        {"{%- if not thinking %}a{% endif %}", 0, "", "{\"thinking\":false}"},
        {"{{ 'Reasoning: ' + reasoning_effort }}", -1, "high", "{\"reasoning_effort\":\"high\"}"},
        {"{% if reasoning_effort in ['high', 'low', 'no_think'] %}{% endif %}", -1, "medium",
         "{\"reasoning_effort\":\"high\"}"},
        {"{% if reasoning_effort in ['high', 'low', 'no_think'] %}{% endif %}", 0, "",
         "{\"reasoning_effort\":\"no_think\"}"},
        {"{% if thinking_mode == 'enabled' %}{% endif %}", 0, "",
         "{\"thinking_mode\":\"disabled\"}"},
        {"{% if thinking_budget == 0 %}{% endif %}", 0, "", "{\"thinking_budget\":0}"},
        {"{% if thinking_bud", 0, "", "{}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cairn_bytes got;
        assert_ok(cairn_reply_kwargs(str_of(cases[i].template_text), cases[i].think,
                                     str_of(cases[i].effort), &got));
        assert_string_equal(got.ptr, cases[i].json);
        cairn_bytes_free(&got);
    }
    assert_string_equal(cairn_reply_find_family((cairn_str){0}, str_of("Qwen3-Coder-30B")),
                        "qwen3-coder");
    assert_string_equal(cairn_reply_find_family((cairn_str){0}, str_of("gpt-oss")), "harmony");
    assert_string_equal(cairn_reply_find_family((cairn_str){0}, str_of("x")), "generic");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_special),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_skip_and_bad_arguments),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_message),
        cmocka_unit_test(test_kwargs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
