/* Items become messages: thoughts, texts and calls of an assistant in a row are one message, outputs of tools one
   each, and what the system or a developer says, wherever it stands, is one message before all others, as most
   templates take no other.  What is kept of a request is its own items, whole, so that no later one depends on
   what they referred to.  docs/api.md says what becomes of each kind. */
#include <stdio.h>

#include "base/diag.h"
#include "base/str.h"
#include "serve/body_path.h"
#include "serve/http.h"
#include "serve/openai_messages.h"
#include "serve/responses_ask.h"
#include "serve/turns.h"

enum {
    MOST_NAMES = 256,        /* calls that outputs are looked up among: those of a few turns */
    MOST_REFERRED = 64 << 20 /* bytes read for references to items: half a second */
};

typedef struct call_name {
    cairn_str id, name;
} call_name;

typedef struct walk {
    turns t;
    buf system; /* what it says */
    chat_fault *f;
    chat_ask *a;
    responses_ask *r;
    call_name calls[MOST_NAMES]; /* a ring */
    size_t n_calls;
    bool keeping;
    json_writer kept;
    size_t n_kept;
    size_t referred; /* bytes */
} walk;

static cairn_status want(walk *w, body_path p, const char *what, json_val v)
{
    return chat_want(w->f, p.s, what, v);
}

static cairn_status no_memory(walk *w)
{
    return chat_fault_set(w->f, CAIRN_E_NOMEM, "input", "no memory for `input`");
}

static cairn_status want_str(walk *w, json_val v, body_path p, const char *key, cairn_str *out)
{
    const json_val s = json_get(v, key);

    *out = json_str(s);
    return json_typeof(s) == JSON_STR ? CAIRN_OK : want(w, path_key(p, key), "a string", s);
}

static cairn_status want_name(walk *w, json_val v, body_path p, const char *key, cairn_str *out)
{
    TRY(want_str(w, v, p, key, out));
    return out->len ? CAIRN_OK : want(w, path_key(p, key), "a string, not empty", json_get(v, key));
}

/* A string, or nothing: then empty. */
static cairn_status may_str(walk *w, json_val v, body_path p, const char *key, cairn_str *out)
{
    *out = (cairn_str){0};
    return json_typeof(json_get(v, key)) <= JSON_NULL ? CAIRN_OK : want_str(w, v, p, key, out);
}

static void system_text(walk *w, cairn_str text)
{
    if (w->system.len && text.len) buf_puts(&w->system, "\n\n");
    buf_str(&w->system, text);
}

static cairn_status no_such_part(walk *w, body_path p, cairn_str type)
{
    const bool seen =
        str_is(type, "input_image") || str_is(type, "input_file") || str_is(type, "input_audio");

    return chat_fault_set(w->f, CAIRN_E_UNSUPPORTED, p.s,
                          "`%s` is a part of type `%.*s`, which is not supported here%s", p.s,
                          STR_ARG(type), seen ? ": the model reads text alone" : "");
}

static cairn_status part_text(walk *w, json_val part, body_path p, bool refusals, cairn_str *out)
{
    static const char *const texts[] = {"input_text", "output_text", "text"};
    cairn_str type;

    if (json_typeof(part) != JSON_OBJ) return want(w, p, "an object", part);
    TRY(want_name(w, part, p, "type", &type));
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (str_is(type, texts[i])) return want_str(w, part, p, "text", out);
    if (refusals && str_is(type, "refusal")) return want_str(w, part, p, "refusal", out);
    return no_such_part(w, p, type);
}

/* A string, or parts joined by newlines, into out. */
static cairn_status all_text(walk *w, json_val v, body_path p, bool refusals, buf *out)
{
    json_iter it = json_each(v);
    json_val part;
    cairn_str text;

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

static cairn_status message_item(walk *w, json_val item, body_path p)
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
    if (st == CAIRN_OK) st = buf_status(&text) == CAIRN_OK ? CAIRN_OK : no_memory(w);
    if (st == CAIRN_OK && (assistant || user)) {
        turns_to(&w->t, user ? turns_user : turns_assistant);
        w->t.between = "\n\n";
        turns_text(&w->t, text.len ? buf_view(&text) : STR_LIT(""));
    } else if (st == CAIRN_OK) {
        system_text(w, buf_view(&text));
    }
    buf_deinit(&text);
    return st;
}

/* Texts of `key`, an array of objects. */
static cairn_status thoughts(walk *w, json_val item, body_path p, const char *key, bool say)
{
    const json_val list = json_get(item, key);
    json_iter it = json_each(list);
    cairn_str text;
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
static cairn_status reasoning_item(walk *w, json_val item, body_path p)
{
    const bool whole = json_size(json_get(item, "content")) > 0;

    TRY(thoughts(w, item, p, "content", true));
    return thoughts(w, item, p, "summary", !whole);
}

/* What outputs are looked up by stays: the text of an item may go before its output comes. */
static cairn_status remember(walk *w, cairn_str id, cairn_str name)
{
    const char *s = arena_strdup(&w->a->mem, id), *n = arena_strdup(&w->a->mem, name);

    if (!s || !n) return no_memory(w);
    w->calls[w->n_calls++ % MOST_NAMES] = (call_name){{s, id.len}, {n, name.len}};
    return CAIRN_OK;
}

/* Empty: it is not known. */
static cairn_str name_of_call(const walk *w, cairn_str id)
{
    for (size_t i = w->n_calls; i > 0 && w->n_calls - i < MOST_NAMES; i--)
        if (str_eq(w->calls[(i - 1) % MOST_NAMES].id, id))
            return w->calls[(i - 1) % MOST_NAMES].name;
    return (cairn_str){0};
}

/* A call of the client's tool `name`, whose arguments are `args` as text, or as an object's. */
static cairn_status put_call(walk *w, cairn_str id, cairn_str name, json_val args)
{
    json_writer to;

    TRY(remember(w, id, name));
    turns_to(&w->t, turns_assistant);
    to = turns_call(&w->t, id, name);
    json_w_val(&to, args);
    turns_called(&to);
    return CAIRN_OK;
}

static cairn_status called_name(walk *w, json_val item, body_path p, cairn_str *out)
{
    cairn_str name, space;

    TRY(want_name(w, item, p, "name", &name));
    TRY(may_str(w, item, p, "namespace", &space));
    *out = responses_tool_called(&w->a->mem, space, name);
    return out->ptr ? CAIRN_OK : no_memory(w);
}

static cairn_status function_item(walk *w, json_val item, body_path p)
{
    cairn_str id, name, args;

    TRY(want_name(w, item, p, "call_id", &id));
    TRY(called_name(w, item, p, &name));
    TRY(want_str(w, item, p, "arguments", &args));
    return put_call(w, id, name, json_get(item, "arguments"));
}

static cairn_status custom_item(walk *w, json_val item, body_path p)
{
    cairn_str id, name, input;
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

static cairn_status output_item(walk *w, json_val item, body_path p)
{
    cairn_status st;
    cairn_str id;
    buf text;

    TRY(may_str(w, item, p, "call_id", &id));
    buf_init(&text, MEM_SERVE);
    st = all_text(w, json_get(item, "output"), path_key(p, "output"), false, &text);
    if (st == CAIRN_OK) st = buf_status(&text) == CAIRN_OK ? CAIRN_OK : no_memory(w);
    if (st == CAIRN_OK) turns_result(&w->t, id, name_of_call(w, id), buf_view(&text));
    buf_deinit(&text);
    return st;
}

/* Calls whose items have a form of their own, as a call of a tool of that name. */
static cairn_status act_item(walk *w, json_val item, body_path p, const char *name, const char *key)
{
    const json_val args = json_get(item, key);
    cairn_str id;

    TRY(want_name(w, item, p, "call_id", &id));
    if (json_typeof(args) != JSON_OBJ) return want(w, path_key(p, key), "an object", args);
    return put_call(w, id, str_of(name), args);
}

static cairn_status local_shell_item(walk *w, json_val item, body_path p)
{
    return act_item(w, item, p, "local_shell", "action");
}

static cairn_status shell_item(walk *w, json_val item, body_path p)
{
    return act_item(w, item, p, "shell", "action");
}

static cairn_status patch_item(walk *w, json_val item, body_path p)
{
    return act_item(w, item, p, "apply_patch", "operation");
}

/* The output has the call's id as its own. */
static cairn_status local_shell_output_item(walk *w, json_val item, body_path p)
{
    cairn_str id, text;

    TRY(want_name(w, item, p, "id", &id));
    TRY(want_str(w, item, p, "output", &text));
    turns_result(&w->t, id, name_of_call(w, id), text);
    return CAIRN_OK;
}

static cairn_status one_shell_output(walk *w, json_val v, body_path p, buf *out)
{
    const json_val outcome = json_get(v, "outcome"), code = json_get(outcome, "exit_code");
    cairn_str text;

    TRY(want_str(w, v, p, "stdout", &text));
    buf_str(out, text);
    TRY(want_str(w, v, p, "stderr", &text));
    buf_str(out, text);
    if (str_is(json_str(json_get(outcome, "type")), "timeout")) buf_puts(out, "\n(timed out)");
    if (json_int(code, 0)) buf_printf(out, "\n(exit code %lld)", (long long)json_int(code, 0));
    return CAIRN_OK;
}

static cairn_status shell_output_item(walk *w, json_val item, body_path p)
{
    const json_val list = json_get(item, "output");
    json_iter it = json_each(list);
    cairn_status st = CAIRN_OK;
    cairn_str id;
    json_val v;
    buf text;

    TRY(want_name(w, item, p, "call_id", &id));
    if (json_typeof(list) != JSON_ARR) return want(w, path_key(p, "output"), "an array", list);
    buf_init(&text, MEM_SERVE);
    for (size_t i = 0; st == CAIRN_OK && json_next(&it, &v); i++) {
        if (i > 0) buf_byte(&text, '\n');
        st = one_shell_output(w, v, path_element(path_key(p, "output"), i), &text);
    }
    if (st == CAIRN_OK) st = buf_status(&text) == CAIRN_OK ? CAIRN_OK : no_memory(w);
    if (st == CAIRN_OK) turns_result(&w->t, id, name_of_call(w, id), buf_view(&text));
    buf_deinit(&text);
    return st;
}

static cairn_status patch_output_item(walk *w, json_val item, body_path p)
{
    cairn_str id, status, text;

    TRY(want_name(w, item, p, "call_id", &id));
    TRY(want_name(w, item, p, "status", &status));
    TRY(may_str(w, item, p, "output", &text));
    turns_result(&w->t, id, name_of_call(w, id), text.len ? text : status);
    return CAIRN_OK;
}

typedef struct item_kind {
    const char *type;
    cairn_status (*add)(walk *w, json_val item, body_path p);
} item_kind;

static const item_kind kinds[] = {
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
};

/* The other kinds that are published. */
static const char *const not_here[] = {
    "file_search_call",
    "computer_call",
    "computer_call_output",
    "web_search_call",
    "tool_search_call",
    "tool_search_output",
    "additional_tools",
    "configuration_update",
    "compaction",
    "image_generation_call",
    "code_interpreter_call",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "compaction_trigger",
    "program",
    "program_output",
};

static cairn_status no_such_item(walk *w, body_path p, cairn_str type)
{
    for (size_t i = 0; i < sizeof not_here / sizeof not_here[0]; i++)
        if (str_is(type, not_here[i]))
            return chat_fault_set(w->f, CAIRN_E_UNSUPPORTED, p.s,
                                  "`%s` is an item of type `%s`, which is not supported: only "
                                  "messages, thoughts and what clients' own tools did are",
                                  p.s, not_here[i]);
    return chat_fault_set(w->f, CAIRN_E_ARG, path_key(p, "type").s,
                          "`%s` must be a type of item, found `%.*s`", path_key(p, "type").s,
                          STR_ARG(type));
}

/* The item's type; what says none is a message, or refers to an item. */
static cairn_status type_of(walk *w, json_val item, body_path p, cairn_str *out)
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

/* A message's parts as the API lists them: a text is a part, and one of an answer has annotations. */
static void keep_content(json_writer *k, json_val v, bool assistant)
{
    json_iter it = json_each(v);
    json_val part;

    json_w_arr(k);
    if (json_typeof(v) == JSON_STR) {
        json_w_obj(k);
        json_w_kstr(k, "type", assistant ? STR_LIT("output_text") : STR_LIT("input_text"));
        json_w_kstr(k, "text", json_str(v));
        if (assistant) json_w_key(k, "annotations");
        if (assistant) json_w_raw(k, STR_LIT("[]"));
        json_w_end_obj(k);
    }
    while (json_next(&it, &part)) json_w_val(k, part);
    json_w_end_arr(k);
}

static const char *prefix_of(cairn_str type)
{
    if (str_is(type, "message")) return "msg";
    if (str_is(type, "reasoning")) return "rs";
    if (str_is(type, "custom_tool_call")) return "ctc";
    return str_is(type, "function_call") ? "fc" : "item";
}

static void keep(walk *w, json_val item, cairn_str type)
{
    static const char *const own[] = {"id", "type", "status", "content"};
    const bool message = str_is(type, "message");
    const cairn_str id = json_str(json_get(item, "id"));
    const cairn_str status = json_str(json_get(item, "status"));
    json_iter it = json_each(item);
    char made[64];
    cairn_str key;
    json_val v;

    if (!w->keeping) return;
    (void)snprintf(made, sizeof made, "%s_%si%04zx", prefix_of(type), w->r->digits, w->n_kept++);
    json_w_obj(&w->kept);
    json_w_kstr(&w->kept, "id", id.len ? id : str_of(made));
    json_w_kstr(&w->kept, "type", type);
    while (json_next_member(&it, &key, &v)) {
        bool done = false;
        for (size_t i = 0; i < sizeof own / sizeof own[0] - !message; i++)
            done = done || str_is(key, own[i]);
        if (done) continue;
        json_w_key_str(&w->kept, key);
        json_w_val(&w->kept, v);
    }
    json_w_kstr(&w->kept, "status", status.len ? status : STR_LIT("completed"));
    if (message) {
        json_w_key(&w->kept, "content");
        keep_content(&w->kept, json_get(item, "content"),
                     str_is(json_str(json_get(item, "role")), "assistant"));
    }
    json_w_end_obj(&w->kept);
}

static cairn_status plain_item(walk *w, json_val item, body_path p, cairn_str type)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!str_is(type, kinds[i].type)) continue;
        TRY(kinds[i].add(w, item, p));
        keep(w, item, type);
        return CAIRN_OK;
    }
    return no_such_item(w, p, type);
}

/* The response that an item's id begins with: msg_DIGITS…; NULL: none is kept. */
static kept_response *response_of(const walk *w, cairn_str id)
{
    const size_t at = str_find(id, STR_LIT("_"), 0);
    char name[RESPONSE_ID];

    if (!w->r->store || at == SIZE_MAX || id.len - at - 1 < RESPONSE_DIGITS) return NULL;
    (void)snprintf(name, sizeof name, "resp_%.*s", RESPONSE_DIGITS, id.ptr + at + 1);
    return responses_store_get(w->r->store, str_of(name), &w->r->by, http_now_ms());
}

static json_val with_id(json_val list, cairn_str id)
{
    json_iter it = json_each(list);
    json_val v;

    while (json_next(&it, &v))
        if (str_eq(json_str(json_get(v, "id")), id)) return v;
    return (json_val){0};
}

/* Adds the item `id` of the JSON array `list`; *found says whether it is there. */
static cairn_status add_from(walk *w, const buf *list, cairn_str id, body_path p, bool *found)
{
    cairn_status st = CAIRN_OK;
    json_doc *d = NULL;
    json_val item;

    if (*found || list->len == 0) return CAIRN_OK;
    w->referred += list->len;
    if (w->referred > MOST_REFERRED)
        return chat_fault_set(w->f, CAIRN_E_LIMIT, "input",
                              "`input` refers to more than can be looked up; use "
                              "`previous_response_id`, or send the items");
    if (json_parse_any(buf_view(list), &d, NULL) != CAIRN_OK) return no_memory(w);
    item = with_id(json_root(d), id);
    *found = json_typeof(item) == JSON_OBJ;
    if (*found) st = plain_item(w, item, p, json_str(json_get(item, "type")));
    json_free(d);
    return st;
}

static cairn_status reference(walk *w, json_val item, body_path p)
{
    cairn_status st = CAIRN_OK;
    kept_response *k;
    bool found = false;
    cairn_str id;

    TRY(want_name(w, item, p, "id", &id));
    k = response_of(w, id);
    if (k) {
        st = add_from(w, &k->output, id, p, &found);
        if (st == CAIRN_OK) st = add_from(w, &k->items, id, p, &found);
        responses_store_let_go(w->r->store, k);
    }
    if (st != CAIRN_OK || found) return st;
    return chat_fault_set(w->f, CAIRN_E_NOTFOUND, path_key(p, "id").s,
                          "`%s`: no item `%.*s` is kept; those of responses with `store` false, "
                          "and old ones, are not",
                          path_key(p, "id").s, STR_ARG(id));
}

static cairn_status add_items(walk *w, json_val list, body_path p)
{
    json_iter it = json_each(list);
    json_val item;
    cairn_str type;

    for (size_t i = 0; json_next(&it, &item); i++) {
        TRY(type_of(w, item, path_element(p, i), &type));
        TRY(str_is(type, "item_reference") ? reference(w, item, path_element(p, i))
                                           : plain_item(w, item, path_element(p, i), type));
    }
    return CAIRN_OK;
}

static cairn_status add_kept(walk *w, const buf *list)
{
    const body_path p = {"previous_response_id"};
    cairn_status st;
    json_doc *d = NULL;

    if (list->len == 0) return CAIRN_OK;
    if (json_parse_any(buf_view(list), &d, NULL) != CAIRN_OK) return no_memory(w);
    st = add_items(w, json_root(d), p);
    json_free(d);
    return st;
}

/* All that went before, the oldest first. */
static cairn_status add_past(walk *w)
{
    const kept_response **chain;
    size_t n = 0, i = 0;

    for (const kept_response *k = w->r->past; k; k = k->past) n++;
    if (n == 0) return CAIRN_OK;
    chain = arena_calloc(&w->a->mem, n, sizeof *chain);
    if (!chain) return no_memory(w);
    for (const kept_response *k = w->r->past; k; k = k->past) chain[n - ++i] = k;
    for (i = 0; i < n; i++) {
        TRY(add_kept(w, &chain[i]->items));
        TRY(add_kept(w, &chain[i]->output));
    }
    return CAIRN_OK;
}

/* A text is what the user says. */
static cairn_status add_text(walk *w, json_val input)
{
    char id[64];

    turns_to(&w->t, turns_user);
    w->t.between = "\n\n";
    turns_text(&w->t, json_str(input));
    if (!w->keeping) return CAIRN_OK;
    json_w_obj(&w->kept);
    (void)snprintf(id, sizeof id, "msg_%si0000", w->r->digits);
    json_w_kstr(&w->kept, "id", str_of(id));
    json_w_kstr(&w->kept, "type", STR_LIT("message"));
    json_w_kstr(&w->kept, "role", STR_LIT("user"));
    json_w_kstr(&w->kept, "status", STR_LIT("completed"));
    json_w_key(&w->kept, "content");
    keep_content(&w->kept, input, false);
    json_w_end_obj(&w->kept);
    return CAIRN_OK;
}

static cairn_status add_all(walk *w)
{
    const json_val root = json_root(w->a->doc), input = json_get(root, "input");
    const body_path p = {"input"};

    system_text(w, json_str(json_get(root, "instructions")));
    w->keeping = false;
    TRY(add_past(w));
    w->keeping = w->r->keep;
    if (json_typeof(input) == JSON_STR && json_str(input).len) return add_text(w, input);
    if (json_typeof(input) != JSON_ARR || json_size(input) == 0)
        return want(w, p, "a string or an array of items, not empty", input);
    return add_items(w, input, p);
}

/* The system's message, then the others. */
static cairn_status put_messages(walk *w, const buf *others)
{
    cairn_status st;
    json_writer all;
    buf b;

    buf_init(&b, MEM_SERVE);
    all = json_write(&b);
    json_w_arr(&all);
    if (w->system.len) {
        json_w_obj(&all);
        json_w_kstr(&all, "role", STR_LIT("system"));
        json_w_kstr(&all, "content", buf_view(&w->system));
        json_w_end_obj(&all);
    }
    if (others->len) json_w_raw(&all, buf_view(others));
    json_w_end_arr(&all);
    b.no_memory |= w->system.no_memory;
    st = chat_messages_normalise(&b, "input", &w->a->messages, w->f);
    buf_deinit(&b);
    return st;
}

cairn_status responses_input_read(chat_ask *a, chat_fault *f)
{
    walk *w = arena_calloc(&a->mem, 1, sizeof *w);
    cairn_status st;
    buf others;

    if (!w) return chat_fault_set(f, CAIRN_E_NOMEM, "input", "no memory for `input`");
    w->a = a;
    w->r = a->more;
    w->f = f;
    buf_init(&others, MEM_SERVE);
    buf_init(&w->system, MEM_SERVE);
    turns_init(&w->t, &others);
    w->kept = json_write(&w->r->items);
    if (w->r->keep) json_w_arr(&w->kept);
    st = add_all(w);
    if (st == CAIRN_OK) turns_flush(&w->t);
    if (st == CAIRN_OK && w->r->keep) json_w_end_arr(&w->kept);
    if (st == CAIRN_OK && (turns_status(&w->t) != CAIRN_OK || buf_status(&w->r->items) != CAIRN_OK))
        st = no_memory(w);
    if (st == CAIRN_OK) st = put_messages(w, &others);
    turns_deinit(&w->t);
    buf_deinit(&w->system);
    buf_deinit(&others);
    return st;
}
