/* Readers of replies: what deltas a text gives, which calls are none after all, where one call is
   enough, and every failure of memory. */
#include "test.h"

#include <stdio.h>

#include "serve/openai_whole.h"

static const char tools[] = "[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]";
#define CALL(args) "<tool_call>{\"name\":\"f\",\"arguments\":" args "}</tool_call>"

typedef struct seen {
    buf log; /* a line a delta */
    whole said;
} seen;

static void on_delta(void *ctx, uint32_t choice, const reply_delta *d)
{
    static const char *const names[] = {"thought", "content", "call", "args", "end", "none"};
    seen *s = ctx;
    buf_printf(&s->log, "%u %s %d %.*s%.*s\n", choice, names[d->kind], d->call,
               (int)d->name.len * (d->kind == DELTA_CALL), d->name.len ? d->name.ptr : "",
               (int)d->text.len, d->text.len ? d->text.ptr : "");
    whole_add(&s->said, d);
}

static cairn_status read_text(seen *s, const char *text, uint32_t n, bool one_call, bool cut)
{
    cairn_reply_opts o;
    cairn_diag dg = {0};
    readers *r = NULL;
    cairn_reply_opts_init(&o);
    o.family = "hermes";
    o.tools = str_of(tools);
    buf_init(&s->log, MEM_SERVE);
    whole_init(&s->said);
    cairn_status st = readers_new(&o, n, one_call, &r, &dg);
    if (st != CAIRN_OK) return st;
    readers_bind(r, on_delta, s);
    for (uint32_t i = 0; i < n && st == CAIRN_OK; i++) {
        st = readers_feed(r, i, str_of(text));
        if (st == CAIRN_OK) st = readers_finish(r, i, cut);
    }
    readers_free(r);
    if (st == CAIRN_OK) st = buf_status(&s->log);
    return st == CAIRN_OK ? whole_status(&s->said) : st;
}

static void expect(const char *text, bool one_call, bool cut, const char *log, const char *message)
{
    seen s;
    buf b;
    json_writer w;
    buf_init(&b, MEM_SERVE);
    w = json_write(&b);
    assert_ok(read_text(&s, text, 1, one_call, cut));
    assert_str(buf_view(&s.log), log);
    buf_cut(&s.said.id, 0); /* of the seed */
    whole_write(&s.said, &w);
    if (message) assert_str(buf_view(&b), message);
    buf_deinit(&b);
    buf_deinit(&s.log);
    whole_deinit(&s.said);
}

static void test_parts(void **state)
{
    (void)state;
    expect("<think>a</think>b", false, false, "0 thought 0 a\n0 content 0 b\n",
           "{\"role\":\"assistant\",\"content\":\"b\",\"refusal\":null,"
           "\"reasoning_content\":\"a\",\"reasoning\":\"a\"}");
    expect("", false, false, "", "{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null}");
    expect(CALL("{\"x\":1}"), false, false, "0 call 0 f\n0 args 0 {\"x\":1}\n0 end 0 \n", NULL);
}

static void test_none_after_all(void **state)
{
    (void)state;
    expect(
        CALL("{\"x\":]") "b", false, false,
        "0 call 0 f\n0 args 0 {\"x\":\n0 none 0 <tool_call>{\"name\":\"f\",\"arguments\":{\"x\":\n"
        "0 content 0 ]}</tool_call>b\n",
        "{\"role\":\"assistant\",\"content\":\"<tool_call>{\\\"name\\\":\\\"f\\\","
        "\\\"arguments\\\":{\\\"x\\\":]}</tool_call>b\",\"refusal\":null}");
    /* Cut by a limit it stays one, as far as it goes; cut by anything else it was never finished. */
    expect("<tool_call>{\"name\":\"f\",\"arguments\":{\"x", false, true,
           "0 call 0 f\n0 args 0 {\"x\n0 end 0 \n", NULL);
    expect("<tool_call>{\"name\":\"f\",\"arguments\":{\"x", false, false,
           "0 call 0 f\n0 args 0 {\"x\n0 none 0 <tool_call>{\"name\":\"f\",\"arguments\":{\"x\n",
           NULL);
}

static void test_one_call(void **state)
{
    (void)state;
    const char *two = CALL("{}") "\n" CALL("{\"x\":2}") "after";
    const char *first = "0 call 0 f\n0 args 0 {}\n0 end 0 \n";
    expect(two, true, false, first, NULL);
    expect(two, false, false,
           "0 call 0 f\n0 args 0 {}\n0 end 0 \n0 call 1 f\n0 args 1 {\"x\":2}\n0 end 1 \n"
           "0 content 0 after\n",
           NULL);
    /* One that broke does not count. */
    expect(CALL("{]") CALL("{}"), true, false,
           "0 call 0 f\n0 args 0 {\n0 none 0 <tool_call>{\"name\":\"f\",\"arguments\":{\n"
           "0 content 0 ]}</tool_call>\n0 call 1 f\n0 args 1 {}\n0 end 1 \n",
           NULL);
}

static void test_too_many_copies(void **state)
{
    cairn_reply_opts o;
    cairn_diag dg = {0};
    readers *r = NULL;
    (void)state;
    cairn_reply_opts_init(&o);
    o.tools = (cairn_str){tools, READERS_MAX_BYTES / 2 + 1}; /* refused before it is looked at */
    assert_int_equal(readers_new(&o, 2, false, &r, &dg), CAIRN_E_LIMIT);
    assert_says(&dg, "2 choices");
}

static cairn_status read_two(void *ctx)
{
    seen s;
    (void)ctx;
    const cairn_status st =
        read_text(&s, "<think>a</think>b" CALL("{\"x\":1}") CALL("{]"), 2, false, false);
    buf_deinit(&s.log);
    whole_deinit(&s.said);
    return st;
}

static void test_no_memory(void **state)
{
    (void)state;
    assert_true(fault_loop(read_two, NULL) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),     cmocka_unit_test(test_none_after_all),
        cmocka_unit_test(test_one_call),  cmocka_unit_test(test_too_many_copies),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
