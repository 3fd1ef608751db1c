/* When a model is loaded and when it is let go.  Both take seconds: a thread does them, one at a time, so that what
   models hold together is known at every moment, and stays within the budget.

   Who asks for a model that is not loaded waits (jobs_park).  Models are loaded in the order in which they were first
   waited for.  The next one needs room: models that nobody uses go first, the one unused for longest before others.
   Where they are all in use, those unused for longest before are drained: their requests go on to the end, new ones
   wait behind the model that needs the room, so nobody waits for ever; what is drained stays so until it is closed or
   nobody waits for its room.  Pinned models and those that were open before the server was are never closed.  A model
   just loaded is held by the requests that waited for it until each is through: every load serves somebody.  A request
   whose time is up is told so while it waits.

   What models_turn calls is under the table's lock. */
#include <stdio.h>

#include "base/diag.h"
#include "base/log.h"
#include "serve/models_priv.h"
#include "serve/without_folders.h"

static void *loader_main(void *ctx)
{
    model_table *t = ctx;

    mutex_lock(&t->mu);
    for (;;) {
        while ((!t->work || t->taken) && !t->closing) cond_wait(&t->news, &t->mu);
        if (t->closing) break;
        const size_t i = (size_t)(t->work - t->slot);
        const bool opens = t->opens;
        cairn_server_model m = {0};
        cairn_diag dg = {0};
        cairn_status st = CAIRN_OK;
        t->taken = true;
        mutex_unlock(&t->mu);
        if (opens)
            st = t->open(t->open_ctx, i, &m, &dg);
        else
            t->close(t->open_ctx, i);
        mutex_lock(&t->mu);
        t->st = st;
        t->result = m;
        t->dg = dg;
        t->done = true;
        t->notify(t->ctx);
    }
    mutex_unlock(&t->mu);
    return NULL;
}

cairn_status model_loader_start(model_table *t, cairn_diag *dg)
{
    bool needed = false;

    for (size_t i = 0; i < t->n; i++) needed = needed || !t->slot[i].stays;
    if (!needed) return CAIRN_OK;
    if (!t->open || !t->close || !t->stop)
        return diag_set(dg, CAIRN_E_ARG, "models to be opened, and nothing that opens and closes");
    if (thread_start(&t->loader, "cairn-models", loader_main, t) == CAIRN_OK) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_NOMEM, "the thread that opens models could not be started");
}

void models_stop(models *m)
{
    model_table *t = m->table;

    if (!t || !t->loader.started) return;
    mutex_lock(&t->mu);
    t->closing = true;
    cond_signal(&t->news);
    mutex_unlock(&t->mu);
    t->stop(t->open_ctx);
    thread_join(&t->loader);
    t->loader.started = false;
}

void models_want(const models *m, const served_model *of, uint64_t now_ms)
{
    model_table *t = m->table;
    model_slot *s = of->slot;

    mutex_lock(&t->mu);
    if (s->state == MODEL_BROKEN && now_ms >= s->retry_ms) s->state = MODEL_UNLOADED;
    if (!s->wanted) s->wanted = ++t->n_wanted;
    mutex_unlock(&t->mu);
}

static void give_work(model_slot *s, bool opens)
{
    model_table *t = s->table;

    s->state = opens ? MODEL_LOADING : MODEL_UNLOADING;
    s->view.engine = NULL; /* from here on it is the loader's */
    s->view.model = NULL;
    t->work = s;
    t->opens = opens;
    t->taken = t->done = false;
    cond_signal(&t->news);
    log_event(LOG_INFO, opens ? "model_loading" : "model_unloading", "model=%s bytes=%llu",
              s->view.id, (unsigned long long)s->bytes);
}

static void fail(model_slot *s, const char *why, uint64_t now)
{
    s->state = MODEL_BROKEN;
    s->retry_ms = now + s->table->retry_ms;
    s->n_failed++;
    (void)snprintf(s->why, sizeof s->why, "%s", without_folders(why));
    log_event(LOG_WARN, "model_failed", "model=%s why=\"%s\"", s->view.id, why);
}

static void take_result(model_table *t, uint64_t now)
{
    model_slot *s = t->work;

    if (!s || !t->done) return;
    t->work = NULL;
    if (!t->opens) {
        s->state = MODEL_UNLOADED;
        log_event(LOG_INFO, "model_unloaded", "model=%s", s->view.id);
    } else if (t->st != CAIRN_OK) {
        fail(s, t->dg.message[0] ? t->dg.message : cairn_status_text(t->st), now);
    } else {
        s->state = MODEL_LOADED;
        s->view.engine = t->result.engine;
        s->view.model = t->result.engine ? cairn_engine_model(t->result.engine) : t->result.model;
        s->ctx_len = served_model_ctx(&s->view);
        model_used(s, now);
        s->keep_ms = t->keep_ms;
        s->n_loads++;
        log_event(LOG_INFO, "model_loaded", "model=%s", s->view.id);
    }
}

static bool is_open(const model_slot *s)
{
    return s->state != MODEL_UNLOADED && s->state != MODEL_BROKEN;
}

static uint64_t open_bytes(const model_table *t, bool that_stay)
{
    uint64_t n = 0;

    for (size_t i = 0; i < t->n; i++) {
        const model_slot *s = &t->slot[i];
        if (is_open(s) && (s->pinned || !that_stay)) n += s->bytes;
    }
    return n;
}

/* What is to be loaded next.  Places of models that clients no more wait for are forgotten. */
static model_slot *next_wanted(model_table *t, jobs *q)
{
    model_slot *best = NULL;

    for (size_t i = 0; i < t->n; i++) {
        model_slot *s = &t->slot[i];
        if (s->wanted && jobs_parked(q, &s->view) == 0) s->wanted = 0;
        if (s->wanted && s->state == MODEL_UNLOADED && (!best || s->wanted < best->wanted))
            best = s;
    }
    return best;
}

/* Of those that may go, the one unused for longest; NULL: none.  What is drained goes too, once it is idle. */
static model_slot *victim(model_table *t, bool idle)
{
    model_slot *best = NULL;

    for (size_t i = 0; i < t->n; i++) {
        model_slot *s = &t->slot[i];
        const bool open = s->state == MODEL_LOADED || (idle && s->state == MODEL_DRAINING);
        if (!open || s->pinned || (s->refs == 0) != idle) continue;
        if (!best || s->used < best->used) best = s;
    }
    return best;
}

/* Those that were chosen stay so as long as `over` bytes are wanted of them, however they are used meanwhile: were
   they chosen anew, two that are busy would take turns, and neither ever be closed.  The bytes that are wanted of others. */
static uint64_t keep_draining(model_table *t, uint64_t over)
{
    for (size_t i = 0; i < t->n; i++) {
        model_slot *s = &t->slot[i];
        if (s->state != MODEL_DRAINING) continue;
        if (!over) s->state = MODEL_LOADED;
        over -= over < s->bytes ? over : s->bytes;
    }
    return over;
}

static void does_not_fit(model_slot *s, uint64_t stay, uint64_t now)
{
    char why[MODEL_WHY_BYTES];

    (void)snprintf(why, sizeof why,
                   "it takes %llu bytes, and %llu of the %llu that models may take are left beside "
                   "those that stay loaded",
                   (unsigned long long)s->bytes,
                   (unsigned long long)(s->table->bytes > stay ? s->table->bytes - stay : 0),
                   (unsigned long long)s->table->bytes);
    fail(s, why, now);
}

/* Makes room, or takes it. */
static void load(model_table *t, model_slot *s, uint64_t now)
{
    const uint64_t stay = open_bytes(t, true), used = open_bytes(t, false);
    uint64_t over;
    model_slot *v;

    if (!t->bytes || (s->bytes <= t->bytes && used <= t->bytes - s->bytes)) {
        (void)keep_draining(t, 0);
        give_work(s, true);
        return;
    }
    if (s->bytes > t->bytes || stay > t->bytes - s->bytes) {
        does_not_fit(s, stay, now);
        return;
    }
    if ((v = victim(t, true))) {
        give_work(v, false);
        return;
    }
    over = keep_draining(t, used - (t->bytes - s->bytes));
    while (over && (v = victim(t, false))) {
        v->state = MODEL_DRAINING;
        log_event(LOG_INFO, "model_draining", "model=%s for=%s", v->view.id, s->view.id);
        over -= over < v->bytes ? over : v->bytes;
    }
}

/* Closes one that nobody used for long; answers when the next one will be due. */
static uint64_t close_unused(model_table *t, uint64_t now)
{
    uint64_t next = UINT64_MAX;

    for (size_t i = 0; i < t->n; i++) {
        model_slot *s = &t->slot[i];
        const uint64_t due = slot_idle_until(s);
        if (s->state != MODEL_LOADED || s->pinned || s->refs) continue;
        if (due <= now && !t->work)
            give_work(s, false);
        else if (due > now && due < next)
            next = due;
    }
    return next;
}

/* Jobs that wait for a model that is there, or is not to be had, go on; the former hold it. */
static void release_parked(model_table *t, jobs *q)
{
    for (size_t i = 0; i < t->n; i++) {
        model_slot *s = &t->slot[i];
        const bool there = s->state == MODEL_LOADED;
        if (!s->wanted || (!there && s->state != MODEL_BROKEN)) continue;
        s->wanted = 0;
        s->refs += there ? jobs_parked(q, &s->view) : 0;
        jobs_unpark(q, &s->view, there ? &s->view : NULL);
    }
}

/* Those that came before have waited too long; answers when the next one will have. */
static uint64_t end_late(jobs *q, uint64_t timeout_ms, uint64_t now)
{
    const uint64_t oldest = jobs_unpark_late(q, now > timeout_ms ? now - timeout_ms : 0);

    return oldest == UINT64_MAX ? oldest : oldest + timeout_ms;
}

uint64_t models_turn(const models *m, jobs *q, uint64_t now_ms)
{
    model_table *t = m->table;
    uint64_t next = UINT64_MAX;
    model_slot *s = NULL;

    if (!t->loader.started) return next; /* all stay as they are */
    if (m->timeout_ms) next = end_late(q, m->timeout_ms, now_ms);
    mutex_lock(&t->mu);
    take_result(t, now_ms);
    release_parked(t, q);
    if (!t->work) {
        while (!t->work && (s = next_wanted(t, q))) {
            load(t, s, now_ms);
            if (s->state == MODEL_UNLOADED) break; /* it waits for room */
        }
        if (!s) (void)keep_draining(t, 0); /* nobody waits any more */
        const uint64_t due = close_unused(t, now_ms);
        if (due < next) next = due;
        release_parked(t, q);
    }
    mutex_unlock(&t->mu);
    return next;
}
