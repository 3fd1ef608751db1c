/* What an answer keeps at worst is counted from its prompts and its format (answer_format.held and kept).
   Invariant: mail->kept is the sum of what all answers keep, at most mail->most_kept where there is such. */
#include "serve/answer_room.h"

#include <stdio.h>

#include "base/diag.h"

/* Of each byte of the text as JSON: buffers may have doubled. */
static uint64_t text_each(const prompt *p, const answer_format *f)
{
    const bool calls = p->readers && p->ask.tools.len;

    if (p->ask.stream) return 2 * (uint64_t)(calls ? f->held_calls : f->held_streaming);
    return 2 * ((uint64_t)f->held + calls); /* a reader has the call under way */
}

/* Bytes that the answer keeps at worst, with a text of usual tokens.  A parsed list of tools takes up to eleven times
   its text. */
static uint64_t keeps(answer_room *r, const prompt *p, const answer_format *f)
{
    enum {
        PARSED = 11,
        USUAL = 6 /* bytes a token, as JSON: 4.5 of English and of Chinese, 3 to 5 of code */
    };
    const uint64_t ctx = (uint64_t)served_model_ctx(p->model);
    const uint64_t asked = (uint64_t)p->ask.rq.max_tokens;
    uint64_t shortest = ctx, sum = 0;

    for (size_t i = 0; i < p->n_ids; i++)
        if (p->ids[i].len < shortest) shortest = p->ids[i].len;
    uint64_t n_tokens = asked && asked < ctx - shortest ? asked : ctx - shortest;
    if (p->ask.rq.prompt_only) n_tokens = 0;
    if (f->kept) sum = f->kept(p, n_tokens);
    r->each = text_each(p, f);
    r->text_kept = (uint64_t)p->ask.n * p->n_ids * n_tokens * USUAL * r->each;
    return r->text_kept + sum + (p->readers ? (uint64_t)p->ask.n * p->ask.tools.len * PARSED : 0);
}

cairn_status answer_room_take(answer_room *r, mailbox *m, const prompt *p, const answer_format *f,
                              cairn_diag *dg)
{
    const uint64_t need = keeps(r, p, f);

    if (m->most_kept && need > m->most_kept)
        return diag_set(
            dg, CAIRN_E_ARG,
            "the answer may take %llu bytes until it is sent, and all answers have %llu: "
            "expected fewer tokens, choices, log-probabilities or tools, or more memory",
            (unsigned long long)need, (unsigned long long)m->most_kept);
    if (m->most_kept && need > m->most_kept - m->kept)
        return diag_set(dg, CAIRN_E_BUSY,
                        "the answer may take %llu bytes until it is sent; of the %llu that answers "
                        "have, others hold %llu",
                        (unsigned long long)need, (unsigned long long)m->most_kept,
                        (unsigned long long)m->kept);
    r->mail = m;
    m->kept += need;
    r->kept = need;
    return CAIRN_OK;
}

static uint64_t json_bytes(cairn_str s)
{
    uint64_t n = s.len;

    for (size_t i = 0; i < s.len; i++) {
        const uint8_t b = (uint8_t)s.ptr[i];
        if (b == '"' || b == '\\' || (b >= '\b' && b <= '\r'))
            n++;
        else if (b < ' ')
            n += 5; /* \u0001 */
    }
    return n;
}

/* What others leave is taken; what is set aside for those is not touched. */
bool answer_room_grow(answer_room *r, cairn_str text, answer_lack *why)
{
    mailbox *m = r->mail;

    r->said += json_bytes(text);
    const uint64_t need = r->said * r->each;
    if (need <= r->text_kept || !m->most_kept) return true;
    const uint64_t more = need - r->text_kept;
    if (more > m->most_kept - m->kept) {
        const bool never = r->kept + more > m->most_kept;
        why->status = never ? 400 : 429;
        why->code = never ? "answer_too_long" : "answers_full";
        (void)snprintf(why->message, sizeof why->message,
                       "the answer has come to %llu bytes and takes %llu until it is sent; of the "
                       "%llu that all answers have, others hold %llu",
                       (unsigned long long)r->said, (unsigned long long)(r->kept + more),
                       (unsigned long long)m->most_kept, (unsigned long long)(m->kept - r->kept));
        return false;
    }
    m->kept += more;
    r->kept += more;
    r->text_kept += more;
    return true;
}

void answer_room_give(answer_room *r)
{
    if (r->mail) r->mail->kept -= r->kept;
    *r = (answer_room){0};
}
