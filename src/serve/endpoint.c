/* A body becomes a prompt on a worker (jobs.h, prompt.h), a prompt an answer (served_answer.h).  This is the way
   between them, on the I/O thread, for every API.

   That of a tiny body is made at once, in less time than a worker takes to wake up; where the model's template takes
   long for it all the same, a worker makes it anew.

   A client that leaves while its prompt waits or is being made drops the job: a waiting one is freed at
   once, a running one when its worker is through with it, as neither a template nor a tokenizer can be
   stopped half-way. */
#include "serve/endpoint.h"

#include <stdio.h>

#include "base/diag.h"
#include "base/str.h"
#include "serve/openai_wire.h"
#include "serve/sse.h"

/* A tiny body: the questions that come by the thousand.  Template and tokenizer of SmolLM2 take 10 µs for it, a worker's
   wake-up 30 to 50. */
enum { TINY_BYTES = 2 << 10 };

typedef struct prompt_job {
    job j;
    const endpoint *e;
    cairn_server *s;
    http_req *rq; /* I/O thread; good until the job is dropped */
    buf body;     /* the worker's, like the prompt, until it is done */
    prompt p;
    bool streams; /* I/O thread: the head of a stream is sent, so an error is told in it */
} prompt_job;

static void on_gone(void *user)
{
    prompt_job *c = user;

    jobs_drop(&c->s->jobs, &c->j);
}

static void release(job *j)
{
    prompt_job *c = (prompt_job *)j;

    buf_deinit(&c->body);
    prompt_deinit(&c->p);
    served_model_let_go(c->j.given);
    mem_free(c);
}

/* The last that is told of rq. */
static void tell_error(const prompt_job *c, int status, const char *param, const char *code,
                       const char *message)
{
    const answer_format *f = c->e->format;
    bool sent;
    buf b;

    if (!c->streams) {
        f->refuse(c->rq, status, param, code, message);
        return;
    }
    buf_init(&b, MEM_SERVE);
    f->fail(NULL, status, code, str_of(message), &b);
    sent = buf_status(&b) != CAIRN_OK || http_stream_write(c->rq, buf_view(&b));
    if (sent) http_stream_end(c->rq); /* else the client is gone */
    buf_deinit(&b);
}

static void refuse(job *j)
{
    const prompt_job *c = (prompt_job *)j;

    http_on_gone(c->rq, NULL, NULL); /* a write may find it gone, and the job is dropped anyway */
    tell_error(c, 503, NULL, "server_shutdown", "the server is shutting down");
}

/* Worker. */
static void make(job *j)
{
    prompt_job *c = (prompt_job *)j;

    c->p.client.held = j->given;
    c->e->make(&c->p, &c->s->models, buf_view(&c->body));
    if (!c->p.awaits && !c->p.too_slow) buf_deinit(&c->body); /* else it is read again */
}

/* All choices or none: some of them would hold the queue only to be cancelled. */
static cairn_status check_room(const prompt *p, const char **param, cairn_diag *dg)
{
    const int64_t n = (int64_t)p->ask.n * (int64_t)p->n_ids;
    cairn_engine_stats s;
    cairn_engine_stats_init(&s);
    cairn_engine_get_stats(p->model->engine, &s);
    const int64_t most = (int64_t)s.max_seqs + s.max_queue, now = (int64_t)s.n_active + s.n_queued;
    if (n > most) *param = p->n_ids > 1 ? "prompt" : "n";
    if (n > most && p->n_ids > 1)
        return diag_set(dg, CAIRN_E_ARG,
                        "`prompt` and `n` make %lld choices; expected at most %lld", (long long)n,
                        (long long)most);
    if (n > most)
        return diag_set(dg, CAIRN_E_ARG, "`n` is %lld; expected at most %lld here", (long long)n,
                        (long long)most);
    if (n <= most - now) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_BUSY, "%lld requests are running or waiting, at most %lld may",
                    (long long)now, (long long)most);
}

static void reply_not_accepted(const prompt_job *c, cairn_status st, const char *param,
                               const cairn_diag *dg)
{
    const char *code = st == CAIRN_E_BUSY    ? "queue_full"
                       : st == CAIRN_E_LIMIT ? "context_length_exceeded"
                       : st == CAIRN_E_NOMEM ? "out_of_memory"
                       : st == CAIRN_E_ARG   ? "invalid_value"
                                             : NULL;

    tell_error(c, openai_status(st), param, code,
               dg->message[0] ? dg->message : cairn_status_text(st));
}

/* So that the engine counts from when it came. */
static uint32_t time_left(const prompt_job *c)
{
    const uint64_t end = c->j.came_ms + c->s->models.timeout_ms, now = http_now_ms();

    return end > now ? (uint32_t)(end - now) : 1;
}

static void start(prompt_job *c)
{
    chat_ask *a = &c->p.ask;
    cairn_diag dg = {0};
    const char *param = NULL;
    const owner *by = &c->p.client.by;
    cairn_status st;

    a->rq.cache_space = (cairn_str){(const char *)by->digest, by->n};
    if (a->warning) http_set_header(c->rq, "Warning", a->warning);
    st = check_room(&c->p, &param, &dg);
    if (c->s->models.timeout_ms) a->rq.deadline_ms = time_left(c);
    if (st == CAIRN_OK) st = answer_start(c->rq, &c->s->mail, &c->p, c->e->format, &dg);
    if (st != CAIRN_OK) reply_not_accepted(c, st, param, &dg);
}

static void reply_text(const prompt_job *c)
{
    const answer_format *f = c->e->format;

    if (c->p.text.over_limit) {
        char why[120];
        (void)snprintf(why, sizeof why,
                       "the reply would take more than %zu bytes; expected a smaller request",
                       c->p.text.max);
        f->refuse(c->rq, 400, NULL, "reply_too_large", why);
        return;
    }
    if (buf_status(&c->p.text) != CAIRN_OK) {
        f->refuse(c->rq, 503, NULL, "out_of_memory", "no memory for the answer");
        return;
    }
    if (f->headers) f->headers(c->rq);
    http_reply(c->rq, 200, "application/json", buf_view(&c->p.text));
}

static void refuse_for(const prompt_job *c, const prompt_fault *f)
{
    char wait[16];

    (void)snprintf(wait, sizeof wait, "%d", (int)f->retry_s);
    if (f->retry_s) http_set_header(c->rq, "Retry-After", wait);
    tell_error(c, f->status, f->param[0] ? f->param : NULL, f->code, f->message);
}

/* As with a long prompt, a stream's head does not wait for the model. */
static void begin_stream(prompt_job *c)
{
    const answer_format *f = c->e->format;

    if (c->streams || c->e->just_text || !c->p.awaits_stream) return;
    c->streams = true;
    if (f->headers) f->headers(c->rq);
    if (f->begin_stream)
        f->begin_stream(c->rq);
    else
        sse_start(c->rq);
}

static void put(prompt_job *c)
{
    const endpoint *e = c->e;
    http_req *rq = c->rq;

    if (jobs_put(&c->s->jobs, &c->j) == CAIRN_OK) return;
    http_on_gone(rq, NULL, NULL);
    release(&c->j);
    http_set_header(rq, "Retry-After", "1");
    e->format->refuse(rq, 503, NULL, "prompts_full",
                      "too many prompts, or too many bytes of them, are waiting to be made");
}

/* The job is over: rq is no more its concern.  But where its model is not loaded it waits for that. */
static bool made(job *j)
{
    prompt_job *c = (prompt_job *)j;
    prompt_fault *f = &c->p.fault;

    if (j->late) {
        http_on_gone(c->rq, NULL, NULL);
        tell_error(c, 503, NULL, "deadline_exceeded",
                   "the time of the request passed before its model was loaded");
        return true;
    }
    if (c->p.too_slow) {
        c->p.client.at_once = false;
        put(c);
        return false;
    }
    if (c->p.awaits && jobs_park(&c->s->jobs, j, c->p.awaits) == CAIRN_OK) {
        models_want(&c->s->models, c->p.awaits, http_now_ms());
        c->p.client.waited = true;
        c->p.client.at_once = false; /* from now on a worker makes it */
        begin_stream(c);
        return false;
    }
    http_on_gone(c->rq, NULL, NULL);
    if (f->status)
        refuse_for(c, f);
    else if (c->e->just_text || c->p.text.len)
        reply_text(c);
    else
        start(c);
    return true;
}

void endpoint_serve(cairn_server *s, http_req *rq, const endpoint *e)
{
    static const job_kind kind = {make, made, refuse, release};
    prompt_job *c = mem_calloc(1, sizeof *c, MEM_SERVE);

    if (!c) {
        e->format->refuse(rq, 503, NULL, "out_of_memory", "no memory for the request");
        return;
    }
    c->j.kind = &kind;
    c->e = e;
    c->s = s;
    c->rq = rq;
    c->p.client.responses = &s->responses;
    c->p.client.most_text = s->most_text;
    c->p.client.by.n = auth_space(&s->auth, rq, c->p.client.by.digest).len;
    http_take_body(rq, &c->body);
    c->j.bytes = e->slow && c->body.len <= JOBS_SHORT_BYTES ? JOBS_SHORT_BYTES + 1 : c->body.len;
    http_on_gone(rq, on_gone, c);
    c->p.client.at_once = e->direct && c->j.bytes <= TINY_BYTES;
    if (c->p.client.at_once)
        jobs_do(&c->j);
    else
        put(c);
}
