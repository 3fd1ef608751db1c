/* Brings events from engine threads to the I/O thread without ever making the engine wait: a callback
   copies its event into the generation's queue under a short lock, and the last of a step wakes the I/O thread.

   The queue is bounded: the I/O thread empties it whatever the client does, so only a stuck I/O thread
   can fill it; then the rest is dropped and the request ends in an error.
   A generation lives until the engine's DONE event has been delivered, dropped or not. */
#include "serve/gen.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/diag.h"
#include "serve/models.h"

enum {
    QUEUE_BYTES = 4 << 20, /* some 50,000 tokens: minutes of the I/O thread's absence */
    PATIENT_BYTES =
        4096, /* of tokens that nobody waits for: some 150, or 10 with all log-probabilities */
    REPLAY_BYTES =
        4096 /* of text in one record: what comes at once must not overrun a slow client */
};

struct gen {
    gen *next_ready; /* guarded by mu, like what follows up to result */
    buf queue;       /* records of tokens: record, top, text */
    size_t replay;   /* the last record, if it is of replayed tokens, + 1; 0: it is not */
    bool in_ready, overflow, done;
    bool began, moved; /* something is known of the prefill, and not told yet */
    gen_progress progress;
    uint64_t first_ns; /* the first token was put; 0: none was */
    buf last_text;
    gen_result result;
    gen *prev, *next; /* I/O thread, like the rest */
    mailbox *m;
    cairn_engine *engine;
    cairn_request_id id;
    gen_sink sink;
    bool dropped, told_began;
};

typedef struct record {
    int32_t id, n, n_top;
    float logprob;
    uint32_t n_text;
} record;

void mailbox_init(mailbox *m, void (*notify)(void *ctx), void *ctx)
{
    *m = (mailbox){.notify = notify, .ctx = ctx};
    mutex_init(&m->mu);
}

void mailbox_deinit(mailbox *m)
{
    assert(!m->live);
    mutex_deinit(&m->mu);
}

/* More of a text that is told again; false: it begins a record. */
static bool add_replayed(gen *g, const cairn_event *ev)
{
    record r;

    if (!ev->replayed || !g->replay) return false;
    memcpy(&r, g->queue.ptr + g->replay - 1, sizeof r);
    if (r.n_text + ev->text.len > REPLAY_BYTES) return false;
    r.id = ev->id;
    r.n++;
    r.n_text += (uint32_t)ev->text.len;
    memcpy(g->queue.ptr + g->replay - 1, &r, sizeof r);
    buf_str(&g->queue, ev->text);
    return true;
}

static void begin_record(gen *g, const cairn_event *ev)
{
    const record r = {ev->id, ev->kind == CAIRN_EV_TOKEN, ev->n_top, ev->logprob,
                      (uint32_t)ev->text.len};

    g->replay = ev->replayed ? g->queue.len + 1 : 0;
    buf_put(&g->queue, &r, sizeof r);
    buf_put(&g->queue, ev->top, (size_t)ev->n_top * sizeof *ev->top);
    buf_str(&g->queue, ev->text);
}

static void put_token(gen *g, const cairn_event *ev)
{
    if (g->overflow) return;
    if (!g->first_ns && ev->kind == CAIRN_EV_TOKEN) g->first_ns = clock_ns();
    if (!add_replayed(g, ev)) begin_record(g, ev);
    g->overflow = buf_status(&g->queue) != CAIRN_OK;
}

static void put_done(gen *g, const cairn_event *ev)
{
    size_t n = ev->message ? strlen(ev->message) : 0;

    if (n > sizeof g->result.message - 1) n = sizeof g->result.message - 1;
    buf_str(&g->last_text, ev->text);
    if (n) memcpy(g->result.message, ev->message, n);
    g->result.finish = ev->finish;
    g->result.status = ev->status;
    g->result.n_prompt = ev->n_prompt;
    g->result.n_cached = ev->n_cached;
    g->result.n_generated = ev->n_generated;
    g->result.stop = ev->stop;
    if (buf_status(&g->last_text) != CAIRN_OK) g->overflow = true;
    g->done = true;
}

/* Whether it is news: to most sinks only the first is.  One that is not told yet gives way to the next. */
static bool put_progress(gen *g, const cairn_event *ev)
{
    if (g->began && !g->sink.progress) return false;
    g->began = true;
    g->moved = g->sink.progress != NULL;
    g->progress = (gen_progress){.n_prompt = ev->n_prompt,
                                 .n_cached = ev->n_cached,
                                 .n_done = ev->n_done,
                                 .ms = (int64_t)(ev->prefill_seconds * 1000)};
    return true;
}

/* Engine thread. */
static void on_event(void *ctx, const cairn_event *ev)
{
    gen *g = ctx;
    mailbox *m = g->m;
    bool fresh = true;

    mutex_lock(&m->mu);
    switch (ev->kind) {
    case CAIRN_EV_PROGRESS:
        fresh = put_progress(g, ev);
        break;
    case CAIRN_EV_PROMPT:
    case CAIRN_EV_TOKEN:
        put_token(g, ev);
        fresh = !g->sink.patient || g->overflow || g->queue.len >= PATIENT_BYTES;
        break;
    case CAIRN_EV_DONE:
        put_done(g, ev);
        break;
    }
    if (fresh && !g->in_ready) {
        g->in_ready = true;
        g->next_ready = m->ready;
        m->ready = g;
    }
    /* Inside the lock: once it is free, the I/O thread may see DONE and close everything. */
    if (m->ready && !m->notified && !ev->more) {
        m->notified = true;
        m->notify(m->ctx);
    }
    mutex_unlock(&m->mu);
}

static void gen_free(gen *g)
{
    buf_deinit(&g->queue);
    buf_deinit(&g->last_text);
    served_model_let_go(g->sink.model);
    mem_free(g);
}

static void unlink_live(gen *g)
{
    if (g->prev)
        g->prev->next = g->next;
    else
        g->m->live = g->next;
    if (g->next) g->next->prev = g->prev;
    g->m->n_live--;
}

cairn_status gen_start(mailbox *m, cairn_engine *e, const cairn_request *r, const gen_sink *sink,
                       gen **out, cairn_diag *dg)
{
    cairn_status st;
    gen *g = mem_calloc(1, sizeof *g, MEM_SERVE);
    cairn_request rq = *r;

    if (!g) return diag_set(dg, CAIRN_E_NOMEM, "no memory for a request");
    g->m = m;
    g->engine = e;
    g->sink = *sink;
    if (sink->model) served_model_hold(sink->model);
    rq.want_progress = sink->began || sink->progress;
    rq.reader = m;
    buf_init(&g->queue, MEM_SERVE);
    g->queue.max = QUEUE_BYTES;
    buf_init(&g->last_text, MEM_SERVE);
    st = cairn_engine_submit(e, &rq, on_event, g, &g->id, dg);
    if (st != CAIRN_OK) {
        gen_free(g);
        return st;
    }
    g->next = m->live;
    if (g->next) g->next->prev = g;
    m->live = g;
    m->n_live++;
    *out = g;
    return CAIRN_OK;
}

void gen_stop(gen *g)
{
    cairn_engine_stop(g->engine, g->id);
}

void gen_drop(gen *g)
{
    if (g->dropped) return;
    g->dropped = true;
    cairn_engine_cancel(g->engine, g->id);
}

void mailbox_cancel(mailbox *m)
{
    for (gen *g = m->live; g; g = g->next) cairn_engine_cancel(g->engine, g->id);
}

static void deliver_tokens(gen *g, const buf *queue, uint64_t first_ns)
{
    size_t at = 0;

    while (!g->dropped && queue->len - at >= sizeof(record)) {
        cairn_logprob top[CAIRN_MAX_LOGPROBS];
        gen_token t;
        record r;

        memcpy(&r, queue->ptr + at, sizeof r);
        at += sizeof r;
        t = (gen_token){.id = r.id,
                        .n = r.n,
                        .logprob = r.logprob,
                        .top = top,
                        .n_top = r.n_top,
                        .first_ns = first_ns};
        assert(r.n_top >= 0 && r.n_top <= CAIRN_MAX_LOGPROBS);
        if (queue->len - at < (size_t)r.n_top * sizeof *top + r.n_text)
            return; /* cut by overflow */
        memcpy(top, queue->ptr + at, (size_t)r.n_top * sizeof *top);
        at += (size_t)r.n_top * sizeof *top;
        t.text = (cairn_str){queue->ptr + at, r.n_text};
        at += r.n_text;
        g->sink.token(g->sink.ctx, g->sink.choice, &t);
    }
}

static void deliver_progress(gen *g, bool began, bool moved, const gen_progress *p)
{
    if (began && !g->told_began && !g->dropped && g->sink.began)
        g->sink.began(g->sink.ctx, g->sink.choice, p->n_cached);
    g->told_began = began;
    if (moved && !g->dropped) g->sink.progress(g->sink.ctx, g->sink.choice, p);
}

/* Answers the next of the list that g is in. */
static gen *deliver(gen *g)
{
    gen_result result;
    gen *next;
    buf queue;
    bool done, overflow, began, moved;
    gen_progress progress;
    uint64_t first_ns;

    mutex_lock(&g->m->mu);
    /* One critical section: were g free to be listed again before its news is taken, DONE could come
       in between, and g be freed while it is listed. */
    next = g->next_ready;
    g->in_ready = false;
    queue = g->queue;
    buf_init(&g->queue, MEM_SERVE);
    g->queue.max = QUEUE_BYTES;
    g->replay = 0;
    done = g->done;
    overflow = g->overflow;
    began = g->began;
    moved = g->moved;
    g->moved = false;
    progress = g->progress;
    first_ns = g->first_ns;
    result = g->result;
    mutex_unlock(&g->m->mu);

    deliver_progress(g, began, moved, &progress);
    deliver_tokens(g, &queue, first_ns);
    buf_deinit(&queue);
    if (overflow && !done) cairn_engine_cancel(g->engine, g->id);
    if (!done) return next;
    result.text = buf_view(&g->last_text); /* the engine is done with g */
    if (overflow) {
        result.finish = CAIRN_FINISH_ERROR;
        result.status = CAIRN_E_NOMEM;
        memcpy(result.message, "events were lost", sizeof "events were lost");
    }
    unlink_live(g);
    if (!g->dropped) g->sink.done(g->sink.ctx, g->sink.choice, &result);
    gen_free(g);
    return next;
}

void mailbox_deliver(mailbox *m)
{
    gen *list, *next, *in_order = NULL;

    mutex_lock(&m->mu);
    list = m->ready;
    m->ready = NULL;
    m->notified = false;
    for (gen *g = list; g; g = next) { /* oldest news first */
        next = g->next_ready;
        g->next_ready = in_order;
        in_order = g;
    }
    mutex_unlock(&m->mu);
    while (in_order) in_order = deliver(in_order);
}
