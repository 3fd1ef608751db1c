/* Checks a request's messages, tools and template variables, and says which of them is wrong.  What is
   changed in them then is cairn_normalise_messages' and cairn_normalise_tools' business (cairn/text.h,
   docs/chat.md), so that every user of the library gets the same.

   Template variables may not set what the body's own fields say, nor what would replace the template:
   vLLM refuses the latter, and a Python call the former.  Which of them a wish to think or not becomes
   depends on the template: openai_prompt.c. */
#include "serve/openai_messages.h"

#include <stdio.h>

#include "base/diag.h"
#include "base/str.h"
#include "cairn/text.h"

typedef cairn_status normalise_fn(cairn_str json, cairn_bytes *out, cairn_diag *dg);

static cairn_status normalise(json_val v, normalise_fn *fn, const char *param, buf *out,
                              chat_fault *f)
{
    cairn_bytes normal = {0};
    json_writer w;
    buf as_sent;
    cairn_status st;

    (void)snprintf(f->param, sizeof f->param, "%s", param);
    buf_init(&as_sent, MEM_SERVE);
    w = json_write(&as_sent);
    json_w_val(&w, v);
    st = buf_status(&as_sent);
    if (st == CAIRN_OK) st = fn(buf_view(&as_sent), &normal, &f->dg);
    buf_deinit(&as_sent);
    if (st == CAIRN_OK) {
        buf_put(out, normal.ptr, normal.len);
        st = buf_status(out);
    }
    cairn_bytes_free(&normal);
    if (st != CAIRN_E_NOMEM) return st;
    return chat_fault_set(f, st, param, "no memory for `%s`", param);
}

static cairn_status check_part(json_val part, const char *param, chat_fault *f)
{
    const cairn_str type = json_str(json_get(part, "type"));
    const bool refusal = str_is(type, "refusal");

    if (refusal || str_is(type, "text")) {
        if (json_typeof(json_get(part, refusal ? "refusal" : "text")) == JSON_STR) return CAIRN_OK;
        return chat_fault_set(f, CAIRN_E_ARG, param, "`%s` has a text part without text", param);
    }
    if (type.len == 0)
        return chat_fault_set(f, CAIRN_E_ARG, param, "`%s` has a part without a type", param);
    return chat_fault_set(f, CAIRN_E_UNSUPPORTED, param,
                          "`%s` has a part of type `%.*s`: only text is supported", param,
                          STR_ARG(type));
}

static cairn_status check_content(json_val v, size_t i, chat_fault *f)
{
    json_iter it = json_each(v);
    json_val part;
    char param[64];

    if (json_typeof(v) != JSON_ARR) return CAIRN_OK;
    (void)snprintf(param, sizeof param, "messages[%zu].content", i);
    while (json_next(&it, &part)) TRY(check_part(part, param, f));
    return CAIRN_OK;
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

cairn_status chat_messages_read(json_val messages, buf *out, chat_fault *f)
{
    json_iter it = json_each(messages);
    json_val m;

    if (json_typeof(messages) != JSON_ARR || json_size(messages) == 0)
        return chat_fault_set(f, CAIRN_E_ARG, "messages",
                              "messages required: `messages` must be an array and not empty");
    for (size_t i = 0; json_next(&it, &m); i++) {
        TRY(check_message(m, i, f));
        TRY(check_content(json_get(m, "content"), i, f));
    }
    return normalise(messages, cairn_normalise_messages, "messages", out, f);
}

cairn_status chat_tools_read(json_val root, buf *out, chat_fault *f)
{
    json_val tools = json_get(root, "tools"), tool;
    json_iter it = json_each(tools);
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
    if (json_size(tools) == 0 || str_is(json_str(json_get(root, "tool_choice")), "none"))
        return CAIRN_OK;
    return normalise(tools, cairn_normalise_tools, "tools", out, f);
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
