/* A whole reply as one assistant message.  Only calls whose arguments are complete are calls; the
   markup and arguments of the others are part of the content, as the model wrote them. */
#include "base/json.h"
#include "base/str.h"
#include "text/reply.h"

typedef struct collect {
    buf content, thought, calls;
    buf args;
    buf markup; /* the last event, if it was markup */
    buf call;   /* the bytes of the call under way */
    bool in_call;
    size_t n_calls;
} collect;

static void write_call(collect *c, const cairn_reply_event *ev)
{
    json_writer w = json_write(&c->calls);
    if (c->n_calls++) buf_byte(&c->calls, ',');
    json_w_obj(&w);
    json_w_kstr(&w, "id", ev->id);
    json_w_kstr(&w, "type", STR_LIT("function"));
    json_w_key(&w, "function");
    json_w_obj(&w);
    json_w_kstr(&w, "name", ev->name);
    json_w_kstr(&w, "arguments", buf_view(&c->args));
    json_w_end_obj(&w);
    json_w_end_obj(&w);
}

static void call_begins(collect *c)
{
    c->in_call = true;
    buf_cut(&c->args, 0);
    buf_cut(&c->call, 0);
    buf_str(&c->call, buf_view(&c->markup));
}

static void call_ends(collect *c, const cairn_reply_event *ev)
{
    c->in_call = false;
    if (ev->end == CAIRN_CALL_DONE)
        write_call(c, ev);
    else
        buf_str(&c->content, buf_view(&c->call));
}

static void on_event(void *ctx, const cairn_reply_event *ev)
{
    collect *c = ctx;
    if (c->in_call) buf_str(&c->call, ev->raw);
    switch (ev->kind) {
    case CAIRN_REPLY_THOUGHT:
        buf_str(&c->thought, ev->text);
        break;
    case CAIRN_REPLY_ANSWER:
        buf_str(&c->content, ev->text);
        break;
    case CAIRN_REPLY_CALL_ARGS:
        buf_str(&c->args, ev->text);
        break;
    case CAIRN_REPLY_CALL_BEGIN:
        call_begins(c);
        break;
    case CAIRN_REPLY_CALL_END:
        call_ends(c, ev);
        break;
    case CAIRN_REPLY_SYNTAX:
        break;
    }
    buf_cut(&c->markup, 0);
    if (ev->kind == CAIRN_REPLY_SYNTAX) buf_str(&c->markup, ev->raw);
}

static void write_message(const collect *c, buf *out)
{
    json_writer w = json_write(out);
    json_w_obj(&w);
    json_w_kstr(&w, "role", STR_LIT("assistant"));
    json_w_key(&w, "content");
    if (c->content.len || !c->n_calls)
        json_w_str(&w, buf_view(&c->content));
    else
        json_w_null(&w);
    if (c->thought.len) json_w_kstr(&w, "reasoning_content", buf_view(&c->thought));
    if (c->n_calls) {
        json_w_key(&w, "tool_calls");
        json_w_arr(&w);
        json_w_raw(&w, buf_view(&c->calls));
        json_w_end_arr(&w);
    }
    json_w_end_obj(&w);
}

cairn_status reply_message(const cairn_reply_opts *o, cairn_str text, buf *out, cairn_diag *dg)
{
    collect c = {0};
    reply *r = NULL;
    buf *const all[] = {&c.content, &c.thought, &c.calls, &c.args, &c.markup, &c.call};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) buf_init(all[i], MEM_TEXT);
    cairn_status st = reply_new(o, on_event, &c, &r, dg);
    if (st == CAIRN_OK) st = reply_feed(r, text, false);
    if (st == CAIRN_OK) st = reply_finish(r);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (st == CAIRN_OK) st = buf_status(all[i]);
    if (st == CAIRN_OK) write_message(&c, out);
    if (st == CAIRN_OK) st = buf_status(out);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) buf_deinit(all[i]);
    reply_free(r);
    return st;
}
