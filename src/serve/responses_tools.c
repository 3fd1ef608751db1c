/* Tools as a chat template takes them.  A function stays one; a custom tool is a function of one text; those of a
   namespace carry its name before theirs.  Tools that OpenAI runs, or whose calls have items of their own, are left
   out, and the client is told in a header (docs/api.md). */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/str.h"
#include "serve/body_fields.h"
#include "serve/body_path.h"
#include "serve/left_out.h"
#include "serve/openai_custom.h"
#include "serve/openai_messages.h"
#include "serve/openai_tools.h"
#include "serve/responses_ask.h"

enum { MOST_TOOLS = 4096 }; /* names are compared with each other */

typedef struct reading {
    responses_ask *r;
    chat_fault *f;
    json_val allowed; /* of tool_choice; JSON_NONE: all are */
    json_writer w;
    size_t cap;
    cairn_str space, says; /* the namespace at hand, and what is yet to be said of it */
    left_out left;
} reading;

cairn_str responses_tool_called(arena *mem, cairn_str space, cairn_str name)
{
    const cairn_str between = str_ends(space, STR_LIT("__")) ? STR_LIT("") : STR_LIT("__");
    const size_t n = space.len + between.len + name.len;
    char *s;

    if (space.len == 0 || name.len == 0) return name;
    s = arena_alloc(mem, n + 1);
    if (!s) return (cairn_str){0};
    memcpy(s, space.ptr, space.len);
    memcpy(s + space.len, between.ptr, between.len);
    memcpy(s + space.len + between.len, name.ptr, name.len);
    return (cairn_str){s, n};
}

static cairn_status no_memory(chat_fault *f)
{
    return chat_fault_set(f, CAIRN_E_NOMEM, "tools", "no memory for `tools`");
}

static cairn_status want(const reading *g, body_path p, const char *what, json_val v)
{
    return chat_want(g->f, p.s, what, v);
}

/* The member `key` is of that type, if it is there. */
static cairn_status want_type(const reading *g, json_val v, body_path p, const char *key,
                              json_type type, const char *what)
{
    const json_val m = json_get(v, key);

    if (json_typeof(m) <= JSON_NULL || json_typeof(m) == type) return CAIRN_OK;
    return want(g, path_key(p, key), what, m);
}

static cairn_status want_name(const reading *g, json_val v, body_path p, cairn_str *out)
{
    *out = json_str(json_get(v, "name"));
    return body_name_form(json_get(v, "name"), path_key(p, "name"), OPENAI_MOST_NAME, g->f);
}

static bool is_allowed(const reading *g, cairn_str name, cairn_str called)
{
    json_iter it = json_each(g->allowed);
    json_val v;

    if (json_typeof(g->allowed) != JSON_ARR) return true;
    while (json_next(&it, &v)) {
        const cairn_str s = json_str(json_get(v, "name"));
        if (str_eq(s, called) || (str_eq(s, name) && g->space.len == 0) ||
            (str_eq(s, g->space) && str_is(json_str(json_get(v, "type")), "namespace")))
            return true;
    }
    return false;
}

static cairn_str copy(reading *g, cairn_str s)
{
    const char *p = arena_strdup(&g->r->mem, s);

    return p ? (cairn_str){p, s.len} : (cairn_str){0};
}

static cairn_status grow(reading *g)
{
    responses_ask *r = g->r;
    const size_t cap = g->cap ? 2 * g->cap : 16;
    responses_tool *list;

    if (r->n_tools < g->cap) return CAIRN_OK;
    list = arena_calloc(&r->mem, cap, sizeof *list);
    if (!list) return no_memory(g->f);
    if (r->n_tools) memcpy(list, r->tools, r->n_tools * sizeof *list);
    r->tools = list;
    g->cap = cap;
    return CAIRN_OK;
}

/* Remembers what the model will call, which is written into *called. */
static cairn_status remember(reading *g, body_path p, cairn_str name, bool custom,
                             cairn_str *called)
{
    responses_ask *r = g->r;
    responses_tool t = {.custom = custom};

    if (r->n_tools == MOST_TOOLS)
        return chat_fault_set(g->f, CAIRN_E_LIMIT, "tools", "`tools` may hold at most %d tools",
                              MOST_TOOLS);
    TRY(grow(g));
    t.name = copy(g, name);
    if (g->space.len) t.space = copy(g, g->space);
    t.called = responses_tool_called(&r->mem, t.space, t.name);
    if (!t.name.ptr || !t.called.ptr || (g->space.len && !t.space.ptr)) return no_memory(g->f);
    for (size_t i = 0; i < r->n_tools; i++)
        if (str_eq(r->tools[i].called, t.called))
            return chat_fault_set(g->f, CAIRN_E_ARG, path_key(p, "name").s,
                                  "`%s` is `%.*s`, as that of a tool before it is",
                                  path_key(p, "name").s, STR_ARG(t.called));
    r->tools[r->n_tools++] = t;
    *called = t.called;
    return CAIRN_OK;
}

static void add_text(buf *b, cairn_str s)
{
    if (b->len && s.len) buf_puts(b, "\n\n");
    buf_str(b, s);
}

/* What the template is told of a tool: first what its namespace says, once. */
static void put_description(reading *g, json_val tool, cairn_str more)
{
    buf b;

    buf_init(&b, MEM_SERVE);
    add_text(&b, g->says);
    add_text(&b, json_str(json_get(tool, "description")));
    add_text(&b, more);
    g->says = (cairn_str){0};
    if (b.len) json_w_kstr(&g->w, "description", buf_view(&b));
    g->w.out->no_memory |= buf_status(&b) != CAIRN_OK;
    buf_deinit(&b);
}

static void open_tool(reading *g, cairn_str called)
{
    json_w_obj(&g->w);
    json_w_kstr(&g->w, "type", STR_LIT("function"));
    json_w_key(&g->w, "function");
    json_w_obj(&g->w);
    json_w_kstr(&g->w, "name", called);
}

static void close_tool(reading *g)
{
    json_w_end_obj(&g->w);
    json_w_end_obj(&g->w);
}

static cairn_status put_function(reading *g, json_val tool, body_path p)
{
    const json_val args = json_get(tool, "parameters"), strict = json_get(tool, "strict");
    cairn_str name = {0}, called = {0};

    TRY(want_name(g, tool, p, &name));
    TRY(want_type(g, tool, p, "description", JSON_STR, "a string"));
    TRY(want_type(g, tool, p, "parameters", JSON_OBJ, "an object"));
    TRY(want_type(g, tool, p, "strict", JSON_BOOL, "true or false"));
    TRY(remember(g, p, name, false, &called));
    if (!is_allowed(g, name, called)) return CAIRN_OK;
    open_tool(g, called);
    put_description(g, tool, (cairn_str){0});
    json_w_key(&g->w, "parameters");
    if (json_typeof(args) == JSON_OBJ)
        json_w_val(&g->w, args);
    else
        json_w_raw(&g->w, STR_LIT("{\"type\":\"object\",\"properties\":{}}"));
    if (json_typeof(strict) == JSON_BOOL) json_w_kbool(&g->w, "strict", json_bool(strict, false));
    close_tool(g);
    return CAIRN_OK;
}

/* What a format asks of the text: nothing enforces it, so the model is told. */
static cairn_status read_format(reading *g, json_val tool, body_path p, buf *more)
{
    const json_val v = json_get(tool, "format");
    const body_path at = path_key(p, "format");
    const cairn_str type = json_str(json_get(v, "type"));

    TRY(want_type(g, tool, p, "format", JSON_OBJ, "an object"));
    if (json_typeof(v) <= JSON_NULL || str_is(type, "text")) return CAIRN_OK;
    if (!str_is(type, "grammar"))
        return want(g, path_key(at, "type"), "text or grammar", json_get(v, "type"));
    return openai_grammar_told(v, at, more, g->f);
}

static cairn_status put_custom(reading *g, json_val tool, body_path p)
{
    cairn_str name = {0}, called = {0};
    cairn_status st;
    buf more;

    TRY(want_name(g, tool, p, &name));
    TRY(want_type(g, tool, p, "description", JSON_STR, "a string"));
    buf_init(&more, MEM_SERVE);
    st = read_format(g, tool, p, &more);
    if (st == CAIRN_OK) st = remember(g, p, name, true, &called);
    if (st == CAIRN_OK && is_allowed(g, name, called)) {
        open_tool(g, called);
        put_description(g, tool, buf_view(&more));
        json_w_key(&g->w, "parameters");
        json_w_raw(&g->w, STR_LIT(OPENAI_CUSTOM_PARAMETERS));
        close_tool(g);
    }
    g->w.out->no_memory |= buf_status(&more) != CAIRN_OK;
    buf_deinit(&more);
    return st;
}

static cairn_status put_in_space(reading *g, json_val tool, body_path p)
{
    const json_val type = json_get(tool, "type");

    if (json_typeof(tool) != JSON_OBJ) return want(g, p, "an object", tool);
    if (str_is(json_str(type), "function")) return put_function(g, tool, p);
    if (str_is(json_str(type), "custom")) return put_custom(g, tool, p);
    return want(g, path_key(p, "type"), "function or custom", type);
}

static cairn_status put_space(reading *g, json_val tool, body_path p)
{
    const json_val tools = json_get(tool, "tools");
    json_iter it = json_each(tools);
    cairn_str name = {0};
    json_val v;

    TRY(want_name(g, tool, p, &name));
    TRY(want_type(g, tool, p, "description", JSON_STR, "a string"));
    if (json_typeof(tools) != JSON_ARR) return want(g, path_key(p, "tools"), "an array", tools);
    g->space = name;
    g->says = json_str(json_get(tool, "description"));
    for (size_t i = 0; json_next(&it, &v); i++)
        TRY(put_in_space(g, v, path_element(path_key(p, "tools"), i)));
    g->space = g->says = (cairn_str){0};
    return CAIRN_OK;
}

static cairn_status put_tool(reading *g, json_val tool, body_path p)
{
    const json_val type = json_get(tool, "type");
    const char *not_here = openai_own_tool(json_str(type));

    if (json_typeof(tool) != JSON_OBJ) return want(g, p, "an object", tool);
    if (str_is(json_str(type), "function")) return put_function(g, tool, p);
    if (str_is(json_str(type), "custom")) return put_custom(g, tool, p);
    if (str_is(json_str(type), "namespace")) return put_space(g, tool, p);
    if (not_here) {
        left_out_add(&g->left, not_here);
        return CAIRN_OK;
    }
    return want(g, path_key(p, "type"), "function, custom, namespace or a type of OpenAI's own",
                type);
}

#define NO_GRAMMAR                                                                                 \
    "enforcing a call needs grammars, which are not there yet; use \"auto\" or \"none\""

/* none: no tools are rendered; allowed_tools: those. */
static cairn_status read_choice(reading *g, json_val v, bool *none)
{
    const cairn_str word = json_str(v), type = json_str(json_get(v, "type"));
    const cairn_str mode = json_str(json_get(v, "mode"));
    static const body_path p = {"tool_choice"};

    *none = str_is(word, "none");
    if (json_typeof(v) <= JSON_NULL || str_is(word, "auto") || *none) return CAIRN_OK;
    if (json_typeof(v) == JSON_STR && !str_is(word, "required"))
        return want(g, p, "none, auto, required or an object", v);
    if (json_typeof(v) != JSON_STR && json_typeof(v) != JSON_OBJ)
        return want(g, p, "a string or an object", v);
    if (json_typeof(v) == JSON_OBJ && type.len == 0)
        return want(g, path_key(p, "type"), "a type of choice", json_get(v, "type"));
    if (!str_is(type, "allowed_tools") || str_is(mode, "required"))
        return chat_fault_set(g->f, CAIRN_E_UNSUPPORTED, p.s, "`tool_choice` is not supported: %s",
                              NO_GRAMMAR);
    if (!str_is(mode, "auto"))
        return want(g, path_key(p, "mode"), "auto or required", json_get(v, "mode"));
    g->allowed = json_get(v, "tools");
    if (json_typeof(g->allowed) == JSON_ARR) return CAIRN_OK;
    return want(g, path_key(p, "tools"), "an array", g->allowed);
}
#undef NO_GRAMMAR

static cairn_status put_all(reading *g, json_val tools)
{
    const body_path p = {"tools"};
    json_iter it = json_each(tools);
    json_val tool;

    json_w_arr(&g->w);
    for (size_t i = 0; json_next(&it, &tool); i++) TRY(put_tool(g, tool, path_element(p, i)));
    json_w_end_arr(&g->w);
    return buf_status(g->w.out) == CAIRN_OK ? CAIRN_OK : no_memory(g->f);
}

cairn_status responses_tools_read(json_val root, chat_ask *a, responses_ask *r, chat_fault *f)
{
    const json_val tools = json_get(root, "tools");
    reading g = {.r = r, .f = f};
    cairn_status st;
    bool none;
    buf list;

    TRY(read_choice(&g, json_get(root, "tool_choice"), &none));
    if (json_typeof(tools) <= JSON_NULL) return CAIRN_OK;
    if (json_typeof(tools) != JSON_ARR) return chat_want(f, "tools", "an array", tools);
    buf_init(&list, MEM_SERVE);
    g.w = json_write(&list);
    st = put_all(&g, tools);
    if (st == CAIRN_OK) st = left_out_warn(&g.left, "tools", a, f);
    if (st == CAIRN_OK && !none) st = chat_tools_normalise(&list, &a->tools, f);
    buf_deinit(&list);
    return st;
}
