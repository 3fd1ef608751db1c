/* The life of a chat request: read, render, submit one generation for each choice, answer whole or as
   a stream, end.  Reading and shapes are openai_read.c's and openai_wire.c's.

   A chat has two ends, the client's request (rq) and its generations.  Whichever side goes first, the
   other is let go: a client that leaves drops every generation; the chat is freed once it has neither.
   Rendering and encoding run on the I/O thread: milliseconds, but for prompts of very many tokens. */
#include "serve/openai_chat.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/diag.h"
#include "base/log.h"
#include "base/str.h"
#include "serve/openai_read.h"
#include "serve/openai_wire.h"
#include "serve/sse.h"

typedef struct choice {
    gen *g;             /* NULL: done or dropped */
    bool begun;         /* its first chunk was sent */
    buf text, logprobs; /* whole answers only */
    cairn_finish finish;
} choice;

typedef struct chat_call { /* I/O thread */
    http_req *rq;          /* NULL once answered or gone */
    const struct cairn_text *text;
    openai_head head;
    bool stream, include_usage, logprobs;
    int32_t n_top;
    openai_usage usage;
    uint32_t n, n_running, n_inside;
    choice choices[];
} chat_call;

static void chat_call_free(chat_call *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        buf_deinit(&c->choices[i].text);
        buf_deinit(&c->choices[i].logprobs);
    }
    mem_free(c);
}

static void drop_all(chat_call *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->choices[i].g) gen_drop(c->choices[i].g);
        c->choices[i].g = NULL;
    }
    c->n_running = 0;
}

/* Every entry into a chat is between these two, as a client can be found gone inside any write. */
static void chat_call_enter(chat_call *c)
{
    c->n_inside++;
}

static void chat_call_leave(chat_call *c)
{
    c->n_inside--;
    if (c->n_inside == 0 && !c->rq && c->n_running == 0) chat_call_free(c);
}

static void on_gone(void *user)
{
    chat_call *c = user;

    chat_call_enter(c);
    c->rq = NULL;
    drop_all(c);
    chat_call_leave(c);
}

/* No memory for a frame: better no end than a hole. */
static void break_off(chat_call *c)
{
    drop_all(c);
    if (c->rq) sse_end(c->rq);
    c->rq = NULL;
}

static void send_frame(chat_call *c, const buf *b)
{
    bool sent;

    if (!c->rq) return;
    sent = buf_status(b) == CAIRN_OK && sse_data(c->rq, buf_view(b));
    if (!sent) break_off(c); /* nothing is left to do if the client was cut */
}

static void send_chunk(chat_call *c, uint32_t i, bool role, cairn_str content, cairn_str logprob,
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

static void begin_choice(chat_call *c, uint32_t i)
{
    if (c->choices[i].begun) return;
    c->choices[i].begun = true;
    send_chunk(c, i, true, STR_LIT(""), (cairn_str){0}, NULL);
}

static void finish_stream(chat_call *c)
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

static void write_choice(json_writer *w, const chat_call *c, uint32_t i)
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

static void finish_whole(chat_call *c)
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
static void fail(chat_call *c, const gen_result *r)
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
    chat_call *c = ctx;
    choice *ch = &c->choices[i];
    buf lp = {.tag = MEM_SERVE};
    buf *to = c->stream ? &lp : &ch->logprobs;

    chat_call_enter(c);
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
    chat_call_leave(c);
}

static void on_done(void *ctx, uint32_t i, const gen_result *r)
{
    chat_call *c = ctx;
    choice *ch = &c->choices[i];

    chat_call_enter(c);
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
    chat_call_leave(c);
}

static void reply_fault(http_req *rq, cairn_status st, const chat_fault *f)
{
    openai_error(rq, openai_status(st), f->param[0] ? f->param : NULL,
                 st == CAIRN_E_UNSUPPORTED ? "unsupported_parameter"
                 : f->param[0]             ? "invalid_value"
                                           : "invalid_json",
                 "%s", f->dg.message);
}

/* The model that the body names; NULL: replied. */
static const served_model *find_model(const cairn_server *s, http_req *rq, cairn_str name)
{
    const served_model *m = models_find(&s->models, name);

    if (m) return m;
    if (name.len)
        openai_error(rq, 404, "model", "model_not_found", "the model `%.*s` does not exist",
                     STR_ARG(name));
    else
        openai_error(rq, 400, "model", "invalid_value", "`model` is needed: there are several");
    return NULL;
}

static bool can_render(http_req *rq, const served_model *m)
{
    cairn_diag dg = {0};

    if (cairn_text_check_template(served_model_text(m), &dg) == CAIRN_OK) return true;
    openai_error(rq, 400, "messages", "no_chat_template", "the model `%s` cannot chat: %s", m->id,
                 dg.message);
    return false;
}

static cairn_render_opts render_opts(const chat_ask *a)
{
    cairn_render_opts o;

    cairn_render_opts_init(&o);
    o.messages = buf_view(&a->messages);
    o.tools = buf_view(&a->tools);
    o.kwargs = buf_view(&a->kwargs);
    o.no_generation_prompt = a->no_generation_prompt;
    return o;
}

static void reply_no_prompt(http_req *rq, cairn_status st, const cairn_diag *dg)
{
    openai_error(rq, st == CAIRN_E_NOMEM ? 503 : 400, "messages", "prompt_build_failed",
                 "prompt build failed: %s", dg->message);
}

/* False: replied. */
static bool prompt_fits(http_req *rq, const served_model *m, size_t n_ids)
{
    int32_t ctx = served_model_ctx(m);

    if (n_ids < (size_t)ctx) return true;
    openai_error(rq, 400, "messages", "context_length_exceeded",
                 "the messages make %zu tokens, and the context holds %d positions, of which the "
                 "answer needs at least one",
                 n_ids, ctx);
    return false;
}

static uint64_t random_seed(void)
{
    uint64_t seed;

    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) seed = clock_ns();
    return seed;
}

static chat_call *chat_call_new(http_req *rq, const served_model *m, const chat_ask *a)
{
    chat_call *c = mem_calloc(1, sizeof *c + (size_t)a->n * sizeof c->choices[0], MEM_SERVE);

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

/* All choices or none: some of them would hold the queue only to be cancelled. */
static cairn_status check_room(cairn_engine *e, int64_t n, cairn_diag *dg)
{
    cairn_engine_stats s;
    cairn_engine_stats_init(&s);
    cairn_engine_get_stats(e, &s);
    const int64_t most = (int64_t)s.max_seqs + s.max_queue, now = (int64_t)s.n_active + s.n_queued;
    if (n > most)
        return diag_set(dg, CAIRN_E_ARG, "`n` is %lld; expected at most %lld here", (long long)n,
                        (long long)most);
    if (n <= most - now) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_BUSY, "%lld requests are running or waiting, at most %lld may",
                    (long long)now, (long long)most);
}

static cairn_status submit_all(cairn_server *s, const served_model *m, chat_call *c,
                               cairn_request *r, cairn_diag *dg)
{
    const gen_sink sink = {on_token, on_done, c};

    TRY(check_room(m->engine, (int64_t)c->n, dg));
    for (uint32_t i = 0; i < c->n; i++) {
        r->choice = i;
        TRY(gen_start(&s->mail, m->engine, r, &sink, &c->choices[i].g, dg));
        c->n_running++;
    }
    return CAIRN_OK;
}

static void reply_not_accepted(http_req *rq, cairn_status st, const cairn_diag *dg)
{
    const char *code = st == CAIRN_E_BUSY    ? "queue_full"
                       : st == CAIRN_E_LIMIT ? "context_length_exceeded"
                                             : NULL;

    openai_error(rq, openai_status(st), NULL, code, "%s",
                 dg->message[0] ? dg->message : cairn_status_text(st));
}

static void start(cairn_server *s, http_req *rq, const served_model *m, chat_ask *a,
                  const cairn_ids *ids)
{
    cairn_diag dg = {0};
    cairn_status st;
    chat_call *c = chat_call_new(rq, m, a);

    if (!c) {
        openai_error(rq, 503, NULL, "out_of_memory", "no memory for the request");
        return;
    }
    a->rq.ids = ids->ptr;
    a->rq.n_ids = ids->len;
    if (!a->has_seed) a->rq.sampling.seed = random_seed();
    st = submit_all(s, m, c, &a->rq, &dg);
    if (st != CAIRN_OK) {
        drop_all(c);
        chat_call_free(c);
        reply_not_accepted(rq, st, &dg);
        return;
    }
    chat_call_enter(c);
    http_on_gone(rq, on_gone, c);
    if (c->stream) sse_start(rq);
    chat_call_leave(c);
}

void openai_chat_serve(cairn_server *s, http_req *rq)
{
    cairn_diag dg = {0};
    cairn_ids ids = {0};
    cairn_render_opts ro;
    chat_fault fault;
    const served_model *m;
    chat_ask a;
    cairn_status st = chat_ask_read(&a, http_body(rq), &fault);

    if (st != CAIRN_OK) {
        reply_fault(rq, st, &fault);
        goto out;
    }
    m = find_model(s, rq, a.model);
    if (!m || !can_render(rq, m)) goto out;
    ro = render_opts(&a);
    st = cairn_text_prompt(served_model_text(m), &ro, &ids, &dg);
    if (st != CAIRN_OK || ids.len == 0)
        reply_no_prompt(rq, st, &dg);
    else if (prompt_fits(rq, m, ids.len))
        start(s, rq, m, &a, &ids);
out:
    cairn_ids_free(&ids);
    chat_ask_deinit(&a);
}

void openai_chat_render(cairn_server *s, http_req *rq)
{
    cairn_diag dg = {0};
    cairn_bytes text = {0};
    cairn_render_opts ro;
    chat_fault fault;
    const served_model *m;
    json_writer w;
    chat_ask a;
    buf b;
    cairn_status st = chat_ask_read(&a, http_body(rq), &fault);

    buf_init(&b, MEM_SERVE);
    if (st != CAIRN_OK) {
        reply_fault(rq, st, &fault);
        goto out;
    }
    m = find_model(s, rq, a.model);
    if (!m || !can_render(rq, m)) goto out;
    ro = render_opts(&a);
    st = cairn_text_render(served_model_text(m), &ro, &text, &dg);
    if (st != CAIRN_OK) {
        reply_no_prompt(rq, st, &dg);
        goto out;
    }
    w = json_write(&b);
    json_w_obj(&w);
    json_w_kstr(&w, "prompt", (cairn_str){text.ptr, text.len});
    json_w_end_obj(&w);
    openai_reply(rq, &b);
out:
    buf_deinit(&b);
    cairn_bytes_free(&text);
    chat_ask_deinit(&a);
}
