/* The answer to a chat request: what its generations release becomes one whole reply or a stream.

   An answer has two ends, the client's request (rq) and its generations.  Whichever side goes first, the
   other is let go: a client that leaves drops every generation; the answer is freed once it has neither.
   Invariant: every entry is between answer_enter and answer_leave, as a client can be found gone inside
   any write. */
#include "serve/openai_answer.h"

#include "base/diag.h"
#include "base/str.h"
#include "serve/openai_wire.h"
#include "serve/sse.h"

typedef struct choice {
    gen *g;             /* NULL: done or dropped */
    bool begun;         /* its first chunk was sent */
    buf text, logprobs; /* whole answers only */
    cairn_finish finish;
} choice;

struct answer {   /* I/O thread */
    http_req *rq; /* NULL once answered or gone */
    const struct cairn_text *text;
    openai_head head;
    bool stream, include_usage, logprobs;
    int32_t n_top;
    openai_usage usage;
    uint32_t n, n_running, n_inside;
    choice choices[];
};

static void answer_free(answer *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        buf_deinit(&c->choices[i].text);
        buf_deinit(&c->choices[i].logprobs);
    }
    mem_free(c);
}

static void drop_all(answer *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->choices[i].g) gen_drop(c->choices[i].g);
        c->choices[i].g = NULL;
    }
    c->n_running = 0;
}

static void answer_enter(answer *c)
{
    c->n_inside++;
}

static void answer_leave(answer *c)
{
    c->n_inside--;
    if (c->n_inside == 0 && !c->rq && c->n_running == 0) answer_free(c);
}

static void on_gone(void *user)
{
    answer *c = user;

    answer_enter(c);
    c->rq = NULL;
    drop_all(c);
    answer_leave(c);
}

/* No memory for a frame: better no end than a hole. */
static void break_off(answer *c)
{
    drop_all(c);
    if (c->rq) sse_end(c->rq);
    c->rq = NULL;
}

static void send_frame(answer *c, const buf *b)
{
    bool sent;

    if (!c->rq) return;
    sent = buf_status(b) == CAIRN_OK && sse_data(c->rq, buf_view(b));
    if (!sent) break_off(c); /* nothing is left to do if the client was cut */
}

static void send_chunk(answer *c, uint32_t i, bool role, cairn_str content, cairn_str logprob,
                       const char *finish)
{
    buf b;
    json_writer w;

    if (!c->rq) return;
    buf_init(&b, MEM_SERVE);
    w = json_write(&b);
    openai_write_chunk(&w, &c->head, i, role, content, logprob, finish);
    send_frame(c, &b);
    buf_deinit(&b);
}

static void begin_choice(answer *c, uint32_t i)
{
    if (c->choices[i].begun) return;
    c->choices[i].begun = true;
    send_chunk(c, i, true, STR_LIT(""), (cairn_str){0}, NULL);
}

static void finish_stream(answer *c)
{
    buf b;
    json_writer w;

    if (c->rq && c->include_usage) {
        buf_init(&b, MEM_SERVE);
        w = json_write(&b);
        openai_write_head(&w, &c->head, "chat.completion.chunk");
        json_w_key(&w, "choices");
        json_w_arr(&w);
        json_w_end_arr(&w);
        openai_write_usage(&w, &c->usage);
        json_w_end_obj(&w);
        send_frame(c, &b);
        buf_deinit(&b);
    }
    if (c->rq && !sse_data(c->rq, STR_LIT("[DONE]"))) break_off(c);
    if (c->rq) sse_end(c->rq);
    c->rq = NULL;
}

static void write_choice(json_writer *w, const answer *c, uint32_t i)
{
    const choice *ch = &c->choices[i];

    json_w_obj(w);
    json_w_kint(w, "index", i);
    json_w_key(w, "message");
    json_w_obj(w);
    json_w_kstr(w, "role", STR_LIT("assistant"));
    json_w_kstr(w, "content", ch->text.len ? buf_view(&ch->text) : STR_LIT(""));
    json_w_key(w, "refusal");
    json_w_null(w);
    json_w_end_obj(w);
    json_w_key(w, "logprobs");
    if (c->logprobs) {
        json_w_obj(w);
        json_w_key(w, "content");
        json_w_arr(w);
        if (ch->logprobs.len) json_w_raw(w, buf_view(&ch->logprobs));
        json_w_end_arr(w);
        json_w_key(w, "refusal");
        json_w_null(w);
        json_w_end_obj(w);
    } else {
        json_w_null(w);
    }
    json_w_kstr(w, "finish_reason", str_of(openai_finish(ch->finish)));
    json_w_end_obj(w);
}

static void finish_whole(answer *c)
{
    bool complete = true;
    buf b;
    json_writer w;

    buf_init(&b, MEM_SERVE);
    w = json_write(&b);
    openai_write_head(&w, &c->head, "chat.completion");
    json_w_key(&w, "choices");
    json_w_arr(&w);
    for (uint32_t i = 0; i < c->n; i++) {
        complete = complete && buf_status(&c->choices[i].text) == CAIRN_OK &&
                   buf_status(&c->choices[i].logprobs) == CAIRN_OK;
        write_choice(&w, c, i);
    }
    json_w_end_arr(&w);
    openai_write_usage(&w, &c->usage);
    json_w_end_obj(&w);
    if (complete)
        openai_reply(c->rq, &b);
    else
        openai_error(c->rq, 503, NULL, "out_of_memory", "no memory for the answer");
    buf_deinit(&b);
    c->rq = NULL;
}

/* The engine failed or was told to stop: the client hears why, the other choices end too. */
static void fail(answer *c, const gen_result *r)
{
    bool shut = r->finish == CAIRN_FINISH_CANCELLED;
    int status = shut ? 503 : 500;
    const char *code = shut ? "server_shutdown" : "generation_failed";
    const char *why = shut ? "the server is shutting down"
                           : (r->message[0] ? r->message : cairn_status_text(r->status));
    buf b;
    json_writer w;

    drop_all(c);
    if (!c->rq) return;
    if (!c->stream) {
        openai_error(c->rq, status, NULL, code, "%s", why);
    } else {
        buf_init(&b, MEM_SERVE);
        w = json_write(&b);
        openai_write_error(&w, status, NULL, code, str_of(why));
        send_frame(c, &b);
        buf_deinit(&b);
        if (c->rq) sse_end(c->rq);
    }
    c->rq = NULL;
}

static void on_token(void *ctx, uint32_t i, const gen_token *t)
{
    answer *c = ctx;
    choice *ch = &c->choices[i];
    buf lp = {.tag = MEM_SERVE};
    buf *to = c->stream ? &lp : &ch->logprobs;

    answer_enter(c);
    if (c->logprobs) {
        json_writer w = json_write(to);
        if (to->len) buf_byte(to, ',');
        openai_write_logprob(&w, c->text, t, c->n_top);
    }
    if (!c->stream) {
        buf_str(&ch->text, t->text);
    } else if (buf_status(&lp) != CAIRN_OK) {
        break_off(c);
    } else {
        begin_choice(c, i);
        /* Held text says nothing yet, but a log-probability is owed for each token. */
        if (t->text.len || lp.len)
            send_chunk(c, i, false, t->text.len ? t->text : STR_LIT(""), buf_view(&lp), NULL);
    }
    buf_deinit(&lp);
    answer_leave(c);
}

static void on_done(void *ctx, uint32_t i, const gen_result *r)
{
    answer *c = ctx;
    choice *ch = &c->choices[i];

    answer_enter(c);
    ch->g = NULL;
    ch->finish = r->finish;
    c->n_running--;
    c->usage.n_generated += r->n_generated;
    if (i == 0) { /* the choices share their prompt */
        c->usage.n_prompt = r->n_prompt;
        c->usage.n_cached = r->n_cached;
    }
    if (r->finish == CAIRN_FINISH_ERROR || r->finish == CAIRN_FINISH_CANCELLED) {
        fail(c, r);
    } else if (c->stream) {
        begin_choice(c, i);
        if (r->text.len) send_chunk(c, i, false, r->text, (cairn_str){0}, NULL);
        send_chunk(c, i, false, (cairn_str){0}, (cairn_str){0}, openai_finish(r->finish));
        if (c->n_running == 0 && c->rq) finish_stream(c);
    } else {
        buf_str(&ch->text, r->text);
        if (c->n_running == 0 && c->rq) finish_whole(c);
    }
    answer_leave(c);
}

static answer *answer_new(http_req *rq, const served_model *m, const chat_ask *a)
{
    answer *c = mem_calloc(1, sizeof *c + (size_t)a->n * sizeof c->choices[0], MEM_SERVE);

    if (!c) return NULL;
    c->rq = rq;
    c->text = served_model_text(m);
    c->stream = a->stream;
    c->include_usage = a->include_usage;
    c->logprobs = a->rq.n_logprobs >= 0;
    c->n_top = a->n_top;
    c->n = (uint32_t)a->n;
    for (uint32_t i = 0; i < c->n; i++) {
        buf_init(&c->choices[i].text, MEM_SERVE);
        buf_init(&c->choices[i].logprobs, MEM_SERVE);
    }
    openai_head_init(&c->head, m->id);
    c->head.usage_null = a->include_usage;
    return c;
}

static cairn_status submit_all(mailbox *mail, const served_model *m, answer *c, cairn_request *r,
                               cairn_diag *dg)
{
    const gen_sink sink = {on_token, on_done, c};

    for (uint32_t i = 0; i < c->n; i++) {
        r->choice = i;
        TRY(gen_start(mail, m->engine, r, &sink, &c->choices[i].g, dg));
        c->n_running++;
    }
    return CAIRN_OK;
}

cairn_status answer_start(http_req *rq, mailbox *mail, const served_model *m, chat_ask *a,
                          cairn_diag *dg)
{
    answer *c = answer_new(rq, m, a);
    cairn_status st;

    if (!c) return diag_set(dg, CAIRN_E_NOMEM, "no memory for the request");
    st = submit_all(mail, m, c, &a->rq, dg);
    if (st != CAIRN_OK) {
        drop_all(c);
        answer_free(c);
        return st;
    }
    answer_enter(c);
    http_on_gone(rq, on_gone, c);
    if (c->stream) sse_start(rq);
    answer_leave(c);
    return CAIRN_OK;
}
