/* Makes a request's messages ready for a chat template, which was written for what the model's
   authors fed it and not for all that the protocol allows.  The normalisations, all of them:

   - role "developer" becomes "system";
   - a content array of text parts becomes one string, the parts joined with nothing between;
   - tool_calls[].function.arguments, a string that holds a JSON object, becomes that object
     (templates iterate over it); a string that does not stays as it is, since models do write
     broken arguments and a conversation must survive them;
   - reasoning_effort becomes the template variables reasoning_effort and enable_thinking, unless
     chat_template_kwargs sets them.  It may not set what the body's own fields say, nor what would
     replace the template: vLLM refuses the latter, and a Python call the former.

   Every other member is passed through unchanged.  Tools go to the template; calls in the answer are
   not parsed out of its text yet. */
#include "serve/openai_messages.h"

#include <stdio.h>

#include "base/diag.h"
#include "base/str.h"

static cairn_status done(const buf *b, const char *param, chat_fault *f)
{
    if (buf_status(b) == CAIRN_OK) return CAIRN_OK;
    return chat_fault_set(f, CAIRN_E_NOMEM, param, "no memory for `%s`", param);
}

static cairn_status flatten_part(json_val part, buf *out, const char *param, chat_fault *f)
{
    cairn_str type = json_str(json_get(part, "type"));
    json_val text = json_get(part, "text");

    if (str_is(type, "refusal")) text = json_get(part, "refusal");
    if (str_is(type, "text") || str_is(type, "refusal")) {
        if (json_typeof(text) != JSON_STR)
            return chat_fault_set(f, CAIRN_E_ARG, param, "`%s` has a text part without text",
                                  param);
        buf_str(out, json_str(text));
        return CAIRN_OK;
    }
    if (type.len == 0)
        return chat_fault_set(f, CAIRN_E_ARG, param, "`%s` has a part without a type", param);
    return chat_fault_set(f, CAIRN_E_UNSUPPORTED, param,
                          "`%s` has a part of type `%.*s`: only text is supported", param,
                          STR_ARG(type));
}

static cairn_status write_content(json_writer *w, json_val v, const char *param, chat_fault *f)
{
    json_iter it = json_each(v);
    json_val part;
    cairn_status st = CAIRN_OK;
    buf text;

    if (json_typeof(v) != JSON_ARR) {
        json_w_val(w, v);
        return CAIRN_OK;
    }
    buf_init(&text, MEM_SERVE);
    while (st == CAIRN_OK && json_next(&it, &part)) st = flatten_part(part, &text, param, f);
    if (st == CAIRN_OK) st = done(&text, param, f);
    if (st == CAIRN_OK) json_w_str(w, text.len ? buf_view(&text) : STR_LIT(""));
    buf_deinit(&text);
    return st;
}

/* The string's JSON object, or the string itself. */
static void write_arguments(json_writer *w, json_val v)
{
    json_doc *doc = NULL;
    cairn_status st = CAIRN_E_ARG;

    if (json_typeof(v) == JSON_STR) st = json_parse(json_str(v), &doc, NULL);
    if (st == CAIRN_E_NOMEM) w->out->no_memory = true; /* not to be taken for broken arguments */
    if (st == CAIRN_OK && json_typeof(json_root(doc)) == JSON_OBJ)
        json_w_val(w, json_root(doc));
    else
        json_w_val(w, v);
    if (st == CAIRN_OK) json_free(doc);
}

/* Copies an object, but `key` of it through `fn`. */
static void write_with(json_writer *w, json_val obj, const char *key,
                       void (*fn)(json_writer *w, json_val v))
{
    json_iter it = json_each(obj);
    cairn_str k;
    json_val v;

    if (json_typeof(obj) != JSON_OBJ) {
        json_w_val(w, obj);
        return;
    }
    json_w_obj(w);
    while (json_next_member(&it, &k, &v)) {
        json_w_key_str(w, k);
        if (str_is(k, key))
            fn(w, v);
        else
            json_w_val(w, v);
    }
    json_w_end_obj(w);
}

static void write_function(json_writer *w, json_val v)
{
    write_with(w, v, "arguments", write_arguments);
}

static void write_calls(json_writer *w, json_val v)
{
    json_iter it = json_each(v);
    json_val call;

    json_w_arr(w);
    while (json_next(&it, &call)) write_with(w, call, "function", write_function);
    json_w_end_arr(w);
}

static const char *const roles[] = {"system", "developer", "user", "assistant", "tool", "function"};

static bool role_known(cairn_str role)
{
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        if (str_is(role, roles[i])) return true;
    return false;
}

static cairn_status check_message(json_val m, size_t i, chat_fault *f)
{
    json_val content = json_get(m, "content");
    cairn_str role = json_str(json_get(m, "role"));
    json_type t = json_typeof(content);
    char param[64];

    (void)snprintf(param, sizeof param, "messages[%zu]", i);
    if (json_typeof(m) != JSON_OBJ)
        return chat_fault_set(f, CAIRN_E_ARG, param, "`%s` must be an object", param);
    if (!role_known(role))
        return chat_fault_set(f, CAIRN_E_ARG, param,
                              "`%s.role` must be system, developer, user, assistant, tool or "
                              "function, found `%.*s`",
                              param, STR_ARG(role));
    if (t == JSON_STR || t == JSON_ARR || (t <= JSON_NULL && str_is(role, "assistant")))
        return CAIRN_OK;
    return chat_fault_set(f, CAIRN_E_ARG, param,
                          "`%s.content` must be a string or an array of parts, found %s", param,
                          json_type_name(t));
}

static cairn_status write_message(json_writer *w, json_val m, size_t i, chat_fault *f)
{
    json_iter it = json_each(m);
    char param[64];
    cairn_str k;
    json_val v;

    TRY(check_message(m, i, f));
    (void)snprintf(param, sizeof param, "messages[%zu].content", i);
    json_w_obj(w);
    while (json_next_member(&it, &k, &v)) {
        json_w_key_str(w, k);
        if (str_is(k, "role") && str_is(json_str(v), "developer"))
            json_w_str(w, STR_LIT("system"));
        else if (str_is(k, "content"))
            TRY(write_content(w, v, param, f));
        else if (str_is(k, "tool_calls") && json_typeof(v) == JSON_ARR)
            write_calls(w, v);
        else
            json_w_val(w, v);
    }
    json_w_end_obj(w);
    return CAIRN_OK;
}

cairn_status chat_messages_read(json_val messages, buf *out, chat_fault *f)
{
    json_writer w = json_write(out);
    json_iter it = json_each(messages);
    json_val m;

    if (json_typeof(messages) != JSON_ARR || json_size(messages) == 0)
        return chat_fault_set(f, CAIRN_E_ARG, "messages",
                              "messages required: `messages` must be an array and not empty");
    json_w_arr(&w);
    for (size_t i = 0; json_next(&it, &m); i++) TRY(write_message(&w, m, i, f));
    json_w_end_arr(&w);
    return done(out, "messages", f);
}

cairn_status chat_tools_read(json_val root, buf *out, chat_fault *f)
{
    json_val tools = json_get(root, "tools"), tool;
    json_iter it = json_each(tools);
    json_writer w = json_write(out);
    json_type t = json_typeof(tools);

    if (t <= JSON_NULL) return CAIRN_OK;
    if (t != JSON_ARR)
        return chat_fault_set(f, CAIRN_E_ARG, "tools", "`tools` must be an array, found %s",
                              json_type_name(t));
    for (size_t i = 0; json_next(&it, &tool); i++) {
        cairn_str type = json_str(json_get(tool, "type"));
        if (!str_is(type, "function"))
            return chat_fault_set(f, CAIRN_E_UNSUPPORTED, "tools",
                                  "`tools[%zu].type` must be function, found `%.*s`", i,
                                  STR_ARG(type));
        if (json_str(json_path(tool, "function.name")).len == 0)
            return chat_fault_set(f, CAIRN_E_ARG, "tools", "`tools[%zu].function` has no name", i);
    }
    if (json_size(tools) && !str_is(json_str(json_get(root, "tool_choice")), "none"))
        json_w_val(&w, tools);
    return done(out, "tools", f);
}

static bool thinks(cairn_str effort)
{
    return !str_is(effort, "none");
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

cairn_status chat_kwargs_read(json_val root, buf *out, chat_fault *f)
{
    json_val kwargs = json_get(root, "chat_template_kwargs"), v;
    json_iter it = json_each(kwargs);
    json_writer w = json_write(out);
    cairn_str effort = {0}, k;

    (void)snprintf(f->param, sizeof f->param, "reasoning_effort");
    TRY(json_want_str(root, "reasoning_effort", &effort, &f->dg));
    if (json_typeof(kwargs) > JSON_NULL && json_typeof(kwargs) != JSON_OBJ)
        return chat_fault_set(f, CAIRN_E_ARG, "chat_template_kwargs",
                              "`chat_template_kwargs` must be an object, found %s",
                              json_type_name(json_typeof(kwargs)));
    if (json_typeof(kwargs) == JSON_OBJ) TRY(check_kwargs(kwargs, f));
    if (effort.len == 0 && json_size(kwargs) == 0) return CAIRN_OK;
    json_w_obj(&w);
    if (effort.len && json_typeof(json_get(kwargs, "reasoning_effort")) == JSON_NONE)
        json_w_kstr(&w, "reasoning_effort", effort);
    if (effort.len && json_typeof(json_get(kwargs, "enable_thinking")) == JSON_NONE)
        json_w_kbool(&w, "enable_thinking", thinks(effort));
    while (json_next_member(&it, &k, &v)) {
        json_w_key_str(&w, k);
        json_w_val(&w, v);
    }
    json_w_end_obj(&w);
    return done(out, "chat_template_kwargs", f);
}
