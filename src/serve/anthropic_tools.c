/* A tool of type custom says what it takes; those that Anthropic defines and a client runs are published by name, and
   their schemas stand here as its documentation has them. */
#include "serve/anthropic_tools.h"

#include "base/diag.h"
#include "base/json.h"
#include "base/str.h"
#include "serve/anthropic_texts.h"
#include "serve/body_fields.h"
#include "serve/openai_messages.h"

enum { MOST_NAME = 128 }; /* bytes: Anthropic's */

typedef struct reading {
    json_writer w;
    map seen; /* names */
    left_out *left;
    chat_fault *f;
} reading;

typedef struct known_tool { /* the client runs it */
    const char *type, *name, *says, *schema;
} known_tool;

#define TEXT           "{\"type\":\"string\"}"
#define LINE           "{\"type\":\"integer\"}"
#define COMMANDS(list) "{\"type\":\"string\",\"enum\":[" list "]}"
#define LINES          "{\"type\":\"array\",\"items\":" LINE "}"
#define EDIT(commands, inserted)                                                                   \
    "{\"type\":\"object\",\"properties\":{\"command\":" COMMANDS(                                  \
        commands) ",\"path\":" TEXT ",\"file_text\":" TEXT ",\"old_str\":" TEXT                    \
                  ",\"new_str\":" TEXT ",\"insert_line\":" LINE inserted ",\"view_range\":" LINES  \
                  "},\"required\":[\"command\",\"path\"]}"
#define COMMON   "\"view\",\"create\",\"str_replace\",\"insert\""
#define INSERTED ",\"insert_text\":" TEXT

static const char shell_says[] = "Runs a command in a bash shell that stays open";
static const char edit_says[] = "Views, creates and edits text files";
static const char shell[] = "{\"type\":\"object\",\"properties\":{\"command\":" TEXT
                            ",\"restart\":{\"type\":\"boolean\"}},\"required\":[]}";
static const char edit_undo[] = EDIT(COMMON ",\"undo_edit\"", "");
static const char edit_old[] = EDIT(COMMON, "");
static const char edit[] = EDIT(COMMON, INSERTED);
static const char memory[] = "{\"type\":\"object\",\"properties\":{\"command\":" COMMANDS(
    COMMON ",\"delete\",\"rename\"") ",\"path\":" TEXT ",\"view_range\":" LINES
                                     ",\"file_text\":" TEXT ",\"old_str\":" TEXT
                                     ",\"new_str\":" TEXT ",\"insert_line\":" LINE INSERTED
                                     ",\"old_path\":" TEXT ",\"new_path\":" TEXT
                                     "},\"required\":[\"command\"]}";

static const known_tool known[] = {
    {"bash_20241022", "bash", shell_says, shell},
    {"bash_20250124", "bash", shell_says, shell},
    {"text_editor_20241022", "str_replace_editor", edit_says, edit_undo},
    {"text_editor_20250124", "str_replace_editor", edit_says, edit_undo},
    {"text_editor_20250429", "str_replace_based_edit_tool", edit_says, edit_old},
    {"text_editor_20250728", "str_replace_based_edit_tool", edit_says, edit},
    {"memory_20250818", "memory", "Keeps notes in files below /memories", memory},
};

/* What others begin with, whose versions are dates. */
static const char *const not_here[] = {
    "web_search", "web_fetch",        "code_execution",  "tool_search_tool", "mcp_toolset",
    "computer",   "computer_toolset", "browser_toolset", "advisor",
};

static const body_field fields[] = {
    BODY_FIELD(NULL, "description", FIELD_TEXT),
    BODY_FIELD(NULL, "strict", FIELD_TRUTH),
    BODY_FIELD(NULL, "defer_loading", FIELD_TRUTH),
    BODY_FIELD(NULL, "eager_input_streaming", FIELD_TRUTH),
    BODY_FIELD(NULL, "allowed_callers", FIELD_LIST),
    BODY_FIELD(NULL, "input_examples", FIELD_LIST),
};

static cairn_status check(reading *g, json_val tool, body_path p)
{
    TRY(body_name_check(json_get(tool, "name"), path_key(p, "name"), MOST_NAME, &g->seen, g->f));
    TRY(BODY_FIELDS_CHECK(tool, p, fields, g->f));
    return anthropic_cache_check(tool, p, g->f);
}

static void begin(reading *g, cairn_str name, cairn_str says)
{
    json_w_obj(&g->w);
    json_w_kstr(&g->w, "type", STR_LIT("function"));
    json_w_key(&g->w, "function");
    json_w_obj(&g->w);
    json_w_kstr(&g->w, "name", name);
    if (says.ptr) json_w_kstr(&g->w, "description", says);
    json_w_key(&g->w, "parameters");
}

static void end(reading *g, json_val tool)
{
    const json_val strict = json_get(tool, "strict");

    if (json_typeof(strict) == JSON_BOOL) json_w_kbool(&g->w, "strict", json_bool(strict, false));
    json_w_end_obj(&g->w);
    json_w_end_obj(&g->w);
}

static cairn_status put_custom(reading *g, json_val tool, body_path p)
{
    const json_val schema = json_get(tool, "input_schema"), says = json_get(tool, "description");

    TRY(check(g, tool, p));
    if (json_typeof(schema) != JSON_OBJ)
        return chat_want(g->f, path_key(p, "input_schema").s, "an object", schema);
    begin(g, json_str(json_get(tool, "name")),
          json_typeof(says) == JSON_STR ? json_str(says) : (cairn_str){0});
    json_w_val(&g->w, schema);
    end(g, tool);
    return CAIRN_OK;
}

static cairn_status put_known(reading *g, const known_tool *k, json_val tool, body_path p)
{
    const json_val name = json_get(tool, "name");

    if (!str_is(json_str(name), k->name))
        return chat_want(g->f, path_key(p, "name").s, k->name, name);
    TRY(check(g, tool, p));
    begin(g, str_of(k->name), str_of(k->says));
    json_w_raw(&g->w, str_of(k->schema));
    end(g, tool);
    return CAIRN_OK;
}

static bool is_version(cairn_str type, cairn_str of)
{
    return str_starts(type, of) && (type.len == of.len || type.ptr[of.len] == '_');
}

static cairn_status put_tool(reading *g, json_val tool, body_path p)
{
    const json_val type = json_get(tool, "type");
    const cairn_str word = json_str(type);

    if (json_typeof(tool) != JSON_OBJ) return chat_want(g->f, p.s, "an object", tool);
    if (json_typeof(type) <= JSON_NULL || str_is(word, "custom")) return put_custom(g, tool, p);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (str_is(word, known[i].type)) return put_known(g, &known[i], tool, p);
    for (size_t i = 0; i < sizeof not_here / sizeof not_here[0]; i++) {
        if (!is_version(word, str_of(not_here[i]))) continue;
        left_out_add(g->left, not_here[i]);
        return anthropic_cache_check(tool, p, g->f);
    }
    return chat_want(g->f, path_key(p, "type").s, "custom or a type of Anthropic's own", type);
}

cairn_status anthropic_tools_read(json_val root, buf *out, left_out *left, chat_fault *f)
{
    const json_val tools = json_get(root, "tools");
    const body_path p = {"tools"};
    reading g = {.left = left, .f = f};
    json_iter it = json_each(tools);
    cairn_status st = CAIRN_OK;
    json_val tool;
    buf list;

    if (json_typeof(tools) <= JSON_NULL) return CAIRN_OK;
    if (json_typeof(tools) != JSON_ARR) return chat_want(f, p.s, "an array", tools);
    buf_init(&list, MEM_SERVE);
    map_init(&g.seen, MEM_SERVE);
    g.w = json_write(&list);
    json_w_arr(&g.w);
    for (size_t i = 0; st == CAIRN_OK && json_next(&it, &tool); i++)
        st = put_tool(&g, tool, path_number(p, i));
    json_w_end_arr(&g.w);
    if (st == CAIRN_OK) st = chat_tools_normalise(&list, out, f);
    map_deinit(&g.seen);
    buf_deinit(&list);
    return st;
}
