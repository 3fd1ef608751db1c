/* The engine's doors and its thread.  Callers check and copy their request, then leave it in the
   inbox; they never touch a sequence.  The owner sleeps when nothing is accepted. */
#include "engine/engine_priv.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/diag.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/num.h"
#include "engine/forward.h"

enum {
    DEFAULT_SEQS = 4,   /* a person's few clients; each takes the cache of a whole context */
    DEFAULT_QUEUE = 64, /* at 4 at a time, the last one waits for 16 answers */
    MAX_ROWS = 4096,    /* a step is not interrupted */
    DEFAULT_GAP = 3,    /* a stream stays readable, and prompts get two thirds of the time */
    MAX_GAP = 1000,     /* that is no bound any more */
    MARK_EVERY =
        1024 /* what a prompt that parts from another between marks computes again, at most */
};

uint64_t engine_now(const engine *e)
{
    return e->hooks.now_ns ? e->hooks.now_ns(e->hooks.ctx) : clock_ns();
}

static cairn_status in_range(const char *name, int32_t v, int32_t lo, int32_t hi, cairn_diag *dg)
{
    if (v >= lo && v <= hi) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_ARG, "%s is %d; expected %d to %d", name, v, lo, hi);
}

static cairn_status read_opts(engine *e, const cairn_engine_opts *o, cairn_diag *dg)
{
    e->max_seqs = o->max_seqs ? o->max_seqs : DEFAULT_SEQS;
    e->max_queue = o->max_queue ? o->max_queue : DEFAULT_QUEUE;
    TRY(in_range("max_seqs", e->max_seqs, 1, CAIRN_MAX_SEQS, dg));
    TRY(in_range("max_queue", e->max_queue, 1, CAIRN_MAX_QUEUE, dg));
    e->max_step_rows = o->max_step_rows ? o->max_step_rows : max_i32(STEP_ROWS, e->max_seqs);
    TRY(in_range("max_step_rows", e->max_step_rows, e->max_seqs, MAX_ROWS, dg));
    e->deadline_ms = o->deadline_ms;
    e->pace.bound = o->max_gap != 0 ? (double)o->max_gap : DEFAULT_GAP;
    if (!(e->pace.bound > 1 && e->pace.bound <= MAX_GAP))
        return diag_set(dg, CAIRN_E_ARG, "max_gap is %g; expected more than 1, at most %d",
                        e->pace.bound, MAX_GAP);
    if (o->score_len < 0)
        return diag_set(dg, CAIRN_E_ARG, "score_len is %d; expected 0 or more", o->score_len);
    return in_range("ctx_len", o->ctx_len, 0, guard_model_ctx(e->m), dg);
}

static cairn_status make_tables(engine *e, int32_t most_ctx, cairn_diag *dg)
{
    const size_t n = (size_t)engine_capacity(e);
    const drawer_opts o = {.vocab = e->m->shape.vocab,
                           .n_pos = most_ctx,
                           .max_rows = e->max_seqs,
                           .n_threads = e->m->be->threads(e->m->dev),
                           .tok = e->tok};
    e->live = mem_calloc(n, sizeof *e->live, MEM_ENGINE);
    e->inbox = mem_calloc(n, sizeof *e->inbox, MEM_ENGINE);
    e->mine = mem_calloc(n, sizeof *e->mine, MEM_ENGINE);
    e->item = mem_calloc((size_t)e->max_seqs, sizeof *e->item, MEM_ENGINE);
    if (!e->live || !e->inbox || !e->mine || !e->item || drawer_new(&o, &e->drawer) != CAIRN_OK)
        return diag_set(dg, CAIRN_E_NOMEM, "no memory for an engine of %zu requests", n);
    return CAIRN_OK;
}

/* What an engine holds beside all that the guard counts by itself: where the budget is the process's, that is part of
   what is allocated by then. */
static uint64_t own_bytes(const engine *e)
{
    const uint64_t n = (uint64_t)engine_capacity(e);
    return sizeof *e + n * (sizeof *e->live + sizeof *e->inbox + sizeof *e->mine) +
           (uint64_t)e->max_seqs * sizeof *e->item + drawer_bytes(e->drawer);
}

/* Programs first, since the guard counts their scratch; then the cache that it allows. */
static cairn_status make_stepper(engine *e, const cairn_engine_opts *o, cairn_diag *dg)
{
    guard_in in = {.m = e->m,
                   .tok = e->tok,
                   .max_seqs = e->max_seqs,
                   .max_step_rows = e->max_step_rows,
                   .ctx_len = o->ctx_len,
                   .max_queue = e->max_queue,
                   .budget = o->memory_budget,
                   .other = o->other_bytes,
                   .limit = o->memory_limit,
                   .prefix = o->prefix_limit,
                   .disk = o->disk_dir != NULL};
    in.codec = stepper_codec(e->m);
    if (o->kv_codec) {
        TRY(scheme_read(o->kv_codec, &e->m->cache, in.codec.all.k.kind, &e->scheme, dg));
        in.codec = e->scheme.kv;
    }
    stepper_opts so = {.max_rows = e->max_step_rows,
                       .max_out = stepper_outs(e->max_seqs, e->max_step_rows),
                       .max_seqs = e->max_seqs,
                       .ctx_len = o->ctx_len,
                       .codec = in.codec,
                       .stop = &e->give_up};
    if (!so.ctx_len) so.ctx_len = guard_model_ctx(e->m);
    TRY(stepper_new(e->m, &so, &e->stepper, dg));
    TRY(make_tables(e, so.ctx_len, dg));
    if (in.other) in.other += own_bytes(e);
    TRY(forward_score_bytes(e->m, o->score_len, &in.host, dg));
    in.host += o->host_bytes;
    in.scratch = stepper_scratch(e->stepper);
    in.live = mem_used_all();
    machine_memory(&in.free, &in.total);
    TRY(guard_fit(&in, &e->fit, dg));
    e->ctx_len = e->fit.ctx_len;
    e->prefix_bytes = e->fit.prefix_bytes;
    const stepper_room room = {e->fit.cache_bytes, e->fit.prefix_room, e->fit.prefix_bytes};
    TRY(stepper_add_cache(e->stepper, e->ctx_len, room, dg));
    if (!cache_keeps(stepper_cache(e->stepper))) e->prefix_bytes = 0;
    if (cache_needs_marks(stepper_cache(e->stepper))) e->mark_every = MARK_EVERY;
    e->cohort.keeps = cache_keeps(stepper_cache(e->stepper));
    e->cohort.mark_every = e->mark_every;
    e->cohort.switch_len = stepper_switch_len(e->stepper);
    return CAIRN_OK;
}

/* What plans are made of, and the one of a request that asks for nothing, as -v shows it. */
static cairn_status plan_all(engine *e, cairn_diag *dg)
{
    const char *codec = e->scheme.text.len ? e->scheme.text.ptr : e->m->kv_text;
    if (!codec) codec = e->m->compute == CAIRN_COMPUTE_F32 ? "f32" : "f16";
    TRY(exec_can_read(e->m, e->stepper, codec, e->ctx_len, &e->can, dg));
    e->can.keeps = e->prefix_bytes > 0;
    e->can.saves = e->ckpt != NULL;
    const exec_need plain = {.n_prompt = e->max_step_rows, .max_ids = e->ctx_len};
    e->plan = exec_plan_make(&e->can, &plain);
    log_event(LOG_INFO, "execution_plan",
              "method=%s cache_layout=%s kv_codec=%s program=%016llx rows=%d..%d isa=%s why=\"%s\"",
              e->plan.method->name, e->plan.layout, e->plan.codec,
              (unsigned long long)e->plan.program, e->plan.last_rows, e->plan.max_rows, e->plan.isa,
              e->plan.why);
    return CAIRN_OK;
}

static bool has_news(const engine *e)
{
    return e->n_inbox > 0 || e->n_unpin > 0 || e->arrived || e->cancels || e->flush || e->closing;
}

/* Sleeps while `idle`, shortly where the disk is to be looked at; false: the engine is closing. */
static bool wait_for_work(engine *e, bool idle)
{
    const uint32_t wait_ms = behind_wait_ms(e);
    mutex_lock(&e->mu);
    if (idle && wait_ms && !has_news(e)) (void)cond_wait_ms(&e->news, &e->mu, wait_ms);
    while (idle && !wait_ms && !has_news(e)) cond_wait(&e->news, &e->mu);
    const bool go_on = !e->closing;
    mutex_unlock(&e->mu);
    return go_on;
}

static void *own(void *ctx)
{
    engine *e = ctx;
    e->waits = true;
    while (wait_for_work(e, e->waits)) (void)engine_take_turn(e);
    turn_end_all(e);
    return NULL;
}

static void engine_free(engine *e)
{
    if (!e) return;
    mem_free(e->item);
    mem_free(e->mine);
    mem_free(e->inbox);
    mem_free(e->live);
    drawer_free(e->drawer);
    ckpt_close(e->ckpt);
    stepper_free(e->stepper);
    cond_deinit(&e->flushed);
    scheme_free(&e->scheme);
    cond_deinit(&e->news);
    mutex_deinit(&e->mu);
    mem_free(e);
}

cairn_status engine_open(const model *m, const tok *t, const cairn_engine_opts *o,
                         const engine_hooks *hooks, engine **out, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    if (!m->dev)
        return diag_set(dg, CAIRN_E_ARG,
                        "the model was opened without its weights; expected one opened with them");
    TRY(model_check_head(m, "to generate", dg));
    engine *e = mem_calloc(1, sizeof *e, MEM_ENGINE);
    if (!e) return diag_set(dg, CAIRN_E_NOMEM, "no memory for an engine");
    e->m = m;
    e->tok = t;
    if (hooks) e->hooks = *hooks;
    mutex_init(&e->mu);
    cond_init(&e->news);
    cond_init(&e->flushed);
    TRY_GOTO(read_opts(e, o, dg), out);
    TRY_GOTO(make_stepper(e, o, dg), out);
    TRY_GOTO(behind_open(e, o, dg), out);
    TRY_GOTO(resume_open(e, o, dg), out);
    e->cohort.common = e->common = request_space(&e->origin, (cairn_str){"", 0});
    TRY_GOTO(plan_all(e, dg), out);
    stats_show(e);
    if (!e->hooks.manual) {
        st = thread_start(&e->owner, "cairn-engine", own, e);
        if (st != CAIRN_OK) {
            (void)diag_set(dg, st, "the engine's thread could not be started");
            goto out;
        }
    }
    *out = e;
    e = NULL;
out:
    engine_free(e);
    return st;
}

void engine_close(engine *e)
{
    if (!e) return;
    mutex_lock(&e->mu);
    e->closing = true;
    note_set(&e->give_up, 1);
    cond_signal(&e->news);
    mutex_unlock(&e->mu);
    thread_join(&e->owner);
    if (e->hooks.manual) turn_end_all(e);
    engine_free(e);
}

/* A slot of the queue, before anything is copied: a full queue costs the caller nothing. */
static cairn_status promise_slot(engine *e, cairn_diag *dg)
{
    mutex_lock(&e->mu);
    const bool closing = e->closing;
    const bool room = !closing && e->n_live + e->n_coming < engine_capacity(e);
    if (room) e->n_coming++;
    mutex_unlock(&e->mu);
    if (room) return CAIRN_OK;
    if (closing) return diag_set(dg, CAIRN_E_BUSY, "the engine is closing");
    return diag_set(dg, CAIRN_E_BUSY, "the queue is full: %d requests are running or waiting",
                    engine_capacity(e));
}

cairn_status engine_submit(engine *e, const cairn_request *q, cairn_event_fn fn, void *ctx,
                           cairn_request_id *out, cairn_diag *dg)
{
    const request_env env = {e->tok,
                             e->m->shape.vocab,
                             e->ctx_len,
                             &e->origin,
                             e->ckpt ? &e->text_files : NULL,
                             e->deadline_ms,
                             &e->can};
    request *r = NULL;
    TRY(promise_slot(e, dg));
    cairn_status st = request_new(q, &env, fn, ctx, &r, dg);
    mutex_lock(&e->mu);
    e->n_coming--;
    const uint64_t held = e->request_bytes;
    const bool fits = st == CAIRN_OK && r->bytes <= guard_left(e->fit.request_bytes, held);
    if (fits) {
        e->request_bytes += r->bytes;
        r->id = ++e->last_id;
        *out = r->id; /* before the first event can name it */
        r->born_ns = engine_now(e);
        e->live[e->n_live++] = r;
        e->inbox[e->n_inbox++] = r;
    }
    mutex_unlock(&e->mu);
    if (fits) cond_signal(&e->news); /* outside, as its thread would only wait for the lock */
    if (st != CAIRN_OK || fits) return st;
    st = diag_set(dg, CAIRN_E_BUSY,
                  "the request takes %llu bytes; of the %llu for requests, others that run or wait "
                  "hold %llu",
                  (unsigned long long)r->bytes, (unsigned long long)e->fit.request_bytes,
                  (unsigned long long)held);
    request_free(r);
    return st;
}

static void end_early(engine *e, cairn_request_id id, bool whole)
{
    mutex_lock(&e->mu);
    for (int32_t i = 0; i < e->n_live; i++) {
        request *r = e->live[i];
        if (r->id != id) continue;
        if (r->runs && !r->cancel && --e->n_wanted == 0) note_set(&e->give_up, 1);
        r->cancel = e->cancels = true;
        r->whole |= whole;
    }
    cond_signal(&e->news);
    mutex_unlock(&e->mu);
}

void engine_cancel(engine *e, cairn_request_id id)
{
    end_early(e, id, false);
}

void engine_stop(engine *e, cairn_request_id id)
{
    end_early(e, id, true);
}

void engine_unpin(engine *e, cairn_request_id id)
{
    mutex_lock(&e->mu);
    bool pinned = false, known = false;
    for (int32_t i = 0; i < e->n_pins; i++) pinned |= e->pin[i].request == id;
    for (int32_t i = 0; i < e->n_unpin; i++) known |= e->unpin[i] == id;
    if (pinned && !known) e->unpin[e->n_unpin++] = id; /* so there are no more than pins */
    cond_signal(&e->news);
    mutex_unlock(&e->mu);
}

/* One at a time; the owner answers between two turns. */
void engine_flush(engine *e, uint32_t wait_ms, cairn_flush *out)
{
    mutex_lock(&e->mu);
    while (e->flush && !e->closing) cond_wait(&e->flushed, &e->mu);
    if (!e->closing) {
        e->flush = out;
        e->flush_ms = wait_ms;
        cond_signal(&e->news);
    }
    mutex_unlock(&e->mu);
    if (e->hooks.manual) behind_flush(e);
    mutex_lock(&e->mu);
    while (e->flush == out) cond_wait(&e->flushed, &e->mu);
    mutex_unlock(&e->mu);
}

bool engine_wants_marks(const engine *e)
{
    return e->mark_every > 0;
}

bool engine_turn(engine *e)
{
    assert(e->hooks.manual);
    return engine_take_turn(e);
}
