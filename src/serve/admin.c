/* What an operator asks for.  Flushing takes as long as a disk does: it is done on a worker, and the reply waits for
   it. */
#include "serve/admin.h"

#include "base/json.h"
#include "base/str.h"
#include "serve/errand.h"
#include "serve/openai_wire.h"

enum {
    FLUSH_MS =
        60000, /* a disk of 150 MB/s takes 8 GiB of prefixes, the most by default, meanwhile */
    SLICE_MS =
        250, /* between two a model's requests make a step; a server that closes waits for one */
    LONG = JOBS_SHORT_BYTES + 1 /* the lane that may be slow */
};

static void write_model(json_writer *w, const served_model *m, const cairn_flush *f)
{
    json_w_obj(w);
    json_w_kstr(w, "id", str_of(m->id));
    json_w_kuint(w, "durable", f->durable);
    json_w_kuint(w, "pending", f->pending);
    json_w_kuint(w, "dropped", f->dropped);
    json_w_kuint(w, "failed", f->failed);
    json_w_kint(w, "longest_tokens", f->longest);
    json_w_kuint(w, "checkpoints", f->checkpoints);
    json_w_kuint(w, "checkpoints_pending", f->checkpoints_pending);
    json_w_kuint(w, "checkpoints_failed", f->checkpoints_failed);
    json_w_kuint(w, "cleanups_failed", f->cleanups_failed);
    json_w_end_obj(w);
}

static bool is_durable(const cairn_flush *f)
{
    return !f->pending && !f->dropped && !f->failed && !f->checkpoints_pending &&
           !f->checkpoints_failed && !f->cleanups_failed;
}

/* Until all is written, some of it cannot be, time is up or the server closes. */
static void flush_model(const cairn_server *s, cairn_engine *e, cairn_flush *out)
{
    cairn_flush_init(out);
    for (uint32_t ms = 0; ms < FLUSH_MS && !atomic_get(&s->closing); ms += SLICE_MS) {
        cairn_flush part;
        cairn_flush_init(&part);
        cairn_engine_flush(e, SLICE_MS, &part);
        part.durable += out->durable;
        *out = part;
        const bool waits = part.pending || part.checkpoints_pending;
        if (!waits || part.dropped || part.failed || part.checkpoints_failed) return;
    }
}

/* Worker. */
static void flush(errand *e)
{
    const models *all = &e->s->models;
    json_writer w = json_write(&e->body);
    bool durable = true;

    json_w_obj(&w);
    json_w_key(&w, "models");
    json_w_arr(&w);
    for (size_t i = 0; i < all->n; i++) {
        bool leaves;
        const served_model *m = models_hold_nth(all, i, &leaves);
        cairn_flush done;
        durable = durable && !leaves; /* what it writes last is not known here */
        if (m && m->engine) {
            flush_model(e->s, m->engine, &done);
            durable = durable && is_durable(&done) && !atomic_get(&e->s->closing);
            write_model(&w, m, &done);
        }
        served_model_look_away(m);
    }
    json_w_end_arr(&w);
    json_w_end_obj(&w);
    e->status = durable ? 200 : 503;
}

void admin_flush(cairn_server *s, http_req *rq)
{
    static const errand_kind kind = {sizeof(errand), flush, NULL};
    errand *e = errand_new(&kind, s, rq, LONG);

    if (e) errand_start(e);
}

void admin_drain(cairn_server *s, http_req *rq)
{
    buf b;
    json_writer w;

    buf_init(&b, MEM_SERVE);
    w = json_write(&b);
    json_w_obj(&w);
    json_w_kbool(&w, "draining", true);
    json_w_kuint(&w, "requests", s->mail.n_live);
    json_w_kuint(&w, "prompts", jobs_live(&s->jobs));
    json_w_end_obj(&w);
    openai_reply(rq, &b);
    buf_deinit(&b);
    cairn_server_stop(s);
}
