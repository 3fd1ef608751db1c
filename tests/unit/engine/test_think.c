/* Budgets for thinking: which ids close a thought and when, what ends the following, and that ids are
   fed without asking for memory. */
#include "test.h"

#include "cairn/reply.h"
#include "engine/think.h"
#include "tok_json.h"

enum { OPEN = 94, CLOSE, VOCAB, MOST = 40000 };

static tok *t;

/* One piece for each visible byte of ASCII, in their order; the two markers are added. */
static int setup(void **state)
{
    (void)state;
    cairn_diag dg = {0};
    buf json;
    buf_init(&json, MEM_MISC);
    buf_printf(&json,
               "{\"added_tokens\":[{" TOK_PLAIN ",\"id\":%d,\"content\":\"<think>\"},{" TOK_PLAIN
               ",\"id\":%d,\"content\":"
               "\"</think>\"}],\"pre_tokenizer\":" TOK_BYTE_LEVEL ",\"decoder\":" TOK_BYTE_LEVEL ","
               "\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{",
               OPEN, CLOSE);
    for (int i = 0; i < OPEN; i++) {
        const char c = (char)('!' + i);
        buf_printf(&json, "%s\"%s%c\":%d", i ? "," : "", c == '"' || c == '\\' ? "\\" : "", c, i);
    }
    buf_puts(&json, "}}}");
    if (tok_open_hf(buf_view(&json), (cairn_str){"", 0}, "test", &t, &dg) != CAIRN_OK)
        fail_msg("%s", dg.message);
    buf_deinit(&json);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tok_close(t);
    return 0;
}

static cairn_status start(think *th, int32_t vocab, int32_t budget)
{
    cairn_reply_opts o;
    cairn_diag dg = {0};
    cairn_reply_opts_init(&o);
    o.family = "hermes";
    o.any_tool = true;
    return think_init(th, t, vocab, budget, &o, MOST, &dg);
}

static void feed(think *th, const char *text)
{
    for (const char *p = text; *p; p++) {
        assert_null(think_next(th));
        assert_ok(think_feed(th, *p - '!'));
    }
}

static void feed_id(think *th, int32_t id)
{
    assert_ok(think_feed(th, id));
}

/* Writes a thought of 3 that may have 2 and sees it closed. */
static void thinks_too_long(think *th)
{
    feed_id(th, OPEN);
    feed(th, "ab");
    const int32_t *id = think_next(th);
    assert_non_null(id);
    assert_int_equal(*id, CLOSE);
    feed_id(th, *id);
    assert_null(think_next(th));
}

static void closes_a_thought(void **state)
{
    (void)state;
    think th;
    assert_ok(start(&th, VOCAB, 2));
    thinks_too_long(&th);
    feed(&th, "answer");
    think_deinit(&th);
    assert_ok(start(&th, VOCAB, 0));
    feed_id(&th, OPEN);
    assert_int_equal(*think_next(&th), CLOSE);
    think_deinit(&th);
}

/* The model has no row for the id that would close the thought. */
static void refuses_what_it_cannot_close(void **state)
{
    (void)state;
    think th;
    assert_int_equal(start(&th, CLOSE, 2), CAIRN_E_ARG);
    think_deinit(&th);
    assert_ok(start(&th, VOCAB, -1));
    feed_id(&th, OPEN);
    feed(&th, "abcdef");
    think_deinit(&th);
}

/* A call whose arguments, `n` of them held until its name comes. */
static void feed_call(think *th, int n)
{
    feed(th, "<tool_call>{\"arguments\":{\"x\":\"");
    for (int i = 0; i < n; i++) feed(th, "v");
    feed(th, "\"},\"name\":\"f\"}</tool_call>");
}

static void feeds_without_allocating(void **state)
{
    (void)state;
    think th;
    assert_ok(start(&th, VOCAB, 2));
    const uint64_t calls = mem_calls();
    feed_id(&th, OPEN);
    feed(&th, "a");
    feed_id(&th, CLOSE);
    feed(&th, "answer");
    feed_call(&th, 15000);
    assert_non_null(th.reply);
    feed_call(&th, 20000); /* more than is kept for it: followed no longer */
    assert_null(th.reply);
    feed_id(&th, OPEN);
    feed(&th, "abcdef");
    assert_int_equal(mem_calls(), calls);
    think_deinit(&th);
}

/* What is followed counts as what was allocated for it, and not as more than the most. */
static void counts_its_bytes(void **state)
{
    (void)state;
    think th;
    const uint64_t before = mem_used_all();
    assert_ok(start(&th, VOCAB, 2));
    assert_int_equal(think_bytes(&th), mem_used_all() - before);
    assert_true(think_bytes(&th) <= think_worst_bytes(t, MOST));
    think_deinit(&th);
}

static cairn_status begin(void *ctx)
{
    think th;
    const cairn_status st = start(&th, VOCAB, 2);
    (void)ctx;
    think_deinit(&th);
    return st;
}

static void without_memory(void **state)
{
    (void)state;
    assert_true(fault_loop(begin, NULL) > 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closes_a_thought),         cmocka_unit_test(refuses_what_it_cannot_close),
        cmocka_unit_test(feeds_without_allocating), cmocka_unit_test(counts_its_bytes),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
