/* What leaves the machine: events are gathered while their kind stays the same, so that a caller sees
   one a feed and kind.  Owns the buffers of held and unread bytes, and the marks of a call. */
#include <stdio.h>

#include "base/rng.h"
#include "base/str.h"
#include "text/reply_priv.h"

/* An event of more is given out before the feed ends. */
enum { OUT_MAX = 64 * 1024 };

static void note(reply *r, const buf *b)
{
    if (buf_status(b) != CAIRN_OK) r->no_memory = true;
}

static void send(reply *r, const cairn_reply_event *ev)
{
    if (!r->quiet && !r->no_memory) r->fn(r->ctx, ev);
}

void reply_out_flush(reply *r)
{
    const cairn_reply_event ev = {.kind = r->out_kind,
                                  .call = r->out_kind == CAIRN_REPLY_CALL_ARGS ? r->n_calls - 1 : 0,
                                  .text = buf_view(&r->text),
                                  .raw = buf_view(&r->raw)};
    note(r, &r->text);
    note(r, &r->raw);
    if (ev.text.len || ev.raw.len) send(r, &ev);
    buf_cut(&r->text, 0);
    buf_cut(&r->raw, 0);
}

static void gather(reply *r, cairn_reply_kind kind, cairn_str text, cairn_str raw)
{
    if (r->out_kind != kind || r->text.len > OUT_MAX || r->raw.len > OUT_MAX) reply_out_flush(r);
    r->out_kind = kind;
    buf_str(&r->text, text);
    buf_str(&r->raw, raw);
}

void reply_out_text(reply *r, cairn_reply_kind kind, const char *p, size_t n)
{
    if (!n) return;
    if (kind == CAIRN_REPLY_THOUGHT && !r->quiet) r->thought_bytes += n;
    gather(r, kind, (cairn_str){p, n}, (cairn_str){p, n});
}

void reply_out_args(reply *r, cairn_str text, cairn_str raw)
{
    r->args_seen = true;
    gather(r, CAIRN_REPLY_CALL_ARGS, text, raw);
}

void reply_took(reply *r, const char *p, size_t n)
{
    if (!n) return;
    if (!r->holding) {
        gather(r, CAIRN_REPLY_SYNTAX, (cairn_str){p, 0}, (cairn_str){p, n});
        return;
    }
    buf_put(&r->held, p, n);
    note(r, &r->held);
}

void reply_commit(reply *r)
{
    if (!r->holding) return;
    r->holding = false;
    reply_took(r, r->held.ptr, r->held.len);
    buf_cut(&r->held, 0);
}

void reply_unread(reply *r, const char *p, size_t n)
{
    const size_t left = r->replay.len - r->replay_at;
    if (!n) return;
    if (n > r->replay_at) {
        const size_t more = n - r->replay_at;
        if (!buf_grow(&r->replay, more)) {
            note(r, &r->replay);
            return;
        }
        memmove(r->replay.ptr + n, r->replay.ptr + r->replay_at, left);
        r->replay_at = n;
    }
    r->replay_at -= n;
    memcpy(r->replay.ptr + r->replay_at, p, n);
}

static json_val find_tool(const reply *r, cairn_str name)
{
    json_iter it = json_each(r->tools ? json_root(r->tools) : (json_val){0});
    json_val tool;
    for (size_t n = 0; n < CAIRN_REPLY_MAX_TOOLS && json_next(&it, &tool); n++) {
        json_val f = json_get(tool, "function");
        if (json_typeof(f) != JSON_OBJ) f = tool;
        if (str_eq(json_str(json_get(f, "name")), name)) return f;
    }
    return (json_val){0};
}

static json_val find_properties(json_val function)
{
    static const char *const keys[] = {"parameters", "input_schema", "inputSchema"};
    json_val params = {0};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && json_typeof(params) != JSON_OBJ; i++)
        params = json_get(function, keys[i]);
    return json_get(params, "properties");
}

static void make_id(reply *r)
{
    static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    uint64_t x = rng_u64(r->id_seed, 0x63616c6c, (uint64_t)r->n_calls);
    if (r->fam->ids == TOOL_IDS_PLAIN) {
        r->n_id = (size_t)snprintf(r->id, sizeof r->id, "call_%016llx", (unsigned long long)x);
        return;
    }
    for (r->n_id = 0; r->n_id < 9; r->n_id++, x /= 62) r->id[r->n_id] = letters[x % 62];
}

bool reply_begin(reply *r)
{
    const cairn_str name = str_trim((cairn_str){r->name, r->n_name});
    if (r->begun) return true;
    if (!name.len) return false;
    const json_val tool = find_tool(r, name);
    if (json_typeof(tool) == JSON_NONE && !r->any_tool) return false;
    if (!r->n_id) make_id(r);
    reply_out_flush(r); /* the call's own markup is an event of its own */
    reply_commit(r);
    reply_out_flush(r);
    r->begun = true;
    r->schema = find_properties(tool);
    r->n_args = 0;
    r->brace = r->args_seen = r->args_whole = false;
    const cairn_reply_event ev = {
        .kind = CAIRN_REPLY_CALL_BEGIN, .call = r->n_calls++, .name = name, .id = {r->id, r->n_id}};
    send(r, &ev);
    return true;
}

bool reply_end(reply *r, cairn_call_end how)
{
    if (!reply_begin(r)) return false;
    if (how == CAIRN_CALL_DONE && (r->brace || !r->args_seen))
        reply_out_args(r, str_of(r->brace ? "}" : "{}"), (cairn_str){0});
    reply_out_flush(r);
    const cairn_reply_event ev = {.kind = CAIRN_REPLY_CALL_END,
                                  .end = how,
                                  .call = r->n_calls - 1,
                                  .name = str_trim((cairn_str){r->name, r->n_name}),
                                  .id = {r->id, r->n_id}};
    send(r, &ev);
    r->begun = false;
    r->n_name = r->n_id = 0;
    return true;
}
