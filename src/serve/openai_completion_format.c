/* Writes a text completion: chunks, or one object.  Log-probabilities have the old form: lists, one element a
   token, and where each token's text begins, in characters of all the tokens' text: text that was held
   or cut at a stop string is counted.  With `echo` the prompt's tokens come first, and of its first nothing is known. */
#include "serve/openai_completion_format.h"

#include <math.h>
#include <stddef.h>

#include "base/str.h"
#include "serve/buf_members.h"
#include "serve/openai_wire.h"
#include "serve/sse.h"
#include "serve/text_of.h"
#include "serve/token_log.h"

typedef struct text_choice {
    buf text;                            /* not written yet, like the next: JSON elements */
    buf tokens, logprobs, tops, offsets; /* a token each; streams only */
    buf log;                             /* token_log.h, places in characters; whole answers only */
    cairn_stream *place;                 /* follows the tokens; NULL: nobody asks where they are */
    int64_t n_chars;                     /* of the tokens so far */
    int64_t n_echo;                      /* of the text that it begins with */
    size_t n_left;                       /* tokens of the prompt that will be told yet */
    bool lost;                           /* no memory for a part of it */
    const char *finish;
} text_choice;

typedef struct text_out {
    openai_head head;
    const struct cairn_text *text;
    bool stream;
    openai_part part;
    int32_t n_top; /* -1: no log-probabilities */
    bool keep_special;
    uint32_t n;
    text_choice choice[];
} text_out;

static const size_t bufs[] = {
    offsetof(text_choice, text), offsetof(text_choice, tokens),  offsetof(text_choice, logprobs),
    offsetof(text_choice, tops), offsetof(text_choice, offsets), offsetof(text_choice, log),
};
enum { N_BUFS = sizeof bufs / sizeof bufs[0] };

/* Bytes of names of a prompt's tokens in one chunk of a stream: it is known in pieces of a step, and a chunk for each
   token would be mostly frame. */
enum { PROMPT_CHUNK = 256 };

static void follow(text_choice *ch, const text_out *o, bool keep_special)
{
    cairn_stream_free(ch->place);
    ch->place = NULL;
    if (o->n_top >= 0 && o->text && cairn_stream_new(o->text, keep_special, &ch->place) != CAIRN_OK)
        ch->lost = true;
}

static void choice_init(text_choice *ch, const text_out *o)
{
    buf_members_init(ch, bufs, N_BUFS);
    follow(ch, o, o->keep_special);
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

/* What a whole answer begins with is in the answer, the body and what is sent, each with room to spare. */
static uint64_t text_kept(const prompt *p, uint64_t n_tokens)
{
    enum { COPIES = 6 };
    const uint64_t n = (uint64_t)p->ask.n, n_prompts = p->n_ids;
    uint64_t sum = 0;

    for (size_t i = 0; p->echo && i < p->n_ids; i++) sum += n * p->echo[i].len * COPIES;
    if (p->ask.stream || p->ask.rq.n_logprobs < 0) return sum;
    for (size_t i = 0; p->echo && i < p->n_ids; i++)
        sum += n * token_log_bytes(p->ids[i].len, p->ask.rq.n_logprobs);
    return sum + n * n_prompts * token_log_bytes(n_tokens, p->ask.rq.n_logprobs);
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
static void put_tops(const text_out *o, const gen_token *t, json_writer *w)
{
    bool seen = false;

    json_w_obj(w);
    for (int32_t i = 0; i < o->n_top && i < t->n_top; i++) {
        seen = seen || t->top[i].id == t->id;
        put_name(o, t->top[i].id, w, true);
        json_w_num(w, openai_logprob(t->top[i].logprob));
    }
    if (!seen) {
        put_name(o, t->id, w, true);
        json_w_num(w, openai_logprob(t->logprob));
    }
    json_w_end_obj(w);
}

static int64_t n_chars(cairn_str s)
{
    int64_t n = 0;

    for (size_t i = 0; i < s.len; i++) n += ((uint8_t)s.ptr[i] & 0xC0) != 0x80;
    return n;
}

/* The lists of a choice's tokens, in this order. */
enum { LIST_TOKENS, LIST_LOGPROBS, LIST_TOPS, LIST_OFFSETS, N_LISTS };
static const char *const list_key[N_LISTS] = {"tokens", "token_logprobs", "top_logprobs",
                                              "text_offset"};

static void put_element(const text_out *o, int32_t list, const gen_token *t, int64_t place,
                        json_writer *w)
{
    const bool first = isnan(t->logprob);

    if (list == LIST_TOKENS) put_name(o, t->id, w, false);
    if (list == LIST_OFFSETS) json_w_int(w, place);
    if (first && (list == LIST_LOGPROBS || list == LIST_TOPS)) json_w_null(w);
    if (!first && list == LIST_LOGPROBS) json_w_num(w, openai_logprob(t->logprob));
    if (!first && list == LIST_TOPS) put_tops(o, t, w);
}

static void put_token(const text_out *o, text_choice *ch, const gen_token *t)
{
    buf *const lists[N_LISTS] = {&ch->tokens, &ch->logprobs, &ch->tops, &ch->offsets};
    const bool echoed = ch->n_left > 0 && ch->n_chars > ch->n_echo;
    const int64_t place = echoed ? ch->n_echo : ch->n_chars;

    if (!o->stream) token_log_put(&ch->log, t, o->n_top, place);
    for (int32_t k = 0; k < N_LISTS && o->stream; k++) {
        json_writer w = json_write(lists[k]);
        if (lists[k]->len) buf_byte(lists[k], ',');
        put_element(o, k, t, place, &w);
    }
}

/* What a token begins or goes on with. */
static cairn_str fed(text_choice *ch, int32_t id)
{
    cairn_str more = {0};

    if (ch->place && cairn_stream_feed(ch->place, id, &more) != CAIRN_OK) ch->lost = true;
    return more;
}

/* One of the prompt is told; behind the last begins what is generated. */
static void prompt_token_told(const text_out *o, text_choice *ch)
{
    if (--ch->n_left > 0) return;
    ch->n_chars = ch->n_echo;
    follow(ch, o, o->keep_special);
}

static void text_token(void *out, uint32_t i, const gen_token *t)
{
    text_out *o = out;
    text_choice *ch = &o->choice[i];

    if (o->n_top < 0) return;
    put_token(o, ch, t);
    ch->n_chars += n_chars(fed(ch, t->id));
    if (ch->n_left > 0) prompt_token_told(o, ch);
}

/* The text that choice i begins with, and its first token, of which the engine says nothing.  A text's special tokens
   are in it as they were written, but for one that the tokenizer put before it. */
static void choice_echo(text_out *o, uint32_t i, const prompt *p, uint32_t i_prompt)
{
    const cairn_ids *ids = &p->ids[i_prompt];
    const cairn_str echo = {p->echo[i_prompt].ptr, p->echo[i_prompt].len};
    const gen_token first = {.id = ids->ptr[0], .logprob = NAN};
    text_choice *ch = &o->choice[i];

    buf_str(&ch->text, echo);
    ch->n_echo = ch->n_chars = n_chars(echo);
    if (o->n_top < 0) return;
    ch->n_left = ids->len;
    ch->n_chars = 0;
    follow(ch, o, o->keep_special || !p->listed);
    put_token(o, ch, &first);
    const cairn_str text = fed(ch, first.id);
    if (p->listed || str_starts(echo, text)) ch->n_chars = n_chars(text);
    prompt_token_told(o, ch);
}

static void *text_open(const prompt *p)
{
    const chat_ask *a = &p->ask;
    const uint32_t n_each = (uint32_t)a->n, n = n_each * (uint32_t)p->n_ids;
    text_out *o = mem_calloc(1, sizeof *o + n * sizeof o->choice[0], MEM_SERVE);

    if (!o) return NULL;
    o->text = served_model_text(p->model);
    o->stream = a->stream;
    o->n_top = a->rq.n_logprobs;
    o->keep_special = a->rq.keep_special;
    o->n = n;
    for (uint32_t i = 0; i < n; i++) choice_init(&o->choice[i], o);
    for (uint32_t i = 0; p->echo && i < n; i++) choice_echo(o, i, p, i / n_each);
    openai_head_init(&o->head, "cmpl-", p->model->id);
    o->head.usage = a->usage;
    if (text_status(o) == CAIRN_OK) return o;
    text_close(o);
    return NULL;
}

static void begin_choice(json_writer *w, const text_out *o, uint32_t i)
{
    json_w_obj(w);
    json_w_kstr(w, "text", text_of(&o->choice[i].text));
    json_w_kint(w, "index", i);
    json_w_key(w, "logprobs");
    if (o->n_top >= 0)
        json_w_obj(w);
    else
        json_w_null(w);
}

static void end_choice(json_writer *w, const text_out *o, uint32_t i)
{
    if (o->n_top >= 0) json_w_end_obj(w);
    json_w_key(w, "finish_reason");
    if (o->choice[i].finish)
        json_w_str(w, str_of(o->choice[i].finish));
    else
        json_w_null(w);
    json_w_end_obj(w);
}

/* A chunk's: what came since the one before. */
static void put_choice(json_writer *w, const text_out *o, uint32_t i)
{
    const text_choice *ch = &o->choice[i];
    const buf *const lists[N_LISTS] = {&ch->tokens, &ch->logprobs, &ch->tops, &ch->offsets};

    begin_choice(w, o, i);
    for (int32_t k = 0; k < N_LISTS && o->n_top >= 0; k++) {
        json_w_key(w, list_key[k]);
        json_w_arr(w);
        if (lists[k]->len) json_w_raw(w, buf_view(lists[k]));
        json_w_end_arr(w);
    }
    end_choice(w, o, i);
}

/* Each list goes through the tokens once.  p->step: 0 at the beginning, then two for each list, in it and behind. */
static bool write_choice(openai_part *p, const void *out)
{
    const text_out *o = out;
    logged_token t;

    if (p->step == 0) begin_choice(&p->w, o, p->choice);
    if (p->step == 0) p->step = 1;
    for (int32_t k = 0; k < N_LISTS && o->n_top >= 0; k++) {
        if (p->step > 2 * k + 2) continue;
        if (p->step == 2 * k + 1) {
            json_w_key(&p->w, list_key[k]);
            json_w_arr(&p->w);
            p->at = 0;
            p->step++;
        }
        while (token_log_next(&o->choice[p->choice].log, &p->at, &t)) {
            put_element(o, k, &t.t, t.place, &p->w);
            if (openai_part_full(p)) return false;
        }
        json_w_end_arr(&p->w);
        p->step++;
    }
    end_choice(&p->w, o, p->choice);
    return true;
}

/* What there is of choice i, which then is written. */
static void put_chunk(text_out *o, uint32_t i, const answer_usage *u, buf *frames)
{
    text_choice *ch = &o->choice[i];
    json_writer w = sse_open(frames, NULL);

    openai_write_head(&w, &o->head, "text_completion");
    json_w_key(&w, "choices");
    json_w_arr(&w);
    put_choice(&w, o, i);
    json_w_end_arr(&w);
    openai_write_chunk_usage(&w, &o->head, u);
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

static void text_progress(void *out, uint32_t i, const gen_progress *p, buf *frames)
{
    const text_out *o = out;

    openai_put_progress(&o->head, "text_completion", i, "text", "\"\"", p, frames);
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

    const text_choice *ch = &o->choice[i];

    if (ch->n_left > 0 && ch->tokens.len < PROMPT_CHUNK) return;
    if (frames && (ch->text.len || ch->tokens.len)) put_chunk(o, i, NULL, frames);
}

static void text_end(void *out, uint32_t i, const answer_end *e, buf *frames)
{
    text_out *o = out;

    o->choice[i].finish = openai_finish(e->finish, false);
    if (frames) put_chunk(o, i, e->usage, frames);
}

static void text_finish(void *out, const answer_usage *u, buf *frames)
{
    const text_out *o = out;

    if (o->head.usage == USAGE_APART)
        openai_put_usage_chunk(&o->head, "text_completion", u, frames);
    openai_put_done(frames);
}

static bool text_whole(void *out, const answer_usage *u, buf *body)
{
    text_out *o = out;

    return openai_put_whole(&o->part, &o->head, "text_completion", write_choice, o, o->n, u, body);
}

const answer_format openai_completion_format = {
    .refuse = openai_refuse,
    .held = 2,
    .open = text_open,
    .close = text_close,
    .kept = text_kept,
    .begin = text_begin,
    .progress = text_progress,
    .token = text_token,
    .told = text_told,
    .delta = text_delta,
    .end = text_end,
    .finish = text_finish,
    .whole = text_whole,
    .status = text_status,
    .fail = openai_put_fail,
};
