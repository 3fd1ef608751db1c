/* The disk tier's place in the engine: what is computed goes to disk while nothing else is to do. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/diag.h"
#include "engine/engine_priv.h"
#include "engine/fingerprint.h"
#include "tensor/numerics.h"

enum {
    CALM_MS = 500, /* a conversation's next request often follows at once */
    LOOK_MS = 50   /* how often a writer is looked at */
};

/* The mode decides what a step computes, the codec what is kept of it. */
static void name_scheme(engine *e)
{
    const char *text = e->scheme.text.len ? e->scheme.text.ptr : e->m->kv_text;
    if (!text) text = e->m->compute == CAIRN_COMPUTE_F32 ? "f32" : "f16";
    (void)snprintf(e->coded, sizeof e->coded, "%s %.200s %016llx",
                   e->m->compute == CAIRN_COMPUTE_F32 ? "f32" : "fast", text,
                   (unsigned long long)hash64(text, strlen(text), 0));
}

/* The reader's thread: an engine that waits for rows looks again. */
static void tell_arrived(void *ctx)
{
    engine *e = ctx;
    mutex_lock(&e->mu);
    e->arrived = true;
    cond_signal(&e->news);
    mutex_unlock(&e->mu);
}

cairn_status behind_open(engine *e, const cairn_engine_opts *opts, cairn_diag *dg)
{
    const char *dir = opts->disk_dir;
    name_scheme(e);
    e->origin = (store_origin){.numerics = NUMERICS_VERSION, .scheme = e->coded};
    if (!dir) return CAIRN_OK;
    if (dir[0] != '/')
        return diag_set(dg, CAIRN_E_ARG, "disk_dir is \"%s\"; expected an absolute path", dir);
    if (!cache_keeps(stepper_cache(e->stepper)))
        return diag_set(dg, CAIRN_E_ARG,
                        "prefixes on disk but none in memory; expected a limit for both");
    hash128 h;
    TRY(fingerprint_of(e->m, (fingerprint_ask){opts->go_on, opts->go_on_ctx}, &h, dg));
    memcpy(e->origin.fingerprint, &h, sizeof h);
    cache_disk_opts o = {.dir = dir,
                         .numerics = NUMERICS_VERSION,
                         .scheme = e->coded,
                         .max_bytes = opts->disk_limit,
                         .arrived = tell_arrived,
                         .ctx = e};
    memcpy(o.fingerprint, &h, sizeof h);
    return cache_add_disk(stepper_cache(e->stepper), &o, dg);
}

void behind_busy(engine *e)
{
    if (e->idle_ns) (void)cache_write_behind(stepper_cache(e->stepper), false);
    e->idle_ns = 0;
    e->writes_behind = true;
}

void behind_idle(engine *e)
{
    const uint64_t now = engine_now(e);
    if (!e->idle_ns) e->idle_ns = now;
    if (e->writes_behind && now - e->idle_ns >= CALM_MS * UINT64_C(1000000))
        e->writes_behind = cache_write_behind(stepper_cache(e->stepper), true);
}

uint32_t behind_wait_ms(const engine *e)
{
    store_stats s;
    return e->writes_behind && cache_disk_stats(stepper_cache(e->stepper), &s) ? LOOK_MS : 0;
}

void behind_flush(engine *e)
{
    mutex_lock(&e->mu);
    cairn_flush *f = e->flush;
    const uint32_t wait_ms = e->closing ? 0 : e->flush_ms;
    mutex_unlock(&e->mu);
    if (!f) return;
    store_flushed done = {0};
    ckpt_flushed saved = {0};
    const uint64_t end = clock_ns() + (uint64_t)wait_ms * 1000000;
    resume_save_all(e);
    if (e->ckpt) ckpt_flush(e->ckpt, wait_ms, &saved); /* small files, written in any case */
    const uint64_t now = clock_ns();
    cache_flush(stepper_cache(e->stepper), now < end ? (uint32_t)((end - now) / 1000000) : 0,
                &done);
    f->pending = done.pending;
    f->durable = done.durable;
    f->dropped = done.dropped;
    f->failed = done.failed;
    f->longest = done.longest;
    f->checkpoints = saved.durable;
    f->checkpoints_pending = saved.pending;
    f->checkpoints_failed = saved.failed;
    f->cleanups_failed = saved.cleanups;
    mutex_lock(&e->mu);
    e->flush = NULL;
    cond_broadcast(&e->flushed);
    mutex_unlock(&e->mu);
}
