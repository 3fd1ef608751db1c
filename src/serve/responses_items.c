/* What each kind of item says: thoughts, texts and calls of an assistant in a row are one message, outputs of tools
   one each, and what the system or a developer says is kept apart, for one message before all others, as most
   templates take no other.  docs/api.md says what becomes of each kind. */
#include "serve/responses_items.h"

#include "base/diag.h"
#include "base/str.h"
#include "serve/openai_messages.h"
#include "serve/responses_ask.h"

static cairn_status want(items *w, body_path p, const char *what, json_val v)
{
    return chat_want(w->f, p.s, what, v);
}

static cairn_status no_memory(items *w)
{
    return chat_fault_set(w->f, CAIRN_E_NOMEM, "input", "no memory for `input`");
}

static cairn_status want_str(items *w, json_val v, body_path p, const char *key, cairn_str *out)
{
    const json_val s = json_get(v, key);

    *out = json_str(s);
    return json_typeof(s) == JSON_STR ? CAIRN_OK : want(w, path_key(p, key), "a string", s);
}

static cairn_status want_name(items *w, json_val v, body_path p, const char *key, cairn_str *out)
{
    TRY(want_str(w, v, p, key, out));
    return out->len ? CAIRN_OK : want(w, path_key(p, key), "a string, not empty", json_get(v, key));
}

/* A string, or nothing: then empty. */
static cairn_status may_str(items *w, json_val v, body_path p, const char *key, cairn_str *out)
{
    *out = (cairn_str){0};
    return json_typeof(json_get(v, key)) <= JSON_NULL ? CAIRN_OK : want_str(w, v, p, key, out);
}

void items_say_system(items *w, cairn_str text)
{
    if (w->system.len && text.len) buf_puts(&w->system, "\n\n");
    buf_str(&w->system, text);
}

void items_say(items *w, const char *role, cairn_str text)
{
    turns_to(&w->t, role);
    w->t.between = "\n\n";
    turns_text(&w->t, text.len ? text : STR_LIT(""));
}

static cairn_status no_such_part(items *w, body_path p, cairn_str type)
{
    const bool seen =
        str_is(type, "input_image") || str_is(type, "input_file") || str_is(type, "input_audio");

    return chat_fault_set(w->f, CAIRN_E_UNSUPPORTED, p.s,
                          "`%s` is a part of type `%.*s`, which is not supported here%s", p.s,
                          STR_ARG(type), seen ? ": the model reads text alone" : "");
}

static cairn_status part_text(items *w, json_val part, body_path p, bool refusals, cairn_str *out)
{
    static const char *const texts[] = {"input_text", "output_text", "text"};
    cairn_str type = {0};

    if (json_typeof(part) != JSON_OBJ) return want(w, p, "an object", part);
    TRY(want_name(w, part, p, "type", &type));
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (str_is(type, texts[i])) return want_str(w, part, p, "text", out);
    if (refusals && str_is(type, "refusal")) return want_str(w, part, p, "refusal", out);
    return no_such_part(w, p, type);
}

/* A string, or parts joined by newlines, into out. */
static cairn_status all_text(items *w, json_val v, body_path p, bool refusals, buf *out)
{
    json_iter it = json_each(v);
    json_val part;
    cairn_str text = {0};

    if (json_typeof(v) == JSON_STR) buf_str(out, json_str(v));
    if (json_typeof(v) == JSON_STR) return CAIRN_OK;
    if (json_typeof(v) != JSON_ARR) return want(w, p, "a string or an array of parts", v);
    for (size_t i = 0; json_next(&it, &part); i++) {
        TRY(part_text(w, part, path_element(p, i), refusals, &text));
        if (i > 0) buf_byte(out, '\n');
        buf_str(out, text);
    }
    return CAIRN_OK;
}

static cairn_status message_item(items *w, json_val item, body_path p)
{
    const json_val asked = json_get(item, "role");
    const cairn_str role = json_str(asked);
    const bool assistant = str_is(role, "assistant"), user = str_is(role, "user");
    cairn_status st;
    buf text;

    if (!assistant && !user && !str_is(role, "system") && !str_is(role, "developer"))
        return want(w, path_key(p, "role"), "user, assistant, system or developer", asked);
    buf_init(&text, MEM_SERVE);
    st = all_text(w, json_get(item, "content"), path_key(p, "content"), assistant, &text);
    if (st == CAIRN_OK && buf_status(&text) != CAIRN_OK) st = no_memory(w);
    if (st == CAIRN_OK && (assistant || user))
        items_say(w, user ? turns_user : turns_assistant, buf_view(&text));
    else if (st == CAIRN_OK)
        items_say_system(w, buf_view(&text));
    buf_deinit(&text);
    return st;
}

/* Texts of `key`, an array of objects. */
static cairn_status thoughts(items *w, json_val item, body_path p, const char *key, bool say)
{
    const json_val list = json_get(item, key);
    json_iter it = json_each(list);
    cairn_str text = {0};
    json_val v;

    if (json_typeof(list) > JSON_NULL && json_typeof(list) != JSON_ARR)
        return want(w, path_key(p, key), "an array", list);
    for (size_t i = 0; json_next(&it, &v); i++) {
        TRY(want_str(w, v, path_element(path_key(p, key), i), "text", &text));
        if (!say || text.len == 0) continue;
        turns_to(&w->t, turns_assistant);
        turns_thought(&w->t, text);
    }
    return CAIRN_OK;
}

/* What was thought, or else its summary.  `encrypted_content` is for its maker alone. */
static cairn_status reasoning_item(items *w, json_val item, body_path p)
{
    const bool whole = json_size(json_get(item, "content")) > 0;

    TRY(thoughts(w, item, p, "content", true));
    return thoughts(w, item, p, "summary", !whole);
}

/* What outputs are looked up by stays: the text of an item may go before its output comes. */
static cairn_status remember(items *w, cairn_str id, cairn_str name)
{
    const char *s = arena_strdup(w->mem, id), *n = arena_strdup(w->mem, name);

    if (!s || !n) return no_memory(w);
    w->calls[w->n_calls++ % ITEMS_MOST_NAMES] = (call_name){{s, id.len}, {n, name.len}};
    return CAIRN_OK;
}

/* Empty: it is not known. */
static cairn_str name_of_call(const items *w, cairn_str id)
{
    for (size_t i = w->n_calls; i > 0 && w->n_calls - i < ITEMS_MOST_NAMES; i--)
        if (str_eq(w->calls[(i - 1) % ITEMS_MOST_NAMES].id, id))
            return w->calls[(i - 1) % ITEMS_MOST_NAMES].name;
    return (cairn_str){0};
}

/* A call of the client's tool `name`, whose arguments are `args` as text, or as an object's. */
static cairn_status put_call(items *w, cairn_str id, cairn_str name, json_val args)
{
    json_writer to;

    TRY(remember(w, id, name));
    turns_to(&w->t, turns_assistant);
    to = turns_call(&w->t, id, name);
    json_w_val(&to, args);
    turns_called(&to);
    return CAIRN_OK;
}

static cairn_status called_name(items *w, json_val item, body_path p, cairn_str *out)
{
    cairn_str name = {0}, space = {0};

    TRY(want_name(w, item, p, "name", &name));
    TRY(may_str(w, item, p, "namespace", &space));
    *out = responses_tool_called(w->mem, space, name);
    return out->ptr ? CAIRN_OK : no_memory(w);
}

static cairn_status function_item(items *w, json_val item, body_path p)
{
    cairn_str id = {0}, name = {0}, args = {0};

    TRY(want_name(w, item, p, "call_id", &id));
    TRY(called_name(w, item, p, &name));
    TRY(want_str(w, item, p, "arguments", &args));
    return put_call(w, id, name, json_get(item, "arguments"));
}

static cairn_status custom_item(items *w, json_val item, body_path p)
{
    cairn_str id = {0}, name = {0}, input = {0};
    json_writer to;

    TRY(want_name(w, item, p, "call_id", &id));
    TRY(called_name(w, item, p, &name));
    TRY(want_str(w, item, p, "input", &input));
    TRY(remember(w, id, name));
    turns_to(&w->t, turns_assistant);
    to = turns_call(&w->t, id, name);
    json_w_obj(&to);
    json_w_kstr(&to, "input", input);
    json_w_end_obj(&to);
    turns_called(&to);
    return CAIRN_OK;
}

/* The output of the call `id`, unless st says what went wrong with its text, which is let go either way. */
static cairn_status end_result(items *w, cairn_str id, cairn_status st, buf *text)
{
    if (st == CAIRN_OK && buf_status(text) != CAIRN_OK) st = no_memory(w);
    if (st == CAIRN_OK) turns_result(&w->t, id, name_of_call(w, id), buf_view(text));
    buf_deinit(text);
    return st;
}

static cairn_status output_item(items *w, json_val item, body_path p)
{
    cairn_status st;
    cairn_str id = {0};
    buf text;

    TRY(may_str(w, item, p, "call_id", &id));
    buf_init(&text, MEM_SERVE);
    st = all_text(w, json_get(item, "output"), path_key(p, "output"), false, &text);
    return end_result(w, id, st, &text);
}

/* Calls whose items have a form of their own, as a call of a tool of that name. */
static cairn_status act_item(items *w, json_val item, body_path p, const char *name,
                             const char *key)
{
    const json_val args = json_get(item, key);
    cairn_str id = {0};

    TRY(want_name(w, item, p, "call_id", &id));
    if (json_typeof(args) != JSON_OBJ) return want(w, path_key(p, key), "an object", args);
    return put_call(w, id, str_of(name), args);
}

static cairn_status local_shell_item(items *w, json_val item, body_path p)
{
    return act_item(w, item, p, "local_shell", "action");
}

static cairn_status shell_item(items *w, json_val item, body_path p)
{
    return act_item(w, item, p, "shell", "action");
}

static cairn_status patch_item(items *w, json_val item, body_path p)
{
    return act_item(w, item, p, "apply_patch", "operation");
}

/* The output has the call's id as its own. */
static cairn_status local_shell_output_item(items *w, json_val item, body_path p)
{
    cairn_str id = {0}, text = {0};

    TRY(want_name(w, item, p, "id", &id));
    TRY(want_str(w, item, p, "output", &text));
    turns_result(&w->t, id, name_of_call(w, id), text);
    return CAIRN_OK;
}

static cairn_status one_shell_output(items *w, json_val v, body_path p, buf *out)
{
    const json_val outcome = json_get(v, "outcome"), code = json_get(outcome, "exit_code");
    cairn_str text = {0};

    TRY(want_str(w, v, p, "stdout", &text));
    buf_str(out, text);
    TRY(want_str(w, v, p, "stderr", &text));
    buf_str(out, text);
    if (str_is(json_str(json_get(outcome, "type")), "timeout")) buf_puts(out, "\n(timed out)");
    if (json_int(code, 0)) buf_printf(out, "\n(exit code %lld)", (long long)json_int(code, 0));
    return CAIRN_OK;
}

static cairn_status shell_output_item(items *w, json_val item, body_path p)
{
    const json_val list = json_get(item, "output");
    json_iter it = json_each(list);
    cairn_status st = CAIRN_OK;
    cairn_str id = {0};
    json_val v;
    buf text;

    TRY(want_name(w, item, p, "call_id", &id));
    if (json_typeof(list) != JSON_ARR) return want(w, path_key(p, "output"), "an array", list);
    buf_init(&text, MEM_SERVE);
    for (size_t i = 0; st == CAIRN_OK && json_next(&it, &v); i++) {
        if (i > 0) buf_byte(&text, '\n');
        st = one_shell_output(w, v, path_element(path_key(p, "output"), i), &text);
    }
    return end_result(w, id, st, &text);
}

static cairn_status patch_output_item(items *w, json_val item, body_path p)
{
    cairn_str id = {0}, status = {0}, text = {0};

    TRY(want_name(w, item, p, "call_id", &id));
    TRY(want_name(w, item, p, "status", &status));
    TRY(may_str(w, item, p, "output", &text));
    turns_result(&w->t, id, name_of_call(w, id), text.len ? text : status);
    return CAIRN_OK;
}

/* A service's own call, whose item holds its result too, as a call of a tool of that name and what it came to: the
   member `key` of the item is its argument. */
static cairn_status put_own(items *w, json_val item, body_path p, const char *name, const char *key,
                            cairn_str *id)
{
    json_writer to;

    TRY(want_name(w, item, p, "id", id));
    TRY(remember(w, *id, str_of(name)));
    turns_to(&w->t, turns_assistant);
    to = turns_call(&w->t, *id, str_of(name));
    json_w_obj(&to);
    json_w_key(&to, key);
    json_w_val(&to, json_get(item, key));
    json_w_end_obj(&to);
    turns_called(&to);
    return CAIRN_OK;
}

/* Of each element of the member `list`, an array if it is there, the strings `first` and `second`, a line each. */
static cairn_status own_result(items *w, json_val item, body_path p, const char *list,
                               const char *first, const char *second, cairn_str id)
{
    const json_val v = json_get(item, list);
    json_iter it = json_each(v);
    cairn_status st = CAIRN_OK;
    cairn_str text = {0};
    json_val one;
    buf all;

    if (json_typeof(v) > JSON_NULL && json_typeof(v) != JSON_ARR)
        return want(w, path_key(p, list), "an array", v);
    buf_init(&all, MEM_SERVE);
    for (size_t i = 0; st == CAIRN_OK && json_next(&it, &one); i++) {
        const body_path at = path_element(path_key(p, list), i);
        st = may_str(w, one, at, first, &text);
        buf_str(&all, text);
        if (text.len) buf_byte(&all, '\n');
        if (st == CAIRN_OK) st = may_str(w, one, at, second, &text);
        buf_str(&all, text);
        if (text.len) buf_byte(&all, '\n');
    }
    return end_result(w, id, st, &all);
}

static cairn_status file_search_item(items *w, json_val item, body_path p)
{
    cairn_str id = {0};

    TRY(put_own(w, item, p, "file_search", "queries", &id));
    return own_result(w, item, p, "results", "filename", "text", id);
}

static cairn_status interpreter_item(items *w, json_val item, body_path p)
{
    cairn_str id = {0}, code = {0};

    TRY(may_str(w, item, p, "code", &code));
    TRY(put_own(w, item, p, "code_interpreter", "code", &id));
    return own_result(w, item, p, "outputs", "logs", "url", id);
}

static cairn_status mcp_item(items *w, json_val item, body_path p)
{
    const json_val error = json_get(item, "error");
    cairn_str id = {0}, name = {0}, args = {0}, out = {0};
    json_writer to;
    buf text;

    TRY(want_name(w, item, p, "id", &id));
    TRY(want_name(w, item, p, "name", &name));
    TRY(want_str(w, item, p, "arguments", &args));
    TRY(may_str(w, item, p, "output", &out));
    TRY(put_call(w, id, name, json_get(item, "arguments")));
    buf_init(&text, MEM_SERVE);
    buf_str(&text, out);
    if (json_typeof(error) > JSON_NULL) {
        buf_puts(&text, "Error: ");
        to = json_write(&text);
        json_w_val(&to, error);
    }
    return end_result(w, id, CAIRN_OK, &text);
}

static cairn_status tool_search_item(items *w, json_val item, body_path p)
{
    const json_val args = json_get(item, "arguments");
    cairn_str id = {0};

    TRY(may_str(w, item, p, "call_id", &id));
    if (json_typeof(args) != JSON_OBJ && json_typeof(args) != JSON_STR)
        return want(w, path_key(p, "arguments"), "an object or a string", args);
    return put_call(w, id.len ? id : STR_LIT("tool_search"), STR_LIT("tool_search"), args);
}

static cairn_status tool_search_output_item(items *w, json_val item, body_path p)
{
    const json_val tools = json_get(item, "tools");
    cairn_str id = {0};
    json_writer to;
    buf text;

    TRY(may_str(w, item, p, "call_id", &id));
    if (json_typeof(tools) != JSON_ARR) return want(w, path_key(p, "tools"), "an array", tools);
    buf_init(&text, MEM_SERVE);
    to = json_write(&text);
    json_w_val(&to, tools);
    return end_result(w, id.len ? id : STR_LIT("tool_search"), CAIRN_OK, &text);
}

static cairn_status program_item(items *w, json_val item, body_path p)
{
    cairn_str id = {0}, code = {0};
    json_writer to;

    TRY(want_name(w, item, p, "call_id", &id));
    TRY(want_str(w, item, p, "code", &code));
    TRY(remember(w, id, STR_LIT("program")));
    turns_to(&w->t, turns_assistant);
    to = turns_call(&w->t, id, STR_LIT("program"));
    json_w_obj(&to);
    json_w_kstr(&to, "code", code);
    json_w_end_obj(&to);
    turns_called(&to);
    return CAIRN_OK;
}

static cairn_status program_output_item(items *w, json_val item, body_path p)
{
    cairn_str id = {0}, text = {0};

    TRY(want_name(w, item, p, "call_id", &id));
    TRY(want_str(w, item, p, "result", &text));
    turns_result(&w->t, id, name_of_call(w, id), text);
    return CAIRN_OK;
}

static cairn_status computer_item(items *w, json_val item, body_path p)
{
    const char *key = json_typeof(json_get(item, "actions")) == JSON_ARR ? "actions" : "action";
    cairn_str id = {0};

    TRY(want_name(w, item, p, "call_id", &id));
    if (json_typeof(json_get(item, key)) <= JSON_NULL)
        return want(w, path_key(p, key), "an object", json_get(item, key));
    TRY(put_own(w, item, p, "computer", key, &id));
    return CAIRN_OK;
}

/* It is a picture. */
static cairn_status computer_output_item(items *w, json_val item, body_path p)
{
    (void)item;
    return chat_fault_set(w->f, CAIRN_E_UNSUPPORTED, path_key(p, "output").s,
                          "`%s` is a picture, which is not supported here: the model reads text "
                          "alone",
                          path_key(p, "output").s);
}

typedef struct item_reader {
    const char *type;
    cairn_status (*add)(items *w, json_val item, body_path p);
} item_reader;

static const item_reader readers[] = {
    {"message", message_item},
    {"reasoning", reasoning_item},
    {"function_call", function_item},
    {"function_call_output", output_item},
    {"custom_tool_call", custom_item},
    {"custom_tool_call_output", output_item},
    {"local_shell_call", local_shell_item},
    {"local_shell_call_output", local_shell_output_item},
    {"shell_call", shell_item},
    {"shell_call_output", shell_output_item},
    {"apply_patch_call", patch_item},
    {"apply_patch_call_output", patch_output_item},
    {"file_search_call", file_search_item},
    {"code_interpreter_call", interpreter_item},
    {"mcp_call", mcp_item},
    {"tool_search_call", tool_search_item},
    {"tool_search_output", tool_search_output_item},
    {"program", program_item},
    {"program_output", program_output_item},
    {"computer_call", computer_item},
    {"computer_call_output", computer_output_item},
};

/* The other kinds that are published: what a service would act on, or pictures. */
static const char *const not_here[] = {
    "web_search_call",       "image_generation_call",
    "mcp_list_tools",        "mcp_approval_request",
    "mcp_approval_response", "additional_tools",
    "configuration_update",  "compaction",
    "compaction_trigger",
};

static cairn_status no_such_item(items *w, body_path p, cairn_str type)
{
    return chat_fault_set(w->f, CAIRN_E_ARG, path_key(p, "type").s,
                          "`%s` must be a type of item, found `%.*s`", path_key(p, "type").s,
                          STR_ARG(type));
}

cairn_status items_type(items *w, json_val item, body_path p, cairn_str *out)
{
    const json_val type = json_get(item, "type");

    if (json_typeof(item) != JSON_OBJ) return want(w, p, "an object", item);
    *out = STR_LIT("message");
    if (json_typeof(type) > JSON_NULL) return want_name(w, item, p, "type", out);
    if (json_typeof(json_get(item, "role")) <= JSON_NULL &&
        json_typeof(json_get(item, "id")) == JSON_STR)
        *out = STR_LIT("item_reference");
    return CAIRN_OK;
}

cairn_status items_add(items *w, json_val item, body_path p, cairn_str type)
{
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++)
        if (str_is(type, readers[i].type)) return readers[i].add(w, item, p);
    for (size_t i = 0; i < sizeof not_here / sizeof not_here[0]; i++) {
        if (!str_is(type, not_here[i])) continue;
        left_out_add(&w->left, not_here[i]);
        return CAIRN_OK;
    }
    return no_such_item(w, p, type);
}

void items_init(items *w, arena *mem, buf *out, chat_fault *f)
{
    *w = (items){.mem = mem, .f = f};
    buf_init(&w->system, MEM_SERVE);
    turns_init(&w->t, out);
}

void items_deinit(items *w)
{
    turns_deinit(&w->t);
    buf_deinit(&w->system);
}
