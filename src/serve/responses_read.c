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
#include "serve/chat_sampling.h"
#include "serve/openai_messages.h"
#include "serve/random.h"
#include "serve/responses_ask.h"

enum { MOST_METADATA = 16, MOST_KEY = 64, MOST_VALUE = 512 }; /* OpenAI's */

static bool disabled(json_val v)
{
    return str_is(json_str(v), "disabled");
}

static const chat_refusal refusals[] = {
    {"background", NULL, "responses are not made in the background"},
    {"conversation", NULL, "there are no conversations; use `previous_response_id`"},
    {"prompt", NULL, "there are no prompt templates"},
    {"context_management", chat_empty_list, "contexts are not compacted"},
    {"moderation", NULL, "nothing is moderated"},
    {"truncation", disabled, "no item is left out to make room"},
};

typedef struct word_field {
    const char *in, *name; /* the object that holds it, NULL: the body; its name */
    const char *words;     /* that it may be, with a space behind each */
    const char *what;      /* the same, as errors name them */
} word_field;

static const word_field words[] = {
    {NULL, "service_tier", "auto default flex scale priority fast ultrafast ",
     "auto, default, flex, scale, priority, fast or ultrafast"},
    {NULL, "prompt_cache_retention", "in_memory in-memory 24h ", "in_memory or 24h"},
    {"text", "verbosity", "low medium high ", "low, medium or high"},
    {"reasoning", "effort", "none minimal low medium high xhigh max ",
     "none, minimal, low, medium, high, xhigh or max"},
    {"reasoning", "summary", "auto concise detailed none ", "auto, concise or detailed"},
    {"reasoning", "generate_summary", "auto concise detailed none ", "auto, concise or detailed"},
    {"reasoning", "context", "auto current_turn all_turns ", "auto, current_turn or all_turns"},
    {"reasoning", "mode", "standard pro ", "standard or pro"},
};

static bool among(const char *list, cairn_str word)
{
    const cairn_str all = str_of(list);

    for (size_t i = 0; i < all.len;) {
        const size_t end = str_find(all, STR_LIT(" "), i);
        if (str_eq(str_sub(all, i, end - i), word)) return true;
        i = end + 1;
    }
    return false;
}

static cairn_status check_words(json_val root, chat_fault *f)
{
    char param[64];

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const word_field *w = &words[i];
        const json_val v = json_get(w->in ? json_get(root, w->in) : root, w->name);
        if (json_typeof(v) <= JSON_NULL) continue;
        if (json_typeof(v) == JSON_STR && among(w->words, json_str(v))) continue;
        (void)snprintf(param, sizeof param, "%s%s%s", w->in ? w->in : "", w->in ? "." : "",
                       w->name);
        return chat_want(f, param, w->what, v);
    }
    return CAIRN_OK;
}

static cairn_status check_types(json_val root, chat_fault *f)
{
    static const char *const strings[] = {"previous_response_id", "prompt_cache_key",
                                          "safety_identifier", "user", "instructions"};
    static const char *const objects[] = {"text", "reasoning", "metadata", "prompt_cache_options"};

    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
        const json_val v = json_get(root, strings[i]);
        if (json_typeof(v) > JSON_NULL && json_typeof(v) != JSON_STR)
            return chat_want(f, strings[i], "a string", v);
    }
    for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++) {
        const json_val v = json_get(root, objects[i]);
        if (json_typeof(v) > JSON_NULL && json_typeof(v) != JSON_OBJ)
            return chat_want(f, objects[i], "an object", v);
    }
    return CAIRN_OK;
}

static cairn_status check_metadata(json_val root, chat_fault *f)
{
    const json_val v = json_get(root, "metadata");
    json_iter it = json_each(v);
    char param[64];
    cairn_str key;
    json_val value;

    if (json_size(v) > MOST_METADATA)
        return chat_fault_set(f, CAIRN_E_ARG, "metadata",
                              "`metadata` may hold at most %d members, found %zu", MOST_METADATA,
                              json_size(v));
    while (json_next_member(&it, &key, &value)) {
        (void)snprintf(param, sizeof param, "metadata.%.*s", (int)(key.len > 40 ? 40 : key.len),
                       key.ptr);
        if (key.len > MOST_KEY)
            return chat_fault_set(f, CAIRN_E_ARG, param,
                                  "`%s` has a name of %zu bytes; expected at most %d", param,
                                  key.len, MOST_KEY);
        if (json_typeof(value) != JSON_STR || json_str(value).len > MOST_VALUE)
            return chat_want(f, param, "a string of at most 512 bytes", value);
    }
    return CAIRN_OK;
}

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
        if (json_typeof(v) != JSON_STR || !among(known, json_str(v)))
            return chat_want(f, param, "one of what the API can include", v);
        *logprobs |= str_is(json_str(v), "message.output_text.logprobs");
    }
    return CAIRN_OK;
}

static cairn_status read_stream(json_val root, chat_ask *a, chat_fault *f)
{
    static const char name[] = "stream_options.include_obfuscation";
    const json_val v = json_path(root, name);

    TRY(chat_stream_read(root, a, f));
    if (json_typeof(v) > JSON_NULL && json_typeof(v) != JSON_BOOL)
        return chat_want(f, name, "true or false", v);
    if (!json_bool(v, false)) return CAIRN_OK;
    return chat_fault_set(f, CAIRN_E_UNSUPPORTED, name,
                          "`%s` is not supported: nothing is added to events", name);
}

static cairn_status read_flags(json_val root, chat_ask *a, responses_ask *r, chat_fault *f)
{
    bool parallel = true, logprobs = false;
    int32_t calls = 1;

    TRY(read_stream(root, a, f));
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

static const char *tier_of(json_val root)
{
    const cairn_str tier = json_str(json_get(root, "service_tier"));

    if (str_is(tier, "priority") || str_is(tier, "fast")) return "priority";
    return str_is(tier, "flex") ? "flex" : "default";
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
    json_w_kstr(&w, "service_tier", str_of(tier_of(root)));
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
    TRY(check_types(root, f));
    TRY(check_words(root, f));
    TRY(check_metadata(root, f));
    TRY(chat_sampling_read(root, a, f));
    TRY(chat_priority_read(root, a, f));
    if (str_is(str_of(tier_of(root)), "priority")) a->rq.priority = -CHAT_TIER_STEPS;
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
