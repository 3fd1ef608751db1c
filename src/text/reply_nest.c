/* Parameters whose values are elements within elements: kept until the value's end, then read as one
   JSON value.  Elements all called "item" are a list, others an object; where the tool's schema says which,
   it decides, also of an element without content. */
#include "base/str.h"
#include "text/reply_priv.h"

typedef struct nest {
    cairn_str s, open, shut; /* what begins a tag, and a closing one: the longer */
    size_t at;
    buf *out;
} nest;

static bool nest_value(nest *n, json_val schema, uint32_t depth);

static bool next_is(const nest *n, cairn_str mark)
{
    return str_starts(str_sub(n->s, n->at, n->s.len - n->at), mark);
}

static bool opens(const nest *n)
{
    return next_is(n, n->open) && !next_is(n, n->shut);
}

/* The name of a tag up to its bracket. */
static bool tag_name(nest *n, cairn_str mark, cairn_str *name)
{
    const size_t from = n->at + mark.len, end = str_find(n->s, STR_LIT(">"), from);

    if (!next_is(n, mark) || end == SIZE_MAX) return false;
    *name = str_sub(n->s, from, end - from);
    n->at = end + 1;
    return true;
}

/* Elements from here to the closing tag around them. */
static bool elements(nest *n, json_val schema, uint32_t depth)
{
    const unsigned types = reply_types_of(schema);
    const json_val items = json_get(schema, "items"),
                   more = json_get(schema, "additionalProperties");
    cairn_str name, end;
    bool list = (types & T_ARRAY) && !(types & T_OBJECT);

    for (size_t i = 0; opens(n); i++) {
        if (!tag_name(n, n->open, &name)) return false;
        if (!i && !(types & (T_ARRAY | T_OBJECT))) list = str_is(name, "item");
        buf_byte(n->out, i ? ',' : list ? '[' : '{');
        json_val part = list ? items : reply_member(json_get(schema, "properties"), name);
        if (!list && json_typeof(part) != JSON_OBJ) part = more;
        if (!list) {
            reply_put_string(n->out, name);
            buf_byte(n->out, ':');
        }
        if (!nest_value(n, part, depth + 1)) return false;
        if (!tag_name(n, n->shut, &end) || !str_eq(name, end)) return false;
        while (n->at < n->s.len && scan_is_space(n->s.ptr[n->at])) n->at++;
    }
    buf_byte(n->out, list ? ']' : '}');
    return true;
}

static bool nest_value(nest *n, json_val schema, uint32_t depth)
{
    const unsigned types = reply_types_of(schema);
    const size_t tag = str_find(n->s, n->open, n->at); /* of either kind */
    const cairn_str text = str_sub(n->s, n->at, (tag < n->s.len ? tag : n->s.len) - n->at);

    if (depth > CAIRN_REPLY_MAX_DEPTH) return false;
    n->at += text.len;
    if (opens(n)) return str_trim(text).len == 0 && elements(n, schema, depth);
    if ((types & T_STRING) && !((types & T_NULL) && str_is(text, "null")))
        reply_put_string(n->out, text);
    else
        reply_put_value(n->out, types, text);
    return true;
}

static const tool_arm *arm_of(const tool_state *s, bool inside)
{
    const tool_arm *a = s->arm;
    while (a->lit && !(a->flags & ARM_INSIDE) == inside) a++;
    return a;
}

/* r->value as JSON, in r->json. */
static bool convert(reply *r, const tool_state *s)
{
    nest n = {.s = buf_view(&r->value),
              .open = str_of(arm_of(s, true)->lit),
              .shut = str_of(arm_of(s, false)->lit),
              .out = &r->json};

    buf_cut(&r->json, 0);
    return nest_value(&n, r->val.schema, 0) && n.at == n.s.len;
}

static bool keep(reply *r, const char *p, size_t n)
{
    if (r->value.len + n > CAIRN_REPLY_MAX_HELD) return false;
    buf_put(&r->value, p, n);
    if (buf_status(&r->value) != CAIRN_OK) r->no_memory = true;
    return true;
}

void reply_enter_nest(reply *r, const tool_state *s)
{
    const tool_arm *open = arm_of(s, true);

    r->val.depth = 1;
    (void)keep(r, open->lit, strlen(open->lit));
}

void reply_step_nest(reply *r, const tool_state *s, char c)
{
    const tool_arm *arm;
    const reply_match m = reply_match_byte(r, s, c, &arm);
    if (m == MATCH_PART) return;
    if (m == MATCH_NONE) {
        const char first = reply_first(r);
        if (keep(r, &first, 1))
            reply_took(r, &first, 1);
        else
            reply_fail(r, &first, 1);
        return;
    }
    const size_t n = strlen(arm->lit);
    const bool inside = arm->flags & ARM_INSIDE, last = !inside && r->val.depth == 0;
    if (last ? r->val.mode == V_STRING || !convert(r, s) : !keep(r, arm->lit, n)) {
        reply_fail(r, arm->lit, n);
        return;
    }
    if (last) {
        reply_leave(r, (cairn_str){0});
        reply_take_arm(r, arm);
        return;
    }
    r->val.depth += inside ? 1 : (uint32_t)-1;
    reply_took(r, arm->lit, n);
}
