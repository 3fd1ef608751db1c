/* Reads the body of POST /v1/messages into what a chat request is here.  Sampling is read as OpenAI's is;
   fields that no API has are ignored, those that say nothing to a model (cache_control, service_tier, …) have
   to be what the API says, and what cannot be done is refused by name (docs/api.md). */
#include "serve/anthropic_read.h"

#include <stdio.h>

#include "base/diag.h"
#include "base/str.h"
#include "serve/anthropic_messages.h"
#include "serve/anthropic_texts.h"
#include "serve/anthropic_tools.h"
#include "serve/body_fields.h"
#include "serve/chat_sampling.h"
#include "serve/openai_messages.h"

static bool standard(json_val v)
{
    return str_is(json_str(v), "standard");
}

static const chat_refusal refusals[] = {
    {"output_format", chat_nothing, "constrained output is not available"},
    {"container", chat_nothing, "there are no containers"},
    {"mcp_servers", chat_empty_list, "there are no MCP servers here; give their tools as `tools`"},
    {"speed", standard, "there is one speed"},
    {"thread", chat_nothing, "no conversation is kept here; send its messages"},
    {"compaction", chat_nothing, "conversations are not summarised here"},
};

/* What says nothing to a model. */
static const body_field fields[] = {
    BODY_FIELD(NULL, "metadata", FIELD_OBJECT),
    BODY_FIELD("metadata", "user_id", FIELD_TEXT),
    BODY_WORD(NULL, "service_tier", "auto standard_only ", "auto or standard_only"),
    BODY_FIELD(NULL, "inference_geo", FIELD_TEXT),
    BODY_FIELD(NULL, "context_management", FIELD_OBJECT),
    BODY_FIELD("context_management", "edits", FIELD_LIST),
    BODY_FIELD(NULL, "diagnostics", FIELD_OBJECT),
    BODY_FIELD("diagnostics", "previous_message_id", FIELD_TEXT),
    BODY_FIELD(NULL, "billing_policy", FIELD_OBJECT),
    BODY_FIELD(NULL, "fallback_credit_token", FIELD_TEXT),
};

/* v is an object or not there. */
static cairn_status want_object(json_val v, const char *name, chat_fault *f)
{
    if (json_typeof(v) <= JSON_NULL || json_typeof(v) == JSON_OBJ) return CAIRN_OK;
    return chat_want(f, name, "an object", v);
}

/* Off, or on with a budget, which the answer's own limit must be above. */
static cairn_status read_budget(json_val v, chat_ask *a, chat_fault *f)
{
    const json_val budget = json_get(v, "budget_tokens");
    const int64_t n = json_int(budget, 0);

    if (n < 1 || n > INT32_MAX)
        return chat_want(f, "thinking.budget_tokens", "a number of tokens, at least 1", budget);
    if (a->rq.max_tokens && n >= a->rq.max_tokens)
        return chat_fault_set(
            f, CAIRN_E_ARG, "thinking.budget_tokens",
            "`thinking.budget_tokens` must be less than `max_tokens`, %d, found %lld",
            (int)a->rq.max_tokens, (long long)n);
    a->rq.think_budget = (int32_t)n;
    return CAIRN_OK;
}

static cairn_status read_thinking(json_val root, chat_ask *a, chat_fault *f)
{
    const json_val v = json_get(root, "thinking"), display = json_get(v, "display");
    const cairn_str type = json_str(json_get(v, "type"));

    TRY(want_object(v, "thinking", f));
    if (json_typeof(v) <= JSON_NULL) return CAIRN_OK;
    if (!str_is(type, "enabled") && !str_is(type, "adaptive") && !str_is(type, "disabled"))
        return chat_want(f, "thinking.type", "enabled, adaptive or disabled", json_get(v, "type"));
    a->think = !str_is(type, "disabled");
    a->omit_thoughts = str_is(json_str(display), "omitted");
    if (json_typeof(display) > JSON_NULL && !a->omit_thoughts &&
        !str_is(json_str(display), "summarized"))
        return chat_want(f, "thinking.display", "summarized or omitted", display);
    return str_is(type, "enabled") ? read_budget(v, a, f) : CAIRN_OK;
}

static cairn_status read_output_config(json_val root, chat_ask *a, chat_fault *f)
{
    static const char *const levels[] = {"low", "medium", "high", "xhigh", "max"};
    const json_val v = json_get(root, "output_config"), effort = json_get(v, "effort");

    TRY(want_object(v, "output_config", f));
    if (json_typeof(json_get(v, "format")) > JSON_NULL)
        return chat_fault_set(f, CAIRN_E_UNSUPPORTED, "output_config.format",
                              "`output_config.format` is not supported: constrained output is not "
                              "available");
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        if (str_is(json_str(effort), levels[i])) a->effort = json_str(effort);
    if (str_is(a->effort, "max")) a->effort = STR_LIT("xhigh"); /* the most that templates know */
    if (json_typeof(effort) <= JSON_NULL || a->effort.len) return CAIRN_OK;
    return chat_want(f, "output_config.effort", "low, medium, high, xhigh or max", effort);
}

static cairn_status read_choice(json_val root, chat_ask *a, bool *none, chat_fault *f)
{
    const json_val v = json_get(root, "tool_choice");
    const json_val single = json_get(v, "disable_parallel_tool_use");
    const cairn_str type = json_str(json_get(v, "type"));

    TRY(want_object(v, "tool_choice", f));
    if (json_typeof(v) <= JSON_NULL) return CAIRN_OK;
    if (str_is(type, "any") || str_is(type, "tool"))
        return chat_fault_set(
            f, CAIRN_E_UNSUPPORTED, "tool_choice.type",
            "`tool_choice.type` is `%.*s`: enforcing a call needs grammars, which "
            "are not there yet; use auto or none",
            STR_ARG(type));
    if (!str_is(type, "auto") && !str_is(type, "none"))
        return chat_want(f, "tool_choice.type", "auto, any, tool or none", json_get(v, "type"));
    if (json_typeof(single) > JSON_NULL && json_typeof(single) != JSON_BOOL)
        return chat_want(f, "tool_choice.disable_parallel_tool_use", "true or false", single);
    a->one_call = json_bool(single, false);
    *none = str_is(type, "none");
    return CAIRN_OK;
}

/* What makes the prompt. */
static cairn_status read_prompt(json_val root, chat_ask *a, chat_fault *f)
{
    left_out tools = {0}, blocks = {0};
    buf unread;
    bool none = false;
    cairn_status st;

    TRY(BODY_FIELDS_CHECK(root, (body_path){0}, fields, f));
    TRY(anthropic_cache_check(root, (body_path){0}, f));
    TRY(read_choice(root, a, &none, f));
    TRY(read_thinking(root, a, f));
    TRY(read_output_config(root, a, f));
    TRY(anthropic_messages_read(root, &a->messages, &blocks, f));
    buf_init(&unread, MEM_SERVE); /* wrong ones are wrong all the same */
    st = anthropic_tools_read(root, none ? &unread : &a->tools, &tools, f);
    buf_deinit(&unread);
    if (st == CAIRN_OK) st = left_out_warn(&tools, "tools", a, f);
    return st == CAIRN_OK ? left_out_warn(&blocks, "blocks", a, f) : st;
}

cairn_status anthropic_count_read(chat_ask *a, cairn_str body, chat_fault *f)
{
    TRY(chat_ask_open(a, body, f));
    TRY(chat_refuse(json_root(a->doc), refusals, sizeof refusals / sizeof refusals[0], f));
    return read_prompt(json_root(a->doc), a, f);
}

cairn_status anthropic_ask_read(chat_ask *a, cairn_str body, chat_fault *f)
{
    TRY(chat_ask_open(a, body, f));
    const json_val root = json_root(a->doc), most = json_get(root, "max_tokens");
    TRY(chat_refuse(root, refusals, sizeof refusals / sizeof refusals[0], f));
    TRY(chat_sampling_read(root, a, f));
    TRY(chat_special_read(root, a, f));
    TRY(chat_priority_read(root, a, f));
    if (json_typeof(most) <= JSON_NULL)
        return chat_want(f, "max_tokens", "an integer of at least 1", most);
    TRY(chat_want_int(root, "max_tokens", 1, INT32_MAX, &a->rq.max_tokens, f));
    if (json_typeof(json_get(root, "stop_sequences")) == JSON_STR)
        return chat_want(f, "stop_sequences", "an array of strings",
                         json_get(root, "stop_sequences"));
    TRY(chat_stop_read(root, "stop_sequences", a, f));
    TRY(chat_want_bool(root, "stream", &a->stream, f));
    TRY(chat_want_bool(root, "return_progress", &a->progress, f));
    return read_prompt(root, a, f);
}
