/* Reads the bodies of /api/chat and /api/generate.  `options` hold what OpenAI's bodies have at the top; what is
   of Ollama's machine (num_gpu, num_thread, …) is ignored, and what cannot be done is refused by
   name (docs/ollama.md). */
#include "serve/ollama_read.h"

#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/str.h"
#include "serve/body_fields.h"
#include "serve/chat_sampling.h"
#include "serve/openai_messages.h"
#include "serve/openai_tools.h"

enum { REPEAT_LAST_N = 64 }; /* tokens that a penalty looks at, where none are said: Ollama's */

static bool is_one(json_val v)
{
    return json_num(v, 0) == 1;
}

static const chat_refusal refusals[] = {
    {"format", chat_empty_text, "constrained output is not available"},
    {"logprobs", NULL, "log-probabilities are not told here; use /v1/chat/completions"},
    {"images", chat_empty_list, "the model reads text alone"},
    {"suffix", chat_empty_text, "text before a suffix cannot be filled in"},
    {"template", chat_empty_text, "the template is the model's own"},
    {"context", chat_empty_list, "conversations are not kept in tokens; use /api/chat"},
    {"width", chat_nothing, "no images are made"},
    {"height", chat_nothing, "no images are made"},
    {"steps", chat_nothing, "no images are made"},
};
static const chat_refusal of_options[] = {
    {"tfs_z", is_one, "tail-free sampling is not available"},
};

static const body_field fields[] = {
    BODY_FIELD(NULL, "truncate", FIELD_TRUTH),
    BODY_FIELD(NULL, "shift", FIELD_TRUTH),
    BODY_WHOLE(NULL, "top_logprobs", 0, CAIRN_MAX_LOGPROBS),
};
/* Of Ollama's machine, which is not here. */
static const body_field of_machine[] = {
    BODY_FIELD(NULL, "numa", FIELD_TRUTH),
    BODY_WHOLE(NULL, "num_keep", INT32_MIN, INT32_MAX),
    BODY_WHOLE(NULL, "num_batch", INT32_MIN, INT32_MAX),
    BODY_WHOLE(NULL, "num_gpu", INT32_MIN, INT32_MAX),
    BODY_WHOLE(NULL, "main_gpu", INT32_MIN, INT32_MAX),
    BODY_WHOLE(NULL, "num_thread", INT32_MIN, INT32_MAX),
    BODY_FIELD(NULL, "low_vram", FIELD_TRUTH),
    BODY_FIELD(NULL, "f16_kv", FIELD_TRUTH),
    BODY_FIELD(NULL, "vocab_only", FIELD_TRUTH),
    BODY_FIELD(NULL, "logits_all", FIELD_TRUTH),
    BODY_FIELD(NULL, "use_mmap", FIELD_TRUTH),
    BODY_FIELD(NULL, "use_mlock", FIELD_TRUTH),
    BODY_FIELD(NULL, "embedding_only", FIELD_TRUTH),
    BODY_FIELD(NULL, "penalize_newline", FIELD_TRUTH),
};

/* A fault inside `options` by its whole path. */
static cairn_status in_options(cairn_status st, chat_fault *f)
{
    char path[sizeof f->param];

    if (st == CAIRN_OK) return st;
    (void)snprintf(path, sizeof path, "options%s%.50s", f->param[0] ? "." : "", f->param);
    (void)snprintf(f->param, sizeof f->param, "%s", path);
    return st;
}

static cairn_status read_options(json_val o, chat_ask *a, chat_fault *f)
{
    cairn_sampling *s = &a->rq.sampling;
    int32_t most = -1;

    s->temperature = 0.8F; /* Ollama's defaults; its penalty of 1.1 only where it is asked for */
    s->top_k = 40;
    s->top_p = 0.9F;
    if (json_typeof(o) <= JSON_NULL) return CAIRN_OK;
    if (json_typeof(o) != JSON_OBJ)
        return chat_fault_set(f, CAIRN_E_ARG, "", "`options` must be an object, found %s",
                              json_type_name(json_typeof(o)));
    TRY(chat_refuse(o, of_options, sizeof of_options / sizeof of_options[0], f));
    TRY(BODY_FIELDS_CHECK(o, (body_path){0}, of_machine, f));
    TRY(chat_sampling_read(o, a, f));
    if (json_typeof(json_get(o, "repeat_last_n")) <= JSON_NULL)
        s->repetition_window = REPEAT_LAST_N;
    TRY(chat_want_int(o, "num_predict", -2, INT32_MAX, &most, f)); /* below 1: no limit */
    a->rq.max_tokens = most > 0 ? most : 0;
    TRY(chat_want_int(o, "num_ctx", 0, CAIRN_MAX_CTX, &a->want_ctx, f));
    return chat_stop_read(o, "stop", a, f);
}

/* True, false or how much. */
static cairn_status read_think(json_val v, chat_ask *a, chat_fault *f)
{
    static const char *const levels[] = {"low", "medium", "high"};

    if (json_typeof(v) <= JSON_NULL) return CAIRN_OK;
    if (json_typeof(v) == JSON_BOOL) {
        a->think = json_bool(v, false);
        return CAIRN_OK;
    }
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        if (str_is(json_str(v), levels[i])) a->effort = json_str(v);
    if (!a->effort.len) return chat_want(f, "think", "true, false, low, medium or high", v);
    a->think = 1;
    return CAIRN_OK;
}

/* "5m", "1h30m", "90s", "-1m", "0"; false: it is none. */
static bool read_duration(cairn_str s, double *out_ms)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"ms", 1}, {"h", 3600e3}, {"m", 60e3}, {"s", 1e3}};
    enum { N_UNITS = sizeof units / sizeof units[0] };
    const bool minus = s.len && s.ptr[0] == '-';
    size_t at = minus;
    double sum = 0;

    if (s.len == at + 1 && s.ptr[at] == '0') {
        *out_ms = 0;
        return true;
    }
    while (at < s.len) {
        double n = 0, scale = 1;
        const size_t from = at;
        bool point = false;
        size_t k = 0;
        for (; at < s.len && (str_is_digit(s.ptr[at]) || (s.ptr[at] == '.' && !point)); at++) {
            point = point || s.ptr[at] == '.';
            if (s.ptr[at] == '.') continue;
            n = n * 10 + (s.ptr[at] - '0');
            if (point) scale *= 10;
        }
        if (at == from || (point && at == from + 1)) return false;
        while (k < N_UNITS && !str_starts(str_sub(s, at, s.len - at), str_of(units[k].unit))) k++;
        if (k == N_UNITS) return false;
        at += strlen(units[k].unit);
        sum += n / scale * units[k].ms;
    }
    *out_ms = minus ? -sum : sum;
    return at > (size_t)minus;
}

cairn_status ollama_keep_read(json_val root, bool *has, int64_t *keep_ms, cairn_diag *dg)
{
    const double most_ms = 1e15; /* 30,000 years: beyond it a sum of times might overflow */
    const json_val v = json_get(root, "keep_alive");
    const json_type type = json_typeof(v);
    double ms = 0;

    if (type <= JSON_NULL) return CAIRN_OK;
    if (type == JSON_STR ? !read_duration(json_str(v), &ms) : type < JSON_INT || type > JSON_FLOAT)
        return diag_set(dg, CAIRN_E_ARG,
                        "`keep_alive` must be a number of seconds or a text like \"5m\", below 0: "
                        "for good");
    if (type != JSON_STR) ms = json_num(v, 0) * 1000;
    *has = true;
    *keep_ms = !(ms >= 0) ? -1 : ms > most_ms ? (int64_t)most_ms : (int64_t)ms;
    return CAIRN_OK;
}

static cairn_status read_keep(chat_ask *a, chat_fault *f)
{
    (void)snprintf(f->param, sizeof f->param, "keep_alive");
    return ollama_keep_read(json_root(a->doc), &a->has_keep, &a->keep_ms, &f->dg);
}

static cairn_status read_common(chat_ask *a, cairn_str body, chat_fault *f)
{
    TRY(chat_ask_open(a, body, f));
    const json_val root = json_root(a->doc);
    a->model = ollama_model_name(a->model);
    a->stream = true; /* unless it says otherwise */
    TRY(chat_refuse(root, refusals, sizeof refusals / sizeof refusals[0], f));
    TRY(BODY_FIELDS_CHECK(root, (body_path){0}, fields, f));
    TRY(read_keep(a, f));
    TRY(in_options(read_options(json_get(root, "options"), a, f), f));
    TRY(chat_want_bool(root, "stream", &a->stream, f));
    TRY(chat_want_bool(root, "return_progress", &a->progress, f));
    return read_think(json_get(root, "think"), a, f);
}

/* Arguments are an object here, and calls have no ids. */
static void put_calls(json_writer *w, json_val calls)
{
    json_iter it = json_each(calls);
    json_val c;
    char id[32];

    json_w_key(w, "tool_calls");
    json_w_arr(w);
    for (size_t i = 0; json_next(&it, &c); i++) {
        const json_val function = json_get(c, "function");
        const cairn_str given = json_str(json_get(c, "id"));
        (void)snprintf(id, sizeof id, "call_%zu", i);
        json_w_obj(w);
        json_w_kstr(w, "id", given.len ? given : str_of(id));
        json_w_kstr(w, "type", STR_LIT("function"));
        json_w_key(w, "function");
        json_w_val(w, function);
        json_w_end_obj(w);
    }
    json_w_end_arr(w);
}

static cairn_status check_message(json_val m, body_path p, chat_fault *f)
{
    static const char *const texts[] = {"content", "thinking", "tool_name", "tool_call_id"};
    const json_val images = json_get(m, "images"), calls = json_get(m, "tool_calls");

    if (json_typeof(m) != JSON_OBJ) return chat_want(f, p.s, "an object", m);
    if (json_typeof(json_get(m, "role")) != JSON_STR)
        return chat_want(f, path_key(p, "role").s, "a string", json_get(m, "role"));
    for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++) {
        const json_val v = json_get(m, texts[k]);
        if (json_typeof(v) > JSON_NULL && json_typeof(v) != JSON_STR)
            return chat_want(f, path_key(p, texts[k]).s, "a string", v);
    }
    if (json_typeof(images) > JSON_NULL && !chat_empty_list(images))
        return chat_fault_set(f, CAIRN_E_UNSUPPORTED, path_key(p, "images").s,
                              "`%s` is not supported: the model reads text alone",
                              path_key(p, "images").s);
    if (json_typeof(calls) > JSON_NULL && json_typeof(calls) != JSON_ARR)
        return chat_want(f, path_key(p, "tool_calls").s, "an array", calls);
    return CAIRN_OK;
}

static void put_message(json_writer *w, json_val m)
{
    const json_val calls = json_get(m, "tool_calls");
    const cairn_str content = json_str(json_get(m, "content"));
    const cairn_str thought = json_str(json_get(m, "thinking"));
    const cairn_str tool = json_str(json_get(m, "tool_name"));
    const cairn_str id = json_str(json_get(m, "tool_call_id"));

    json_w_obj(w);
    json_w_key(w, "role");
    json_w_val(w, json_get(m, "role"));
    json_w_kstr(w, "content", content.len ? content : STR_LIT(""));
    if (thought.len) json_w_kstr(w, "reasoning_content", thought);
    if (tool.len) json_w_kstr(w, "name", tool);
    if (id.len) json_w_kstr(w, "tool_call_id", id);
    if (json_size(calls)) put_calls(w, calls);
    json_w_end_obj(w);
}

/* What was put together, as OpenAI's messages are read. */
static cairn_status take_messages(const buf *made, chat_ask *a, chat_fault *f)
{
    json_doc *d = NULL;
    cairn_status st = buf_status(made);

    if (st == CAIRN_OK) st = json_parse_any(buf_view(made), &d, &f->dg);
    if (st != CAIRN_OK) return chat_fault_set(f, st, "messages", "no memory for `messages`");
    st = chat_messages_read(json_root(d), &a->messages, f);
    json_free(d);
    return st;
}

static cairn_status put_messages(json_val list, buf *made, chat_fault *f)
{
    const body_path p = {"messages"};
    json_writer w = json_write(made);
    json_iter it = json_each(list);
    json_val m;

    json_w_arr(&w);
    for (size_t i = 0; json_next(&it, &m); i++) {
        TRY(check_message(m, path_element(p, i), f));
        put_message(&w, m);
    }
    json_w_end_arr(&w);
    return CAIRN_OK;
}

cairn_status ollama_chat_read(chat_ask *a, cairn_str body, chat_fault *f)
{
    buf made;

    TRY(read_common(a, body, f));
    const json_val root = json_root(a->doc), list = json_get(root, "messages");
    if (json_typeof(list) > JSON_NULL && json_typeof(list) != JSON_ARR)
        return chat_want(f, "messages", "an array", list);
    TRY(chat_tools_read(root, false, a, f));
    if (json_size(list) == 0) return chat_fault_set(f, CAIRN_E_ARG, "messages", OLLAMA_NOTHING);
    buf_init(&made, MEM_SERVE);
    cairn_status st = put_messages(list, &made, f);
    if (st == CAIRN_OK) st = take_messages(&made, a, f);
    buf_deinit(&made);
    return st;
}

static void put_one(json_writer *w, const char *role, cairn_str text)
{
    json_w_obj(w);
    json_w_kstr(w, "role", str_of(role));
    json_w_kstr(w, "content", text);
    json_w_end_obj(w);
}

/* What is asked of a text; checked in whole before a prompt that is empty, which only loads the model. */
typedef struct text_ask {
    cairn_str prompt, system;
    bool raw;
} text_ask;

static cairn_status read_text(chat_ask *a, cairn_str body, text_ask *t, chat_fault *f)
{
    *t = (text_ask){0};
    TRY(read_common(a, body, f));
    const json_val root = json_root(a->doc);
    (void)snprintf(f->param, sizeof f->param, "prompt");
    TRY(json_want_str(root, "prompt", &t->prompt, &f->dg));
    (void)snprintf(f->param, sizeof f->param, "system");
    TRY(json_want_str(root, "system", &t->system, &f->dg));
    TRY(chat_want_bool(root, "raw", &t->raw, f));
    return t->prompt.len ? CAIRN_OK : chat_fault_set(f, CAIRN_E_ARG, "prompt", OLLAMA_NOTHING);
}

cairn_status ollama_generate_read(chat_ask *a, cairn_str body, chat_fault *f)
{
    text_ask t;
    json_writer w;
    buf made;

    TRY(read_text(a, body, &t, f));
    if (t.raw) return chat_fault_set(f, CAIRN_E_ARG, "raw", OLLAMA_RAW);
    buf_init(&made, MEM_SERVE);
    w = json_write(&made);
    json_w_arr(&w);
    if (t.system.len) put_one(&w, "system", t.system);
    put_one(&w, "user", t.prompt);
    json_w_end_arr(&w);
    const cairn_status st = take_messages(&made, a, f);
    buf_deinit(&made);
    return st;
}

cairn_status ollama_raw_read(chat_ask *a, cairn_str body, chat_fault *f)
{
    text_ask t;

    TRY(read_text(a, body, &t, f));
    if (t.system.len == 0) return CAIRN_OK;
    return chat_fault_set(f, CAIRN_E_ARG, "system",
                          "`system` is given, and the prompt goes to the model as it is");
}

cairn_status ollama_load_read(chat_ask *a, cairn_str body, chat_fault *f)
{
    TRY(chat_ask_open(a, body, f));
    a->model = ollama_model_name(a->model);
    return read_keep(a, f);
}

cairn_str ollama_model_name(cairn_str name)
{
    const cairn_str tag = STR_LIT(":latest");

    return name.len > tag.len && str_ends(name, tag) ? str_sub(name, 0, name.len - tag.len) : name;
}
