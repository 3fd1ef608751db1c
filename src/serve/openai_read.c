/* Reads the body of POST /v1/chat/completions.  The fields are tables: numbers with their range and
   place, and those that ask for something not done here, which are refused by name rather than
   ignored.  Fields in no table (user, metadata, …) are ignored, as OpenAI's clients
   expect of a server that does not know them.  Nothing here knows HTTP or a model. */
#include "serve/openai_read.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/str.h"
#include "serve/openai_messages.h"

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

enum { TIER_STEPS = 2 }; /* of priority: 20 s in the queue, a quarter of a prompt's length */

typedef struct num_field {
    const char *name;
    double lo, hi;
    size_t at; /* a float of cairn_sampling */
} num_field;

#define SAMPLING(field) offsetof(cairn_sampling, field)
static const num_field nums[] = {
    {"temperature", 0, 2, SAMPLING(temperature)},
    {"top_p", 0, 1, SAMPLING(top_p)},
    {"min_p", 0, 1, SAMPLING(min_p)},
    {"repetition_penalty", 0.01, 10, SAMPLING(repetition_penalty)},
    {"presence_penalty", -2, 2, SAMPLING(presence_penalty)},
    {"frequency_penalty", -2, 2, SAMPLING(frequency_penalty)},
};
#undef SAMPLING

static cairn_status read_nums(json_val root, chat_ask *a, chat_fault *f)
{
    for (size_t i = 0; i < sizeof nums / sizeof nums[0]; i++) {
        char *to = (char *)&a->rq.sampling + nums[i].at;
        float x;
        double v;

        memcpy(&x, to, sizeof x);
        v = (double)x;

        (void)snprintf(f->param, sizeof f->param, "%s", nums[i].name);
        TRY(json_want_num(root, nums[i].name, nums[i].lo, nums[i].hi, &v, &f->dg));
        x = (float)v;
        memcpy(to, &x, sizeof x);
    }
    return CAIRN_OK;
}

static cairn_status want_int(json_val root, const char *name, int64_t lo, int64_t hi, int32_t *out,
                             chat_fault *f)
{
    int64_t v = *out;

    (void)snprintf(f->param, sizeof f->param, "%s", name);
    TRY(json_want_int(root, name, lo, hi, &v, &f->dg));
    *out = (int32_t)v;
    return CAIRN_OK;
}

static cairn_status want_bool(json_val root, const char *name, bool *out, chat_fault *f)
{
    (void)snprintf(f->param, sizeof f->param, "%s", name);
    return json_want_bool(root, name, out, &f->dg);
}

static bool given(json_val v)
{
    return json_typeof(v) != JSON_NONE && json_typeof(v) != JSON_NULL;
}

static cairn_status read_ints(json_val root, chat_ask *a, chat_fault *f)
{
    int32_t window = 20; /* what mlx-lm's field of this name defaults to */

    TRY(want_int(root, "top_k", -1, INT32_MAX, &a->rq.sampling.top_k, f));
    if (a->rq.sampling.top_k < 0) a->rq.sampling.top_k = 0; /* -1: off, as others write it */
    TRY(want_int(root, "repetition_context_size", 0, INT32_MAX, &window, f));
    a->rq.sampling.repetition_window = window;
    TRY(want_int(root, "thinking_budget_tokens", -1, INT32_MAX, &a->rq.think_budget, f));
    TRY(want_int(root, "reasoning_budget_tokens", -1, INT32_MAX, &a->rq.think_budget, f));
    TRY(want_int(root, "max_tokens", 1, INT32_MAX, &a->rq.max_tokens, f));
    TRY(want_int(root, "max_completion_tokens", 1, INT32_MAX, &a->rq.max_tokens, f));
    return want_int(root, "n", 1, CHAT_MAX_CHOICES, &a->n, f);
}

/* OpenAI's word, then vLLM's number. */
static cairn_status read_priority(json_val root, chat_ask *a, chat_fault *f)
{
    const cairn_str tier = json_str(json_get(root, "service_tier"));

    if (str_is(tier, "priority")) a->rq.priority = -TIER_STEPS;
    if (str_is(tier, "flex")) a->rq.priority = TIER_STEPS;
    return want_int(root, "priority", -CAIRN_MAX_PRIORITY, CAIRN_MAX_PRIORITY, &a->rq.priority, f);
}

static cairn_status read_seed(json_val root, chat_ask *a, chat_fault *f)
{
    json_val v = json_get(root, "seed");

    if (!given(v)) return CAIRN_OK;
    a->has_seed = true;
    if (json_typeof(v) == JSON_UINT) { /* above INT64_MAX: any 64 bits are a seed */
        double d = json_num(v, 0);
        memcpy(&a->rq.sampling.seed, &d, sizeof d);
        return CAIRN_OK;
    }
    if (json_typeof(v) != JSON_INT)
        return chat_fault_set(f, CAIRN_E_ARG, "seed", "`seed` must be an integer, found %s",
                              json_type_name(json_typeof(v)));
    a->rq.sampling.seed = (uint64_t)json_int(v, 0);
    return CAIRN_OK;
}

static cairn_status read_flags(json_val root, chat_ask *a, chat_fault *f)
{
    bool logprobs = false, prompt = true, skip_special = true, parallel = true;
    json_val so = json_get(root, "stream_options");

    TRY(want_bool(root, "stream", &a->stream, f));
    if (given(so)) {
        if (json_typeof(so) != JSON_OBJ || !a->stream)
            return chat_fault_set(f, CAIRN_E_ARG, "stream_options",
                                  "`stream_options` must be an object, and needs `stream`");
        TRY(want_bool(so, "include_usage", &a->include_usage, f));
    }
    TRY(want_bool(root, "ignore_eos", &a->rq.ignore_eos, f));
    TRY(want_bool(root, "add_generation_prompt", &prompt, f));
    TRY(want_bool(root, "skip_special_tokens", &skip_special, f));
    TRY(want_bool(root, "parallel_tool_calls", &parallel, f));
    a->one_call = !parallel;
    a->no_generation_prompt = !prompt;
    a->rq.keep_special = !skip_special;
    TRY(want_bool(root, "logprobs", &logprobs, f));
    TRY(want_int(root, "top_logprobs", 0, CAIRN_MAX_LOGPROBS, &a->n_top, f));
    if (a->n_top && !logprobs)
        return chat_fault_set(f, CAIRN_E_ARG, "top_logprobs", "`top_logprobs` needs `logprobs`");
    a->rq.n_logprobs = logprobs ? a->n_top : -1;
    return CAIRN_OK;
}

static cairn_status one_stop(json_val v, cairn_str *out, chat_fault *f)
{
    *out = json_str(v);
    if (json_typeof(v) == JSON_STR && out->len) return CAIRN_OK;
    return chat_fault_set(f, CAIRN_E_ARG, "stop",
                          "`stop` must be a string or an array of strings, none empty");
}

static cairn_status read_stop(json_val root, chat_ask *a, chat_fault *f)
{
    json_val v = json_get(root, "stop"), item;
    json_iter it = json_each(v);
    cairn_str *list;
    size_t n = 0;

    if (!given(v)) return CAIRN_OK;
    list = arena_calloc(&a->mem, CAIRN_MAX_STOP, sizeof *list);
    if (!list) return chat_fault_set(f, CAIRN_E_NOMEM, "stop", "no memory");
    a->rq.stop = list;
    if (json_typeof(v) != JSON_ARR) {
        a->rq.n_stop = 1;
        return one_stop(v, &list[0], f);
    }
    while (json_next(&it, &item)) {
        if (n == CAIRN_MAX_STOP)
            return chat_fault_set(f, CAIRN_E_ARG, "stop", "`stop` may hold at most %d strings",
                                  CAIRN_MAX_STOP);
        TRY(one_stop(item, &list[n++], f));
    }
    a->rq.n_stop = n;
    return CAIRN_OK;
}

/* A token id written as an object's key. */
static bool key_to_id(cairn_str key, int32_t *out)
{
    int64_t id = 0;

    if (key.len == 0 || key.len > 9) return false;
    for (size_t i = 0; i < key.len; i++) {
        if (key.ptr[i] < '0' || key.ptr[i] > '9') return false;
        id = id * 10 + (key.ptr[i] - '0');
    }
    *out = (int32_t)id;
    return true;
}

static cairn_status read_bias(json_val root, chat_ask *a, chat_fault *f)
{
    json_val v = json_get(root, "logit_bias"), value;
    json_iter it = json_each(v);
    cairn_bias *list;
    cairn_str key;
    size_t n = json_size(v);

    if (!given(v)) return CAIRN_OK;
    if (json_typeof(v) != JSON_OBJ || n > CAIRN_MAX_BIAS)
        return chat_fault_set(f, CAIRN_E_ARG, "logit_bias",
                              "`logit_bias` must be an object of at most %d token ids",
                              CAIRN_MAX_BIAS);
    list = arena_calloc(&a->mem, n + 1, sizeof *list);
    if (!list) return chat_fault_set(f, CAIRN_E_NOMEM, "logit_bias", "no memory");
    a->rq.sampling.bias = list;
    for (n = 0; json_next_member(&it, &key, &value); n++) {
        double x = json_num(value, 1e9);
        if (!key_to_id(key, &list[n].id) || x < -100 || x > 100)
            return chat_fault_set(
                f, CAIRN_E_ARG, "logit_bias",
                "`logit_bias` takes token ids to numbers from -100 to 100: `%.*s`", STR_ARG(key));
        list[n].value = (float)x;
    }
    a->rq.sampling.n_bias = n;
    return CAIRN_OK;
}

typedef struct refusal {
    const char *name;
    bool (*fine)(json_val v); /* values that ask for nothing; NULL: only null and false do */
    const char *why;
} refusal;

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

static bool no_xtc(json_val v)
{
    return json_num(v, 1) == 0;
}

static bool empty_list(json_val v)
{
    return json_typeof(v) == JSON_ARR && json_size(v) == 0;
}

#define NO_GRAMMAR "constrained output is not available"
static const refusal refusals[] = {
    {"response_format", text_format, NO_GRAMMAR},
    {"structured_outputs", NULL, NO_GRAMMAR},
    {"guided_json", NULL, NO_GRAMMAR},
    {"guided_regex", NULL, NO_GRAMMAR},
    {"guided_choice", NULL, NO_GRAMMAR},
    {"guided_grammar", NULL, NO_GRAMMAR},
    {"grammar", NULL, NO_GRAMMAR},
    {"json_schema", NULL, NO_GRAMMAR},
    {"json_object", NULL, NO_GRAMMAR},
    {"tool_choice", auto_or_none,
     "enforcing a call needs grammars, which are not there yet; use \"auto\" or \"none\""},
    {"functions", empty_list, "use `tools`"},
    {"function_call", auto_or_none, "use `tools`"},
    {"modalities", text_only, "only text is generated"},
    {"audio", NULL, "only text is generated"},
    {"web_search_options", NULL, "there is no web search"},
    {"best_of", zero_or_one, "use `n`"},
    {"echo", NULL, "the prompt cannot be echoed"},
    {"prompt_logprobs", NULL, "log-probabilities of the prompt are not available"},
    {"continue_final_message", NULL, "the last message cannot be continued"},
    {"store", NULL, "completions are not stored"},
    {"adapter", NULL, "there are no adapters"},
    {"hlg", NULL, "tone curves are not available"},
    {"xtc_probability", no_xtc, "XTC sampling is not available"},
};
#undef NO_GRAMMAR

static cairn_status refuse_impossible(json_val root, chat_fault *f)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const refusal *r = &refusals[i];
        json_val v = json_get(root, r->name);

        if (!given(v) || (json_typeof(v) == JSON_BOOL && !json_bool(v, true))) continue;
        if (r->fine && r->fine(v)) continue;
        return chat_fault_set(f, CAIRN_E_UNSUPPORTED, r->name, "`%s` is not supported: %s", r->name,
                              r->why);
    }
    return CAIRN_OK;
}

static cairn_status read_root(chat_ask *a, json_val root, chat_fault *f)
{
    if (json_typeof(root) != JSON_OBJ)
        return chat_fault_set(f, CAIRN_E_ARG, "", "the body must be a JSON object, found %s",
                              json_type_name(json_typeof(root)));
    (void)snprintf(f->param, sizeof f->param, "model");
    TRY(json_want_str(root, "model", &a->model, &f->dg));
    TRY(refuse_impossible(root, f));
    TRY(read_nums(root, a, f));
    TRY(read_ints(root, a, f));
    TRY(read_priority(root, a, f));
    TRY(read_seed(root, a, f));
    TRY(read_flags(root, a, f));
    TRY(read_stop(root, a, f));
    TRY(read_bias(root, a, f));
    TRY(chat_messages_read(json_get(root, "messages"), &a->messages, f));
    TRY(chat_tools_read(root, &a->tools, f));
    return chat_kwargs_read(root, a, f);
}

/* The quote that ends a string, or the end: the first at or after `at` behind an even number of
   backslashes. */
static size_t string_end(cairn_str s, size_t at)
{
    for (size_t i = at; i < s.len; i++) {
        const char *quote = memchr(s.ptr + i, '"', s.len - i);
        size_t n = 0;

        if (!quote) return s.len;
        i = (size_t)(quote - s.ptr);
        while (n < i - at && s.ptr[i - 1 - n] == '\\') n++;
        if (n % 2 == 0) return i;
    }
    return s.len;
}

/* Objects are walked for each field that may be in them, so their size is limited before they are
   parsed.  A comma stands before each value but the first of its array or object. */
static bool too_many_values(cairn_str body)
{
    size_t n = 0;

    for (size_t i = 0; i < body.len && n <= CHAT_MAX_VALUES; i++)
        if (body.ptr[i] == '"')
            i = string_end(body, i + 1);
        else
            n += body.ptr[i] == ',';
    return n > CHAT_MAX_VALUES;
}

cairn_status chat_ask_read(chat_ask *a, cairn_str body, chat_fault *f)
{
    cairn_status st;

    *a = (chat_ask){.n = 1};
    *f = (chat_fault){0};
    arena_init(&a->mem, MEM_SERVE);
    buf_init(&a->messages, MEM_SERVE);
    buf_init(&a->tools, MEM_SERVE);
    cairn_request_init(&a->rq);
    a->rq.sampling.temperature = 1; /* OpenAI's default */
    if (too_many_values(body))
        return chat_fault_set(f, CAIRN_E_LIMIT, "", "the body holds more than %d values",
                              CHAT_MAX_VALUES);
    st = json_parse_any(body, &a->doc, &f->dg);
    if (st != CAIRN_OK) return diag_prefix(&f->dg, st, "invalid JSON body");
    return read_root(a, json_root(a->doc), f);
}

void chat_ask_deinit(chat_ask *a)
{
    buf_deinit(&a->messages);
    buf_deinit(&a->tools);
    arena_deinit(&a->mem);
    if (a->doc) json_free(a->doc);
    a->doc = NULL;
}
