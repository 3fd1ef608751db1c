/* Turns of content blocks become messages: texts of a turn one string, thoughts `reasoning_content`, calls
   `tool_calls`, each result a message of role tool.  Turns of one role in a row are one, as Anthropic has
   it.  docs/api.md says what becomes of each block; one that a template cannot be given is refused with
   its path. */
#include "serve/anthropic_messages.h"

#include "base/diag.h"
#include "base/str.h"
#include "serve/body_fields.h"
#include "serve/openai_messages.h"
#include "serve/text_of.h"
#include "serve/turns.h"

typedef struct talk { /* messages being made */
    turns t;
    chat_fault *f;
    left_out *left;
    json_val called; /* blocks of the last assistant's message, for the names of results */
} talk;

static cairn_status want(talk *t, body_path p, const char *what, json_val v)
{
    return chat_want(t->f, p.s, what, v);
}

static cairn_status want_str(talk *t, json_val v, body_path p, const char *key, cairn_str *out)
{
    const json_val s = json_get(v, key);

    *out = json_str(s);
    return json_typeof(s) == JSON_STR ? CAIRN_OK : want(t, path_key(p, key), "a string", s);
}

static cairn_status want_name(talk *t, json_val v, body_path p, const char *key, cairn_str *out)
{
    TRY(want_str(t, v, p, key, out));
    return out->len ? CAIRN_OK : want(t, path_key(p, key), "a string, not empty", json_get(v, key));
}

static cairn_status no_such_block(talk *t, body_path p, cairn_str type)
{
    const bool seen = str_is(type, "image");

    return chat_fault_set(t->f, CAIRN_E_UNSUPPORTED, p.s,
                          "`%s` is a block of type `%.*s`, which is not supported here%s", p.s,
                          STR_ARG(type), seen ? ": the model reads text alone" : "");
}

/* Every prompt is cached, so it says nothing; but it has to be what the API has. */
cairn_status anthropic_cache_check(json_val of, body_path p, chat_fault *f)
{
    static const body_field fields[] = {
        BODY_FIELD(NULL, "cache_control", FIELD_OBJECT),
        BODY_WORD("cache_control", "type", "ephemeral ", "ephemeral"),
        BODY_WORD("cache_control", "ttl", "5m 1h ", "5m or 1h"),
    };
    const json_val v = json_get(of, "cache_control"), type = json_get(v, "type");

    TRY(BODY_FIELDS_CHECK(of, p, fields, f));
    if (json_typeof(v) <= JSON_NULL || json_typeof(type) == JSON_STR) return CAIRN_OK;
    return chat_want(f, path_key(path_key(p, "cache_control"), "type").s, "ephemeral", type);
}

/* The block's type; no string is a fault. */
static cairn_status type_of(talk *t, json_val block, body_path p, cairn_str *type)
{
    if (json_typeof(block) != JSON_OBJ) return want(t, p, "an object", block);
    TRY(anthropic_cache_check(block, p, t->f));
    return want_name(t, block, p, "type", type);
}

/* The member, a string if it is there, as a line. */
static cairn_status put_line(talk *t, json_val v, body_path p, const char *key, buf *out)
{
    cairn_str text = {0};

    if (json_typeof(json_get(v, key)) <= JSON_NULL) return CAIRN_OK;
    TRY(want_str(t, v, p, key, &text));
    buf_str(out, text);
    buf_byte(out, '\n');
    return CAIRN_OK;
}

/* Texts alone, of a document or a result of a search: each a string or an object of type text. */
static cairn_status put_texts(talk *t, json_val v, body_path p, buf *out)
{
    json_iter it = json_each(v);
    cairn_str type = {0}, text = {0};
    json_val block;

    if (json_typeof(v) == JSON_STR) buf_str(out, json_str(v));
    if (json_typeof(v) == JSON_STR) return CAIRN_OK;
    if (json_typeof(v) != JSON_ARR) return want(t, p, "a string or an array of blocks", v);
    for (size_t i = 0; json_next(&it, &block); i++) {
        const body_path at = path_number(p, i);
        TRY(type_of(t, block, at, &type));
        if (!str_is(type, "text")) return no_such_block(t, at, type);
        TRY(want_str(t, block, at, "text", &text));
        if (i > 0) buf_byte(out, '\n');
        buf_str(out, text);
    }
    return CAIRN_OK;
}

/* Title and context, then the text; other sources are no text, or not here. */
static cairn_status put_document(talk *t, json_val block, body_path p, buf *out)
{
    const json_val source = json_get(block, "source");
    const body_path at = path_key(p, "source");
    const cairn_str type = json_str(json_get(source, "type"));
    cairn_str data = {0};

    if (json_typeof(source) != JSON_OBJ) return want(t, at, "an object", source);
    TRY(put_line(t, block, p, "title", out));
    TRY(put_line(t, block, p, "context", out));
    if (str_is(type, "content"))
        return put_texts(t, json_get(source, "content"), path_key(at, "content"), out);
    if (str_is(type, "text")) {
        TRY(want_str(t, source, at, "data", &data));
        buf_str(out, data);
        return CAIRN_OK;
    }
    if (type.len == 0)
        return want(t, path_key(at, "type"), "a type of source", json_get(source, "type"));
    return chat_fault_set(t->f, CAIRN_E_UNSUPPORTED, at.s,
                          "`%s` is of type `%.*s`, which is not supported here: the model reads "
                          "text alone",
                          at.s, STR_ARG(type));
}

static cairn_status put_search_result(talk *t, json_val block, body_path p, buf *out)
{
    TRY(put_line(t, block, p, "title", out));
    TRY(put_line(t, block, p, "source", out));
    return put_texts(t, json_get(block, "content"), path_key(p, "content"), out);
}

static cairn_status put_text(talk *t, json_val block, body_path p, buf *out)
{
    cairn_str text = {0};

    TRY(want_str(t, block, p, "text", &text));
    buf_str(out, text);
    return CAIRN_OK;
}

static cairn_status put_reference(talk *t, json_val block, body_path p, buf *out)
{
    cairn_str name = {0};

    TRY(want_name(t, block, p, "tool_name", &name));
    buf_str(out, name);
    return CAIRN_OK;
}

/* Blocks that are a text, wherever they stand. */
static const struct {
    const char *type;
    cairn_status (*put)(talk *t, json_val block, body_path p, buf *out);
} texts[] = {
    {"text", put_text},
    {"document", put_document},
    {"search_result", put_search_result},
    {"tool_reference", put_reference},
};

static cairn_status put_block(talk *t, json_val block, body_path p, buf *out)
{
    cairn_str type = {0};

    TRY(type_of(t, block, p, &type));
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (str_is(type, texts[i].type)) return texts[i].put(t, block, p, out);
    return no_such_block(t, p, type);
}

/* A string, or an array of blocks that are texts, joined by newlines into out. */
static cairn_status plain_text(talk *t, json_val v, body_path p, buf *out)
{
    json_iter it = json_each(v);
    json_val block;

    if (json_typeof(v) == JSON_STR) buf_str(out, json_str(v));
    if (json_typeof(v) == JSON_STR) return CAIRN_OK;
    if (json_typeof(v) != JSON_ARR) return want(t, p, "a string or an array of blocks", v);
    for (size_t i = 0; json_next(&it, &block); i++) {
        if (i > 0) buf_byte(out, '\n');
        TRY(put_block(t, block, path_number(p, i), out));
    }
    return CAIRN_OK;
}

static cairn_status text_block(talk *t, json_val block, body_path p)
{
    cairn_status st;
    buf text;

    buf_init(&text, MEM_SERVE);
    st = put_block(t, block, p, &text);
    if (buf_status(&text) != CAIRN_OK) t->t.text.no_memory = true;
    if (st == CAIRN_OK) turns_text(&t->t, text_of(&text));
    buf_deinit(&text);
    return st;
}

/* The signature is empty where a thought was ours, and says nothing where it was another's. */
static cairn_status thinking_block(talk *t, json_val block, body_path p)
{
    cairn_str text = {0};

    TRY(want_str(t, block, p, "thinking", &text));
    turns_thought(&t->t, text);
    return CAIRN_OK;
}

/* Nobody but its maker can read it. */
static cairn_status redacted_block(talk *t, json_val block, body_path p)
{
    cairn_str data = {0};

    return want_str(t, block, p, "data", &data);
}

static cairn_status use_block(talk *t, json_val block, body_path p)
{
    const json_val input = json_get(block, "input");
    cairn_str id = {0}, name = {0};
    json_writer w;

    TRY(want_name(t, block, p, "id", &id));
    TRY(want_name(t, block, p, "name", &name));
    if (json_typeof(input) != JSON_OBJ) return want(t, path_key(p, "input"), "an object", input);
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

    TRY(want_name(t, block, p, "tool_use_id", &id));
    if (json_typeof(failed) > JSON_NULL && json_typeof(failed) != JSON_BOOL)
        return want(t, path_key(p, "is_error"), "true or false", failed);
    buf_init(&text, MEM_SERVE);
    if (json_typeof(content) > JSON_NULL)
        st = plain_text(t, content, path_key(p, "content"), &text);
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
            TRY(put_line(t, one, at, "text", out));
            continue;
        }
        TRY(put_line(t, one, at, "title", out));
        TRY(put_line(t, one, at, "url", out));
    }
    if (json_typeof(v) == JSON_ARR) return CAIRN_OK;
    if (json_typeof(v) == JSON_STR) buf_str(out, json_str(v));
    if (json_typeof(v) == JSON_STR) return CAIRN_OK;
    if (json_typeof(v) != JSON_OBJ) return want(t, p, "a string, an object or an array", v);
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

    TRY(want_name(t, block, p, "tool_use_id", &id));
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
    TRY(want_str(t, block, p, "content", &text));
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

    TRY(type_of(t, block, p, &type));
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
    return no_such_block(t, p, type);
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
        return want(t, p, "a string or an array of blocks, not empty", v);
    for (size_t i = 0; json_next(&it, &block); i++)
        TRY(add_block(t, role, block, path_number(p, i)));
    return CAIRN_OK;
}

static cairn_status add_message(talk *t, json_val m, body_path p)
{
    static const char *const roles[] = {turns_user, turns_assistant, turns_system};
    const json_val asked = json_get(m, "role");
    const char *role = NULL;

    if (json_typeof(m) != JSON_OBJ) return want(t, p, "an object", m);
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        if (str_is(json_str(asked), roles[i])) role = roles[i];
    if (!role) return want(t, path_key(p, "role"), "user, assistant or system", asked);
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
        TRY(put_texts(t, sys, path_key(top, turns_system), &t->t.text));
        t->t.has_text = t->t.text.len > 0;
        if (!t->t.has_text) t->t.role = NULL;
    }
    if (json_typeof(list) != JSON_ARR || json_size(list) == 0)
        return want(t, messages, "an array, not empty", list);
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
