/* Collects the deltas of one choice into the message that a client gets who does not stream: the same
   bytes as a client that joins the deltas by itself. */
#include "serve/openai_whole.h"

#include "base/str.h"
#include "serve/text_of.h"

void whole_init(whole *w)
{
    buf_init(&w->content, MEM_SERVE);
    buf_init(&w->thought, MEM_SERVE);
    buf_init(&w->calls, MEM_SERVE);
    buf_init(&w->id, MEM_SERVE);
    buf_init(&w->name, MEM_SERVE);
    buf_init(&w->args, MEM_SERVE);
}

void whole_deinit(whole *w)
{
    buf_deinit(&w->content);
    buf_deinit(&w->thought);
    buf_deinit(&w->calls);
    buf_deinit(&w->id);
    buf_deinit(&w->name);
    buf_deinit(&w->args);
}

static void set(buf *b, cairn_str s)
{
    buf_cut(b, 0);
    buf_str(b, s);
}

static void put_call(whole *w)
{
    const char *type = w->custom ? "custom" : "function";
    json_writer j = json_write(&w->calls);

    if (w->calls.len) buf_byte(&w->calls, ',');
    json_w_obj(&j);
    json_w_kstr(&j, "id", buf_view(&w->id));
    json_w_kstr(&j, "type", str_of(type));
    json_w_key(&j, type);
    json_w_obj(&j);
    json_w_kstr(&j, "name", buf_view(&w->name));
    json_w_kstr(&j, w->custom ? "input" : "arguments", text_of(&w->args));
    json_w_end_obj(&j);
    json_w_end_obj(&j);
}

void whole_add(whole *w, const reply_delta *d)
{
    switch (d->kind) {
    case DELTA_THOUGHT:
        buf_str(&w->thought, d->text);
        break;
    case DELTA_CONTENT:
    case DELTA_NO_CALL:
        buf_str(&w->content, d->text);
        break;
    case DELTA_CALL:
        w->custom = d->custom;
        set(&w->id, d->id);
        set(&w->name, d->name);
        buf_cut(&w->args, 0);
        break;
    case DELTA_ARGS:
        buf_str(&w->args, d->text);
        break;
    case DELTA_CALL_END:
        put_call(w);
        break;
    }
}

cairn_status whole_status(const whole *w)
{
    const buf *const all[] = {&w->content, &w->thought, &w->calls, &w->id, &w->name, &w->args};
    cairn_status st = CAIRN_OK;

    for (size_t i = 0; i < sizeof all / sizeof all[0] && st == CAIRN_OK; i++)
        st = buf_status(all[i]);
    return st;
}

void whole_write(const whole *w, json_writer *out)
{
    json_w_obj(out);
    json_w_kstr(out, "role", STR_LIT("assistant"));
    json_w_key(out, "content");
    if (w->calls.len && !w->content.len)
        json_w_null(out);
    else
        json_w_str(out, text_of(&w->content));
    json_w_key(out, "refusal");
    json_w_null(out);
    if (w->thought.len) {
        json_w_kstr(out, "reasoning_content", buf_view(&w->thought));
        json_w_kstr(out, "reasoning", buf_view(&w->thought));
    }
    if (w->calls.len) {
        json_w_key(out, "tool_calls");
        json_w_arr(out);
        json_w_raw(out, buf_view(&w->calls));
        json_w_end_arr(out);
    }
    json_w_end_obj(out);
}
