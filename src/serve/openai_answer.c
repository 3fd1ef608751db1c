/* The answer to a chat request: what its generations release becomes one whole reply or a stream.

   An answer has two ends, the client's request (rq) and its generations.  Whichever side goes first, the
   other is let go: a client that leaves drops every generation; the answer is freed once it has neither.
   What a generation releases goes through its reader (openai_reader.h); the deltas are sent as they
   come, or collected.
   Invariant: every entry is between answer_enter and answer_leave, as a client can be found gone inside
   any write. */
#include "serve/openai_answer.h"

#include "base/diag.h"
#include "base/str.h"
#include "serve/openai_whole.h"
#include "serve/openai_wire.h"
#include "serve/sse.h"

typedef struct choice {
    gen *g;         /* NULL: done or dropped */
    bool begun;     /* its first chunk was sent */
    bool lost;      /* no memory for a part of it */
    int32_t n_seen; /* tokens that came; what is generated in the end says its result */
    whole said;     /* whole answers only, like the next */
    buf logprobs;
    cairn_finish finish;
} choice;

struct answer {   /* I/O thread */
    http_req *rq; /* NULL once answered or gone */
    const struct cairn_text *text;
    openai_head head;
    bool stream, include_usage, logprobs;
    int32_t n_top;
    openai_usage usage;
    readers *readers;
    cairn_str owed; /* log-probability of the token being read, until a chunk has it */
    uint32_t n, n_running, n_inside;
    choice choices[];
};

static void answer_free(answer *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        whole_deinit(&c->choices[i].said);
        buf_deinit(&c->choices[i].logprobs);
    }
    readers_free(c->readers);
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

static void note_usage(const answer *c)
{
    if (c->rq) http_note_tokens(c->rq, c->usage.n_prompt, c->usage.n_generated);
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

static void send_chunk(answer *c, uint32_t i, bool role, const reply_delta *d, const char *finish)
{
    buf b;
    json_writer w;

    if (!c->rq) return;
    buf_init(&b, MEM_SERVE);
    w = json_write(&b);
    const cairn_str none = {0};
    openai_write_chunk(&w, &c->head, i, role, d, role ? none : c->owed, finish);
    if (!role) c->owed = (cairn_str){0};
    send_frame(c, &b);
    buf_deinit(&b);
}

static void begin_choice(answer *c, uint32_t i)
{
    if (c->choices[i].begun) return;
    c->choices[i].begun = true;
    send_chunk(c, i, true, NULL, NULL);
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

static const char *finish_reason(const answer *c, uint32_t i)
{
    return openai_finish(c->choices[i].finish, readers_called(c->readers, i));
}

static void write_choice(json_writer *w, const answer *c, uint32_t i)
{
    const choice *ch = &c->choices[i];

    json_w_obj(w);
    json_w_kint(w, "index", i);
    json_w_key(w, "message");
    whole_write(&ch->said, w);
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
    json_w_kstr(w, "finish_reason", str_of(finish_reason(c, i)));
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
        complete = complete && !c->choices[i].lost &&
                   whole_status(&c->choices[i].said) == CAIRN_OK &&
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
    bool late = r->status == CAIRN_E_CANCELLED;
    int status = shut || late ? 503 : 500;
    const char *code = shut ? "server_shutdown" : late ? "deadline_exceeded" : "generation_failed";
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

static void on_delta(void *ctx, uint32_t i, const reply_delta *d)
{
    answer *c = ctx;

    if (!c->stream)
        whole_add(&c->choices[i].said, d);
    else if (d->kind != DELTA_CALL_END)
        send_chunk(c, i, false, d, NULL);
}

/* What a reader answered. */
static void check_read(answer *c, uint32_t i, cairn_status st)
{
    if (st == CAIRN_OK) return;
    c->choices[i].lost = true;
    if (c->stream) break_off(c);
}

static void stream_token(answer *c, uint32_t i, const gen_token *t)
{
    static const reply_delta nothing = {.kind = DELTA_CONTENT, .text = {"", 0}};
    json_writer w;
    buf lp;

    buf_init(&lp, MEM_SERVE);
    w = json_write(&lp);
    if (c->logprobs) openai_write_logprob(&w, c->text, t, c->n_top);
    if (buf_status(&lp) != CAIRN_OK) {
        break_off(c);
    } else {
        begin_choice(c, i);
        c->owed = buf_view(&lp);
        check_read(c, i, readers_feed(c->readers, i, t->text));
        /* Held text says nothing yet, but a log-probability is owed for each token. */
        if (c->owed.len && !readers_ended(c->readers, i)) send_chunk(c, i, false, &nothing, NULL);
        c->owed = (cairn_str){0};
    }
    buf_deinit(&lp);
}

static void collect_token(answer *c, uint32_t i, const gen_token *t)
{
    choice *ch = &c->choices[i];

    if (c->logprobs) {
        json_writer w = json_write(&ch->logprobs);
        if (ch->logprobs.len) buf_byte(&ch->logprobs, ',');
        openai_write_logprob(&w, c->text, t, c->n_top);
    }
    check_read(c, i, readers_feed(c->readers, i, t->text));
}

static void on_token(void *ctx, uint32_t i, const gen_token *t)
{
    answer *c = ctx;

    if (readers_ended(c->readers, i)) return;
    answer_enter(c);
    c->choices[i].n_seen += t->n;
    c->usage.n_generated += t->n;
    note_usage(c);
    if (c->stream)
        stream_token(c, i, t);
    else
        collect_token(c, i, t);
    if (readers_ended(c->readers, i) && c->choices[i].g) gen_stop(c->choices[i].g);
    answer_leave(c);
}

static void add_usage(answer *c, uint32_t i, const gen_result *r)
{
    c->usage.n_generated += r->n_generated - c->choices[i].n_seen;
    if (i == 0) { /* the choices share their prompt */
        c->usage.n_prompt = r->n_prompt;
        c->usage.n_cached = r->n_cached;
    }
    note_usage(c);
}

static bool failed(const answer *c, uint32_t i, const gen_result *r)
{
    if (r->finish == CAIRN_FINISH_CANCELLED) return !readers_ended(c->readers, i);
    return r->finish == CAIRN_FINISH_ERROR;
}

static void on_done(void *ctx, uint32_t i, const gen_result *r)
{
    answer *c = ctx;
    choice *ch = &c->choices[i];

    answer_enter(c);
    ch->g = NULL;
    c->n_running--;
    add_usage(c, i, r);
    if (failed(c, i, r)) {
        fail(c, r);
        answer_leave(c);
        return;
    }
    if (c->stream) begin_choice(c, i);
    check_read(c, i, readers_feed(c->readers, i, r->text));
    check_read(c, i, readers_finish(c->readers, i, r->finish == CAIRN_FINISH_LENGTH));
    ch->finish = readers_ended(c->readers, i) ? CAIRN_FINISH_STOP : r->finish;
    if (c->stream) send_chunk(c, i, false, NULL, finish_reason(c, i));
    if (c->n_running == 0 && c->rq) {
        if (c->stream)
            finish_stream(c);
        else
            finish_whole(c);
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
        whole_init(&c->choices[i].said);
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

cairn_status answer_start(http_req *rq, mailbox *mail, prompt *p, cairn_diag *dg)
{
    answer *c = answer_new(rq, p->model, &p->ask);
    cairn_status st;

    if (!c) return diag_set(dg, CAIRN_E_NOMEM, "no memory for the request");
    st = submit_all(mail, p->model, c, &p->ask.rq, dg);
    if (st != CAIRN_OK) {
        drop_all(c);
        answer_free(c);
        return st;
    }
    c->usage.n_prompt = (int32_t)p->ask.rq.n_ids; /* accepted: it fits a context */
    note_usage(c);
    c->readers = p->readers;
    p->readers = NULL;
    readers_bind(c->readers, on_delta, c);
    answer_enter(c);
    http_on_gone(rq, on_gone, c);
    if (c->stream) sse_start(rq);
    answer_leave(c);
    return CAIRN_OK;
}
