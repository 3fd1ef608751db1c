/* Checks a request's messages, tools and template variables, and says which of them is wrong.  What is
   changed in them then is cairn_normalise_messages' and cairn_normalise_tools' business (cairn/text.h,
   docs/chat.md), so that every user of the library gets the same.

   Template variables may not set what the body's own fields say, nor what would replace the template:
   vLLM refuses the latter, and a Python call the former.  Which of them a wish to think or not becomes
   depends on the template: prompt.c. */
#include "serve/openai_messages.h"

#include <stdio.h>

#include "base/diag.h"
#include "base/str.h"
#include "cairn/text.h"
#include "serve/body_path.h"
#include "serve/openai_custom.h"

typedef cairn_status normalise_fn(cairn_str json, cairn_bytes *out, cairn_diag *dg);

static cairn_status normalise_text(const buf *as_sent, normalise_fn *fn, const char *param,
                                   buf *out, chat_fault *f)
{
    cairn_bytes normal = {0};
    cairn_status st = buf_status(as_sent);

    (void)snprintf(f->param, sizeof f->param, "%s", param);
    if (st == CAIRN_OK) st = fn(buf_view(as_sent), &normal, &f->dg);
    if (st == CAIRN_OK) {
        buf_put(out, normal.ptr, normal.len);
        st = buf_status(out);
    }
    cairn_bytes_free(&normal);
    if (st != CAIRN_E_NOMEM) return st;
    return chat_fault_set(f, st, param, "no memory for `%s`", param);
}

static cairn_status normalise_messages(json_val messages, buf *out, chat_fault *f)
{
    json_iter it = json_each(messages);
    json_writer w;
    buf as_sent;
    cairn_status st;
    json_val m;

    buf_init(&as_sent, MEM_SERVE);
    w = json_write(&as_sent);
    json_w_arr(&w);
    while (json_next(&it, &m)) openai_custom_message(m, &w);
    json_w_end_arr(&w);
    st = normalise_text(&as_sent, cairn_normalise_messages, "messages", out, f);
    buf_deinit(&as_sent);
    return st;
}

cairn_status chat_messages_normalise(const buf *messages, const char *param, buf *out,
                                     chat_fault *f)
{
    return normalise_text(messages, cairn_normalise_messages, param, out, f);
}

cairn_status chat_tools_normalise(const buf *tools, buf *out, chat_fault *f)
{
    if (buf_status(tools) == CAIRN_OK && tools->len <= sizeof "[]" - 1) return CAIRN_OK;
    return normalise_text(tools, cairn_normalise_tools, "tools", out, f);
}

static cairn_status check_size(size_t n, const char *param, chat_fault *f)
{
    if (n <= CAIRN_MAX_PROMPT_BYTES) return CAIRN_OK;
    return chat_fault_set(f, CAIRN_E_LIMIT, param,
                          "`%s` has %zu bytes of text, and a whole prompt at most %d", param, n,
                          CAIRN_MAX_PROMPT_BYTES);
}

/* Adds the part's bytes to *n. */
static cairn_status check_part(json_val part, body_path at, size_t *n, chat_fault *f)
{
    const cairn_str type = json_str(json_get(part, "type"));
    const bool refusal = str_is(type, "refusal");

    if (refusal || str_is(type, "text")) {
        const json_val text = json_get(part, refusal ? "refusal" : "text");
        *n += json_str(text).len;
        if (json_typeof(text) == JSON_STR) return CAIRN_OK;
        return chat_want(f, path_key(at, refusal ? "refusal" : "text").s, "a string", text);
    }
    if (json_typeof(part) != JSON_OBJ) return chat_want(f, at.s, "an object", part);
    if (type.len == 0)
        return chat_want(f, path_key(at, "type").s, "a type of part", json_get(part, "type"));
    return chat_fault_set(f, CAIRN_E_UNSUPPORTED, at.s,
                          "`%s` is a part of type `%.*s`, which is not supported here: the model "
                          "reads text alone",
                          at.s, STR_ARG(type));
}

static cairn_status check_parts(json_val v, const char *param, chat_fault *f)
{
    json_iter it = json_each(v);
    json_val part;
    size_t n = 0;

    if (json_size(v) == 0)
        return chat_fault_set(f, CAIRN_E_ARG, param,
                              "`%s` must hold at least one part, found an empty array", param);
    for (size_t i = 0; json_next(&it, &part); i++) {
        body_path at;
        (void)snprintf(at.s, sizeof at.s, "%s", param);
        TRY(check_part(part, path_element(at, i), &n, f));
    }
    return check_size(n, param, f);
}

/* What a message says was found: a short value as it is, else its type. */
typedef struct found {
    char text[48];
} found;

static found found_of(json_val v)
{
    found s;
    const cairn_str str = json_str(v);

    if (json_typeof(v) == JSON_STR && str.len < sizeof s.text - 2)
        (void)snprintf(s.text, sizeof s.text, "`%.*s`", STR_ARG(str));
    else if (json_typeof(v) == JSON_INT)
        (void)snprintf(s.text, sizeof s.text, "%lld", (long long)json_int(v, 0));
    else if (json_typeof(v) == JSON_BOOL)
        (void)snprintf(s.text, sizeof s.text, "%s", json_bool(v, false) ? "true" : "false");
    else
        (void)snprintf(s.text, sizeof s.text, "%s", json_type_name(json_typeof(v)));
    return s;
}

cairn_status chat_want(chat_fault *f, const char *param, const char *what, json_val v)
{
    return chat_fault_set(f, CAIRN_E_ARG, param, "`%s` must be %s, found %s", param, what,
                          found_of(v).text);
}

static const char *const roles[] = {"system", "developer", "user", "assistant", "tool", "function"};

static bool role_known(cairn_str role)
{
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        if (str_is(role, roles[i])) return true;
    return false;
}

/* As OpenAI has it, null or nothing is the content of a message that calls or refuses; here of one that
   only thinks too, as such replies are sent back. */
static bool says_nothing(json_val m)
{
    static const char *const others[] = {"refusal", "reasoning_content", "reasoning"};

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (json_str(json_get(m, others[i])).len) return true;
    return json_size(json_get(m, "tool_calls")) ||
           json_typeof(json_get(m, "function_call")) == JSON_OBJ;
}

static cairn_status check_content(json_val m, size_t i, chat_fault *f)
{
    const json_val v = json_get(m, "content");
    const json_type t = json_typeof(v);
    const bool assistant = str_is(json_str(json_get(m, "role")), "assistant");
    char param[64];

    (void)snprintf(param, sizeof param, "messages[%zu].content", i);
    if (t == JSON_STR) return check_size(json_str(v).len, param, f);
    if (assistant && t <= JSON_NULL && says_nothing(m)) return CAIRN_OK;
    if (t == JSON_ARR) return check_parts(v, param, f);
    return chat_want(f, param,
                     assistant ? "a string or an array of parts where there are no `tool_calls`"
                               : "a string or an array of parts",
                     v);
}

enum { PARAM_MOST = 96 }; /* bytes of messages[i].tool_calls[j].function.arguments */

/* The member `key` of v, which stands at `where`, is a string if it is there. */
static cairn_status check_string(json_val v, const char *where, const char *key, chat_fault *f)
{
    const json_val s = json_get(v, key);
    char param[PARAM_MOST];

    if (json_typeof(s) <= JSON_NULL || json_typeof(s) == JSON_STR) return CAIRN_OK;
    (void)snprintf(param, sizeof param, "%s.%s", where, key);
    return chat_want(f, param, "a string", s);
}

/* What is called: an object with a name, and arguments unless there are none. */
static cairn_status check_called(json_val v, const char *where, chat_fault *f)
{
    const json_val name = json_get(v, "name"), args = json_get(v, "arguments");
    const json_type t = json_typeof(args);
    char param[PARAM_MOST];

    if (json_typeof(v) != JSON_OBJ) return chat_want(f, where, "an object", v);
    (void)snprintf(param, sizeof param, "%s.name", where);
    if (json_str(name).len == 0) return chat_want(f, param, "a name", name);
    (void)snprintf(param, sizeof param, "%s.arguments", where);
    if (t > JSON_NULL && t != JSON_STR && t != JSON_OBJ)
        return chat_want(f, param, "a string or an object", args);
    return CAIRN_OK;
}

/* Without a type it is one, but where what is there is of another. */
static bool is_function(json_val call)
{
    const json_val type = json_get(call, "type");
    const bool other = json_typeof(json_get(call, "custom")) == JSON_OBJ;

    if (json_typeof(type) > JSON_NULL) return str_is(json_str(type), "function");
    return !other || json_typeof(json_get(call, "function")) > JSON_NULL;
}

static cairn_status want_call_type(json_val type, size_t i, size_t j, chat_fault *f)
{
    char param[PARAM_MOST];

    (void)snprintf(param, sizeof param, "messages[%zu].tool_calls[%zu].type", i, j);
    return chat_want(f, param, "function or custom", type);
}

static cairn_status check_calls(json_val m, size_t i, chat_fault *f)
{
    const json_val calls = json_get(m, "tool_calls"), old = json_get(m, "function_call");
    json_iter it = json_each(calls);
    json_val call;
    char param[PARAM_MOST];

    (void)snprintf(param, sizeof param, "messages[%zu].tool_calls", i);
    if (json_typeof(calls) > JSON_NULL && json_typeof(calls) != JSON_ARR)
        return chat_want(f, param, "an array", calls);
    for (size_t j = 0; json_next(&it, &call); j++) {
        (void)snprintf(param, sizeof param, "messages[%zu].tool_calls[%zu]", i, j);
        if (json_typeof(call) != JSON_OBJ) return chat_want(f, param, "an object", call);
        TRY(check_string(call, param, "id", f));
        if (str_is(json_str(json_get(call, "type")), "custom")) {
            TRY(openai_custom_called(call, param, f));
            continue;
        }
        if (!is_function(call)) return want_call_type(json_get(call, "type"), i, j, f);
        (void)snprintf(param, sizeof param, "messages[%zu].tool_calls[%zu].function", i, j);
        TRY(check_called(json_get(call, "function"), param, f));
    }
    (void)snprintf(param, sizeof param, "messages[%zu].function_call", i);
    return json_typeof(old) > JSON_NULL ? check_called(old, param, f) : CAIRN_OK;
}

static cairn_status check_message(json_val m, size_t i, chat_fault *f)
{
    static const char *const texts[] = {"tool_call_id", "name", "refusal", "reasoning_content",
                                        "reasoning"};
    const json_val role = json_get(m, "role");
    char param[64];

    (void)snprintf(param, sizeof param, "messages[%zu]", i);
    if (json_typeof(m) != JSON_OBJ) return chat_want(f, param, "an object", m);
    for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++)
        TRY(check_string(m, param, texts[k], f));
    (void)snprintf(param, sizeof param, "messages[%zu].role", i);
    if (!role_known(json_str(role)))
        return chat_want(f, param, "system, developer, user, assistant, tool or function", role);
    TRY(check_calls(m, i, f));
    return check_content(m, i, f);
}

cairn_status chat_messages_read(json_val messages, buf *out, chat_fault *f)
{
    json_iter it = json_each(messages);
    json_val m;

    if (json_typeof(messages) != JSON_ARR || json_size(messages) == 0)
        return chat_fault_set(f, CAIRN_E_ARG, "messages",
                              "messages required: `messages` must be an array and not empty");
    for (size_t i = 0; json_next(&it, &m); i++) TRY(check_message(m, i, f));
    return normalise_messages(messages, out, f);
}

cairn_status chat_results_check(json_val messages, chat_fault *f)
{
    json_iter it = json_each(messages);
    json_val m;
    char param[64];

    for (size_t i = 0; json_next(&it, &m); i++) {
        const json_val id = json_get(m, "tool_call_id");
        if (!str_is(json_str(json_get(m, "role")), "tool") || json_str(id).len) continue;
        (void)snprintf(param, sizeof param, "messages[%zu].tool_call_id", i);
        return chat_want(f, param, "the id of a call", id);
    }
    return CAIRN_OK;
}

static const char *const reserved[] = {
    "messages",      "conversation", "tools", "add_generation_prompt", "continue_final_message",
    "chat_template", "tokenize",
};

static cairn_status check_kwargs(json_val kwargs, chat_fault *f)
{
    json_iter it = json_each(kwargs);
    char param[64];
    cairn_str k;
    json_val v;

    while (json_next_member(&it, &k, &v))
        for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
            if (!str_is(k, reserved[i])) continue;
            (void)snprintf(param, sizeof param, "chat_template_kwargs.%s", reserved[i]);
            return chat_fault_set(f, CAIRN_E_ARG, param, "`%s` may not be set: it is reserved",
                                  param);
        }
    return CAIRN_OK;
}

/* The variables that say so by themselves, whatever the template calls its own. */
static int wish_to_think(json_val kwargs)
{
    static const char *const names[] = {"enable_thinking", "thinking"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const json_val v = json_get(kwargs, names[i]);
        if (json_typeof(v) == JSON_BOOL) return json_bool(v, false);
    }
    return -1;
}

cairn_status chat_kwargs_read(json_val root, chat_ask *a, chat_fault *f)
{
    const json_val kwargs = json_get(root, "chat_template_kwargs");
    cairn_str own;

    (void)snprintf(f->param, sizeof f->param, "reasoning_effort");
    TRY(json_want_str(root, "reasoning_effort", &a->effort, &f->dg));
    if (str_is(a->effort, "max")) a->effort = STR_LIT("xhigh"); /* the most that templates know */
    a->think = -1;
    if (json_typeof(kwargs) <= JSON_NULL) return CAIRN_OK;
    if (json_typeof(kwargs) != JSON_OBJ)
        return chat_fault_set(f, CAIRN_E_ARG, "chat_template_kwargs",
                              "`chat_template_kwargs` must be an object, found %s",
                              json_type_name(json_typeof(kwargs)));
    TRY(check_kwargs(kwargs, f));
    a->kwargs = kwargs;
    a->think = wish_to_think(kwargs);
    own = json_str(json_get(kwargs, "reasoning_effort"));
    if (own.len) a->effort = own;
    return CAIRN_OK;
}

/* What stands for the content of a message that has none. */
static void put_filled(json_writer *w, json_val m)
{
    const bool none = str_is(json_str(json_get(m, "role")), "assistant") &&
                      json_typeof(json_get(m, "content")) <= JSON_NULL;
    json_iter it = json_each(m);
    cairn_str k;
    json_val v;

    json_w_obj(w);
    while (json_next_member(&it, &k, &v)) {
        if (none && str_is(k, "content")) continue;
        json_w_key_str(w, k);
        json_w_val(w, v);
    }
    if (none) {
        const cairn_str said = json_str(json_get(m, "refusal"));
        json_w_kstr(w, "content", said.len ? said : STR_LIT(""));
    }
    json_w_end_obj(w);
}

cairn_status chat_messages_fill(cairn_str messages, buf *out)
{
    json_doc *d = NULL;
    json_writer w = json_write(out);
    json_val m;

    TRY(json_parse_any(messages, &d, NULL));
    json_iter it = json_each(json_root(d));
    json_w_arr(&w);
    while (json_next(&it, &m)) put_filled(&w, m);
    json_w_end_arr(&w);
    json_free(d);
    return buf_status(out);
}
