/* Reads the body of POST /v1/responses but for its input: the fields as the public schema has them, each checked,
   and what they become in a chat.  Fields that ask for what is not done here are a table, refused by name; those
   that nobody reads (prompt_cache_key, safety_identifier, client_metadata, …) only go back where the response
   repeats them. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/str.h"
#include "cairn/engine.h"
#include "serve/body_fields.h"
#include "serve/chat_sampling.h"
#include "serve/openai_messages.h"
#include "serve/random.h"
#include "serve/responses_ask.h"

static bool disabled(json_val v)
{
    return str_is(json_str(v), "disabled");
}

static const chat_refusal refusals[] = {
    {"background", NULL, "responses are not made in the background"},
    {"conversation", chat_nothing, "there are no conversations; use `previous_response_id`"},
    {"prompt", chat_nothing, "there are no prompt templates"},
    {"context_management", chat_empty_list, "contexts are not compacted"},
    {"moderation", chat_nothing, "nothing is moderated"},
    {"background_options", chat_nothing, "responses are not made in the background"},
    {"access_programs", chat_nothing, "there are no access programs"},
    {"truncation", disabled, "no item is left out to make room"},
};

static const body_field fields[] = {
    BODY_FIELD(NULL, "previous_response_id", FIELD_TEXT),
    BODY_FIELD(NULL, "prompt_cache_key", FIELD_TEXT),
    BODY_FIELD(NULL, "safety_identifier", FIELD_TEXT),
    BODY_FIELD(NULL, "user", FIELD_TEXT),
    BODY_FIELD(NULL, "instructions", FIELD_TEXT),
    BODY_FIELD(NULL, "text", FIELD_OBJECT),
    BODY_FIELD(NULL, "reasoning", FIELD_OBJECT),
    BODY_FIELD(NULL, "image", FIELD_OBJECT), /* of images, which are refused where they stand */
    BODY_FIELD(NULL, "prompt_cache_options", FIELD_OBJECT),
    BODY_FIELD(NULL, "metadata", FIELD_TEXTS),
    BODY_WORD(NULL, "service_tier", CHAT_TIERS),
    BODY_WORD(NULL, "prompt_cache_retention", "in_memory in-memory 24h ", "in_memory or 24h"),
    BODY_WORD("text", "verbosity", "low medium high ", "low, medium or high"),
    BODY_WORD("reasoning", "effort", CHAT_EFFORTS),
    BODY_WORD(NULL, "reasoning_effort", CHAT_EFFORTS),
    BODY_WORD("prompt_cache_options", "mode", "implicit explicit ", "implicit or explicit"),
    BODY_FIELD("chat_template_kwargs", "enable_thinking", FIELD_TRUTH),
    BODY_WORD("reasoning", "summary", "auto concise detailed none ", "auto, concise or detailed"),
    BODY_WORD("reasoning", "generate_summary", "auto concise detailed none ",
              "auto, concise or detailed"),
    BODY_WORD("reasoning", "context", "auto current_turn all_turns ",
              "auto, current_turn or all_turns"),
    BODY_WORD("reasoning", "mode", "standard pro ", "standard or pro"),
};

static cairn_status read_text(json_val root, chat_fault *f)
{
    const json_val format = json_get(json_get(root, "text"), "format");
    const json_val type = json_get(format, "type");

    if (json_typeof(format) <= JSON_NULL || str_is(json_str(type), "text")) return CAIRN_OK;
    if (json_typeof(format) != JSON_OBJ) return chat_want(f, "text.format", "an object", format);
    if (!str_is(json_str(type), "json_schema") && !str_is(json_str(type), "json_object"))
        return chat_want(f, "text.format.type", "text, json_schema or json_object", type);
    return chat_fault_set(f, CAIRN_E_UNSUPPORTED, "text.format",
                          "`text.format` is not supported: constrained output is not available");
}

static cairn_status read_reasoning(json_val root, chat_ask *a, responses_ask *r, chat_fault *f)
{
    const json_val v = json_get(root, "reasoning");
    cairn_str effort = json_str(json_get(v, "effort"));
    cairn_str summary = json_str(json_get(v, "summary"));

    if (str_is(json_str(json_get(v, "mode")), "pro"))
        return chat_fault_set(f, CAIRN_E_UNSUPPORTED, "reasoning.mode",
                              "`reasoning.mode` is not supported: there is one mode");
    if (str_is(json_str(json_get(v, "context")), "all_turns"))
        return chat_fault_set(f, CAIRN_E_UNSUPPORTED, "reasoning.context",
                              "`reasoning.context` is not supported: the model's template decides "
                              "which thoughts it shows again");
    if (str_is(effort, "max")) effort = STR_LIT("xhigh"); /* the most that templates know */
    if (effort.len) a->effort = effort;
    if (!summary.len) summary = json_str(json_get(v, "generate_summary"));
    r->summary = summary.len && !str_is(summary, "none");
    return CAIRN_OK;
}

static cairn_status read_include(json_val root, bool *logprobs, chat_fault *f)
{
    static const char known[] =
        "file_search_call.results web_search_call.results web_search_call.action.sources "
        "message.input_image.image_url computer_call_output.output.image_url "
        "code_interpreter_call.outputs reasoning.encrypted_content message.output_text.logprobs ";
    const json_val list = json_get(root, "include");
    json_iter it = json_each(list);
    char param[64];
    json_val v;

    if (json_typeof(list) > JSON_NULL && json_typeof(list) != JSON_ARR)
        return chat_want(f, "include", "an array", list);
    for (size_t i = 0; json_next(&it, &v); i++) {
        (void)snprintf(param, sizeof param, "include[%zu]", i);
        if (json_typeof(v) != JSON_STR || !body_word(known, json_str(v)))
            return chat_want(f, param, "one of what the API can include", v);
        *logprobs |= str_is(json_str(v), "message.output_text.logprobs");
    }
    return CAIRN_OK;
}

static cairn_status read_flags(json_val root, chat_ask *a, responses_ask *r, chat_fault *f)
{
    bool parallel = true, logprobs = false;
    int32_t calls = 1;

    TRY(chat_stream_read(root, a, f));
    TRY(chat_want_bool(root, "return_progress", &a->progress, f));
    TRY(chat_want_bool(root, "parallel_tool_calls", &parallel, f));
    TRY(chat_want_bool(root, "store", &r->keep, f));
    a->one_call = !parallel;
    TRY(chat_want_int(root, "max_output_tokens", 1, INT32_MAX, &a->rq.max_tokens, f));
    TRY(chat_want_int(root, "max_tool_calls", 1, INT32_MAX, &calls, f)); /* of OpenAI's tools */
    TRY(read_include(root, &logprobs, f));
    TRY(chat_want_int(root, "top_logprobs", 0, CAIRN_MAX_LOGPROBS, &a->n_top, f));
    a->rq.n_logprobs = logprobs || a->n_top ? a->n_top : -1;
    return CAIRN_OK;
}

static void echo_or(json_writer *w, json_val root, const char *key, const char *otherwise)
{
    const json_val v = json_get(root, key);

    json_w_key(w, key);
    if (json_typeof(v) > JSON_NULL)
        json_w_val(w, v);
    else
        json_w_raw(w, str_of(otherwise));
}

static void echo_word(json_writer *w, json_val in, const char *key)
{
    json_w_key(w, key);
    if (json_typeof(json_get(in, key)) == JSON_STR)
        json_w_str(w, json_str(json_get(in, key)));
    else
        json_w_null(w);
}

static void echo_reasoning(json_writer *w, json_val v, bool summary)
{
    json_w_key(w, "reasoning");
    json_w_obj(w);
    echo_word(w, v, "effort");
    json_w_key(w, "summary");
    if (summary)
        json_w_str(w, STR_LIT("detailed")); /* all that was thought */
    else
        json_w_null(w);
    json_w_end_obj(w);
}

static void echo_text(json_writer *w, json_val v)
{
    json_w_key(w, "text");
    json_w_obj(w);
    json_w_key(w, "format");
    json_w_raw(w, STR_LIT("{\"type\":\"text\"}")); /* read_text takes no other */
    echo_or(w, v, "verbosity", "\"medium\"");
    json_w_end_obj(w);
}

/* As the response repeats them, with what holds where nothing was said. */
static void put_echo(json_val root, const chat_ask *a, responses_ask *r)
{
    static const char *const or_null[] = {"instructions",
                                          "max_output_tokens",
                                          "max_tool_calls",
                                          "previous_response_id",
                                          "prompt_cache_key",
                                          "safety_identifier",
                                          "user"};
    json_writer w = json_write(&r->echo);

    for (size_t i = 0; i < sizeof or_null / sizeof or_null[0]; i++)
        echo_or(&w, root, or_null[i], "null");
    echo_or(&w, root, "metadata", "{}");
    json_w_kbool(&w, "background", false);
    json_w_kbool(&w, "store", r->keep);
    json_w_kbool(&w, "parallel_tool_calls", !a->one_call);
    echo_reasoning(&w, json_get(root, "reasoning"), r->summary);
    json_w_kstr(&w, "service_tier", str_of(chat_tier(root)));
    echo_or(&w, root, "temperature", "1.0");
    echo_or(&w, root, "top_p", "1.0");
    echo_text(&w, json_get(root, "text"));
    echo_or(&w, root, "tool_choice", "\"auto\"");
    echo_or(&w, root, "tools", "[]");
    json_w_kint(&w, "top_logprobs", a->n_top);
    json_w_kstr(&w, "truncation", STR_LIT("disabled"));
}

static cairn_status no_memory(chat_fault *f)
{
    return chat_fault_set(f, CAIRN_E_NOMEM, "", "no memory for the request");
}

/* It is the ask's; NULL: no memory. */
static responses_ask *new_ask(chat_ask *a)
{
    responses_ask *r = mem_calloc(1, sizeof *r, MEM_SERVE);

    if (!r) return NULL;
    r->refs = 1;
    r->keep = true;
    arena_init(&r->mem, MEM_SERVE);
    buf_init(&r->echo, MEM_SERVE);
    buf_init(&r->items, MEM_SERVE);
    random_name(r->digits, sizeof r->digits, "", RESPONSE_DIGITS);
    a->more = r;
    a->more_let_go = responses_ask_let_go;
    return r;
}

void responses_ask_let_go(void *ask)
{
    responses_ask *r = ask;

    if (--r->refs) return;
    if (r->store) responses_store_let_go(r->store, r->past);
    buf_deinit(&r->echo);
    buf_deinit(&r->items);
    arena_deinit(&r->mem);
    mem_free(r);
}

static cairn_status read_previous(json_val root, responses_ask *r, chat_fault *f)
{
    const cairn_str id = json_str(json_get(root, "previous_response_id"));
    const char *copy;

    if (id.len == 0) return CAIRN_OK;
    copy = arena_strdup(&r->mem, id);
    if (!copy) return no_memory(f);
    r->previous = (cairn_str){copy, id.len};
    return CAIRN_OK;
}

cairn_status responses_ask_read(chat_ask *a, cairn_str body, chat_fault *f)
{
    responses_ask *r;

    TRY(chat_ask_open(a, body, f));
    const json_val root = json_root(a->doc);
    a->prompt_field = "input";
    r = new_ask(a);
    if (!r) return no_memory(f);
    TRY(chat_refuse(root, refusals, sizeof refusals / sizeof refusals[0], f));
    TRY(BODY_FIELDS_CHECK(root, (body_path){0}, fields, f));
    TRY(chat_sampling_read(root, a, f));
    TRY(chat_special_read(root, a, f));
    TRY(chat_priority_read(root, a, f));
    if (str_is(str_of(chat_tier(root)), "priority")) a->rq.priority = -CHAT_TIER_STEPS;
    TRY(chat_stop_read(root, "stop", a, f));
    TRY(chat_kwargs_read(root, a, f));
    TRY(read_text(root, f));
    TRY(read_reasoning(root, a, r, f));
    TRY(read_flags(root, a, r, f));
    TRY(read_previous(root, r, f));
    TRY(responses_tools_read(root, a, r, f));
    put_echo(root, a, r);
    return buf_status(&r->echo) == CAIRN_OK ? CAIRN_OK : no_memory(f);
}
