/* A call of a custom tool: what of its arguments is the text that the client gets. */
#include "serve/custom_call.h"

void custom_call_init(custom_call *c)
{
    *c = (custom_call){0};
    buf_init(&c->args, MEM_SERVE);
}

void custom_call_deinit(custom_call *c)
{
    buf_deinit(&c->args);
}

void custom_call_begin(custom_call *c, bool on)
{
    c->on = on;
    json_member_init(&c->input, "input");
    buf_cut(&c->args, 0);
}

void custom_call_text(custom_call *c, const reply_delta *d, buf *text)
{
    if (d->kind == DELTA_ARGS) {
        buf_str(&c->args, d->text);
        json_member_feed(&c->input, d->text, text);
    } else if (!c->input.found) {
        buf_str(text, buf_view(&c->args));
    }
    c->args.no_memory |= buf_status(text) != CAIRN_OK;
}
