/* Writes a chat completion: chunks, or one object.  A choice's log-probabilities ride on the first chunk
   after their token; a token that releases nothing yet has a chunk for them alone. */
#include "serve/openai_chat_format.h"

#include "base/str.h"
#include "serve/body_fields.h"
#include "serve/custom_call.h"
#include "serve/openai_whole.h"
#include "serve/openai_wire.h"
#include "serve/sse.h"
#include "serve/token_log.h"

typedef struct chat_choice {
    /* Of whole answers only; log: token_log.h. */
    whole said;
    buf log;
    custom_call call;
    buf logprobs; /* JSON: of the token at hand in a stream */
    const char *finish;
} chat_choice;

typedef struct chat_out {
    openai_head head;
    const struct cairn_text *text;
    bool stream, logprobs;
    int32_t n_top;
    openai_part part;
    buf custom; /* names of custom tools, a space behind each; empty: there are none */
    uint32_t n;
    chat_choice choice[];
} chat_out;

static void *chat_open(const prompt *p)
{
    const chat_ask *a = &p->ask;
    chat_out *o = mem_calloc(1, sizeof *o + (size_t)a->n * sizeof o->choice[0], MEM_SERVE);

    if (!o) return NULL;
    o->text = served_model_text(p->model);
    o->stream = a->stream;
    o->logprobs = a->rq.n_logprobs >= 0;
    o->n_top = a->n_top;
    o->n = (uint32_t)a->n;
    buf_init(&o->custom, MEM_SERVE);
    if (a->custom) buf_puts(&o->custom, a->custom);
    for (uint32_t i = 0; i < o->n; i++) {
        whole_init(&o->choice[i].said);
        custom_call_init(&o->choice[i].call);
        buf_init(&o->choice[i].log, MEM_SERVE);
        buf_init(&o->choice[i].logprobs, MEM_SERVE);
    }
    openai_head_init(&o->head, "chatcmpl-", p->model->id);
    o->head.usage = a->usage;
    o->head.tier = a->tier;
    return o;
}

static uint64_t chat_kept(const prompt *p, uint64_t n_tokens)
{
    const bool none = p->ask.stream || p->ask.rq.n_logprobs < 0;

    return none ? 0 : (uint64_t)p->ask.n * token_log_bytes(n_tokens, p->ask.n_top);
}

static void chat_close(void *out)
{
    chat_out *o = out;

    for (uint32_t i = 0; i < o->n; i++) {
        whole_deinit(&o->choice[i].said);
        custom_call_deinit(&o->choice[i].call);
        buf_deinit(&o->choice[i].log);
        buf_deinit(&o->choice[i].logprobs);
    }
    buf_deinit(&o->custom);
    mem_free(o);
}

static cairn_status chat_status(const void *out)
{
    const chat_out *o = out;
    cairn_status st = buf_status(&o->custom);

    for (uint32_t i = 0; i < o->n && st == CAIRN_OK; i++) {
        st = whole_status(&o->choice[i].said);
        if (st == CAIRN_OK) st = buf_status(&o->choice[i].log);
        if (st == CAIRN_OK) st = buf_status(&o->choice[i].logprobs);
        if (st == CAIRN_OK) st = buf_status(&o->choice[i].call.args);
    }
    return st;
}

static void put_chunk(chat_out *o, uint32_t i, bool role, const reply_delta *d, const answer_end *e,
                      buf *frames)
{
    json_writer w = sse_open(frames, NULL);
    const cairn_str none = {0};

    openai_write_chunk(&w, &o->head, i, role, d, role ? none : buf_view(&o->choice[i].logprobs),
                       e ? o->choice[i].finish : NULL, e ? e->usage : NULL);
    sse_close(frames);
    if (!role) buf_cut(&o->choice[i].logprobs, 0);
}

static void chat_begin(void *out, uint32_t i, buf *frames)
{
    if (frames) put_chunk(out, i, true, NULL, NULL, frames);
}

static void chat_progress(void *out, uint32_t i, const gen_progress *p, buf *frames)
{
    const chat_out *o = out;

    openai_put_progress(&o->head, "chat.completion.chunk", i, "delta", "{}", p, frames);
}

static void chat_token(void *out, uint32_t i, const gen_token *t)
{
    chat_out *o = out;
    buf *b = &o->choice[i].logprobs;
    json_writer w = json_write(b);

    if (!o->logprobs) return;
    if (!o->stream) {
        token_log_put(&o->choice[i].log, t, o->n_top, 0);
        return;
    }
    if (b->len) buf_byte(b, ',');
    openai_write_logprob(&w, o->text, t, o->n_top);
}

/* Held text says nothing yet, but a log-probability is owed for each token. */
static void chat_told(void *out, uint32_t i, buf *frames)
{
    static const reply_delta nothing = {.kind = DELTA_CONTENT, .text = {"", 0}};
    chat_out *o = out;

    if (frames && o->choice[i].logprobs.len) put_chunk(o, i, false, &nothing, NULL, frames);
}

static void tell(chat_out *o, uint32_t i, const reply_delta *d, buf *frames)
{
    if (!frames)
        whole_add(&o->choice[i].said, d);
    else if (d->kind != DELTA_CALL_END)
        put_chunk(o, i, false, d, NULL, frames);
}

static void chat_delta(void *out, uint32_t i, const reply_delta *d, buf *frames)
{
    chat_out *o = out;
    custom_call *c = &o->choice[i].call;
    reply_delta told = *d;
    buf text;

    if (d->kind == DELTA_CALL && o->custom.len)
        custom_call_begin(c, body_word(o->custom.ptr, d->name));
    told.custom = d->kind >= DELTA_CALL && c->on;
    if (told.custom && (d->kind == DELTA_ARGS || d->kind == DELTA_CALL_END)) {
        buf_init(&text, MEM_SERVE);
        custom_call_text(c, d, &text);
        told.kind = DELTA_ARGS;
        told.text = buf_view(&text);
        if (text.len) tell(o, i, &told, frames);
        buf_deinit(&text);
        if (d->kind == DELTA_ARGS) return;
        told = *d;
    }
    tell(o, i, &told, frames);
}

static void chat_end(void *out, uint32_t i, const answer_end *e, buf *frames)
{
    chat_out *o = out;

    o->choice[i].finish = openai_finish(e->finish, e->called);
    if (!frames) return;
    buf_cut(&o->choice[i].logprobs, 0); /* of a token behind the end */
    put_chunk(o, i, false, NULL, e, frames);
}

static void chat_finish(void *out, const answer_usage *u, buf *frames)
{
    const chat_out *o = out;

    if (o->head.usage == USAGE_APART)
        openai_put_usage_chunk(&o->head, "chat.completion.chunk", u, frames);
    openai_put_done(frames);
}

static void begin_choice(json_writer *w, const chat_out *o, uint32_t i)
{
    json_w_obj(w);
    json_w_kint(w, "index", i);
    json_w_key(w, "message");
    whole_write(&o->choice[i].said, w);
    json_w_key(w, "logprobs");
    if (!o->logprobs) {
        json_w_null(w);
        return;
    }
    json_w_obj(w);
    json_w_key(w, "content");
    json_w_arr(w);
}

static bool write_logprobs(openai_part *p, const chat_out *o)
{
    logged_token t;

    while (token_log_next(&o->choice[p->choice].log, &p->at, &t)) {
        openai_write_logprob(&p->w, o->text, &t.t, o->n_top);
        if (openai_part_full(p)) return false;
    }
    json_w_end_arr(&p->w);
    json_w_key(&p->w, "refusal");
    json_w_null(&p->w);
    json_w_end_obj(&p->w);
    return true;
}

static bool write_choice(openai_part *p, const void *out)
{
    const chat_out *o = out;

    if (p->step == 0) begin_choice(&p->w, o, p->choice);
    p->step = 1;
    if (o->logprobs && !write_logprobs(p, o)) return false;
    json_w_kstr(&p->w, "finish_reason", str_of(o->choice[p->choice].finish));
    json_w_end_obj(&p->w);
    return true;
}

static bool chat_whole(void *out, const answer_usage *u, buf *body)
{
    chat_out *o = out;

    return openai_put_whole(&o->part, &o->head, "chat.completion", write_choice, o, o->n, u, body);
}

const answer_format openai_chat_format = {
    .refuse = openai_refuse,
    .held = 4,
    .held_calls = 2, /* a custom tool's, as the model wrote it and as its text */
    .open = chat_open,
    .close = chat_close,
    .kept = chat_kept,
    .begin = chat_begin,
    .progress = chat_progress,
    .token = chat_token,
    .told = chat_told,
    .delta = chat_delta,
    .end = chat_end,
    .finish = chat_finish,
    .whole = chat_whole,
    .status = chat_status,
    .fail = openai_put_fail,
};
