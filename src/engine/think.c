/* The reply machine of text/ says when a thought is open and what closes it.  Invariant: where that
   does not close it, or cannot be written, nothing is followed any more: no reply is made of closing
   tokens without end. */
#include "engine/think.h"

#include "base/diag.h"
#include "text/reply.h"

/* A thought that ends within a character waits for its rest, but not for ever: no character has more
   bytes, and hardly a token less than one. */
enum { PATIENCE = 4 };

static void ignore(void *ctx, const cairn_reply_event *ev)
{
    (void)ctx;
    (void)ev;
}

cairn_status think_init(think *t, const tok *tk, int32_t vocab, int32_t budget,
                        const struct cairn_reply_opts *how, size_t n_ids, cairn_diag *dg)
{
    *t = (think){.tok = tk, .vocab = vocab, .budget = budget, .whole = true};
    buf_init(&t->closing, MEM_ENGINE);
    if (!tk || !how || budget < 0) return CAIRN_OK;
    if (detok_new(tk, true, &t->detok) != CAIRN_OK || detok_reserve(t->detok, n_ids) != CAIRN_OK)
        return diag_set(dg, CAIRN_E_NOMEM, "no memory for a detokenizer");
    return reply_new(how, ignore, NULL, &t->reply, dg);
}

void think_deinit(think *t)
{
    reply_free(t->reply);
    detok_free(t->detok);
    buf_deinit(&t->closing);
    *t = (think){0};
}

static void give_up(think *t)
{
    reply_free(t->reply);
    t->reply = NULL;
}

static bool is_open(const think *t, cairn_str *end)
{
    cairn_reply_look look = {.struct_size = sizeof look};
    reply_look(t->reply, &look);
    *end = look.thought_end;
    return look.where == CAIRN_IN_THOUGHT && look.thought_end.len > 0;
}

static const int32_t *closing_ids(const think *t)
{
    return (const int32_t *)(const void *)t->closing.ptr;
}

/* Finds the ids that close the thought now. */
static cairn_status begin_closing(think *t, cairn_str end)
{
    bool known = true;
    buf_clear(&t->closing);
    t->at = 0;
    TRY(tok_encode(t->tok, end, TOK_PARSE_SPECIAL, &t->closing, NULL));
    const size_t n = t->closing.len / sizeof(int32_t);
    for (size_t i = 0; i < n; i++) known = known && closing_ids(t)[i] < t->vocab;
    if (n && known) return CAIRN_OK;
    buf_clear(&t->closing);
    give_up(t);
    return CAIRN_OK;
}

cairn_status think_next(think *t, const int32_t **id)
{
    cairn_str end;
    *id = NULL;
    if (!t->reply) return CAIRN_OK;
    if (t->at == t->closing.len) {
        const int32_t over = t->n_thought - t->budget;
        if (!is_open(t, &end) || over < 0 || (!t->whole && over < PATIENCE)) return CAIRN_OK;
        TRY(begin_closing(t, end));
    }
    if (t->at < t->closing.len) *id = closing_ids(t) + t->at / sizeof **id;
    return CAIRN_OK;
}

cairn_status think_feed(think *t, int32_t id)
{
    cairn_str text, end;
    if (!t->reply) return CAIRN_OK;
    const bool was_open = is_open(t, &end), closing = t->at < t->closing.len;
    TRY(detok_feed(t->detok, id, &text));
    TRY(reply_feed(t->reply, text, false));
    t->whole = text.len > 0;
    if (closing) t->at += sizeof id;
    if (!is_open(t, &end)) return CAIRN_OK;
    if (closing && t->at == t->closing.len) give_up(t);
    if (was_open && !closing) t->n_thought++;
    return CAIRN_OK;
}
