/* The reply machine of text/ says when a thought is open and what closes it.  Invariant: what cannot be
   written is refused at once; where what was written does not close the thought, or the reply outgrows what
   was reserved for its markup, nothing is followed any more: no reply is made of closing tokens without
   end. */
#include "engine/think.h"

#include "base/diag.h"
#include "base/str.h"
#include "text/reply.h"

enum {
    /* A thought that ends within a character waits for its rest, but not for ever: no character has more
       bytes, and hardly a token less than one. */
    PATIENCE = 4,
    /* Bytes a buffer of the machine: four times the header of a call, which the names and short values
       of a call stay below. */
    MARKUP = 4 * CAIRN_REPLY_MAX_HEADER
};

static void ignore(void *ctx, const cairn_reply_event *ev)
{
    (void)ctx;
    (void)ev;
}

static void give_up(think *t)
{
    reply_free(t->reply);
    t->reply = NULL;
}

static const int32_t *closing_ids(const think *t)
{
    return (const int32_t *)(const void *)t->closing.ptr;
}

/* Whether the ids that close a thought are text that does; white space around it is markup of no matter. */
static cairn_status check_closing(const think *t, cairn_str end, cairn_diag *dg)
{
    const size_t n = t->closing.len / sizeof(int32_t);
    bool known = true;
    buf text;
    for (size_t i = 0; i < n; i++) known = known && closing_ids(t)[i] < t->vocab;
    buf_init(&text, MEM_ENGINE);
    cairn_status st = tok_decode(t->tok, closing_ids(t), n, true, &text, dg);
    if (st == CAIRN_OK) st = buf_status(&text);
    if (st == CAIRN_OK && (!known || !str_eq(str_trim(buf_view(&text)), str_trim(end))))
        st =
            diag_set(dg, CAIRN_E_ARG,
                     "a budget for thinking: the tokenizer has no tokens that read \"%.*s\", which "
                     "closes a thought; expected no budget",
                     STR_ARG(str_trim(end)));
    buf_deinit(&text);
    return st;
}

cairn_status think_init(think *t, const tok *tk, int32_t vocab, int32_t budget,
                        const struct cairn_reply_opts *how, size_t n_ids, cairn_diag *dg)
{
    *t = (think){.tok = tk, .vocab = vocab, .budget = budget, .whole = true};
    buf_init(&t->closing, MEM_ENGINE);
    if (!tk || !how || budget < 0) return CAIRN_OK;
    TRY(reply_new(how, ignore, NULL, &t->reply, dg));
    const cairn_str end = reply_thought_end(t->reply);
    if (end.len == 0) {
        give_up(t);
        return CAIRN_OK;
    }
    TRY(tok_encode(tk, end, TOK_PARSE_SPECIAL, &t->closing, dg));
    t->at = t->closing.len;
    TRY(check_closing(t, end, dg));
    if (reply_reserve(t->reply, MARKUP) != CAIRN_OK)
        return diag_set(dg, CAIRN_E_NOMEM, "no memory for a reply's markup");
    if (detok_new(tk, true, &t->detok) != CAIRN_OK || detok_reserve(t->detok, n_ids) != CAIRN_OK)
        return diag_set(dg, CAIRN_E_NOMEM, "no memory for a detokenizer");
    return CAIRN_OK;
}

size_t think_bytes(const think *t)
{
    if (!t->reply) return t->closing.cap;
    return t->closing.cap + reply_bytes(t->reply) + (t->detok ? detok_bytes(t->detok) : 0);
}

/* A machine has six buffers of that size, and is smaller itself, the closing ids included. */
uint64_t think_worst_bytes(const tok *t, uint64_t n_ids)
{
    return t ? 7 * (uint64_t)MARKUP + detok_worst_bytes(t, n_ids) : 0;
}

void think_deinit(think *t)
{
    reply_free(t->reply);
    detok_free(t->detok);
    buf_deinit(&t->closing);
    *t = (think){0};
}

static bool is_open(const think *t)
{
    cairn_reply_look look = {.struct_size = sizeof look};
    reply_look(t->reply, &look);
    return look.where == CAIRN_IN_THOUGHT;
}

const int32_t *think_next(think *t)
{
    if (!t->reply) return NULL;
    if (t->at == t->closing.len) {
        const int32_t over = t->n_thought - t->budget;
        if (!is_open(t) || over < 0 || (!t->whole && over < PATIENCE)) return NULL;
        t->at = 0;
    }
    return closing_ids(t) + t->at / sizeof(int32_t);
}

cairn_status think_feed(think *t, int32_t id)
{
    cairn_str text;
    if (!t->reply) return CAIRN_OK;
    const bool was_open = is_open(t), closing = t->at < t->closing.len;
    TRY(detok_feed(t->detok, id, &text));
    if (reply_feed(t->reply, text, false) != CAIRN_OK) {
        give_up(t);
        return CAIRN_OK;
    }
    t->whole = text.len > 0;
    if (closing) t->at += sizeof id;
    if (!is_open(t)) return CAIRN_OK;
    if (closing && t->at == t->closing.len) give_up(t);
    if (was_open && !closing) t->n_thought++;
    return CAIRN_OK;
}
