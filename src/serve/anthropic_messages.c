/* Turns of content blocks become messages: texts of a turn one string, thoughts `reasoning_content`, calls
   `tool_calls`, each result a message of role tool.  Turns of one role in a row are one, as Anthropic has
   it.  docs/api.md says what becomes of each block; one that a template cannot be given is refused with
   its path. */
#include "serve/anthropic_messages.h"

#include "base/diag.h"
#include "base/str.h"
#include "serve/anthropic_texts.h"
#include "serve/openai_messages.h"
#include "serve/text_of.h"
#include "serve/turns.h"

typedef struct talk { /* messages being made */
    turns t;
    chat_fault *f;
    left_out *left;
    json_val called; /* blocks of the last assistant's message, for the names of results */
} talk;

static cairn_status text_block(talk *t, json_val block, body_path p)
{
    cairn_status st;
    buf text;

    buf_init(&text, MEM_SERVE);
    st = anthropic_put_block(t->f, block, p, &text);
    if (buf_status(&text) != CAIRN_OK) t->t.text.no_memory = true;
    if (st == CAIRN_OK) turns_text(&t->t, text_of(&text));
    buf_deinit(&text);
    return st;
}

/* The signature is empty where a thought was ours, and says nothing where it was another's. */
static cairn_status thinking_block(talk *t, json_val block, body_path p)
{
    cairn_str text = {0};

    TRY(anthropic_want_str(t->f, block, p, "thinking", &text));
    turns_thought(&t->t, text);
    return CAIRN_OK;
}

/* Nobody but its maker can read it. */
static cairn_status redacted_block(talk *t, json_val block, body_path p)
{
    cairn_str data = {0};

    return anthropic_want_str(t->f, block, p, "data", &data);
}

static cairn_status use_block(talk *t, json_val block, body_path p)
{
    const json_val input = json_get(block, "input");
    cairn_str id = {0}, name = {0};
    json_writer w;

    TRY(anthropic_want_name(t->f, block, p, "id", &id));
    TRY(anthropic_want_name(t->f, block, p, "name", &name));
    if (json_typeof(input) != JSON_OBJ)
        return anthropic_want(t->f, path_key(p, "input"), "an object", input);
    w = turns_call(&t->t, id, name);
    json_w_val(&w, input);
    turns_called(&w);
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
    if (buf_status(&marked) != CAIRN_OK) t->t.text.no_memory = true;
    turns_result(&t->t, id, name, buf_view(&marked));
    buf_deinit(&marked);
}

static cairn_status result_block(talk *t, json_val block, body_path p)
{
    const json_val content = json_get(block, "content"), failed = json_get(block, "is_error");
    cairn_status st = CAIRN_OK;
    cairn_str id = {0};
    buf text;

    TRY(anthropic_want_name(t->f, block, p, "tool_use_id", &id));
    if (json_typeof(failed) > JSON_NULL && json_typeof(failed) != JSON_BOOL)
        return anthropic_want(t->f, path_key(p, "is_error"), "true or false", failed);
    buf_init(&text, MEM_SERVE);
    if (json_typeof(content) > JSON_NULL)
        st = anthropic_put_content(t->f, content, path_key(p, "content"), &text);
    if (buf_status(&text) != CAIRN_OK) t->t.text.no_memory = true;
    if (st == CAIRN_OK) put_result(t, id, buf_view(&text), json_bool(failed, false));
    buf_deinit(&text);
    return st;
}

/* What a server's own tool came to: pages by title and address, an error by its code, all else as it is. */
static cairn_status put_found(talk *t, json_val v, body_path p, buf *out)
{
    json_iter it = json_each(v);
    json_val one;
    json_writer w;

    for (size_t i = 0; json_next(&it, &one); i++) {
        const body_path at = path_number(p, i);
        if (str_is(json_str(json_get(one, "type")), "text")) {
            TRY(anthropic_put_line(t->f, one, at, "text", out));
            continue;
        }
        TRY(anthropic_put_line(t->f, one, at, "title", out));
        TRY(anthropic_put_line(t->f, one, at, "url", out));
    }
    if (json_typeof(v) == JSON_ARR) return CAIRN_OK;
    if (json_typeof(v) == JSON_STR) buf_str(out, json_str(v));
    if (json_typeof(v) == JSON_STR) return CAIRN_OK;
    if (json_typeof(v) != JSON_OBJ)
        return anthropic_want(t->f, p, "a string, an object or an array", v);
    if (json_typeof(json_get(v, "error_code")) == JSON_STR) {
        buf_puts(out, "Error: ");
        buf_str(out, json_str(json_get(v, "error_code")));
        return CAIRN_OK;
    }
    w = json_write(out);
    json_w_val(&w, v);
    return CAIRN_OK;
}

static cairn_status found_block(talk *t, json_val block, body_path p)
{
    const cairn_str type = json_str(json_get(block, "type")), end = STR_LIT("_tool_result");
    cairn_status st;
    cairn_str id = {0};
    buf text;

    TRY(anthropic_want_name(t->f, block, p, "tool_use_id", &id));
    buf_init(&text, MEM_SERVE);
    st = put_found(t, json_get(block, "content"), path_key(p, "content"), &text);
    if (buf_status(&text) != CAIRN_OK) t->t.text.no_memory = true;
    if (st == CAIRN_OK)
        turns_result(&t->t, id, str_sub(type, 0, type.len > end.len ? type.len - end.len : 0),
                     text_of(&text));
    buf_deinit(&text);
    return st;
}

static cairn_status left_block(talk *t, json_val block, body_path p)
{
    (void)p;
    left_out_add(t->left, str_is(json_str(json_get(block, "type")), "container_upload")
                              ? "container_upload"
                              : "compaction");
    return CAIRN_OK;
}

/* A summary of what was before, unless its maker alone can read it. */
static cairn_status compaction_block(talk *t, json_val block, body_path p)
{
    cairn_str text = {0};

    if (json_typeof(json_get(block, "content")) <= JSON_NULL) return left_block(t, block, p);
    TRY(anthropic_want_str(t->f, block, p, "content", &text));
    turns_text(&t->t, text);
    return CAIRN_OK;
}

typedef struct block_kind {
    const char *role, *type;
    bool apart; /* a message of its own */
    cairn_status (*add)(talk *t, json_val block, body_path p);
} block_kind;

static const block_kind kinds[] = {
    {turns_user, "text", false, text_block},
    {turns_user, "document", false, text_block},
    {turns_user, "search_result", false, text_block},
    {turns_user, "container_upload", true, left_block},
    {turns_user, "tool_result", true, result_block},
    {turns_assistant, "text", false, text_block},
    {turns_assistant, "thinking", false, thinking_block},
    {turns_assistant, "redacted_thinking", false, redacted_block},
    {turns_assistant, "tool_use", false, use_block},
    {turns_assistant, "compaction", false, compaction_block},
    {turns_assistant, "server_tool_use", false, use_block},
    {turns_assistant, "mcp_tool_use", false, use_block},
    {turns_assistant, "web_search_tool_result", true, found_block},
    {turns_assistant, "web_fetch_tool_result", true, found_block},
    {turns_assistant, "code_execution_tool_result", true, found_block},
    {turns_assistant, "bash_code_execution_tool_result", true, found_block},
    {turns_assistant, "text_editor_code_execution_tool_result", true, found_block},
    {turns_assistant, "tool_search_tool_result", true, found_block},
    {turns_assistant, "mcp_tool_result", true, found_block},
    {turns_system, "text", false, text_block},
};

static cairn_status add_block(talk *t, const char *role, json_val block, body_path p)
{
    cairn_str type = {0};

    TRY(anthropic_block_type(t->f, block, p, &type));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (kinds[i].role != role || !str_is(type, kinds[i].type)) continue;
        if (!kinds[i].apart) turns_to(&t->t, role);
        return kinds[i].add(t, block, p);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (str_is(type, kinds[i].type))
            return chat_fault_set(t->f, CAIRN_E_ARG, p.s,
                                  "`%s` is a block of type `%s`, which a message of role %s "
                                  "cannot hold",
                                  p.s, kinds[i].type, role);
    return anthropic_no_such_block(t->f, p, type);
}

static cairn_status add_content(talk *t, const char *role, json_val v, body_path p)
{
    json_iter it = json_each(v);
    json_val block;

    t->t.between = "\n\n";
    if (json_typeof(v) == JSON_STR) {
        turns_to(&t->t, role);
        turns_text(&t->t, json_str(v));
        return CAIRN_OK;
    }
    if (json_typeof(v) != JSON_ARR || json_size(v) == 0)
        return anthropic_want(t->f, p, "a string or an array of blocks, not empty", v);
    for (size_t i = 0; json_next(&it, &block); i++)
        TRY(add_block(t, role, block, path_number(p, i)));
    return CAIRN_OK;
}

static cairn_status add_message(talk *t, json_val m, body_path p)
{
    static const char *const roles[] = {turns_user, turns_assistant, turns_system};
    const json_val asked = json_get(m, "role");
    const char *role = NULL;

    if (json_typeof(m) != JSON_OBJ) return anthropic_want(t->f, p, "an object", m);
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        if (str_is(json_str(asked), roles[i])) role = roles[i];
    if (!role) return anthropic_want(t->f, path_key(p, "role"), "user, assistant or system", asked);
    TRY(add_content(t, role, json_get(m, "content"), path_key(p, "content")));
    if (role == turns_assistant && json_typeof(json_get(m, "content")) == JSON_ARR)
        t->called = json_get(m, "content");
    return CAIRN_OK;
}

static cairn_status add_all(talk *t, json_val root)
{
    const json_val sys = json_get(root, "system"), list = json_get(root, "messages");
    const body_path top = {""}, messages = path_key(top, "messages");
    json_iter it = json_each(list);
    json_val m = {0};

    if (json_typeof(sys) > JSON_NULL) {
        turns_to(&t->t, turns_system);
        TRY(anthropic_put_texts(t->f, sys, path_key(top, turns_system), &t->t.text));
        t->t.has_text = t->t.text.len > 0;
        if (!t->t.has_text) t->t.role = NULL;
    }
    if (json_typeof(list) != JSON_ARR || json_size(list) == 0)
        return anthropic_want(t->f, messages, "an array, not empty", list);
    for (size_t i = 0; json_next(&it, &m); i++) TRY(add_message(t, m, path_number(messages, i)));
    if (t->t.role != turns_assistant) return CAIRN_OK;
    const body_path last = path_number(messages, json_size(list) - 1);
    return chat_fault_set(t->f, CAIRN_E_UNSUPPORTED, last.s,
                          "`%s` is an assistant's turn, and one that has begun cannot be continued "
                          "(prefill); expected a user's",
                          last.s);
}

cairn_status anthropic_messages_read(json_val root, buf *out, left_out *left, chat_fault *f)
{
    talk t = {.f = f, .left = left};
    cairn_status st;

    turns_init(&t.t, out);
    json_w_arr(&t.t.w);
    st = add_all(&t, root);
    if (st == CAIRN_OK) turns_flush(&t.t);
    json_w_end_arr(&t.t.w);
    if (st == CAIRN_OK && turns_status(&t.t) != CAIRN_OK)
        st = chat_fault_set(f, CAIRN_E_NOMEM, "messages", "no memory for `messages`");
    turns_deinit(&t.t);
    return st;
}
