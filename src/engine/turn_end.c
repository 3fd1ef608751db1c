/* How requests leave: whatever ends one, it goes through turn_finish, which sends its one DONE event with no lock held. */
#include <string.h>

#include "base/diag.h"
#include "base/num.h"
#include "engine/engine_priv.h"

cairn_event turn_event(const engine *e, const request *r, cairn_event_kind kind)
{
    const uint64_t now = engine_now(e);
    const uint64_t first = r->first_ns ? r->first_ns : now;
    cairn_event ev = {.kind = kind,
                      .request = r->id,
                      .text = {"", 0},
                      .n_prompt = r->n_prompt,
                      .n_cached = r->n_cached,
                      .n_done = min_i32(r->n_done, r->n_prompt),
                      .n_generated = r->counted ? r->n_ids - r->n_prompt : 0,
                      .stop = r->stream.stopped_by,
                      .more = r->more};
    if (r->start_ns) ev.prefill_seconds = (double)(first - r->start_ns) * 1e-9;
    if (r->first_ns) ev.decode_seconds = (double)(now - first) * 1e-9;
    return ev;
}

static void forget(engine *e, const request *r)
{
    mutex_lock(&e->mu);
    for (int32_t i = 0; i < e->n_live; i++)
        if (e->live[i] == r) {
            e->live[i] = e->live[--e->n_live];
            e->request_bytes -= r->bytes;
            break;
        }
    mutex_unlock(&e->mu);
}

static const char *pin(engine *e, const request *r)
{
    int32_t node;
    cache *c = stepper_cache(e->stepper);
    if (!cache_keeps(c)) return "no prefixes are kept at all";
    if (e->n_pins == MAX_PINS) return "as many prefixes as may be are pinned already";
    const char *why;
    if (cache_pin(c, r->seq, r->ids, &node, &why) != CAIRN_OK) return why;
    mutex_lock(&e->mu);
    e->pin[e->n_pins++] = (engine_pin){r->id, node};
    mutex_unlock(&e->mu);
    return NULL;
}

/* All of its rows stay for others, for ever where it is to be pinned. */
static void leave_all(engine *e, const request *r, cairn_event *done)
{
    const bool ended = done->finish == CAIRN_FINISH_STOP || done->finish == CAIRN_FINISH_LENGTH;
    const bool wanted = r->pin && ended;
    const char *why = wanted ? pin(e, r) : NULL;
    done->pinned = wanted && !why;
    if (why) done->message = why;
    if (!done->pinned) cache_mark(stepper_cache(e->stepper), r->seq, r->ids, CACHE_TURN);
}

/* The request at mine[i] leaves: its sequence is closed before the event, so that a request
   submitted from the callback finds the room. */
void turn_finish(engine *e, int32_t i, cairn_finish how, cairn_str text, const cairn_diag *why)
{
    request *r = e->mine[i];
    cairn_event ev = turn_event(e, r, CAIRN_EV_DONE);
    ev.finish = how;
    ev.text = text;
    ev.status = why ? why->status : CAIRN_OK;
    ev.message = why ? why->message : "";
    resume_end(e, r, how);
    if (r->state != REQ_QUEUED) {
        const bool whole = how != CAIRN_FINISH_ERROR || ev.status == CAIRN_E_CANCELLED; /* late */
        if (whole && r->state != REQ_RESTORE) leave_all(e, r, &ev);
        cache_close(stepper_cache(e->stepper), r->seq);
        e->n_active--;
    }
    cohort_release(r, e->mine, e->n_mine);
    request_move(r, REQ_DONE);
    e->n_mine--;
    for (int32_t k = i; k < e->n_mine; k++) e->mine[k] = e->mine[k + 1];
    stats_count_done(e, how);
    forget(e, r);
    r->fn(r->ctx, &ev);
    request_free(r);
}

void turn_finish_error(engine *e, int32_t i, cairn_status st, const char *what)
{
    cairn_diag dg = {0};
    (void)diag_set(&dg, st, "%s", what);
    turn_finish(e, i, CAIRN_FINISH_ERROR, TURN_NO_TEXT, &dg);
}

void turn_finish_text_error(engine *e, int32_t i, cairn_status st)
{
    cairn_diag dg = {0};
    (void)diag_set(&dg, st, "the text of %d tokens: %s",
                   (int)e->mine[i]->n_ids - e->mine[i]->n_prompt, cairn_status_text(st));
    turn_finish(e, i, CAIRN_FINISH_ERROR, TURN_NO_TEXT, &dg);
}

/* An end that the model or the budget made: held text goes out, unless its last bytes complete a
   stop string. */
void turn_finish_whole(engine *e, int32_t i, cairn_finish how)
{
    request *r = e->mine[i];
    cairn_str text = TURN_NO_TEXT;
    const cairn_status st = stream_end(&r->stream, &text);
    if (st != CAIRN_OK) {
        turn_finish_text_error(e, i, st);
        return;
    }
    turn_finish(e, i, r->stream.stopped ? CAIRN_FINISH_STOP : how, text, NULL);
}

void turn_finish_late(engine *e, int32_t i)
{
    const request *r = e->mine[i];
    cairn_diag dg = {0};
    if (r->state == REQ_QUEUED)
        (void)diag_set(&dg, CAIRN_E_CANCELLED, "the deadline of %u ms passed in the queue",
                       r->deadline_ms);
    else
        (void)diag_set(&dg, CAIRN_E_CANCELLED,
                       "the deadline of %u ms passed after %d of %d prompt tokens and %d of the "
                       "answer",
                       r->deadline_ms, min_i32(r->n_done, r->n_prompt), r->n_prompt,
                       r->counted ? r->n_ids - r->n_prompt : 0);
    turn_finish(e, i, CAIRN_FINISH_ERROR, TURN_NO_TEXT, &dg);
}
