/* What a model writes, as somebody at a terminal wants to see it.  Nothing is a call here, as there are
   no tools: calls are text.  Invariant: after answer_show_end the terminal is as it was. */
#include "cli/answer_show.h"

#include "base/str.h"
#include "cairn/model.h"

static const char dim_on[] = "\x1b[2m", dim_off[] = "\x1b[22m";

static void set_dim(answer_show *s, bool dim)
{
    if (s->dim != dim) buf_puts(&s->out, dim ? dim_on : dim_off);
    s->dim = dim;
}

static void on_event(void *ctx, const cairn_reply_event *ev)
{
    answer_show *s = ctx;
    const bool thought = ev->kind == CAIRN_REPLY_THOUGHT;
    if (ev->text.len == 0 || (!thought && ev->kind != CAIRN_REPLY_ANSWER)) return;
    /* White space around a thought was markup: a blank line parts it from the answer. */
    if (s->dim != thought && s->content.len + s->thought.len) buf_puts(&s->out, "\n\n");
    set_dim(s, thought);
    buf_str(&s->out, ev->text);
    buf_str(thought ? &s->thought : &s->content, ev->text);
}

void answer_show_opts(cairn_reply_opts *o, const cairn_engine *e, cairn_str prompt)
{
    const cairn_model *m = cairn_engine_model(e);
    cairn_model_info info;
    cairn_model_info_init(&info);
    cairn_model_get_info(m, &info);
    cairn_reply_opts_init(o);
    o->template_text = cairn_text_template(cairn_model_text(m), false);
    o->hint = str_of(info.family ? info.family : "");
    o->prompt = prompt;
}

cairn_status answer_show_init(answer_show *s, const cairn_engine *e, cairn_str prompt,
                              cairn_diag *dg)
{
    cairn_reply_opts o;
    *s = (answer_show){0};
    buf_init(&s->out, MEM_MISC);
    buf_init(&s->content, MEM_MISC);
    buf_init(&s->thought, MEM_MISC);
    answer_show_opts(&o, e, prompt);
    return cairn_reply_new(&o, on_event, s, &s->reply, dg);
}

void answer_show_deinit(answer_show *s)
{
    cairn_reply_free(s->reply);
    buf_deinit(&s->out);
    buf_deinit(&s->content);
    buf_deinit(&s->thought);
    *s = (answer_show){0};
}

bool answer_show_special(const answer_show *s)
{
    cairn_reply_look look;
    cairn_reply_look_init(&look);
    cairn_reply_get_look(s->reply, &look);
    return look.keep_special;
}

static cairn_status status_of(const answer_show *s, cairn_status st)
{
    if (st == CAIRN_OK) st = buf_status(&s->out);
    if (st == CAIRN_OK) st = buf_status(&s->content);
    return st == CAIRN_OK ? buf_status(&s->thought) : st;
}

cairn_status answer_show_feed(answer_show *s, cairn_str text)
{
    return text.len ? status_of(s, cairn_reply_feed(s->reply, text)) : CAIRN_OK;
}

cairn_status answer_show_end(answer_show *s)
{
    const cairn_status st = cairn_reply_finish(s->reply);
    set_dim(s, false);
    return status_of(s, st);
}

cairn_str answer_show_reset(answer_show *s)
{
    const bool dim = s->dim;
    s->dim = false;
    return str_of(dim ? dim_off : "");
}
