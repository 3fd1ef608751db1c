/* The chat request reader: what it makes of bodies, and every failure of memory. */
#include "test.h"

#include <stdio.h>

#include "serve/openai_read.h"

/* The reader only wants defaults; these are engine.h's. */
void cairn_request_init(cairn_request *r)
{
    *r = (cairn_request){.struct_size = sizeof *r, .n_logprobs = -1};
    r->sampling = (cairn_sampling){.top_p = 1, .repetition_penalty = 1, .typical_p = 1};
}

static const char full[] =
    "{\"model\": \"m\", \"messages\": ["
    "{\"role\": \"developer\", \"content\": [{\"type\": \"text\", \"text\": \"a\\u00e9\"},"
    " {\"type\": \"text\", \"text\": \"b\"}], \"name\": \"n\"},"
    "{\"role\": \"assistant\", \"tool_calls\": [{\"id\": \"1\", \"function\":"
    " {\"name\": \"f\", \"arguments\": \"{\\\"x\\\": 1}\"}}]}],"
    "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\"}}],"
    "\"dry_sequence_breakers\": [\"--\"],"
    "\"stop\": [\"x\", \"y\"], \"logit_bias\": {\"7\": -3.5}, "
    "\"max_tokens\": 9, \"seed\": -1,"
    "\"reasoning_effort\": \"low\", \"logprobs\": true, \"top_logprobs\": 4, \"n\": 3,"
    "\"return_progress\": true, \"stream\": true, \"stream_options\": {\"include_usage\": true}}";

static void test_full(void **state)
{
    chat_ask a;
    chat_fault f;

    (void)state;
    assert_ok(chat_ask_read(&a, str_of(full), &f));
    assert_str(a.model, "m");
    assert_str(buf_view(&a.messages),
               "[{\"role\":\"system\",\"content\":\"a\xc3\xa9"
               "b\",\"name\":\"n\"},{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"1\","
               "\"function\":{\"name\":\"f\",\"arguments\":{\"x\":1}}}]}]");
    assert_str(buf_view(&a.tools), "[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]");
    assert_str(a.effort, "low");
    assert_int_equal(a.think, -1);
    assert_int_equal(json_typeof(a.kwargs), JSON_NONE);
    assert_int_equal(a.rq.n_stop, 2);
    assert_str(a.rq.stop[1], "y");
    assert_int_equal(a.rq.sampling.n_dry_breakers, 1);
    assert_str(a.rq.sampling.dry_breakers[0], "--");
    assert_int_equal(a.rq.sampling.n_bias, 1);
    assert_int_equal(a.rq.sampling.bias[0].id, 7);
    assert_true(a.rq.sampling.bias[0].value == -3.5F);
    assert_true(a.rq.sampling.temperature == 1.0F);
    assert_int_equal(a.rq.max_tokens, 9);
    assert_int_equal(a.rq.sampling.seed, UINT64_MAX);
    assert_int_equal(a.rq.n_logprobs, 4);
    assert_int_equal(a.n, 3);
    assert_true(a.has_seed && a.stream && a.usage == USAGE_APART && a.progress);
    chat_ask_deinit(&a);
}

static void test_fault_names_field(void **state)
{
    chat_ask a;
    chat_fault f;

    (void)state;
    assert_int_equal(chat_ask_read(&a, STR_LIT("{\"messages\": [], \"temperature\": 1}"), &f),
                     CAIRN_E_ARG);
    assert_string_equal(f.param, "messages");
    chat_ask_deinit(&a);
    assert_int_equal(chat_ask_read(&a, STR_LIT("{\"top_p\": 7}"), &f), CAIRN_E_ARG);
    assert_string_equal(f.param, "top_p");
    assert_says(&f.dg, "top_p");
    chat_ask_deinit(&a);
    assert_int_equal(chat_ask_read(&a, STR_LIT("{\"top_p\" 7}"), &f), CAIRN_E_CORRUPT);
    assert_string_equal(f.param, "");
    assert_says(&f.dg, "byte 9");
    chat_ask_deinit(&a);
}

/* Whole numbers beyond every integer type included. */
static void test_best_of(void **state)
{
    static const struct {
        const char *value;
        bool fine;
    } cases[] = {{"1", true},      {"0", true},       {"1.0", true},   {"null", true},
                 {"false", false}, {"2", false},      {"-1", false},   {"0.5", false},
                 {"1e300", false}, {"-1e300", false}, {"\"1\"", false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char body[128];
        chat_ask a;
        chat_fault f;
        (void)snprintf(body, sizeof body,
                       "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], "
                       "\"best_of\": %s}",
                       cases[i].value);
        assert_int_equal(chat_ask_read(&a, str_of(body), &f),
                         cases[i].fine ? CAIRN_OK : CAIRN_E_UNSUPPORTED);
        if (!cases[i].fine) assert_string_equal(f.param, "best_of");
        chat_ask_deinit(&a);
    }
}

static cairn_status read_full(void *ctx)
{
    chat_ask a;
    chat_fault f;
    cairn_status st = chat_ask_read(&a, str_of(full), &f);

    (void)ctx;
    chat_ask_deinit(&a);
    return st;
}

static void test_no_memory(void **state)
{
    (void)state;
    assert_true(fault_loop(read_full, NULL) > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_fault_names_field),
        cmocka_unit_test(test_best_of),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
