/* The reader of responses' bodies: what it makes of one, what it keeps, and every failure of memory. */
#include "test.h"

#include "base/str.h"
#include "serve/responses_ask.h"

/* The reader only wants defaults; these are engine.h's. */
void cairn_request_init(cairn_request *r)
{
    *r = (cairn_request){.struct_size = sizeof *r, .n_logprobs = -1};
    r->sampling = (cairn_sampling){.top_p = 1, .repetition_penalty = 1, .typical_p = 1};
}

static const char full[] =
    "{\"model\": \"m\", \"instructions\": \"I.\", \"input\": ["
    "{\"role\": \"developer\", \"content\": \"D.\"},"
    "{\"role\": \"user\", \"content\": [{\"type\": \"input_text\", \"text\": \"a\"},"
    " {\"type\": \"input_text\", \"text\": \"b\"}]},"
    "{\"type\": \"reasoning\", \"id\": \"rs\", \"summary\": [],"
    " \"content\": [{\"type\": \"reasoning_text\", \"text\": \"T.\"}]},"
    "{\"type\": \"message\", \"id\": \"m1\", \"role\": \"assistant\", \"status\": \"completed\","
    " \"content\": [{\"type\": \"output_text\", \"text\": \"c\", \"annotations\": []}]},"
    "{\"type\": \"function_call\", \"call_id\": \"1\", \"name\": \"f\", \"namespace\": \"n\","
    " \"arguments\": \"{\\\"x\\\": 1}\"},"
    "{\"type\": \"custom_tool_call\", \"call_id\": \"2\", \"name\": \"g\", \"input\": \"\\\"\"},"
    "{\"type\": \"function_call_output\", \"call_id\": \"1\", \"output\": \"r\"},"
    "{\"type\": \"custom_tool_call_output\", \"call_id\": \"2\", \"output\":"
    " [{\"type\": \"input_text\", \"text\": \"s\"}]}],"
    "\"tools\": [{\"type\": \"namespace\", \"name\": \"n\", \"description\": \"N.\", \"tools\":"
    " [{\"type\": \"function\", \"name\": \"f\", \"description\": \"F.\"}]},"
    " {\"type\": \"custom\", \"name\": \"g\"}, {\"type\": \"web_search\"}],"
    "\"reasoning\": {\"effort\": \"max\", \"summary\": \"auto\"}, \"service_tier\": \"fast\","
    "\"max_output_tokens\": 9, \"parallel_tool_calls\": false, \"top_logprobs\": 3, \"stream\": "
    "true}";

static const char full_messages[] =
    "[{\"role\":\"system\",\"content\":\"I.\\n\\nD.\"},"
    "{\"role\":\"user\",\"content\":\"a\\nb\"},"
    "{\"role\":\"assistant\",\"content\":\"c\",\"reasoning_content\":\"T.\",\"tool_calls\":["
    "{\"id\":\"1\",\"type\":\"function\",\"function\":{\"name\":\"n__f\",\"arguments\":{\"x\":1}}},"
    "{\"id\":\"2\",\"type\":\"function\",\"function\":{\"name\":\"g\",\"arguments\":{\"input\":"
    "\"\\\"\"}}}]},"
    "{\"role\":\"tool\",\"tool_call_id\":\"1\",\"name\":\"n__f\",\"content\":\"r\"},"
    "{\"role\":\"tool\",\"tool_call_id\":\"2\",\"name\":\"g\",\"content\":\"s\"}]";

static cairn_status read_both(chat_ask *a, cairn_str body, chat_fault *f)
{
    TRY(responses_ask_read(a, body, f));
    return responses_input_read(a, f);
}

static void test_full(void **state)
{
    const responses_ask *r;
    json_doc *d = NULL;
    chat_fault f;
    chat_ask a;

    (void)state;
    assert_ok(read_both(&a, str_of(full), &f));
    assert_str(buf_view(&a.messages), full_messages);
    r = a.more;
    assert_int_equal(r->n_tools, 2);
    assert_str(r->tools[0].called, "n__f");
    assert_str(r->tools[0].space, "n");
    assert_true(r->tools[1].custom && !r->tools[0].custom);
    assert_non_null(strstr(a.tools.ptr, "N.\\n\\nF."));
    assert_non_null(strstr(a.warning, "web_search"));
    assert_str(a.effort, "xhigh");
    assert_int_equal(a.rq.priority, -CHAT_TIER_STEPS);
    assert_int_equal(a.rq.max_tokens, 9);
    assert_int_equal(a.rq.n_logprobs, 3);
    assert_true(a.one_call && a.stream && r->keep && r->summary);
    assert_ok(json_parse(buf_view(&r->items), &d, NULL));
    assert_int_equal(json_size(json_root(d)), 8);
    assert_str(json_str(json_get(json_at(json_root(d), 3), "id")), "m1");
    json_free(d);
    chat_ask_deinit(&a);
}

/* Items that a later request goes on from: its own are after them. */
static void test_past(void **state)
{
    kept_response second = {0}, first = {.refs = 1};
    responses_ask *r;
    chat_fault f;
    chat_ask a;

    (void)state;
    buf_puts(&first.items, "[{\"type\":\"message\",\"role\":\"user\",\"content\":\"1\"}]");
    buf_puts(&first.output, "[{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"2\"}]");
    buf_puts(&second.items, "[{\"type\":\"message\",\"role\":\"user\",\"content\":\"3\"}]");
    second.past = &first;
    assert_ok(responses_ask_read(&a, STR_LIT("{\"input\": \"4\"}"), &f));
    r = a.more;
    r->past = &second;
    assert_ok(responses_input_read(&a, &f));
    assert_str(buf_view(&a.messages),
               "[{\"role\":\"user\",\"content\":\"1\"},{\"role\":\"assistant\",\"content\":\"2\"},"
               "{\"role\":\"user\",\"content\":\"3\\n\\n4\"}]");
    assert_null(strstr(r->items.ptr, "\"3\"")); /* each keeps what it added */
    chat_ask_deinit(&a);
    buf_deinit(&first.items);
    buf_deinit(&first.output);
    buf_deinit(&second.items);
}

static cairn_status read_full(void *ctx)
{
    chat_fault f;
    chat_ask a;
    const cairn_status st = read_both(&a, str_of(full), &f);

    (void)ctx;
    chat_ask_deinit(&a);
    return st;
}

static void test_no_memory(void **state)
{
    (void)state;
    assert_true(fault_loop(read_full, NULL) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_full), cmocka_unit_test(test_past),
                                       cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
