/* Turns of content blocks become messages: texts of a turn one string, thoughts `reasoning_content`, calls
   `tool_calls`, each result a message of role tool.  Turns of one role in a row are one, as Anthropic has
   it.  docs/api.md says what becomes of each block; one that a template cannot be given is refused with
   its path. */
#include "serve/anthropic_messages.h"

#include <stdio.h>

#include "base/diag.h"
#include "base/str.h"
#include "serve/openai_messages.h"

typedef struct path { /* messages.0.content.1 */
    char s[64];
} path;

static path at_key(path p, const char *key)
{
    const size_t n = strlen(p.s);

    (void)snprintf(p.s + n, sizeof p.s - n, "%s%s", n ? "." : "", key);
    return p;
}

static path at_index(path p, size_t i)
{
    char number[24];

    (void)snprintf(number, sizeof number, "%zu", i);
    return at_key(p, number);
}

typedef struct talk { /* messages being made */
    json_writer w;
    chat_fault *f;
    const char *role; /* of the turn under way; NULL: there is none */
    bool has_text;
    const char *between; /* this turn's text and what comes next */
    buf text, thought;
    buf calls;       /* JSON: the elements of tool_calls */
    json_val called; /* blocks of the last assistant's message, for the names of results */
} talk;

static void flush(talk *t)
{
    if (!t->role) return;
    json_w_obj(&t->w);
    json_w_kstr(&t->w, "role", str_of(t->role));
    json_w_key(&t->w, "content");
    if (t->has_text || !t->calls.len)
        json_w_str(&t->w, t->text.len ? buf_view(&t->text) : STR_LIT(""));
    else
        json_w_null(&t->w);
    if (t->thought.len) json_w_kstr(&t->w, "reasoning_content", buf_view(&t->thought));
    if (t->calls.len) {
        json_w_key(&t->w, "tool_calls");
        json_w_arr(&t->w);
        json_w_raw(&t->w, buf_view(&t->calls));
        json_w_end_arr(&t->w);
    }
    json_w_end_obj(&t->w);
    buf_cut(&t->text, 0);
    buf_cut(&t->thought, 0);
    buf_cut(&t->calls, 0);
    t->has_text = false;
    t->role = NULL;
}

static void turn_to(talk *t, const char *role)
{
    if (t->role == role) return;
    flush(t);
    t->role = role;
}

static void add_text(talk *t, cairn_str s)
{
    if (t->has_text) buf_puts(&t->text, t->between);
    buf_str(&t->text, s);
    t->has_text = true;
    t->between = "\n";
}

static cairn_status want(talk *t, path p, const char *what, json_val v)
{
    return chat_want(t->f, p.s, what, v);
}

static cairn_status want_str(talk *t, json_val v, path p, const char *key, cairn_str *out)
{
    const json_val s = json_get(v, key);

    *out = json_str(s);
    return json_typeof(s) == JSON_STR ? CAIRN_OK : want(t, at_key(p, key), "a string", s);
}

static cairn_status want_name(talk *t, json_val v, path p, const char *key, cairn_str *out)
{
    TRY(want_str(t, v, p, key, out));
    return out->len ? CAIRN_OK : want(t, at_key(p, key), "a string, not empty", json_get(v, key));
}

static cairn_status no_such_block(talk *t, path p, cairn_str type)
{
    const bool seen = str_is(type, "image") || str_is(type, "document");

    return chat_fault_set(t->f, CAIRN_E_UNSUPPORTED, p.s,
                          "`%s` is a block of type `%.*s`, which is not supported here%s", p.s,
                          STR_ARG(type), seen ? ": the model reads text alone" : "");
}

/* The block's type; no string is a fault. */
static cairn_status type_of(talk *t, json_val block, path p, cairn_str *type)
{
    if (json_typeof(block) != JSON_OBJ) return want(t, p, "an object", block);
    return want_name(t, block, p, "type", type);
}

/* A string, or an array of text blocks, joined by newlines into out. */
static cairn_status plain_text(talk *t, json_val v, path p, buf *out)
{
    json_iter it = json_each(v);
    json_val block;
    cairn_str type, text;

    if (json_typeof(v) == JSON_STR) buf_str(out, json_str(v));
    if (json_typeof(v) == JSON_STR) return CAIRN_OK;
    if (json_typeof(v) != JSON_ARR) return want(t, p, "a string or an array of blocks", v);
    for (size_t i = 0; json_next(&it, &block); i++) {
        TRY(type_of(t, block, at_index(p, i), &type));
        if (!str_is(type, "text")) return no_such_block(t, at_index(p, i), type);
        TRY(want_str(t, block, at_index(p, i), "text", &text));
        if (i > 0) buf_byte(out, '\n');
        buf_str(out, text);
    }
    return CAIRN_OK;
}

static cairn_status text_block(talk *t, json_val block, path p)
{
    cairn_str text;

    TRY(want_str(t, block, p, "text", &text));
    add_text(t, text);
    return CAIRN_OK;
}

/* The signature is empty where a thought was ours, and says nothing where it was another's. */
static cairn_status thinking_block(talk *t, json_val block, path p)
{
    cairn_str text;

    TRY(want_str(t, block, p, "thinking", &text));
    if (t->thought.len && text.len) buf_byte(&t->thought, '\n');
    buf_str(&t->thought, text);
    return CAIRN_OK;
}

/* Nobody but its maker can read it. */
static cairn_status redacted_block(talk *t, json_val block, path p)
{
    cairn_str data;

    return want_str(t, block, p, "data", &data);
}

static cairn_status use_block(talk *t, json_val block, path p)
{
    const json_val input = json_get(block, "input");
    json_writer w = json_write(&t->calls);
    cairn_str id, name;

    TRY(want_name(t, block, p, "id", &id));
    TRY(want_name(t, block, p, "name", &name));
    if (json_typeof(input) != JSON_OBJ) return want(t, at_key(p, "input"), "an object", input);
    if (t->calls.len) buf_byte(&t->calls, ',');
    json_w_obj(&w);
    json_w_kstr(&w, "id", id);
    json_w_kstr(&w, "type", STR_LIT("function"));
    json_w_key(&w, "function");
    json_w_obj(&w);
    json_w_kstr(&w, "name", name);
    json_w_key(&w, "arguments");
    json_w_val(&w, input);
    json_w_end_obj(&w);
    json_w_end_obj(&w);
    return CAIRN_OK;
}

/* What the call `id` of the turn before was of; empty if it is not there. */
static cairn_str name_of_call(const talk *t, cairn_str id)
{
    json_iter it = json_each(t->called);
    json_val block;

    while (json_next(&it, &block))
        if (str_is(json_str(json_get(block, "type")), "tool_use") &&
            str_eq(json_str(json_get(block, "id")), id))
            return json_str(json_get(block, "name"));
    return (cairn_str){0};
}

/* A template has no place for the mark of an error but the text. */
static void put_result(talk *t, cairn_str id, cairn_str text, bool is_error)
{
    const cairn_str name = name_of_call(t, id);
    buf marked;

    buf_init(&marked, MEM_SERVE);
    if (is_error && !str_starts(text, STR_LIT("Error"))) buf_puts(&marked, "Error: ");
    buf_str(&marked, text);
    if (buf_status(&marked) != CAIRN_OK) t->text.no_memory = true;
    flush(t);
    json_w_obj(&t->w);
    json_w_kstr(&t->w, "role", STR_LIT("tool"));
    json_w_kstr(&t->w, "tool_call_id", id);
    if (name.len) json_w_kstr(&t->w, "name", name);
    json_w_kstr(&t->w, "content", marked.len ? buf_view(&marked) : STR_LIT(""));
    json_w_end_obj(&t->w);
    buf_deinit(&marked);
}

static cairn_status result_block(talk *t, json_val block, path p)
{
    const json_val content = json_get(block, "content"), failed = json_get(block, "is_error");
    cairn_status st = CAIRN_OK;
    cairn_str id;
    buf text;

    TRY(want_name(t, block, p, "tool_use_id", &id));
    if (json_typeof(failed) > JSON_NULL && json_typeof(failed) != JSON_BOOL)
        return want(t, at_key(p, "is_error"), "true or false", failed);
    buf_init(&text, MEM_SERVE);
    if (json_typeof(content) > JSON_NULL) st = plain_text(t, content, at_key(p, "content"), &text);
    if (buf_status(&text) != CAIRN_OK) t->text.no_memory = true;
    if (st == CAIRN_OK) put_result(t, id, buf_view(&text), json_bool(failed, false));
    buf_deinit(&text);
    return st;
}

typedef struct block_kind {
    const char *role, *type;
    bool apart; /* a message of its own */
    cairn_status (*add)(talk *t, json_val block, path p);
} block_kind;

static const char user[] = "user", assistant[] = "assistant", system_[] = "system";
static const block_kind kinds[] = {
    {user, "text", false, text_block},
    {user, "tool_result", true, result_block},
    {assistant, "text", false, text_block},
    {assistant, "thinking", false, thinking_block},
    {assistant, "redacted_thinking", false, redacted_block},
    {assistant, "tool_use", false, use_block},
    {system_, "text", false, text_block},
};

static cairn_status add_block(talk *t, const char *role, json_val block, path p)
{
    cairn_str type;

    TRY(type_of(t, block, p, &type));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (kinds[i].role != role || !str_is(type, kinds[i].type)) continue;
        if (!kinds[i].apart) turn_to(t, role);
        return kinds[i].add(t, block, p);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (str_is(type, kinds[i].type))
            return chat_fault_set(t->f, CAIRN_E_ARG, p.s,
                                  "`%s` is a block of type `%s`, which a message of role %s "
                                  "cannot hold",
                                  p.s, kinds[i].type, role);
    return no_such_block(t, p, type);
}

static cairn_status add_content(talk *t, const char *role, json_val v, path p)
{
    json_iter it = json_each(v);
    json_val block;

    t->between = "\n\n";
    if (json_typeof(v) == JSON_STR) {
        turn_to(t, role);
        add_text(t, json_str(v));
        return CAIRN_OK;
    }
    if (json_typeof(v) != JSON_ARR || json_size(v) == 0)
        return want(t, p, "a string or an array of blocks, not empty", v);
    for (size_t i = 0; json_next(&it, &block); i++) TRY(add_block(t, role, block, at_index(p, i)));
    return CAIRN_OK;
}

static cairn_status add_message(talk *t, json_val m, path p)
{
    static const char *const roles[] = {user, assistant, system_};
    const json_val asked = json_get(m, "role");
    const char *role = NULL;

    if (json_typeof(m) != JSON_OBJ) return want(t, p, "an object", m);
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        if (str_is(json_str(asked), roles[i])) role = roles[i];
    if (!role) return want(t, at_key(p, "role"), "user, assistant or system", asked);
    TRY(add_content(t, role, json_get(m, "content"), at_key(p, "content")));
    if (role == assistant && json_typeof(json_get(m, "content")) == JSON_ARR)
        t->called = json_get(m, "content");
    return CAIRN_OK;
}

static cairn_status add_all(talk *t, json_val root)
{
    const json_val sys = json_get(root, "system"), list = json_get(root, "messages");
    const path top = {""}, messages = at_key(top, "messages");
    json_iter it = json_each(list);
    json_val m = {0};

    if (json_typeof(sys) > JSON_NULL) {
        turn_to(t, system_);
        TRY(plain_text(t, sys, at_key(top, system_), &t->text));
        t->has_text = t->text.len > 0;
        if (!t->has_text) t->role = NULL;
    }
    if (json_typeof(list) != JSON_ARR || json_size(list) == 0)
        return want(t, messages, "an array, not empty", list);
    for (size_t i = 0; json_next(&it, &m); i++) TRY(add_message(t, m, at_index(messages, i)));
    if (t->role != assistant) return CAIRN_OK;
    const path last = at_index(messages, json_size(list) - 1);
    return chat_fault_set(t->f, CAIRN_E_UNSUPPORTED, last.s,
                          "`%s` is an assistant's turn, and one that has begun cannot be continued "
                          "(prefill); expected a user's",
                          last.s);
}

cairn_status anthropic_messages_read(json_val root, buf *out, chat_fault *f)
{
    talk t = {.w = json_write(out), .f = f};
    cairn_status st;

    buf_init(&t.text, MEM_SERVE);
    buf_init(&t.thought, MEM_SERVE);
    buf_init(&t.calls, MEM_SERVE);
    json_w_arr(&t.w);
    st = add_all(&t, root);
    if (st == CAIRN_OK) flush(&t);
    json_w_end_arr(&t.w);
    if (st == CAIRN_OK && (buf_status(&t.text) != CAIRN_OK || buf_status(&t.thought) != CAIRN_OK ||
                           buf_status(&t.calls) != CAIRN_OK || buf_status(out) != CAIRN_OK))
        st = chat_fault_set(f, CAIRN_E_NOMEM, "messages", "no memory for `messages`");
    buf_deinit(&t.text);
    buf_deinit(&t.thought);
    buf_deinit(&t.calls);
    return st;
}

static cairn_status put_tool(talk *t, json_val tool, path p)
{
    const json_val type = json_get(tool, "type"), schema = json_get(tool, "input_schema");
    const json_val says = json_get(tool, "description"), strict = json_get(tool, "strict");
    cairn_str name;

    if (json_typeof(tool) != JSON_OBJ) return want(t, p, "an object", tool);
    if (json_typeof(type) > JSON_NULL && json_typeof(type) != JSON_STR)
        return want(t, at_key(p, "type"), "custom", type);
    if (json_typeof(type) == JSON_STR && !str_is(json_str(type), "custom"))
        return chat_fault_set(t->f, CAIRN_E_UNSUPPORTED, at_key(p, "type").s,
                              "`%s` is `%.*s`: tools that Anthropic defines or runs are not there; "
                              "describe it as one of type custom",
                              at_key(p, "type").s, STR_ARG(json_str(type)));
    TRY(want_name(t, tool, p, "name", &name));
    if (json_typeof(says) > JSON_NULL && json_typeof(says) != JSON_STR)
        return want(t, at_key(p, "description"), "a string", says);
    if (json_typeof(schema) != JSON_OBJ)
        return want(t, at_key(p, "input_schema"), "an object", schema);
    json_w_obj(&t->w);
    json_w_kstr(&t->w, "type", STR_LIT("function"));
    json_w_key(&t->w, "function");
    json_w_obj(&t->w);
    json_w_kstr(&t->w, "name", name);
    if (json_typeof(says) == JSON_STR) json_w_kstr(&t->w, "description", json_str(says));
    json_w_key(&t->w, "parameters");
    json_w_val(&t->w, schema);
    if (json_typeof(strict) == JSON_BOOL) json_w_kbool(&t->w, "strict", json_bool(strict, false));
    json_w_end_obj(&t->w);
    json_w_end_obj(&t->w);
    return CAIRN_OK;
}

cairn_status anthropic_tools_read(json_val root, buf *out, chat_fault *f)
{
    const json_val tools = json_get(root, "tools");
    const path p = {"tools"};
    json_iter it = json_each(tools);
    cairn_status st = CAIRN_OK;
    json_val tool;
    talk t = {.f = f};
    buf list;

    if (json_typeof(tools) <= JSON_NULL) return CAIRN_OK;
    if (json_typeof(tools) != JSON_ARR) return want(&t, p, "an array", tools);
    buf_init(&list, MEM_SERVE);
    t.w = json_write(&list);
    json_w_arr(&t.w);
    for (size_t i = 0; st == CAIRN_OK && json_next(&it, &tool); i++)
        st = put_tool(&t, tool, at_index(p, i));
    json_w_end_arr(&t.w);
    if (st == CAIRN_OK && json_size(tools)) st = chat_tools_normalise(&list, out, f);
    buf_deinit(&list);
    return st;
}
