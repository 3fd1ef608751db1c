/* A call that is one JSON object: {"name": …, "arguments": {…}}, under the names that models know
   for these.  The arguments are passed on as they come if the name came first; else they are kept
   until it does.  Before the name only known keys are taken, so that other JSON is text at once. */
#include "base/str.h"
#include "text/reply_priv.h"

enum {
    OB_OPEN,
    OB_FIRST,
    OB_KEY,
    OB_KEY_STR,
    OB_COLON,
    OB_VALUE,
    OB_STR,
    OB_ARGS,
    OB_QUOTED,
    OB_OTHER,
    OB_COMMA
};

enum { K_OTHER, K_NAME, K_ID, K_ARGS };

static const struct {
    const char *key;
    uint8_t is;
} keys[] = {
    {"name", K_NAME},       {"tool_name", K_NAME}, {"function", K_NAME}, {"arguments", K_ARGS},
    {"parameters", K_ARGS}, {"args", K_ARGS},      {"id", K_ID},         {"tool_call_id", K_ID},
    {"call_id", K_ID},      {"type", K_OTHER},     {"index", K_OTHER},
};

static bool key_ended(reply *r, const tool_state *s)
{
    reply_object *o = &r->object;
    const cairn_str key = {r->word, r->n_word};
    o->state = OB_COLON;
    o->key = K_OTHER;
    if (s->flags & TOOL_KEYED) {
        if (o->named) return false;
        memcpy(r->name, key.ptr, key.len);
        r->n_name = key.len;
        o->named = true;
        o->key = K_ARGS;
        return true;
    }
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (!str_is(key, keys[i].key)) continue;
        o->key = keys[i].is;
        return o->key == K_ARGS ? !o->has_args : o->key != K_NAME || !o->named;
    }
    return o->named;
}

/* A byte of the arguments, or what an escape made of one. */
static bool args_byte(reply *r, char c, cairn_str raw, scan_result *res)
{
    reply_object *o = &r->object;
    char esc[6];
    if (scan_fresh(&o->scan)) {
        if (scan_is_space(c)) {
            *res = SCAN_MORE;
            reply_took(r, raw.ptr, raw.len);
            return true;
        }
        if (c != '{' || (o->named && !reply_begin(r))) return false;
    }
    const bool control = scan_in_string(&o->scan) && (unsigned char)c < 32;
    *res = scan_feed(&o->scan, c);
    if (*res == SCAN_BAD) return false;
    const cairn_str text = {control ? esc : &c, control ? scan_escape(c, esc) : 1};
    if (r->begun) {
        reply_out_args(r, text, raw);
    } else {
        buf_str(&r->value, text);
        if (buf_status(&r->value) != CAIRN_OK) r->no_memory = true;
        reply_took(r, raw.ptr, raw.len);
    }
    return true;
}

static bool in_args(reply *r, char c)
{
    reply_object *o = &r->object;
    scan_result res;
    if (!args_byte(r, c, (cairn_str){&c, 1}, &res)) return false;
    if (res != SCAN_DONE) return true;
    r->args_whole = r->begun;
    o->has_args = true;
    o->state = OB_COMMA;
    return true;
}

/* Arguments written as a string that holds their JSON. */
static bool in_quoted(reply *r, char c)
{
    reply_object *o = &r->object;
    char out[10];
    scan_result res = SCAN_MORE;
    if (c == '"' && !o->esc.slash) {
        if (!o->has_args && !scan_fresh(&o->scan)) return false;
        r->args_whole = r->begun;
        o->has_args = true;
        o->state = OB_COMMA;
        reply_took(r, &c, 1);
        return true;
    }
    const size_t n = unescape_feed(&o->esc, c, out);
    if (n == 0) reply_took(r, &c, 1);
    for (size_t i = 0; i < n; i++) {
        const cairn_str raw = {&c, i == 0}; /* an escape of several bytes was one byte's end */
        bool ok = true;
        if (!o->has_args)
            ok = args_byte(r, out[i], raw, &res);
        else if ((ok = scan_is_space(out[i])))
            reply_took(r, raw.ptr, raw.len);
        if (!ok && i == 0) return false;
        if (!ok) {
            reply_fail(r, NULL, 0);
            return true;
        }
        o->has_args |= res == SCAN_DONE;
    }
    return true;
}

/* A value that says nothing to us, null arguments among them. */
static bool in_other(reply *r, char c)
{
    reply_object *o = &r->object;
    const scan_result res = scan_feed(&o->scan, c);
    if (res == SCAN_BAD) return false;
    if (res != SCAN_MORE) o->state = OB_COMMA;
    if (res == SCAN_AFTER) {
        reply_unread(r, &c, 1);
        return true;
    }
    reply_took(r, &c, 1);
    return true;
}

static bool value_begins(reply *r, char c)
{
    reply_object *o = &r->object;
    if (o->key == K_NAME || o->key == K_ID) {
        if (c != '"') return false;
        r->n_word = 0;
        o->state = OB_STR;
        reply_took(r, &c, 1);
        return true;
    }
    scan_init(&o->scan);
    o->esc = (unescape){0};
    if (o->key == K_ARGS && c == '{') {
        o->state = OB_ARGS;
        return in_args(r, c);
    }
    if (o->key == K_ARGS && c == '"') {
        o->state = OB_QUOTED;
        reply_took(r, &c, 1);
        return true;
    }
    o->state = OB_OTHER;
    return (o->key != K_ARGS || c == 'n') && in_other(r, c);
}

static bool string_byte(reply *r, const tool_state *s, char c)
{
    reply_object *o = &r->object;
    if (c == '\\' || (unsigned char)c < 32) return false;
    if (c != '"') {
        if (r->n_word == sizeof r->word) return false;
        r->word[r->n_word++] = c;
        reply_took(r, &c, 1);
        return true;
    }
    const bool key = o->state == OB_KEY_STR, name = !key && o->key == K_NAME;
    if (key && !key_ended(r, s)) return false;
    reply_took(r, &c, 1);
    if (key) return true;
    memcpy(name ? r->name : r->id, r->word, r->n_word);
    *(name ? &r->n_name : &r->n_id) = r->n_word;
    o->named |= name;
    o->state = OB_COMMA;
    return true;
}

static bool object_ends(reply *r, const tool_state *s, char c)
{
    if (!r->object.named) return false;
    reply_took(r, &c, 1);
    if (!reply_begin(r)) {
        reply_fail(r, NULL, 0);
        return true;
    }
    if (!r->args_whole && r->value.len) reply_out_args(r, buf_view(&r->value), (cairn_str){0});
    (void)reply_end(r, CAIRN_CALL_DONE);
    reply_enter(r, s->next);
    return true;
}

static bool object_byte(reply *r, const tool_state *s, char c)
{
    reply_object *o = &r->object;
    if (o->state == OB_KEY_STR || o->state == OB_STR) return string_byte(r, s, c);
    if (o->state == OB_ARGS) return in_args(r, c);
    if (o->state == OB_QUOTED) return in_quoted(r, c);
    if (o->state == OB_OTHER) return in_other(r, c);
    if (scan_is_space(c)) {
        reply_took(r, &c, 1);
        return true;
    }
    if (o->state == OB_VALUE) return value_begins(r, c);
    if (c == '}' && (o->state == OB_FIRST || o->state == OB_COMMA)) return object_ends(r, s, c);
    if (c != (o->state == OB_OPEN    ? '{'
              : o->state == OB_COLON ? ':'
              : o->state == OB_COMMA ? ','
                                     : '"'))
        return false;
    r->n_word = 0;
    o->state = o->state == OB_OPEN    ? OB_FIRST
               : o->state == OB_COLON ? OB_VALUE
               : o->state == OB_COMMA ? OB_KEY
                                      : OB_KEY_STR;
    reply_took(r, &c, 1);
    return true;
}

bool reply_object_in_args(const reply *r)
{
    return r->object.state == OB_ARGS;
}

void reply_step_object(reply *r, const tool_state *s, char c)
{
    if (object_byte(r, s, c)) return;
    /* Whole arguments make a call even where the rest of its object is malformed. */
    if (r->begun && r->args_whole && r->object.state != OB_OTHER) {
        (void)reply_end(r, CAIRN_CALL_DONE);
        reply_enter(r, s->next);
        reply_unread(r, &c, 1);
        return;
    }
    reply_fail(r, &c, 1);
}
