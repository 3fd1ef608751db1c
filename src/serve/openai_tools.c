/* A chat's tools go to the template as they came, without those that are not here. */
#include "serve/openai_tools.h"

#include "base/diag.h"
#include "base/str.h"
#include "serve/body_fields.h"
#include "serve/left_out.h"
#include "serve/openai_messages.h"

enum { MOST_NAME = 64 }; /* bytes: OpenAI's */

static const char *const own[] = {
    "web_search",
    "web_search_2025_08_26",
    "web_search_preview",
    "web_search_preview_2025_03_11",
    "file_search",
    "computer",
    "computer_use",
    "computer_use_preview",
    "code_interpreter",
    "programmatic_tool_calling",
    "image_generation",
    "mcp",
    "tool_search",
    "local_shell",
    "shell",
    "apply_patch",
};

const char *openai_own_tool(cairn_str type)
{
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (str_is(type, own[i])) return own[i];
    return NULL;
}

static const body_field of_function[] = {
    BODY_FIELD(NULL, "description", FIELD_TEXT),
    BODY_FIELD(NULL, "parameters", FIELD_OBJECT),
    BODY_FIELD(NULL, "strict", FIELD_TRUTH),
};

/* seen: names before it; NULL: any name will do. */
static cairn_status check_tool(json_val tool, body_path p, map *seen, chat_fault *f)
{
    const json_val type = json_get(tool, "type"), function = json_get(tool, "function");
    const json_val name = json_get(function, "name");
    const body_path at = path_key(p, "function");

    if (!str_is(json_str(type), "function"))
        return chat_want(f, path_key(p, "type").s, "function", type);
    if (json_typeof(function) != JSON_OBJ) return chat_want(f, at.s, "an object", function);
    if (json_str(name).len == 0) return chat_want(f, path_key(at, "name").s, "a name", name);
    if (seen) TRY(body_name_check(name, path_key(at, "name"), MOST_NAME, seen, f));
    return BODY_FIELDS_CHECK(function, at, of_function, f);
}

/* allowed: an array, or JSON_NONE: all are. */
static bool is_allowed(json_val allowed, json_val tool)
{
    const cairn_str name = json_str(json_path(tool, "function.name"));
    json_iter it = json_each(allowed);
    json_val v;

    if (json_typeof(allowed) != JSON_ARR) return true;
    while (json_next(&it, &v))
        if (str_eq(json_str(json_path(v, "function.name")), name)) return true;
    return false;
}

static cairn_status put_tools(json_val tools, json_val allowed, map *seen, left_out *left,
                              json_writer *w, chat_fault *f)
{
    const body_path p = {"tools"};
    json_iter it = json_each(tools);
    json_val tool;

    for (size_t i = 0; json_next(&it, &tool); i++) {
        const body_path at = path_element(p, i);
        const char *not_here = openai_own_tool(json_str(json_get(tool, "type")));
        if (json_typeof(tool) != JSON_OBJ) return chat_want(f, at.s, "an object", tool);
        if (seen && not_here) {
            left_out_add(left, not_here);
            continue;
        }
        TRY(check_tool(tool, at, seen, f));
        if (is_allowed(allowed, tool)) json_w_val(w, tool);
    }
    return CAIRN_OK;
}

cairn_status chat_tools_read(json_val root, bool by_openai, chat_ask *a, chat_fault *f)
{
    const json_val tools = json_get(root, "tools"), choice = json_get(root, "tool_choice");
    const json_val allowed = by_openai ? json_path(choice, "allowed_tools.tools") : (json_val){0};
    left_out left = {0};
    cairn_status st;
    json_writer w;
    map seen;
    buf list;

    if (json_typeof(tools) <= JSON_NULL) return CAIRN_OK;
    if (json_typeof(tools) != JSON_ARR) return chat_want(f, "tools", "an array", tools);
    map_init(&seen, MEM_SERVE);
    buf_init(&list, MEM_SERVE);
    w = json_write(&list);
    json_w_arr(&w);
    st = put_tools(tools, allowed, by_openai ? &seen : NULL, &left, &w, f);
    json_w_end_arr(&w);
    if (st == CAIRN_OK && !str_is(json_str(choice), "none"))
        st = chat_tools_normalise(&list, &a->tools, f);
    if (st == CAIRN_OK) st = left_out_warn(&left, "tools", a, f);
    buf_deinit(&list);
    map_deinit(&seen);
    return st;
}

bool chat_choice_fine(json_val choice)
{
    if (str_is(json_str(choice), "auto") || str_is(json_str(choice), "none")) return true;
    return str_is(json_str(json_get(choice, "type")), "allowed_tools") &&
           str_is(json_str(json_path(choice, "allowed_tools.mode")), "auto");
}

cairn_status chat_choice_check(json_val root, chat_fault *f)
{
    static const body_field fields[] = {
        BODY_WORD("tool_choice.allowed_tools", "mode", "auto required ", "auto or required"),
        BODY_FIELD("tool_choice.allowed_tools", "tools", FIELD_LIST),
    };
    const json_val v = json_get(root, "tool_choice"), allowed = json_get(v, "allowed_tools");
    const json_val mode = json_get(allowed, "mode"), list = json_get(allowed, "tools");

    if (json_typeof(v) <= JSON_NULL) return CAIRN_OK;
    if (json_typeof(v) == JSON_STR && body_word("none auto required ", json_str(v)))
        return CAIRN_OK;
    if (json_typeof(v) != JSON_OBJ)
        return chat_want(f, "tool_choice", "none, auto, required or an object", v);
    if (!str_is(json_str(json_get(v, "type")), "allowed_tools")) return CAIRN_OK;
    if (json_typeof(allowed) != JSON_OBJ)
        return chat_want(f, "tool_choice.allowed_tools", "an object", allowed);
    TRY(BODY_FIELDS_CHECK(root, (body_path){0}, fields, f));
    if (json_typeof(mode) <= JSON_NULL)
        return chat_want(f, "tool_choice.allowed_tools.mode", "auto or required", mode);
    if (json_typeof(list) > JSON_NULL) return CAIRN_OK;
    return chat_want(f, "tool_choice.allowed_tools.tools", "an array", list);
}
