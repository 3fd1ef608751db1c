/* Writes a text completion: chunks, or one object.  Log-probabilities have the old form: lists, one element a
   token, and where each token's text begins, in characters of all the tokens' text: text that was held
   or cut at a stop string is counted. */
#include "serve/openai_completion_format.h"

#include <stddef.h>

#include "base/str.h"
#include "serve/buf_members.h"
#include "serve/openai_wire.h"
#include "serve/sse.h"
#include "serve/text_of.h"

typedef struct text_choice {
    buf text;                            /* not written yet, like the next: JSON elements */
    buf tokens, logprobs, tops, offsets; /* a token each */
    cairn_stream *place;                 /* follows the tokens; NULL: nobody asks where they are */
    int64_t n_chars;                     /* of the tokens so far */
    bool lost;                           /* no memory for a part of it */
    const char *finish;
} text_choice;

typedef struct text_out {
    openai_head head;
    const struct cairn_text *text;
    bool include_usage;
    int32_t n_top; /* -1: no log-probabilities */
    uint32_t n;
    text_choice choice[];
} text_out;

static const size_t bufs[] = {
    offsetof(text_choice, text), offsetof(text_choice, tokens),  offsetof(text_choice, logprobs),
    offsetof(text_choice, tops), offsetof(text_choice, offsets),
};
enum { N_BUFS = sizeof bufs / sizeof bufs[0] };

static void choice_init(text_choice *ch, const text_out *o, bool keep_special, cairn_bytes echo)
{
    buf_members_init(ch, bufs, N_BUFS);
    buf_put(&ch->text, echo.ptr, echo.len);
    if (o->n_top >= 0 && o->text)
        ch->lost = cairn_stream_new(o->text, keep_special, &ch->place) != CAIRN_OK;
}

static void text_close(void *out)
{
    text_out *o = out;

    for (uint32_t i = 0; i < o->n; i++) {
        text_choice *ch = &o->choice[i];
        buf_members_deinit(ch, bufs, N_BUFS);
        cairn_stream_free(ch->place);
    }
    mem_free(o);
}

static cairn_status text_status(const void *out)
{
    const text_out *o = out;
    cairn_status st = CAIRN_OK;

    for (uint32_t i = 0; i < o->n && st == CAIRN_OK; i++) {
        const text_choice *ch = &o->choice[i];
        st = ch->lost ? CAIRN_E_NOMEM : buf_members_status(ch, bufs, N_BUFS);
    }
    return st;
}

static void *text_open(const prompt *p)
{
    const chat_ask *a = &p->ask;
    const uint32_t n_each = (uint32_t)a->n, n = n_each * (uint32_t)p->n_ids;
    text_out *o = mem_calloc(1, sizeof *o + n * sizeof o->choice[0], MEM_SERVE);

    if (!o) return NULL;
    o->text = served_model_text(p->model);
    o->include_usage = a->include_usage;
    o->n_top = a->rq.n_logprobs;
    o->n = n;
    for (uint32_t i = 0; i < n; i++)
        choice_init(&o->choice[i], o, a->rq.keep_special,
                    p->echo ? p->echo[i / n_each] : (cairn_bytes){0});
    openai_head_init(&o->head, "cmpl-", p->model->id);
    o->head.usage_null = a->include_usage;
    if (text_status(o) == CAIRN_OK) return o;
    text_close(o);
    return NULL;
}

/* A piece that is no text by itself is written as its bytes. */
static void put_token_name(buf *out, cairn_str piece)
{
    if (json_utf8_valid(piece)) {
        buf_str(out, piece);
        return;
    }
    buf_puts(out, "bytes:");
    for (size_t i = 0; i < piece.len; i++) buf_printf(out, "\\x%02x", (uint8_t)piece.ptr[i]);
}

static void put_name(const text_out *o, int32_t id, json_writer *w, bool key)
{
    buf name;

    buf_init(&name, MEM_SERVE);
    put_token_name(&name, cairn_text_piece(o->text, id));
    const cairn_str s = text_of(&name);
    if (buf_status(&name) != CAIRN_OK) w->out->no_memory = true;
    if (key)
        json_w_key_str(w, s);
    else
        json_w_str(w, s);
    buf_deinit(&name);
}

/* The best, and the one that was drawn if it is not among them. */
static void put_tops(const text_out *o, text_choice *ch, const gen_token *t)
{
    json_writer w = json_write(&ch->tops);
    bool seen = false;

    json_w_obj(&w);
    for (int32_t i = 0; i < o->n_top && i < t->n_top; i++) {
        seen = seen || t->top[i].id == t->id;
        put_name(o, t->top[i].id, &w, true);
        json_w_num(&w, openai_logprob(t->top[i].logprob));
    }
    if (!seen) {
        put_name(o, t->id, &w, true);
        json_w_num(&w, openai_logprob(t->logprob));
    }
    json_w_end_obj(&w);
}

static int64_t n_chars(cairn_str s)
{
    int64_t n = 0;

    for (size_t i = 0; i < s.len; i++) n += ((uint8_t)s.ptr[i] & 0xC0) != 0x80;
    return n;
}

static void text_token(void *out, uint32_t i, const gen_token *t)
{
    text_out *o = out;
    text_choice *ch = &o->choice[i];
    cairn_str more = {0};
    json_writer w;

    if (o->n_top < 0) return;
    if (ch->tokens.len) {
        buf_byte(&ch->tokens, ',');
        buf_byte(&ch->logprobs, ',');
        buf_byte(&ch->tops, ',');
        buf_byte(&ch->offsets, ',');
    }
    w = json_write(&ch->tokens);
    put_name(o, t->id, &w, false);
    w = json_write(&ch->logprobs);
    json_w_num(&w, openai_logprob(t->logprob));
    put_tops(o, ch, t);
    w = json_write(&ch->offsets);
    json_w_int(&w, ch->n_chars);
    if (ch->place && cairn_stream_feed(ch->place, t->id, &more) != CAIRN_OK) ch->lost = true;
    ch->n_chars += n_chars(more);
}

static void put_list(json_writer *w, const char *key, const buf *elements)
{
    json_w_key(w, key);
    json_w_arr(w);
    if (elements->len) json_w_raw(w, buf_view(elements));
    json_w_end_arr(w);
}

static void write_choice(json_writer *w, const void *out, uint32_t i)
{
    const text_out *o = out;
    const text_choice *ch = &o->choice[i];

    json_w_obj(w);
    json_w_kstr(w, "text", text_of(&ch->text));
    json_w_kint(w, "index", i);
    json_w_key(w, "logprobs");
    if (o->n_top >= 0) {
        json_w_obj(w);
        put_list(w, "tokens", &ch->tokens);
        put_list(w, "token_logprobs", &ch->logprobs);
        put_list(w, "top_logprobs", &ch->tops);
        put_list(w, "text_offset", &ch->offsets);
        json_w_end_obj(w);
    } else {
        json_w_null(w);
    }
    json_w_key(w, "finish_reason");
    if (ch->finish)
        json_w_str(w, str_of(ch->finish));
    else
        json_w_null(w);
    json_w_end_obj(w);
}

/* What there is of choice i, which then is written. */
static void put_chunk(text_out *o, uint32_t i, buf *frames)
{
    text_choice *ch = &o->choice[i];
    json_writer w = sse_open(frames, NULL);

    openai_write_head(&w, &o->head, "text_completion");
    json_w_key(&w, "choices");
    json_w_arr(&w);
    write_choice(&w, o, i);
    json_w_end_arr(&w);
    if (o->head.usage_null) {
        json_w_key(&w, "usage");
        json_w_null(&w);
    }
    json_w_end_obj(&w);
    sse_close(frames);
    buf_cut(&ch->text, 0);
    buf_cut(&ch->tokens, 0);
    buf_cut(&ch->logprobs, 0);
    buf_cut(&ch->tops, 0);
    buf_cut(&ch->offsets, 0);
}

static void text_begin(void *out, uint32_t i, buf *frames)
{
    (void)out;
    (void)i;
    (void)frames; /* the first chunk has no more than others */
}

static void text_delta(void *out, uint32_t i, const reply_delta *d, buf *frames)
{
    text_out *o = out;

    (void)frames; /* text_told writes it */
    buf_str(&o->choice[i].text, d->text);
}

static void text_told(void *out, uint32_t i, buf *frames)
{
    text_out *o = out;

    if (frames && (o->choice[i].text.len || o->choice[i].tokens.len)) put_chunk(o, i, frames);
}

static void text_end(void *out, uint32_t i, const answer_end *e, buf *frames)
{
    text_out *o = out;

    o->choice[i].finish = openai_finish(e->finish, false);
    if (frames) put_chunk(o, i, frames);
}

static void text_finish(void *out, const answer_usage *u, buf *frames)
{
    const text_out *o = out;

    if (o->include_usage) openai_put_usage_chunk(&o->head, "text_completion", u, frames);
    openai_put_done(frames);
}

static void text_whole(void *out, const answer_usage *u, buf *body)
{
    const text_out *o = out;

    openai_put_whole(&o->head, "text_completion", write_choice, o, o->n, u, body);
}

const answer_format openai_completion_format = {
    .refuse = openai_refuse,
    .open = text_open,
    .close = text_close,
    .begin = text_begin,
    .token = text_token,
    .told = text_told,
    .delta = text_delta,
    .end = text_end,
    .finish = text_finish,
    .whole = text_whole,
    .status = text_status,
    .fail = openai_put_fail,
};
