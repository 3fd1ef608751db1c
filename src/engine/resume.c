/* Generations that go on after a crash.  A checkpoint holds what a request had drawn (cache/ckpt.h); its rows go
   through the disk tier as all prefixes do, only sooner, and what is lost of them is computed again: rows
   depend on tokens and positions alone, so the answer has the same bits either way.  Nothing here waits for a
   disk, but for one small file when a request is admitted. */
#include <string.h>

#include "base/diag.h"
#include "base/log.h"
#include "engine/engine_priv.h"
#include "engine/fingerprint.h"
#include "tensor/numerics.h"

enum { SAMPLER_VERSION = 1 }; /* of what sample_state holds */
_Static_assert(sizeof(sample_state) <= CKPT_SAMPLER_BYTES, "a checkpoint has room for it");

cairn_status resume_open(engine *e, const cairn_engine_opts *o, cairn_diag *dg)
{
    if (o->checkpoint_every < 0)
        return diag_set(dg, CAIRN_E_ARG, "checkpoint_every is %d; expected 0 or more tokens",
                        o->checkpoint_every);
    if (!o->checkpoint_every) return CAIRN_OK;
    if (!o->disk_dir)
        return diag_set(dg, CAIRN_E_ARG,
                        "checkpoint_every is %d without disk_dir; expected a folder for them",
                        o->checkpoint_every);
    ckpt_opts c = {.dir = o->disk_dir,
                   .numerics = NUMERICS_VERSION,
                   .sampler = SAMPLER_VERSION,
                   .vocab = e->m->shape.vocab};
    memcpy(c.fingerprint, e->origin.fingerprint, sizeof c.fingerprint);
    e->checkpoint_every = o->checkpoint_every;
    TRY(fingerprint_of_text(e->m, &e->text_files, dg));
    return ckpt_open(&c, &e->ckpt, dg);
}

static void refuse(engine *e, const request *r)
{
    e->stats.checkpoints_refused++;
    log_event(LOG_INFO, "checkpoint.refused", "request=%llu reason=%s", (unsigned long long)r->id,
              r->no_checkpoint);
}

void resume_begin(engine *e, request *r)
{
    ckpt_found found;
    if (!e->ckpt || r->asked) return;
    r->asked = true;
    if (r->no_checkpoint) {
        refuse(e, r);
        return;
    }
    const ckpt_ask q = {r->key, r->n_prompt, r->max_ids - r->n_prompt, r->how.seed, !r->any_seed};
    r->attempt = ckpt_begin(e->ckpt, &q, r->ids + r->n_prompt, &found);
    r->how.seed = found.seed;
    r->n_saved = found.n_new;
    r->n_ids += found.n_new;
    if (!found.n_new) return;
    if (found.sampler.version == SAMPLER_VERSION && found.sampler.n_bytes == sizeof r->drawn)
        memcpy(&r->drawn, found.sampler.bytes, sizeof r->drawn);
    e->stats.n_resumed++;
    log_event(LOG_INFO, "checkpoint.found", "request=%llu tokens=%d", (unsigned long long)r->id,
              (int)found.n_new);
}

/* A recurrent state is there for rows to go on from only where it was marked. */
static void save(engine *e, request *r)
{
    cache *c = stepper_cache(e->stepper);
    const int32_t n_new = r->n_ids - r->n_prompt;
    ckpt_sampler drawn = {.version = SAMPLER_VERSION, .n_bytes = sizeof r->drawn};
    memcpy(drawn.bytes, &r->drawn, sizeof r->drawn);
    ckpt_save(e->ckpt, r->attempt, r->ids + r->n_prompt, n_new, &drawn);
    if (cache_state(c, r->seq)) cache_mark(c, r->seq, r->ids, CACHE_STEP);
    r->n_saved = n_new;
    r->rows_due = true;
}

void resume_note(engine *e, request *r)
{
    if (r->attempt && r->n_ids - r->n_prompt - r->n_saved >= e->checkpoint_every) save(e, r);
}

void resume_save_all(engine *e)
{
    for (int32_t i = 0; i < e->n_active; i++) {
        request *r = e->mine[i];
        if (r->attempt && r->n_ids - r->n_prompt > r->n_saved) save(e, r);
    }
}

void resume_push(engine *e)
{
    for (int32_t i = 0; i < e->n_active; i++) {
        request *r = e->mine[i];
        if (r->rows_due) r->rows_due = cache_write_now(stepper_cache(e->stepper), r->seq);
    }
}

void resume_end(engine *e, request *r, cairn_finish how)
{
    if (!e->ckpt) return;
    const bool whole = how == CAIRN_FINISH_STOP || how == CAIRN_FINISH_LENGTH || r->ended;
    const int32_t n_new = r->counted ? r->n_ids - r->n_prompt : 0;
    const bool left = how == CAIRN_FINISH_CANCELLED && !whole;
    if (left && r->attempt && n_new > r->n_saved) save(e, r);
    ckpt_end(e->ckpt, r->attempt, whole);
    r->attempt = NULL;
}
