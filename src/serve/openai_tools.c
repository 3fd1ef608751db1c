/* A chat's tools go to the template as they came, custom ones as functions, without those that are not here. */
#include "serve/openai_tools.h"

#include "base/diag.h"
#include "base/str.h"
#include "serve/body_fields.h"
#include "serve/left_out.h"
#include "serve/openai_custom.h"
#include "serve/openai_messages.h"

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

static bool is_custom(json_val tool)
{
    return str_is(json_str(json_get(tool, "type")), "custom");
}

static cairn_str name_of(json_val tool)
{
    return json_str(json_path(tool, is_custom(tool) ? "custom.name" : "function.name"));
}

/* seen: names before it; NULL: any name will do. */
static cairn_status check_tool(json_val tool, body_path p, map *seen, chat_fault *f)
{
    const json_val type = json_get(tool, "type"), function = json_get(tool, "function");
    const json_val name = json_get(function, "name");
    const body_path at = path_key(p, "function");

    if (seen && is_custom(tool)) return openai_custom_check(tool, p, seen, f);
    if (!str_is(json_str(type), "function"))
        return chat_want(f, path_key(p, "type").s, seen ? "function or custom" : "function", type);
    if (json_typeof(function) != JSON_OBJ) return chat_want(f, at.s, "an object", function);
    if (json_str(name).len == 0) return chat_want(f, path_key(at, "name").s, "a name", name);
    if (seen) TRY(body_name_check(name, path_key(at, "name"), OPENAI_MOST_NAME, seen, f));
    return BODY_FIELDS_CHECK(function, at, of_function, f);
}

/* allowed: an array, or JSON_NONE: all are. */
static bool is_allowed(json_val allowed, json_val tool)
{
    const cairn_str name = name_of(tool);
    json_iter it = json_each(allowed);
    json_val v;

    if (json_typeof(allowed) != JSON_ARR) return true;
    while (json_next(&it, &v))
        if (str_eq(name_of(v), name)) return true;
    return false;
}

/* customs: names, each with a space behind it. */
static void put_tool(json_val tool, bool by_openai, buf *customs, json_writer *w)
{
    if (!by_openai || !is_custom(tool)) {
        json_w_val(w, tool);
        return;
    }
    openai_custom_put(tool, w);
    buf_str(customs, name_of(tool));
    buf_byte(customs, ' ');
}

static cairn_status put_tools(json_val tools, json_val allowed, map *seen, left_out *left,
                              buf *customs, json_writer *w, chat_fault *f)
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
        if (is_allowed(allowed, tool)) put_tool(tool, seen != NULL, customs, w);
    }
    return CAIRN_OK;
}

static cairn_status keep_customs(const buf *customs, chat_ask *a, chat_fault *f)
{
    if (customs->len == 0) return CAIRN_OK;
    a->custom = arena_strdup(&a->mem, buf_view(customs));
    if (a->custom && buf_status(customs) == CAIRN_OK) return CAIRN_OK;
    return chat_fault_set(f, CAIRN_E_NOMEM, "tools", "no memory for `tools`");
}

cairn_status chat_tools_read(json_val root, bool by_openai, chat_ask *a, chat_fault *f)
{
    const json_val tools = json_get(root, "tools"), choice = json_get(root, "tool_choice");
    const json_val allowed = by_openai ? json_path(choice, "allowed_tools.tools") : (json_val){0};
    left_out left = {0};
    cairn_status st;
    json_writer w;
    map seen;
    buf list, customs;

    if (json_typeof(tools) <= JSON_NULL) return CAIRN_OK;
    if (json_typeof(tools) != JSON_ARR) return chat_want(f, "tools", "an array", tools);
    map_init(&seen, MEM_SERVE);
    buf_init(&list, MEM_SERVE);
    buf_init(&customs, MEM_SERVE);
    w = json_write(&list);
    json_w_arr(&w);
    st = put_tools(tools, allowed, by_openai ? &seen : NULL, &left, &customs, &w, f);
    json_w_end_arr(&w);
    if (st == CAIRN_OK && !str_is(json_str(choice), "none"))
        st = chat_tools_normalise(&list, &a->tools, f);
    if (st == CAIRN_OK) st = left_out_warn(&left, "tools", a, f);
    if (st == CAIRN_OK) st = keep_customs(&customs, a, f);
    buf_deinit(&customs);
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
