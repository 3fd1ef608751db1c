/* As endpoint.c, without a prompt: a client that leaves drops the job. */
#include "serve/errand.h"

#include "base/alloc.h"
#include "serve/openai_wire.h"

static void on_gone(void *user)
{
    errand *e = user;

    jobs_drop(&e->s->jobs, &e->j);
}

static void release(job *j)
{
    errand *e = (errand *)j;

    if (e->kind->end) e->kind->end(e);
    buf_deinit(&e->body);
    mem_free(e);
}

static void refuse(job *j)
{
    openai_error(((errand *)j)->rq, 503, NULL, "server_shutdown", "the server is shutting down");
}

static void work(job *j)
{
    errand *e = (errand *)j;

    e->kind->work(e);
}

static bool done(job *j)
{
    errand *e = (errand *)j;

    http_on_gone(e->rq, NULL, NULL);
    if (e->status == 200 || buf_status(&e->body) != CAIRN_OK)
        openai_reply(e->rq, &e->body);
    else
        http_reply(e->rq, e->status, "application/json", buf_view(&e->body));
    return true;
}

errand *errand_new(const errand_kind *kind, cairn_server *s, http_req *rq, size_t bytes)
{
    static const job_kind jobs_kind = {work, done, refuse, release};
    errand *e = mem_calloc(1, kind->size, MEM_SERVE);

    if (!e) {
        openai_error(rq, 503, NULL, "out_of_memory", "no memory for the request");
        return NULL;
    }
    e->j.kind = &jobs_kind;
    e->j.bytes = bytes;
    e->kind = kind;
    e->s = s;
    e->rq = rq;
    e->status = 200;
    buf_init(&e->body, MEM_SERVE);
    return e;
}

void errand_start(errand *e)
{
    http_req *rq = e->rq;

    http_on_gone(rq, on_gone, e);
    if (jobs_put(&e->s->jobs, &e->j) == CAIRN_OK) return;
    http_on_gone(rq, NULL, NULL);
    release(&e->j);
    http_set_header(rq, "Retry-After", "1");
    openai_error(rq, 503, NULL, "prompts_full", "too many requests wait for a worker");
}
