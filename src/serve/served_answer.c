/* The answer to a request: what its generations release becomes one whole reply or a stream, written by
   the format of an API.

   An answer has two ends, the client's request (rq) and its generations.  Whichever side goes first, the
   other is let go: a client that leaves drops every generation; the answer is freed once it has neither.
   What a generation releases goes through its reader (reply_reader.h), or is content as it comes where
   there is none.
   Invariant: every entry is between answer_enter and answer_leave, as a client can be found gone inside
   any write. */
#include "serve/served_answer.h"

#include "base/diag.h"
#include "base/str.h"
#include "serve/answer_room.h"
#include "serve/sse.h"

typedef struct choice {
    gen *g;         /* NULL: done or dropped */
    bool begun;     /* its format knows of it */
    bool lost;      /* no memory for a part of it */
    int32_t n_seen; /* tokens that came; what is generated in the end says its result */
    int32_t n_mute; /* of those, that released nothing yet: they count as what comes next */
} choice;

struct answer {   /* I/O thread */
    http_req *rq; /* NULL once answered or gone */
    const answer_format *f;
    const served_model *model; /* held: the format's may point into it */
    void *out;                 /* the format's */
    bool stream, known;
    answer_usage usage;
    answer_room room;
    readers *readers;                        /* NULL: all is content */
    buf frames;                              /* of the entry at hand */
    uint32_t n, n_each, n_running, n_inside; /* n_each: choices of a prompt */
    choice choices[];
};

static void answer_free(answer *c)
{
    answer_room_give(&c->room);
    if (c->out) c->f->close(c->out);
    buf_deinit(&c->frames);
    readers_free(c->readers);
    served_model_let_go(c->model);
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

static buf *frames(answer *c)
{
    return c->stream ? &c->frames : NULL;
}

/* No memory for a frame: better no end than a hole. */
static void break_off(answer *c)
{
    drop_all(c);
    if (c->rq) sse_end(c->rq);
    c->rq = NULL;
}

static void send_frames(answer *c)
{
    bool sent = true;

    if (c->rq && c->stream)
        sent = buf_status(&c->frames) == CAIRN_OK && c->f->status(c->out) == CAIRN_OK &&
               http_stream_write(c->rq, buf_view(&c->frames));
    buf_cut(&c->frames, 0);
    if (!sent) break_off(c); /* nothing is left to do if the client was cut */
}

static void answer_enter(answer *c)
{
    c->n_inside++;
}

static void answer_leave(answer *c)
{
    if (c->n_inside == 1) send_frames(c);
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

static void prompt_known(answer *c)
{
    if (c->known) return;
    c->known = true;
    if (!c->stream || !c->f->known) return;
    c->f->known(c->out, &c->usage, &c->frames);
    if (c->rq && c->f->beat) http_stream_beat(c->rq, c->f->beat);
}

static void on_began(void *ctx, uint32_t i, int32_t n_cached)
{
    answer *c = ctx;

    (void)i; /* formats that ask for it have one choice */
    answer_enter(c);
    c->usage.n_cached = n_cached;
    prompt_known(c);
    answer_leave(c);
}

static void begin_choice(answer *c, uint32_t i)
{
    prompt_known(c);
    if (c->choices[i].begun) return;
    c->choices[i].begun = true;
    c->f->begin(c->out, i, frames(c));
}

/* News that are old when the next come: who does not read them does without. */
static void on_progress(void *ctx, uint32_t i, const gen_progress *p)
{
    answer *c = ctx;

    answer_enter(c);
    if (c->rq && !http_stream_lags(c->rq)) {
        begin_choice(c, i);
        c->f->progress(c->out, i, p, &c->frames);
    }
    answer_leave(c);
}

static void on_delta(void *ctx, uint32_t i, const reply_delta *d)
{
    answer *c = ctx;

    if (d->kind == DELTA_THOUGHT) c->usage.n_thought += c->choices[i].n_mute;
    c->choices[i].n_mute = 0;
    c->f->delta(c->out, i, d, frames(c));
}

static bool ended(const answer *c, uint32_t i)
{
    return c->readers && readers_ended(c->readers, i);
}

/* The client hears why there is no more; whatever still runs ends. */
static void give_up(answer *c, int status, const char *code, const char *why)
{
    drop_all(c);
    if (!c->rq) return;
    if (!c->stream) {
        c->f->refuse(c->rq, status, NULL, code, why);
    } else {
        c->f->fail(c->out, status, code, str_of(why), &c->frames);
        send_frames(c);
        if (c->rq) sse_end(c->rq);
    }
    c->rq = NULL;
}

static bool take_text(answer *c, cairn_str text)
{
    answer_lack why;

    if (answer_room_grow(&c->room, text, &why)) return true;
    give_up(c, why.status, why.code, why.message);
    return false;
}

/* What a reader answered. */
static void check_read(answer *c, uint32_t i, cairn_status st)
{
    if (st == CAIRN_OK) return;
    c->choices[i].lost = true;
    if (c->stream) break_off(c);
}

static void read_text(answer *c, uint32_t i, cairn_str text)
{
    const reply_delta all = {.kind = DELTA_CONTENT, .text = text};

    if (!take_text(c, text)) return;
    if (c->readers)
        check_read(c, i, readers_feed(c->readers, i, text));
    else if (text.len)
        on_delta(c, i, &all);
}

static void go_on(void *user);

/* A part of a long answer: the client sees no end where something is missing. */
static void send_part(answer *c, buf *body, bool more)
{
    bool sent = c->rq && buf_status(body) == CAIRN_OK && http_stream_write(c->rq, buf_view(body));

    if (!c->rq) return; /* cut, which the head of the stream may have brought about already */
    if (sent && more) {
        http_stream_more(c->rq, go_on, c);
        return;
    }
    if (sent)
        http_stream_end(c->rq);
    else
        http_stream_cut(c->rq);
    c->rq = NULL;
}

static void go_on(void *user)
{
    answer *c = user;
    buf body;

    answer_enter(c);
    buf_init(&body, MEM_SERVE);
    const bool more = c->f->whole(c->out, &c->usage, &body);
    send_part(c, &body, more);
    buf_deinit(&body);
    answer_leave(c);
}

static void finish(answer *c)
{
    bool complete = c->f->status(c->out) == CAIRN_OK;
    buf body;

    if (c->stream) {
        c->f->finish(c->out, &c->usage, &c->frames);
        send_frames(c);
        if (c->rq) sse_end(c->rq);
        c->rq = NULL;
        return;
    }
    buf_init(&body, MEM_SERVE);
    for (uint32_t i = 0; i < c->n; i++) complete = complete && !c->choices[i].lost;
    const bool more = complete && c->f->whole(c->out, &c->usage, &body);
    complete = complete && buf_status(&body) == CAIRN_OK;
    if (complete && c->f->headers) c->f->headers(c->rq);
    if (complete && more) {
        http_stream(c->rq, "application/json", NULL, 0);
        send_part(c, &body, true);
        buf_deinit(&body);
        return;
    }
    if (complete) {
        http_reply(c->rq, 200, "application/json", buf_view(&body));
    } else {
        c->f->refuse(c->rq, 503, NULL, "out_of_memory", "no memory for the answer");
    }
    buf_deinit(&body);
    c->rq = NULL;
}

/* The engine failed or was told to stop: the client hears why, the other choices end too. */
static void fail(answer *c, const gen_result *r)
{
    const bool shut = r->finish == CAIRN_FINISH_CANCELLED;
    const bool late = r->status == CAIRN_E_CANCELLED;
    const int status = shut || late ? 503 : 500;
    const char *code = shut ? "server_shutdown" : late ? "deadline_exceeded" : "generation_failed";
    const char *why = shut ? "the server is shutting down"
                           : (r->message[0] ? r->message : cairn_status_text(r->status));

    give_up(c, status, code, why);
}

static void on_token(void *ctx, uint32_t i, const gen_token *t)
{
    answer *c = ctx;

    if (ended(c, i)) return;
    answer_enter(c);
    c->choices[i].n_seen += t->n;
    c->choices[i].n_mute += t->n;
    c->usage.n_generated += t->n;
    note_usage(c);
    begin_choice(c, i);
    if (c->f->token) c->f->token(c->out, i, t);
    read_text(c, i, t->text);
    if (c->f->told && !ended(c, i)) c->f->told(c->out, i, frames(c));
    if (ended(c, i) && c->choices[i].g) gen_stop(c->choices[i].g);
    answer_leave(c);
}

/* Tokens of the choice.  Where its reader ended it, what the engine drew until it heard of that is nobody's. */
static int32_t generated(const answer *c, uint32_t i, const gen_result *r)
{
    return ended(c, i) ? c->choices[i].n_seen : r->n_generated;
}

static void add_usage(answer *c, uint32_t i, const gen_result *r)
{
    c->usage.n_generated += generated(c, i, r) - c->choices[i].n_seen;
    if (i % c->n_each == 0) {                         /* the choices of a prompt share it */
        if (c->n == c->n_each) c->usage.n_cached = 0; /* said before, by on_began */
        c->usage.n_cached += r->n_cached;
    }
    note_usage(c);
}

static bool failed(const answer *c, uint32_t i, const gen_result *r)
{
    if (ended(c, i)) return false; /* by its reader, before the engine heard of it */
    return r->finish == CAIRN_FINISH_CANCELLED || r->finish == CAIRN_FINISH_ERROR;
}

static void end_choice(answer *c, uint32_t i, const gen_result *r)
{
    answer_end e = {.finish = r->finish, .stop = r->stop, .n_generated = generated(c, i, r)};

    if (c->n_running == 0) e.usage = &c->usage;

    begin_choice(c, i);
    read_text(c, i, r->text);
    if (c->readers) {
        check_read(c, i, readers_finish(c->readers, i, r->finish == CAIRN_FINISH_LENGTH));
        if (ended(c, i)) e.finish = CAIRN_FINISH_STOP;
        e.called = readers_called(c->readers, i);
    }
    c->f->end(c->out, i, &e, frames(c));
    if (c->n_running == 0 && c->rq) finish(c);
}

static void on_done(void *ctx, uint32_t i, const gen_result *r)
{
    answer *c = ctx;

    answer_enter(c);
    c->choices[i].g = NULL;
    c->n_running--;
    add_usage(c, i, r);
    if (failed(c, i, r))
        fail(c, r);
    else
        end_choice(c, i, r);
    answer_leave(c);
}

static answer *answer_new(http_req *rq, const prompt *p, const answer_format *f)
{
    const uint32_t n_each = (uint32_t)p->ask.n, n = n_each * (uint32_t)p->n_ids;
    answer *c = mem_calloc(1, sizeof *c + n * sizeof c->choices[0], MEM_SERVE);

    if (!c) return NULL;
    c->rq = rq;
    c->f = f;
    c->model = p->model;
    served_model_hold(c->model);
    c->stream = p->ask.stream;
    c->n = n;
    c->n_each = n_each;
    buf_init(&c->frames, MEM_SERVE);
    return c;
}

/* What its format holds from the beginning, echoes, may be most of it: it comes once there is room. */
static cairn_status open_format(answer *c, mailbox *mail, const prompt *p, cairn_diag *dg)
{
    TRY(answer_room_take(&c->room, mail, p, c->f, dg));
    c->out = c->f->open(p);
    return c->out ? CAIRN_OK : diag_set(dg, CAIRN_E_NOMEM, "no memory for the request");
}

static cairn_status submit_all(mailbox *mail, prompt *p, answer *c, cairn_diag *dg)
{
    cairn_request *r = &p->ask.rq;
    gen_sink sink = {.token = on_token, .done = on_done, .ctx = c, .model = p->model};

    sink.patient = !c->stream && (!p->readers || !readers_may_end(p->readers));

    if (c->stream && c->f->known) sink.began = on_began;
    const bool progress = c->stream && p->ask.progress && c->f->progress;
    for (uint32_t i = 0; i < c->n; i++) {
        r->ids = p->ids[i / c->n_each].ptr;
        r->n_ids = p->ids[i / c->n_each].len;
        r->choice = i % c->n_each;
        sink.choice = i;
        sink.progress = progress && r->choice == 0 ? on_progress : NULL;
        TRY(gen_start(mail, p->model->engine, r, &sink, &c->choices[i].g, dg));
        c->n_running++;
        /* Accepted: it fits a context, and all of them a count. */
        if (r->choice == 0) c->usage.n_prompt += (int32_t)r->n_ids;
    }
    return CAIRN_OK;
}

static void on_pulse(void *user)
{
    answer *c = user;

    answer_enter(c);
    c->f->pulse(c->out, &c->frames);
    answer_leave(c);
}

cairn_status answer_start(http_req *rq, mailbox *mail, prompt *p, const answer_format *f,
                          cairn_diag *dg)
{
    answer *c = answer_new(rq, p, f);
    cairn_status st;

    if (!c) return diag_set(dg, CAIRN_E_NOMEM, "no memory for the request");
    st = open_format(c, mail, p, dg);
    if (st == CAIRN_OK) st = submit_all(mail, p, c, dg);
    if (st != CAIRN_OK) {
        drop_all(c);
        answer_free(c);
        return st;
    }
    note_usage(c);
    c->readers = p->readers;
    p->readers = NULL;
    if (c->readers) readers_bind(c->readers, on_delta, c);
    answer_enter(c);
    http_on_gone(rq, on_gone, c);
    if (c->stream) {
        if (f->headers) f->headers(rq);
        if (f->begin_stream)
            f->begin_stream(rq);
        else
            sse_start(rq);
        if (f->start) f->start(c->out, &c->frames);
        if (f->pulse) http_stream_pulse(rq, on_pulse, c);
    }
    answer_leave(c);
    return CAIRN_OK;
}
