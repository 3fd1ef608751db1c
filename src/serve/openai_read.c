/* Reads the body of POST /v1/chat/completions; how tokens are drawn is chat_sampling.c's.  Fields that
   ask for something not done here are a table, refused by name rather than ignored.  So are published ones that
   nobody reads (user, metadata, …): they have to be what the API says.  Fields that no API has are ignored, as
   OpenAI's clients expect of a server that does not know them.  Nothing here knows HTTP or a model. */
#include "serve/openai_read.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/diag.h"
#include "base/str.h"
#include "serve/body_fields.h"
#include "serve/chat_sampling.h"
#include "serve/json_cut.h"
#include "serve/openai_messages.h"
#include "serve/openai_tools.h"

cairn_status chat_fault_set(chat_fault *f, cairn_status st, const char *param, const char *fmt, ...)
{
    char message[sizeof f->dg.message];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    (void)snprintf(f->param, sizeof f->param, "%s", param);
    return diag_set(&f->dg, st, "%s", message);
}

cairn_status chat_want_int(json_val root, const char *name, int64_t lo, int64_t hi, int32_t *out,
                           chat_fault *f)
{
    int64_t v = *out;

    (void)snprintf(f->param, sizeof f->param, "%s", name);
    TRY(json_want_int(root, name, lo, hi, &v, &f->dg));
    *out = (int32_t)v;
    return CAIRN_OK;
}

cairn_status chat_want_bool(json_val root, const char *name, bool *out, chat_fault *f)
{
    (void)snprintf(f->param, sizeof f->param, "%s", name);
    return json_want_bool(root, name, out, &f->dg);
}

static bool given(json_val v)
{
    return json_typeof(v) != JSON_NONE && json_typeof(v) != JSON_NULL;
}

static cairn_status read_limits(json_val root, chat_ask *a, chat_fault *f)
{
    TRY(chat_want_int(root, "thinking_budget_tokens", -1, INT32_MAX, &a->rq.think_budget, f));
    TRY(chat_want_int(root, "reasoning_budget_tokens", -1, INT32_MAX, &a->rq.think_budget, f));
    TRY(chat_want_int(root, "max_tokens", 1, INT32_MAX, &a->rq.max_tokens, f));
    TRY(chat_want_int(root, "max_completion_tokens", 1, INT32_MAX, &a->rq.max_tokens, f));
    return chat_want_int(root, "n", 1, CHAT_MAX_CHOICES, &a->n, f);
}

const char *chat_tier(json_val root)
{
    const cairn_str tier = json_str(json_get(root, "service_tier"));

    if (str_is(tier, "priority") || str_is(tier, "fast")) return "priority";
    return str_is(tier, "flex") ? "flex" : "default";
}

/* OpenAI's word, then vLLM's number. */
cairn_status chat_priority_read(json_val root, chat_ask *a, chat_fault *f)
{
    const cairn_str tier = str_of(chat_tier(root));

    if (str_is(tier, "priority")) a->rq.priority = -CHAT_TIER_STEPS;
    if (str_is(tier, "flex")) a->rq.priority = CHAT_TIER_STEPS;
    return chat_want_int(root, "priority", -CAIRN_MAX_PRIORITY, CAIRN_MAX_PRIORITY, &a->rq.priority,
                         f);
}

cairn_status chat_stream_read(json_val root, chat_ask *a, chat_fault *f)
{
    static const char obfuscation[] = "stream_options.include_obfuscation";
    static const body_field fields[] = {
        BODY_FIELD("stream_options", "include_usage", FIELD_TRUTH),
        BODY_FIELD("stream_options", "include_obfuscation", FIELD_TRUTH),
    };
    json_val so = json_get(root, "stream_options");

    TRY(chat_want_bool(root, "stream", &a->stream, f));
    if (!given(so)) return CAIRN_OK;
    if (json_typeof(so) != JSON_OBJ || !a->stream)
        return chat_fault_set(f, CAIRN_E_ARG, "stream_options",
                              "`stream_options` must be an object, and needs `stream`");
    TRY(body_fields_check(root, (body_path){0}, fields, sizeof fields / sizeof fields[0], f));
    if (given(json_get(so, "include_usage")))
        a->usage = json_bool(json_get(so, "include_usage"), false) ? USAGE_APART : USAGE_NONE;
    if (!json_bool(json_path(root, obfuscation), false)) return CAIRN_OK;
    return chat_fault_set(f, CAIRN_E_UNSUPPORTED, obfuscation,
                          "`%s` is not supported: nothing is added to events", obfuscation);
}

cairn_status chat_special_read(json_val root, chat_ask *a, chat_fault *f)
{
    bool skip_special = true;

    TRY(chat_want_bool(root, "ignore_eos", &a->rq.ignore_eos, f));
    TRY(chat_want_bool(root, "skip_special_tokens", &skip_special, f));
    a->rq.keep_special = !skip_special;
    return CAIRN_OK;
}

static cairn_status read_flags(json_val root, chat_ask *a, chat_fault *f)
{
    bool logprobs = false, prompt = true, parallel = true;

    TRY(chat_stream_read(root, a, f));
    TRY(chat_want_bool(root, "return_progress", &a->progress, f));
    TRY(chat_want_bool(root, "add_generation_prompt", &prompt, f));
    TRY(chat_want_bool(root, "parallel_tool_calls", &parallel, f));
    a->one_call = !parallel;
    a->no_generation_prompt = !prompt;
    TRY(chat_want_bool(root, "logprobs", &logprobs, f));
    TRY(chat_want_int(root, "top_logprobs", 0, CAIRN_MAX_LOGPROBS, &a->n_top, f));
    if (a->n_top && !logprobs)
        return chat_fault_set(f, CAIRN_E_ARG, "top_logprobs", "`top_logprobs` needs `logprobs`");
    a->rq.n_logprobs = logprobs ? a->n_top : -1;
    return CAIRN_OK;
}

static cairn_status one_stop(json_val v, const char *name, cairn_str *out, chat_fault *f)
{
    *out = json_str(v);
    if (json_typeof(v) != JSON_STR || out->len == 0)
        return chat_fault_set(f, CAIRN_E_ARG, name,
                              "`%s` must be a string or an array of strings, none empty", name);
    if (out->len <= CAIRN_MAX_STOP_BYTES) return CAIRN_OK;
    return chat_fault_set(f, CAIRN_E_ARG, name, "`%s` has a string of %zu bytes; at most %d", name,
                          out->len, CAIRN_MAX_STOP_BYTES);
}

cairn_status chat_stop_read(json_val root, const char *name, chat_ask *a, chat_fault *f)
{
    json_val v = json_get(root, name), item;
    json_iter it = json_each(v);
    cairn_str *list;
    size_t n = 0;

    if (!given(v)) return CAIRN_OK;
    list = arena_calloc(&a->mem, CAIRN_MAX_STOP, sizeof *list);
    if (!list) return chat_fault_set(f, CAIRN_E_NOMEM, name, "no memory");
    a->rq.stop = list;
    if (json_typeof(v) != JSON_ARR) {
        a->rq.n_stop = 1;
        return one_stop(v, name, &list[0], f);
    }
    while (json_next(&it, &item)) {
        if (n == CAIRN_MAX_STOP)
            return chat_fault_set(f, CAIRN_E_ARG, name, "`%s` may hold at most %d strings", name,
                                  CAIRN_MAX_STOP);
        TRY(one_stop(item, name, &list[n++], f));
    }
    a->rq.n_stop = n;
    return CAIRN_OK;
}

static bool text_format(json_val v)
{
    return str_is(json_str(json_get(v, "type")), "text");
}

static bool text_only(json_val v)
{
    return json_typeof(v) == JSON_ARR && json_size(v) == 1 &&
           str_is(json_str(json_at(v, 0)), "text");
}

static bool auto_or_none(json_val v)
{
    return str_is(json_str(v), "auto") || str_is(json_str(v), "none");
}

static bool zero_or_one(json_val v)
{
    const double x = json_num(v, 2);
    return x == 0 || x == 1;
}

static bool not_positive(json_val v)
{
    return json_num(v, 1) <= 0;
}

static bool negative(json_val v)
{
    return json_num(v, 1) < 0;
}

bool chat_nothing(json_val v)
{
    (void)v;
    return false;
}

bool chat_empty_list(json_val v)
{
    return json_typeof(v) == JSON_ARR && json_size(v) == 0;
}

bool chat_empty_text(json_val v)
{
    return json_typeof(v) == JSON_STR && json_str(v).len == 0;
}

#define NO_GRAMMAR "constrained output is not available"
/* Of whatever generates. */
static const chat_refusal everywhere[] = {
    {"response_format", text_format, NO_GRAMMAR},
    {"structured_outputs", NULL, NO_GRAMMAR},
    {"guided_json", NULL, NO_GRAMMAR},
    {"guided_regex", NULL, NO_GRAMMAR},
    {"guided_choice", NULL, NO_GRAMMAR},
    {"guided_grammar", NULL, NO_GRAMMAR},
    {"grammar", chat_empty_text, NO_GRAMMAR},
    {"json_schema", NULL, NO_GRAMMAR},
    {"json_object", NULL, NO_GRAMMAR},
    {"prompt_logprobs", NULL, "use `echo` and `logprobs` of /v1/completions"},
    {"adapter", NULL, "there are no adapters"},
    {"hlg", NULL, "tone curves are not available"},
    {"top_n_sigma", not_positive, "cuts by the deviation of logits are not available"},
    {"dynatemp_range", not_positive, "dynamic temperature is not available"},
    {"adaptive_target", negative, "adaptive sampling is not available"},
    {"min_keep", zero_or_one, "cuts leave one token or more"},
    {"samplers", chat_empty_list, "the order of the samplers is fixed"},
    /* of vLLM's and llama-server's clients, who would get another answer than they asked for */
    {"chat_template", chat_empty_text, "templates come with the model"},
    {"lora", chat_empty_list, "there are no adapters"},
    {"min_tokens", not_positive, "an answer ends where the model ends it; `ignore_eos` goes on"},
    {"stop_token_ids", chat_empty_list, "use `stop`"},
    {"bad_words", chat_empty_list, "use `logit_bias`"},
    {"allowed_token_ids", chat_empty_list, NO_GRAMMAR},
    {"use_beam_search", NULL, "tokens are drawn one by one"},
    {"truncate_prompt_tokens", chat_nothing, "nothing is cut to fit"},
    {"n_probs", not_positive, "use `logprobs`"},
};

static const chat_refusal of_chats[] = {
    {"store", NULL, "completions are not stored"},
    {"tool_choice", chat_choice_fine,
     "enforcing a call needs grammars, which are not there yet; use \"auto\" or \"none\""},
    {"functions", chat_empty_list, "use `tools`"},
    {"function_call", auto_or_none, "use `tools`"},
    {"modalities", text_only, "only text is generated"},
    {"audio", chat_nothing, "only text is generated"},
    {"web_search_options", chat_nothing, "there is no web search"},
    {"moderation", chat_nothing, "nothing is moderated"},
    {"best_of", zero_or_one, "use `n`"},
    {"echo", NULL, "the prompt cannot be echoed"},
    {"continue_final_message", NULL, "the last message cannot be continued"},
};
#undef NO_GRAMMAR

cairn_status chat_refuse(json_val root, const chat_refusal *list, size_t n, chat_fault *f)
{
    for (size_t i = 0; i < n; i++) {
        const chat_refusal *r = &list[i];
        json_val v = json_get(root, r->name);

        if (!given(v) || (r->fine ? r->fine(v) : !json_bool(v, true))) continue;
        return chat_fault_set(f, CAIRN_E_UNSUPPORTED, r->name, "`%s` is not supported: %s", r->name,
                              r->why);
    }
    return CAIRN_OK;
}

cairn_status chat_constraints_refuse(json_val root, chat_fault *f)
{
    return chat_refuse(root, everywhere, sizeof everywhere / sizeof everywhere[0], f);
}

/* What nobody here acts on, and what others read that need no more than a word of a list. */
static const body_field of_chat[] = {
    BODY_WORD(NULL, "service_tier", CHAT_TIERS),
    BODY_WORD(NULL, "reasoning_effort", CHAT_EFFORTS),
    BODY_WORD(NULL, "verbosity", "low medium high ", "low, medium or high"),
    BODY_FIELD(NULL, "user", FIELD_TEXT),
    BODY_FIELD(NULL, "safety_identifier", FIELD_TEXT),
    BODY_FIELD(NULL, "prompt_cache_key", FIELD_TEXT),
    BODY_WORD(NULL, "prompt_cache_retention", "in_memory in-memory 24h ", "in_memory or 24h"),
    BODY_FIELD(NULL, "prompt_cache_options", FIELD_OBJECT),
    BODY_WORD("prompt_cache_options", "mode", "implicit explicit ", "implicit or explicit"),
    BODY_FIELD(NULL, "metadata", FIELD_TEXTS),
    BODY_FIELD(NULL, "prediction", FIELD_OBJECT),
    BODY_WORD("prediction", "type", "content ", "content"),
    BODY_FIELD("chat_template_kwargs", "enable_thinking", FIELD_TRUTH),
};

/* A guess of the answer, which may make it come sooner; here it does not. */
static cairn_status check_prediction(json_val root, chat_fault *f)
{
    const json_val v = json_get(root, "prediction"), text = json_get(v, "content");

    if (json_typeof(v) <= JSON_NULL) return CAIRN_OK;
    if (json_typeof(json_get(v, "type")) <= JSON_NULL)
        return chat_want(f, "prediction.type", "content", json_get(v, "type"));
    if (json_typeof(text) == JSON_STR || json_typeof(text) == JSON_ARR) return CAIRN_OK;
    return chat_want(f, "prediction.content", "a string or an array of parts", text);
}

static cairn_status read_root(chat_ask *a, json_val root, chat_fault *f)
{
    TRY(chat_choice_check(root, f));
    TRY(chat_refuse(root, of_chats, sizeof of_chats / sizeof of_chats[0], f));
    TRY(BODY_FIELDS_CHECK(root, (body_path){0}, of_chat, f));
    TRY(check_prediction(root, f));
    TRY(chat_sampling_read(root, a, f));
    TRY(chat_special_read(root, a, f));
    TRY(read_limits(root, a, f));
    TRY(chat_priority_read(root, a, f));
    a->tier = chat_tier(root);
    TRY(read_flags(root, a, f));
    TRY(chat_stop_read(root, "stop", a, f));
    TRY(chat_messages_read(json_get(root, "messages"), &a->messages, f));
    TRY(chat_results_check(json_get(root, "messages"), f));
    TRY(chat_tools_read(root, true, a, f));
    return chat_kwargs_read(root, a, f);
}

/* Whether a number is what follows, as in a list of token ids. */
static bool number_follows(cairn_str s, size_t i)
{
    while (i < s.len && (s.ptr[i] == ' ' || s.ptr[i] == '\n')) i++;
    return i < s.len && (str_is_digit(s.ptr[i]) || s.ptr[i] == '-');
}

/* Objects are walked for each field that may be in them, so their size is limited before they are
   parsed.  A comma stands before each value but the first of its array or object; behind one, only in an array
   can a number follow. */
static cairn_status check_values(cairn_str body, chat_fault *f)
{
    size_t n = 0, numbers = 0;

    for (size_t i = 0; i < body.len && n <= CHAT_MAX_VALUES && numbers <= CHAT_MAX_NUMBERS; i++)
        if (body.ptr[i] == '"')
            i = json_string_end(body, i + 1);
        else if (body.ptr[i] == ',')
            *(number_follows(body, i + 1) ? &numbers : &n) += 1;
    if (n > CHAT_MAX_VALUES)
        return chat_fault_set(f, CAIRN_E_LIMIT, "", "the body holds more than %d values",
                              CHAT_MAX_VALUES);
    if (numbers > CHAT_MAX_NUMBERS)
        return chat_fault_set(f, CAIRN_E_LIMIT, "", "the body holds more than %d numbers in lists",
                              CHAT_MAX_NUMBERS);
    return CAIRN_OK;
}

cairn_status chat_ask_open(chat_ask *a, cairn_str body, chat_fault *f)
{
    cairn_status st;
    json_val root;

    *a = (chat_ask){.n = 1, .think = -1, .prompt_field = "messages"};
    *f = (chat_fault){0};
    arena_init(&a->mem, MEM_SERVE);
    buf_init(&a->messages, MEM_SERVE);
    buf_init(&a->tools, MEM_SERVE);
    cairn_request_init(&a->rq);
    a->rq.sampling.temperature = 1; /* OpenAI's default */
    TRY(check_values(body, f));
    st = json_parse_any(body, &a->doc, &f->dg);
    if (st != CAIRN_OK) return diag_prefix(&f->dg, st, "invalid JSON body");
    root = json_root(a->doc);
    if (json_typeof(root) != JSON_OBJ)
        return chat_fault_set(f, CAIRN_E_ARG, "", "the body must be a JSON object, found %s",
                              json_type_name(json_typeof(root)));
    (void)snprintf(f->param, sizeof f->param, "model");
    return json_want_str(root, "model", &a->model, &f->dg);
}

cairn_status chat_ask_read(chat_ask *a, cairn_str body, chat_fault *f)
{
    TRY(chat_ask_open(a, body, f));
    return read_root(a, json_root(a->doc), f);
}

void chat_ask_deinit(chat_ask *a)
{
    buf_deinit(&a->messages);
    buf_deinit(&a->tools);
    arena_deinit(&a->mem);
    if (a->doc) json_free(a->doc);
    a->doc = NULL;
    if (a->more) a->more_let_go(a->more);
    a->more = NULL;
}
