/* What is around the reply machine: marked special tokens, ids, budgets, limits, memory, the tables
   themselves, whole messages and the variables of thinking. */
#include "test.h"

#include <stdio.h>

#include "cairn/reply.h"
#include "reply_record.h"

static const char tools[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{"
    "\"s\":{\"type\":\"string\"},\"n\":{\"type\":\"integer\"},\"any\":{}}}}},{\"name\":\"g\"}]";

static cairn_reply_opts opts(const char *family)
{
    return (cairn_reply_opts){
        .struct_size = sizeof(cairn_reply_opts), .family = family, .tools = str_of(tools)};
}

static void run(record *r, const cairn_reply_opts *o, const char *text)
{
    assert_true(record_twice(r, o, str_of(text)));
}

static void feed(reply *p, const char *text, bool special)
{
    assert_ok(reply_feed(p, str_of(text), special));
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
    feed(p, "<|tool_call>", true);
    feed(p, "<|channel>", true);
    feed(p, "thought\n more", false);
    feed(p, "<channel|>", true);
    assert_ok(reply_finish(p));
    assert_null(r.wrong);
    assert_int_equal(r.n_calls, 1);
    assert_str(buf_view(&r.call[0].args), "{\"s\":\"in <|\\\"|> text\"}");
    assert_str(buf_view(&r.answer), "write <|tool_call>call:f{}<|tool_call>oops<|tool_call>");
    assert_str(buf_view(&r.thought), "whymore");
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
    static const char *const hints[][2] = {
        {"Qwen3-Coder-30B", "qwen3-coder"}, {"qwen2", "hermes"},          {"gpt-oss", "harmony"},
        {"granitehybrid", "hermes"},        {"granite", "granite"},       {"cohere2", "cohere"},
        {"command-r", "command-r"},         {"MiniMax-M2", "minimax-m2"}, {"x", "generic"},
    };
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
        assert_string_equal(cairn_reply_find_family((cairn_str){0}, str_of(hints[i][0])),
                            hints[i][1]);
    /* Half of all models are of Llama's type; a template that is not Llama's own says more. */
    assert_string_equal(cairn_reply_find_family(STR_LIT("x"), STR_LIT("llama")), "generic");
    assert_string_equal(cairn_reply_find_family(STR_LIT("x"), STR_LIT("qwen2")), "hermes");
}

/* The public face: options from its own init, a struct of another size, the look. */
static void test_public(void **state)
{
    cairn_reply_opts o;
    cairn_reply_look look;
    cairn_reply *p = NULL;
    cairn_diag dg = {0};
    record r;
    (void)state;
    record_init(&r);
    cairn_reply_opts_init(&o);
    o.template_text = str_of("{{ '<|im_start|>' }}<tool_call>");
    o.tools = str_of(tools);
    assert_int_equal(cairn_reply_new(&o, NULL, NULL, &p, &dg), CAIRN_E_ARG);
    o.struct_size--;
    assert_int_equal(cairn_reply_new(&o, record_event, &r, &p, &dg), CAIRN_E_ARG);
    assert_says(&dg, "cairn_reply_opts_init");
    o.struct_size++;
    assert_ok(cairn_reply_new(&o, record_event, &r, &p, &dg));
    cairn_reply_look_init(&look);
    assert_ok(cairn_reply_feed(p, str_of("a<tool_call>{\"name\"")));
    cairn_reply_get_look(p, &look);
    assert_string_equal(look.family, "hermes");
    assert_int_equal(look.where, CAIRN_IN_CALL);
    assert_int_equal(look.n_calls, 0);
    assert_false(look.keep_special);
    assert_ok(cairn_reply_feed_special(p, str_of(": \"f\"}")));
    assert_ok(cairn_reply_feed(p, (cairn_str){0}));
    assert_ok(cairn_reply_finish(p));
    assert_int_equal(r.n_calls, 1);
    cairn_reply_free(p);
    cairn_reply_free(NULL);
    record_deinit(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_special),   cmocka_unit_test(test_ids),
        cmocka_unit_test(test_budget),    cmocka_unit_test(test_tables),
        cmocka_unit_test(test_limits),    cmocka_unit_test(test_skip_and_bad_arguments),
        cmocka_unit_test(test_no_memory), cmocka_unit_test(test_message),
        cmocka_unit_test(test_kwargs),    cmocka_unit_test(test_public),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
