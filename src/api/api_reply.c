/* The public face of replies: checks arguments, converts, nothing clever. */
#include <string.h>

#include "base/diag.h"
#include "cairn/reply.h"
#include "text/reply.h"

struct cairn_reply {
    reply *r;
};

void cairn_reply_opts_init(cairn_reply_opts *o)
{
    *o = (cairn_reply_opts){.struct_size = sizeof *o};
}

cairn_status cairn_reply_new(const cairn_reply_opts *o, cairn_reply_fn fn, void *ctx,
                             cairn_reply **out, cairn_diag *dg)
{
    if (!o || !fn || !out)
        return diag_set(dg, CAIRN_E_ARG, "cairn_reply_new: options, fn or out is NULL");
    if (o->struct_size != sizeof *o)
        return diag_set(dg, CAIRN_E_ARG, "cairn_reply_opts: call cairn_reply_opts_init first");
    cairn_reply *c = mem_calloc(1, sizeof *c, MEM_TEXT);
    if (!c) return diag_set(dg, CAIRN_E_NOMEM, "reply");
    const cairn_status st = reply_new(o, fn, ctx, &c->r, dg);
    if (st != CAIRN_OK) {
        mem_free(c);
        return st;
    }
    *out = c;
    return CAIRN_OK;
}

void cairn_reply_free(cairn_reply *r)
{
    if (!r) return;
    reply_free(r->r);
    mem_free(r);
}

cairn_status cairn_reply_feed(cairn_reply *r, cairn_str bytes)
{
    return reply_feed(r->r, bytes, false);
}

cairn_status cairn_reply_feed_special(cairn_reply *r, cairn_str text)
{
    return reply_feed(r->r, text, true);
}

cairn_status cairn_reply_skip(cairn_reply *r, cairn_str bytes)
{
    return reply_skip(r->r, bytes);
}

cairn_status cairn_reply_finish(cairn_reply *r)
{
    return reply_finish(r->r);
}

void cairn_reply_look_init(cairn_reply_look *l)
{
    *l = (cairn_reply_look){.struct_size = sizeof *l};
}

void cairn_reply_get_look(const cairn_reply *r, cairn_reply_look *out)
{
    cairn_reply_look look = {.struct_size = out->struct_size};
    reply_look(r->r, &look);
    memcpy(out, &look, out->struct_size < sizeof look ? out->struct_size : sizeof look);
}

const char *cairn_reply_families(size_t i)
{
    const tool_family *f = tool_family_at(i);
    return f ? f->name : NULL;
}

const char *cairn_reply_find_family(cairn_str template_text, cairn_str hint)
{
    return reply_find_family(template_text, hint)->name;
}

cairn_status cairn_reply_kwargs(cairn_str template_text, int think, cairn_str effort,
                                cairn_bytes *out)
{
    buf b;
    buf_init(&b, MEM_TEXT);
    cairn_status st = reply_kwargs(template_text, think, effort, &b);
    if (st == CAIRN_OK) st = buf_take(&b, out);
    buf_deinit(&b);
    return st;
}

cairn_status cairn_reply_message(const cairn_reply_opts *o, cairn_str text, cairn_bytes *out,
                                 cairn_diag *dg)
{
    buf b;
    if (!o || !out || o->struct_size != sizeof *o)
        return diag_set(dg, CAIRN_E_ARG, "cairn_reply_message: options or out is missing");
    buf_init(&b, MEM_TEXT);
    cairn_status st = reply_message(o, text, &b, dg);
    if (st == CAIRN_OK) st = buf_take(&b, out);
    buf_deinit(&b);
    return st;
}
