/* Messages and tools as clients send them → as the authors of templates expected them.  Owns nothing;
   a depth of JSON is the parser's limit. */
#include "text/chat_normal.h"

#include "base/diag.h"
#include "base/str.h"

static bool is_text(json_val part, json_val *text)
{
    const cairn_str type = json_str(json_get(part, "type"));
    const bool refusal = str_is(type, "refusal");
    if (!refusal && !str_is(type, "text")) return false;
    *text = json_get(part, refusal ? "refusal" : "text");
    return json_typeof(*text) == JSON_STR;
}

static void put_content(json_writer *w, json_val v)
{
    json_iter it = json_each(v);
    json_val part, text;
    bool all = json_typeof(v) == JSON_ARR && json_size(v) > 0;
    buf b;

    while (all && json_next(&it, &part)) all = is_text(part, &text);
    if (!all) {
        json_w_val(w, v);
        return;
    }
    buf_init(&b, MEM_TEXT);
    it = json_each(v);
    while (json_next(&it, &part) && is_text(part, &text)) buf_str(&b, json_str(text));
    json_w_str(w, b.len ? buf_view(&b) : STR_LIT(""));
    w->out->no_memory |= b.no_memory;
    buf_deinit(&b);
}

/* A call without arguments has an empty object of them, whichever way that is written. */
static void put_arguments(json_writer *w, json_val v)
{
    json_doc *doc = NULL;
    cairn_status st = CAIRN_E_ARG;
    const json_type t = json_typeof(v);

    if (t <= JSON_NULL || (t == JSON_STR && json_str(v).len == 0)) {
        json_w_obj(w);
        json_w_end_obj(w);
        return;
    }
    if (t == JSON_STR) st = json_parse_any(json_str(v), &doc, NULL);
    if (st == CAIRN_E_NOMEM) w->out->no_memory = true; /* not to be taken for broken arguments */
    const bool object = st == CAIRN_OK && json_typeof(json_root(doc)) == JSON_OBJ;
    json_w_val(w, object ? json_root(doc) : v);
    if (st == CAIRN_OK) json_free(doc);
}

typedef void put_fn(json_writer *w, json_val v);

/* An object, but the member `key` through `put`, if `always` where there is none too; anything else as it
   is. */
static void put_with(json_writer *w, json_val obj, const char *key, put_fn *put, bool always)
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
        (str_is(k, key) ? put : json_w_val)(w, v);
    }
    if (always && json_typeof(json_get(obj, key)) == JSON_NONE) {
        json_w_key(w, key);
        put(w, (json_val){0});
    }
    json_w_end_obj(w);
}

static void put_list(json_writer *w, json_val list, put_fn *put)
{
    json_iter it = json_each(list);
    json_val v;

    if (json_typeof(list) != JSON_ARR) {
        json_w_val(w, list);
        return;
    }
    json_w_arr(w);
    while (json_next(&it, &v)) put(w, v);
    json_w_end_arr(w);
}

static void put_call_function(json_writer *w, json_val v)
{
    put_with(w, v, "arguments", put_arguments, true);
}

static void put_call(json_writer *w, json_val v)
{
    put_with(w, v, "function", put_call_function, false);
}

static void put_message(json_writer *w, json_val m)
{
    json_iter it = json_each(m);
    cairn_str k;
    json_val v;

    json_w_obj(w);
    while (json_next_member(&it, &k, &v)) {
        json_w_key_str(w, k);
        if (str_is(k, "role") && str_is(json_str(v), "developer"))
            json_w_str(w, STR_LIT("system"));
        else if (str_is(k, "content"))
            put_content(w, v);
        else if (str_is(k, "tool_calls"))
            put_list(w, v, put_call);
        else if (str_is(k, "function_call"))
            put_call_function(w, v);
        else
            json_w_val(w, v);
    }
    json_w_end_obj(w);
}

cairn_status chat_normal_messages(json_val messages, buf *out, cairn_diag *dg)
{
    json_writer w = json_write(out);
    json_iter it = json_each(messages);
    json_val m;

    if (json_typeof(messages) != JSON_ARR)
        return diag_set(dg, CAIRN_E_ARG, "messages must be an array, found %s",
                        json_type_name(json_typeof(messages)));
    json_w_arr(&w);
    for (size_t i = 0; json_next(&it, &m); i++) {
        if (json_typeof(m) != JSON_OBJ)
            return diag_set(dg, CAIRN_E_ARG, "messages[%zu] must be an object, found %s", i,
                            json_type_name(json_typeof(m)));
        put_message(&w, m);
    }
    json_w_end_arr(&w);
    return buf_status(out) == CAIRN_OK ? CAIRN_OK : diag_set(dg, buf_status(out), "messages");
}

static const char *type_of_value(json_val v)
{
    switch (json_typeof(v)) {
    case JSON_NULL:
        return "null";
    case JSON_BOOL:
        return "boolean";
    case JSON_INT:
    case JSON_UINT:
        return "integer";
    case JSON_FLOAT:
        return json_digits(v).len ? "integer" : "number";
    case JSON_ARR:
        return "array";
    case JSON_OBJ:
        return "object";
    case JSON_NONE:
    case JSON_STR:
        return "string";
    }
    return "string";
}

/* What a schema without a type describes: the first alternative that says so. */
static const char *type_of_schema(json_val s, const char *otherwise)
{
    static const char *const alternatives[] = {"anyOf", "oneOf", "allOf"};
    if (json_typeof(json_get(s, "const")) != JSON_NONE) return type_of_value(json_get(s, "const"));
    if (json_size(json_get(s, "enum"))) return type_of_value(json_at(json_get(s, "enum"), 0));
    if (json_typeof(json_get(s, "properties")) == JSON_OBJ) return "object";
    if (json_typeof(json_get(s, "items")) != JSON_NONE) return "array";
    for (size_t i = 0; i < sizeof alternatives / sizeof alternatives[0]; i++) {
        json_iter it = json_each(json_get(s, alternatives[i]));
        json_val one;
        while (json_next(&it, &one)) {
            const json_val t = json_get(one, "type");
            const char *found = json_typeof(one) != JSON_OBJ ? "null" : NULL;
            static const char *const types[] = {"string",  "number", "integer",
                                                "boolean", "array",  "object"};
            for (size_t k = 0; !found && k < sizeof types / sizeof types[0]; k++)
                if (str_is(json_str(t), types[k])) found = types[k];
            if (!found && json_typeof(t) == JSON_NONE) found = type_of_schema(one, otherwise);
            if (found && strcmp(found, "null") != 0) return found;
        }
    }
    return otherwise;
}

static void put_schema(json_writer *w, json_val s);

static void put_properties(json_writer *w, json_val v)
{
    json_iter it = json_each(v);
    cairn_str k;
    json_val one;

    if (json_typeof(v) != JSON_OBJ) {
        json_w_val(w, v);
        return;
    }
    json_w_obj(w);
    while (json_next_member(&it, &k, &one)) {
        json_w_key_str(w, k);
        put_schema(w, one);
    }
    json_w_end_obj(w);
}

static void put_schemas(json_writer *w, json_val v)
{
    put_list(w, v, put_schema);
}

static void put_typed(json_writer *w, json_val s, const char *otherwise)
{
    static const struct {
        const char *key;
        put_fn *put;
    } inner[] = {{"properties", put_properties},
                 {"items", put_schema},
                 {"additionalProperties", put_schema},
                 {"anyOf", put_schemas},
                 {"oneOf", put_schemas},
                 {"allOf", put_schemas},
                 {"$defs", put_properties},
                 {"definitions", put_properties}};
    json_iter it = json_each(s);
    cairn_str k;
    json_val v;

    if (json_typeof(s) != JSON_OBJ) { /* true, false, a tuple's list */
        json_w_val(w, s);
        return;
    }
    json_w_obj(w);
    while (json_next_member(&it, &k, &v)) {
        put_fn *put = json_w_val;
        for (size_t i = 0; i < sizeof inner / sizeof inner[0]; i++)
            if (str_is(k, inner[i].key)) put = inner[i].put;
        json_w_key_str(w, k);
        put(w, v);
    }
    const bool refers = json_typeof(json_get(s, "$ref")) != JSON_NONE;
    if (json_typeof(json_get(s, "type")) <= JSON_NULL && !refers)
        json_w_kstr(w, "type", str_of(type_of_schema(s, otherwise)));
    json_w_end_obj(w);
}

static void put_schema(json_writer *w, json_val s)
{
    put_typed(w, s, "string");
}

/* The whole of a function's parameters. */
static void put_parameters(json_writer *w, json_val s)
{
    put_typed(w, s, "object");
}

static void put_tool_function(json_writer *w, json_val v)
{
    put_with(w, v, "parameters", put_parameters, false);
}

static void put_tool(json_writer *w, json_val v)
{
    put_with(w, v, "function", put_tool_function, false);
}

cairn_status chat_normal_tools(json_val tools, buf *out, cairn_diag *dg)
{
    json_writer w = json_write(out);

    if (json_typeof(tools) != JSON_ARR)
        return diag_set(dg, CAIRN_E_ARG, "tools must be an array, found %s",
                        json_type_name(json_typeof(tools)));
    put_list(&w, tools, put_tool);
    return buf_status(out) == CAIRN_OK ? CAIRN_OK : diag_set(dg, buf_status(out), "tools");
}
