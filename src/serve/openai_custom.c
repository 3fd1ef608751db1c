/* What a custom tool's call says is the member `input` of the function's arguments. */
#include "serve/openai_custom.h"

#include <stdio.h>

#include "base/diag.h"
#include "base/json.h"
#include "base/str.h"
#include "serve/body_fields.h"
#include "serve/openai_messages.h"
#include "serve/openai_tools.h"

cairn_status openai_grammar_told(json_val grammar, body_path at, buf *out, chat_fault *f)
{
    const json_val syntax = json_get(grammar, "syntax"), rules = json_get(grammar, "definition");
    const bool lark = str_is(json_str(syntax), "lark");

    if (!lark && !str_is(json_str(syntax), "regex"))
        return chat_want(f, path_key(at, "syntax").s, "lark or regex", syntax);
    if (json_typeof(rules) != JSON_STR)
        return chat_want(f, path_key(at, "definition").s, "a string", rules);
    if (!out) return CAIRN_OK;
    buf_printf(out, "`input` must match this %s:\n", lark ? "Lark grammar" : "regular expression");
    buf_str(out, json_str(rules));
    return CAIRN_OK;
}

static cairn_status check_format(json_val format, body_path at, chat_fault *f)
{
    const json_val type = json_get(format, "type"), grammar = json_get(format, "grammar");

    if (json_typeof(format) <= JSON_NULL || str_is(json_str(type), "text")) return CAIRN_OK;
    if (!str_is(json_str(type), "grammar"))
        return chat_want(f, path_key(at, "type").s, "text or grammar", type);
    if (json_typeof(grammar) != JSON_OBJ)
        return chat_want(f, path_key(at, "grammar").s, "an object", grammar);
    return openai_grammar_told(grammar, path_key(at, "grammar"), NULL, f);
}

cairn_status openai_custom_check(json_val tool, body_path p, map *seen, chat_fault *f)
{
    static const body_field fields[] = {
        BODY_FIELD(NULL, "description", FIELD_TEXT),
        BODY_FIELD(NULL, "format", FIELD_OBJECT),
    };
    const json_val custom = json_get(tool, "custom"), name = json_get(custom, "name");
    const body_path at = path_key(p, "custom");

    if (json_typeof(custom) != JSON_OBJ) return chat_want(f, at.s, "an object", custom);
    if (json_str(name).len == 0) return chat_want(f, path_key(at, "name").s, "a name", name);
    TRY(body_name_check(name, path_key(at, "name"), OPENAI_MOST_NAME, seen, f));
    TRY(BODY_FIELDS_CHECK(custom, at, fields, f));
    return check_format(json_get(custom, "format"), path_key(at, "format"), f);
}

void openai_custom_put(json_val tool, json_writer *w)
{
    const json_val custom = json_get(tool, "custom"), format = json_get(custom, "format");
    chat_fault never;
    buf b;

    buf_init(&b, MEM_SERVE);
    buf_str(&b, json_str(json_get(custom, "description")));
    if (str_is(json_str(json_get(format, "type")), "grammar")) {
        if (b.len) buf_puts(&b, "\n\n");
        (void)openai_grammar_told(json_get(format, "grammar"), (body_path){0}, &b, &never);
    }
    json_w_obj(w);
    json_w_kstr(w, "type", STR_LIT("function"));
    json_w_key(w, "function");
    json_w_obj(w);
    json_w_kstr(w, "name", json_str(json_get(custom, "name")));
    if (b.len) json_w_kstr(w, "description", buf_view(&b));
    json_w_key(w, "parameters");
    json_w_raw(w, STR_LIT(OPENAI_CUSTOM_PARAMETERS));
    json_w_end_obj(w);
    json_w_end_obj(w);
    w->out->no_memory |= buf_status(&b) != CAIRN_OK;
    buf_deinit(&b);
}

cairn_status openai_custom_called(json_val call, const char *where, chat_fault *f)
{
    const json_val v = json_get(call, "custom"), name = json_get(v, "name");
    const json_val input = json_get(v, "input");
    char param[96]; /* messages[i].tool_calls[j].custom.input */

    (void)snprintf(param, sizeof param, "%s.custom", where);
    if (json_typeof(v) != JSON_OBJ) return chat_want(f, param, "an object", v);
    (void)snprintf(param, sizeof param, "%s.custom.name", where);
    if (json_str(name).len == 0) return chat_want(f, param, "a name", name);
    (void)snprintf(param, sizeof param, "%s.custom.input", where);
    return json_typeof(input) == JSON_STR ? CAIRN_OK : chat_want(f, param, "a string", input);
}

static void put_called(json_val custom, json_writer *w)
{
    json_w_obj(w);
    json_w_kstr(w, "name", json_str(json_get(custom, "name")));
    json_w_key(w, "arguments");
    json_w_obj(w);
    json_w_kstr(w, "input", json_str(json_get(custom, "input")));
    json_w_end_obj(w);
    json_w_end_obj(w);
}

static void put_call(json_val call, json_writer *w)
{
    const bool custom = str_is(json_str(json_get(call, "type")), "custom");
    json_iter it = json_each(call);
    cairn_str k;
    json_val v;

    json_w_obj(w);
    while (json_next_member(&it, &k, &v)) {
        if (custom && (str_is(k, "type") || str_is(k, "function"))) continue;
        json_w_key_str(w, custom && str_is(k, "custom") ? STR_LIT("function") : k);
        if (custom && str_is(k, "custom"))
            put_called(v, w);
        else
            json_w_val(w, v);
    }
    if (custom) json_w_kstr(w, "type", STR_LIT("function"));
    json_w_end_obj(w);
}

static bool calls_custom(json_val calls)
{
    json_iter it = json_each(calls);
    json_val v;

    while (json_next(&it, &v))
        if (str_is(json_str(json_get(v, "type")), "custom")) return true;
    return false;
}

void openai_custom_message(json_val m, json_writer *w)
{
    const json_val calls = json_get(m, "tool_calls");
    json_iter it = json_each(m), each = json_each(calls);
    cairn_str k;
    json_val v;

    if (!calls_custom(calls)) {
        json_w_val(w, m);
        return;
    }
    json_w_obj(w);
    while (json_next_member(&it, &k, &v)) {
        json_w_key_str(w, k);
        if (!str_is(k, "tool_calls")) {
            json_w_val(w, v);
            continue;
        }
        json_w_arr(w);
        while (json_next(&each, &v)) put_call(v, w);
        json_w_end_arr(w);
    }
    json_w_end_obj(w);
}
