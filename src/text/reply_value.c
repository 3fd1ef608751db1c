/* Parameters that come one by one, each a name and a text: written as members of a JSON object.
   Strings leave as they come; a value that may be something else is kept until its end, since only
   then can one tell 12 from "12 days".  The tool's schema says which it is; where it does not, what
   reads as JSON or as a Python literal is one, and everything else is a string. */
#include "base/str.h"
#include "text/reply_priv.h"

static unsigned type_named(cairn_str t)
{
    return str_is(t, "string")   ? T_STRING
           : str_is(t, "null")   ? T_NULL
           : str_is(t, "array")  ? T_ARRAY
           : str_is(t, "object") ? T_OBJECT
                                 : T_OTHER;
}

static unsigned types_of(json_val schema, int depth)
{
    static const char *const choices[] = {"anyOf", "oneOf", "allOf"};
    json_val v = json_get(schema, "type"), e;
    unsigned types = 0;
    if (json_typeof(v) == JSON_STR) return type_named(json_str(v));
    for (json_iter it = json_each(v); json_typeof(v) == JSON_ARR && json_next(&it, &e);)
        types |= type_named(json_str(e));
    if (types) return types;
    v = json_get(schema, "enum");
    for (json_iter it = json_each(v); json_typeof(v) == JSON_ARR && json_next(&it, &e);)
        types |= json_typeof(e) == JSON_STR    ? T_STRING
                 : json_typeof(e) == JSON_NULL ? T_NULL
                                               : T_OTHER;
    for (size_t i = 0; depth > 0 && i < sizeof choices / sizeof choices[0]; i++) {
        v = json_get(schema, choices[i]);
        for (json_iter it = json_each(v); json_typeof(v) == JSON_ARR && json_next(&it, &e);)
            types |= types_of(e, depth - 1);
    }
    return types;
}

unsigned reply_types_of(json_val schema)
{
    enum { DEPTH = 4 }; /* of choices within choices */
    return types_of(schema, DEPTH);
}

/* The last of that name, as JSON's readers have it. */
json_val reply_member(json_val object, cairn_str key)
{
    json_iter it = json_each(object);
    json_val found = {0}, v;
    cairn_str k;
    while (json_typeof(object) == JSON_OBJ && json_next_member(&it, &k, &v))
        if (str_eq(k, key)) found = v;
    return found;
}

static uint8_t mode_of(const reply *r, const tool_state *s)
{
    if (s->flags & TOOL_STRING) return V_STRING;
    if (s->flags & TOOL_TYPED) return V_KEPT;
    const unsigned types = reply_types_of(r->val.schema);
    if (!(types & T_STRING)) return V_KEPT;
    return types & T_NULL ? V_NULLABLE : V_STRING;
}

static void put_escaped(buf *out, cairn_str s)
{
    char esc[6];
    for (size_t i = 0; i < s.len; i++) buf_put(out, esc, scan_escape(s.ptr[i], esc));
}

void reply_put_string(buf *out, cairn_str s)
{
    buf_byte(out, '"');
    put_escaped(out, s);
    buf_byte(out, '"');
}

void reply_put_value(buf *out, unsigned types, cairn_str text)
{
    if (!text.len && (types & (T_ARRAY | T_OBJECT)) && !(types & T_STRING))
        buf_puts(out, types & T_ARRAY ? "[]" : "{}");
    else if (!literal_convert(text, out))
        reply_put_string(out, text);
}

void reply_leave(reply *r, cairn_str raw)
{
    if (buf_status(&r->json) != CAIRN_OK) r->no_memory = true;
    reply_out_args(r, buf_view(&r->json), raw);
}

void reply_open_key(reply *r, cairn_str key)
{
    buf_cut(&r->json, 0);
    buf_byte(&r->json, r->n_args++ ? ',' : '{');
    reply_put_string(&r->json, str_trim(key));
    buf_byte(&r->json, ':');
    r->brace = true;
    reply_leave(r, (cairn_str){0});
}

void reply_enter_value(reply *r, const tool_state *s)
{
    if (s->flags & TOOL_MORE) return;
    r->at_start = true;
    r->val =
        (reply_value){.schema = reply_member(r->schema, str_trim((cairn_str){r->word, r->n_word}))};
    r->val.mode = mode_of(r, s);
    buf_cut(&r->value, 0);
    if (r->val.mode == V_STRING) reply_out_args(r, STR_LIT("\""), (cairn_str){0});
}

/* What was kept of a value that may have been null, and is a string. */
static void is_string(reply *r)
{
    r->val.mode = V_STRING;
    buf_cut(&r->json, 0);
    buf_byte(&r->json, '"');
    put_escaped(&r->json, buf_view(&r->value));
    buf_cut(&r->value, 0);
    reply_leave(r, (cairn_str){0});
}

static bool content(reply *r, char c)
{
    char esc[6];
    const cairn_str raw = {&c, 1};
    if (r->val.mode == V_STRING) {
        reply_out_args(r, (cairn_str){esc, scan_escape(c, esc)}, raw);
        return true;
    }
    if (r->value.len >= CAIRN_REPLY_MAX_HELD) return false;
    buf_byte(&r->value, c);
    if (buf_status(&r->value) != CAIRN_OK) r->no_memory = true;
    reply_took(r, &c, 1);
    if (r->val.mode == V_NULLABLE && !str_starts(STR_LIT("null"), buf_view(&r->value)))
        is_string(r);
    return true;
}

/* The held newline is part of the value after all.  It left as markup when it came. */
static bool newline_content(reply *r)
{
    if (!r->val.newline) return true;
    r->val.newline = false;
    if (r->val.mode == V_STRING) {
        reply_out_args(r, STR_LIT("\\n"), (cairn_str){0});
        return true;
    }
    if (r->value.len >= CAIRN_REPLY_MAX_HELD) return false;
    buf_byte(&r->value, '\n');
    if (r->val.mode == V_NULLABLE) is_string(r);
    return true;
}

static bool value_byte(reply *r, const tool_state *s, char c)
{
    const bool first = r->at_start;
    r->at_start = false;
    if (!(s->flags & TOOL_LINES)) return content(r, c);
    if (!newline_content(r)) return false;
    if (c != '\n') return content(r, c);
    r->val.newline = !first;
    reply_took(r, &c, 1);
    return true;
}

static void close_value(reply *r)
{
    r->val.newline = false;
    if (r->val.mode == V_STRING) {
        reply_out_args(r, STR_LIT("\""), (cairn_str){0});
        return;
    }
    buf_cut(&r->json, 0);
    reply_put_value(&r->json, reply_types_of(r->val.schema), buf_view(&r->value));
    reply_leave(r, (cairn_str){0});
}

static bool stands_for_itself(char c)
{
    return (unsigned char)c >= 32 && c != '"' && c != '\\';
}

size_t reply_value_run(reply *r, const tool_state *s, const char *p, size_t n)
{
    size_t i = 0;
    if (r->val.mode != V_STRING || r->val.newline || r->at_start) return 0;
    while (i < n && stands_for_itself(p[i]) && !tool_starts_arm(s, p[i])) i++;
    if (i) reply_out_args(r, (cairn_str){p, i}, (cairn_str){p, i});
    return i;
}

size_t reply_json_run(reply *r, const char *p, size_t n)
{
    const bool object = reply_state(r)->op == TOOL_OBJECT;
    size_t i = 0;
    if (!r->begun || (object && !reply_object_in_args(r))) return 0;
    if (!scan_in_plain(object ? &r->object.scan : &r->scan)) return 0;
    while (i < n && stands_for_itself(p[i])) i++;
    if (i) reply_out_args(r, (cairn_str){p, i}, (cairn_str){p, i});
    return i;
}

void reply_step_value(reply *r, const tool_state *s, char c)
{
    const tool_arm *arm;
    const reply_match m = reply_match_byte(r, s, c, &arm);
    if (m == MATCH_PART) return;
    if (m == MATCH_FULL) {
        if (!(arm->flags & ARM_INSIDE)) close_value(r);
        reply_take_arm(r, arm);
        return;
    }
    const char first = reply_first(r);
    if (!value_byte(r, s, first)) reply_fail(r, &first, 1);
}
