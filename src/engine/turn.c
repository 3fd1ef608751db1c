/* One turn of the owner thread: receive, admit, plan, run, sample, emit.

   Invariants: `mine` holds active requests first, in order of admission, then queued ones; each
   accepted request leaves through turn_finish (turn_end.c).  From admission to DONE a turn allocates
   nothing, but for what is written to disk. */
#include <assert.h>
#include <string.h>

#include "base/diag.h"
#include "base/num.h"
#include "engine/engine_priv.h"

static void unpin(engine *e, cairn_request_id id)
{
    for (int32_t i = 0; i < e->n_pins; i++) {
        if (e->pin[i].request != id) continue;
        cache_unpin(stepper_cache(e->stepper), e->pin[i].node);
        mutex_lock(&e->mu);
        e->pin[i] = e->pin[--e->n_pins];
        mutex_unlock(&e->mu);
        return;
    }
}

static void receive(engine *e)
{
    mutex_lock(&e->mu);
    for (int32_t i = 0; i < e->n_inbox; i++) {
        queue_enter(e, e->inbox[i]);
        e->mine[e->n_mine++] = e->inbox[i];
    }
    e->stats.n_requests += (uint64_t)e->n_inbox;
    e->n_inbox = 0;
    e->arrived = e->cancels = false;
    for (int32_t i = 0; i < e->n_mine; i++) {
        e->mine[i]->cancelled = e->mine[i]->cancel;
        e->mine[i]->ended = e->mine[i]->whole;
    }
    const int32_t n_unpin = e->n_unpin;
    cairn_request_id old[MAX_PINS];
    memcpy(old, e->unpin, (size_t)n_unpin * sizeof *old);
    e->n_unpin = 0;
    mutex_unlock(&e->mu);
    for (int32_t i = 0; i < n_unpin; i++) unpin(e, old[i]);
    const uint64_t now = engine_now(e);
    for (int32_t i = 0; i < e->n_mine;) {
        if (e->mine[i]->cancelled)
            turn_finish(e, i, CAIRN_FINISH_CANCELLED, TURN_NO_TEXT, NULL);
        else if (queue_late(e->mine[i], now))
            turn_finish_late(e, i);
        else
            i++;
    }
}

static bool scores(const request *r)
{
    return r->prompt_logprobs && r->n_scored < r->n_prompt;
}

/* Its sequence, with what is known of its ids.  Rows that another rotary table made are no prefix of its
   own; rows in a cache have no logits, so that who wants those of its prompt computes all. */
static cairn_status open_seq(engine *e, request *r)
{
    cache *c = stepper_cache(e->stepper);
    const int32_t at = stepper_switch_len(e->stepper);
    const uint64_t table = at > 0 && r->n_ids > at;
    const cache_ask ask = {.ns = {r->ns.hi, r->ns.lo + table},
                           .common = {e->common.hi, e->common.lo + table},
                           .ids = r->ids,
                           .n_ids = scores(r) ? 1 : r->n_ids,
                           .n_pos = r->max_ids};
    const cairn_status st = cache_open_on(c, &ask, &r->seq);
    if (st == CAIRN_OK) request_move(r, REQ_RESTORE);
    return st;
}

static void emit(engine *e, request *r, cairn_event_kind kind, const sample_out *s, cairn_str text,
                 bool again)
{
    cairn_event ev = turn_event(e, r, kind);
    ev.id = s->id;
    ev.text = text;
    ev.logprob = s->logprob;
    ev.top = s->top;
    ev.n_top = s->n_top;
    ev.replayed = again;
    r->fn(r->ctx, &ev);
}

/* One more token of its answer, drawn now or by an earlier attempt.  True: mine[i] is gone. */
static bool add_token(engine *e, int32_t i, const sample_out *s, bool again)
{
    request *r = e->mine[i];
    cairn_str text;
    const method_end end = r->plan.method->finished(e->tok, r, s->id);
    if (end == METHOD_EOS) {
        if (r->prompt_logprobs) emit(e, r, CAIRN_EV_TOKEN, s, TURN_NO_TEXT, again);
        turn_finish_whole(e, i, CAIRN_FINISH_STOP);
        return true;
    }
    r->ids[r->n_ids++] = s->id;
    cairn_status st = think_feed(&r->think, s->id);
    if (st == CAIRN_OK) st = stream_feed(&r->stream, s->id, &text);
    if (st != CAIRN_OK) {
        turn_finish_text_error(e, i, st);
        return true;
    }
    *(again ? &e->stats.replayed_tokens : &e->stats.generated_tokens) += 1;
    emit(e, r, CAIRN_EV_TOKEN, s, text, again);
    if (r->stream.stopped) {
        turn_finish(e, i, CAIRN_FINISH_STOP, TURN_NO_TEXT, NULL);
        return true;
    }
    if (end == METHOD_GOES_ON) return false;
    turn_finish_whole(e, i, CAIRN_FINISH_LENGTH);
    return true;
}

/* What an earlier attempt had drawn is told as it was then, all at once: some microseconds a token.  True: mine[i]
   is gone. */
static bool tell_again(engine *e, int32_t i)
{
    request *r = e->mine[i];
    const int32_t n_known = r->n_ids;
    r->n_ids = r->n_prompt;
    if (n_known > r->n_ids) r->first_ns = engine_now(e);
    while (r->n_ids < n_known) {
        const sample_out s = {.id = r->ids[r->n_ids]};
        (void)think_next(&r->think); /* which decides what closes a thought when it is asked */
        if (add_token(e, i, &s, true)) return true;
    }
    return false;
}

/* In the order of queue.c; the first that finds no room waits, and everyone behind it. */
static void admit(engine *e)
{
    while (e->n_active < e->max_seqs) {
        const int32_t i = queue_next(e);
        if (i < 0) return;
        request *r = e->mine[i];
        cairn_diag dg = {0};
        if (exec_plan_check(&r->plan, &e->can, &dg) != CAIRN_OK) {
            turn_finish(e, i, CAIRN_FINISH_ERROR, TURN_NO_TEXT, &dg);
            continue;
        }
        resume_begin(e, r);
        const cairn_status st = open_seq(e, r);
        if (st == CAIRN_E_BUSY) return; /* until another one ends, or what was read for it */
        if (st != CAIRN_OK) {
            turn_finish_error(e, i, st, "the request can never fit into the cache");
            continue;
        }
        r->start_ns = engine_now(e);
        queue_admit(e, i);
    }
}

static void tell_progress(const engine *e, request *r)
{
    if (!r->want_progress || r->first_ns) return;
    const cairn_event ev = turn_event(e, r, CAIRN_EV_PROGRESS);
    r->fn(r->ctx, &ev);
}

/* Its last row would tell of a token that nobody wants. */
static bool ends_with_prompt(const request *r)
{
    return r->prompt_only && r->n_done >= r->n_prompt - 1;
}

static void end_prompt(engine *e, int32_t i)
{
    request *r = e->mine[i];
    r->n_done = r->n_prompt; /* as far as anybody has to know */
    tell_progress(e, r);
    turn_finish_whole(e, i, CAIRN_FINISH_LENGTH);
}

/* Once: a restart may find more.  True: mine[i] is gone. */
static bool begin(engine *e, int32_t i)
{
    request *r = e->mine[i];
    r->counted = true;
    r->n_cached = min_i32(r->n_done, r->n_prompt);
    e->stats.cached_tokens += (uint64_t)r->n_cached;
    if (e->prefix_bytes && !scores(r))
        *(r->n_cached ? &e->stats.prefix_hits : &e->stats.prefix_misses) += 1;
    r->plan.method->begin(r);
    tell_progress(e, r);
    if (ends_with_prompt(r)) {
        end_prompt(e, i);
        return true;
    }
    return r->n_ids > r->n_prompt && tell_again(e, i);
}

/* Whose known rows are all there goes on to the others.  False: there is nobody who could run. */
static bool start(engine *e)
{
    const cache *c = stepper_cache(e->stepper);
    bool any = false;
    for (int32_t i = 0; i < e->n_active;) {
        request *r = e->mine[i];
        if (r->state == REQ_RESTORE && cache_ready(c, r->seq)) {
            r->n_done = cache_len(c, r->seq);
            request_move(r, REQ_PREFILL);
            if (!r->counted && begin(e, i)) continue;
        }
        any |= r->state != REQ_RESTORE;
        i++;
    }
    return any;
}

/* The next position at which the sequence's state is kept: the caller's, else every so many. */
static int32_t next_mark(const engine *e, const request *r)
{
    int32_t i = 0;
    while (r->mark[i] <= r->n_done) i++;
    return min_i32(r->mark[i], (r->n_done / e->mark_every + 1) * e->mark_every);
}

/* Rows that may run now; of those whose logits its prompt wants, one and as many as are `left` for all. */
static int32_t runnable(const request *r, int32_t *left)
{
    if (r->state == REQ_RESTORE) return 0;
    const int32_t n = r->plan.method->propose(r).n - r->prompt_only;
    if (!scores(r)) return n;
    const int32_t most = min_i32(n, 1 + *left);
    *left -= most - 1;
    return most;
}

/* How many of the last of its next rows have logits that somebody reads. */
static int32_t wanted(const request *r, int32_t rows)
{
    if (scores(r)) return rows; /* each tells of the token after it */
    const method_rows want = r->plan.method->propose(r);
    return rows == want.n ? want.n_out : 0;
}

/* Who has rows in the step that begins, or has just ended: while it runs, they may all be cancelled. */
static void mark_running(engine *e, bool runs)
{
    mutex_lock(&e->mu);
    e->n_wanted = 0;
    for (int32_t i = 0; i < e->n_active; i++) {
        request *r = e->mine[i];
        r->runs = runs && e->item[i].rows > 0;
        e->n_wanted += r->runs && !r->cancel;
    }
    if (runs) note_set(&e->give_up, e->n_wanted == 0 || e->closing);
    mutex_unlock(&e->mu);
}

/* False: it was given up, and nothing has changed. */
static bool run_step(engine *e)
{
    int32_t left = stepper_outs(e->max_seqs, e->max_step_rows) - e->max_seqs;
    for (int32_t i = 0; i < e->n_active; i++) {
        const request *r = e->mine[i];
        int32_t pending = runnable(r, &left);
        if (e->mark_every) pending = min_i32(pending, next_mark(e, r) - r->n_done);
        e->item[i] = (sched_item){.pending = pending,
                                  .left = cohort_left(r),
                                  .fresh = r->n_ids - r->n_cached,
                                  .pos = r->n_done,
                                  .priority = cohort_urgency(r),
                                  .decoding = r->state == REQ_DECODE};
    }
    const sched_room room = pace_room(&e->pace, e->item, e->n_active, e->max_step_rows);
    sched_plan(e->item, e->n_active, room);
    stepper_begin(e->stepper);
    for (int32_t i = 0; i < e->n_active; i++) {
        request *r = e->mine[i];
        const int32_t rows = e->item[i].rows;
        r->i_out = -1;
        if (rows == 0) continue;
        const int32_t n_out = wanted(r, rows);
        const int32_t out =
            stepper_add(e->stepper, r->seq, r->ids + r->n_done, rows, n_out, r->n_ids);
        r->i_scored = out;
        r->n_done += rows;
        if (n_out > 0 && r->n_done == r->n_ids) r->i_out = out + n_out - 1;
    }
    mark_running(e, true);
    const bool whole = stepper_run(e->stepper);
    mark_running(e, false);
    e->stats.steps += whole;
    for (int32_t i = 0; !whole && i < e->n_active; i++) e->mine[i]->n_done -= e->item[i].rows;
    return whole;
}

/* A rotary table that switches with the sequence's length applies to every position: what lies in
   the cache was rotated by the other one, and is computed anew. */
static void maybe_restart(engine *e, request *r)
{
    const int32_t at = stepper_switch_len(e->stepper);
    if (at == 0 || r->n_done > at || r->n_ids <= at) return;
    cache_close(stepper_cache(e->stepper), r->seq);
    const cairn_status st = open_seq(e, r);
    assert(st == CAIRN_OK); /* the room was given back a moment ago, by this thread */
}

/* The token after the last computed row.  True: mine[i] is gone. */
static bool take_token(engine *e, int32_t i, const draw_row *d)
{
    request *r = e->mine[i];
    assert(d->r == r);
    if (d->st != CAIRN_OK) {
        turn_finish(e, i, CAIRN_FINISH_ERROR, TURN_NO_TEXT, &d->dg);
        return true;
    }
    if (r->state == REQ_PREFILL) request_move(r, REQ_DECODE);
    if (!r->first_ns) r->first_ns = engine_now(e);
    if (add_token(e, i, &d->out, false)) return true;
    resume_note(e, r);
    maybe_restart(e, r);
    return false;
}

/* The tokens of its prompt after the rows of this step, whose first was that before n_scored.  True: mine[i] is gone. */
static bool tell_prompt(engine *e, int32_t i)
{
    request *r = e->mine[i];
    cairn_diag dg = {0};
    sample_out s;
    for (int32_t k = r->i_scored; r->n_scored < min_i32(r->n_done + 1, r->n_prompt); k++) {
        const int32_t pos = r->n_scored++;
        if (sample_score(drawer_sampler(e->drawer), stepper_logits(e->stepper, k), r->ids[pos],
                         r->n_logprobs, pos, &s, &dg) != CAIRN_OK) {
            turn_finish(e, i, CAIRN_FINISH_ERROR, TURN_NO_TEXT, &dg);
            return true;
        }
        emit(e, r, CAIRN_EV_PROMPT, &s, TURN_NO_TEXT, false);
    }
    return false;
}

/* What later prompts may begin with. */
static void leave_prefix(engine *e, request *r)
{
    cache *c = stepper_cache(e->stepper);
    cache_publish(c, r->seq, r->ids);
    if (!e->mark_every) return;
    bool turn = false;
    for (int32_t i = 0; r->mark[i] <= r->n_done; i++) turn |= r->mark[i] == r->n_done;
    if (turn || r->n_done % e->mark_every == 0)
        cache_mark(c, r->seq, r->ids, turn ? CACHE_TURN : CACHE_STEP);
}

/* Before anybody is told anything: who is told may take as long as it likes. */
static void draw_all(engine *e)
{
    drawer_begin(e->drawer);
    for (int32_t i = 0; i < e->n_active; i++) {
        request *r = e->mine[i];
        if (r->i_out >= 0) drawer_add(e->drawer, r, stepper_logits(e->stepper, r->i_out));
    }
    drawer_run(e->drawer, e->stepper);
}

/* Whether one of those that are told after mine[i] has the same reader: each tells a token, or its end. */
static bool more_follows(const engine *e, int32_t i)
{
    const void *reader = e->mine[i]->reader;
    for (int32_t k = i + 1; reader && k < e->n_active; k++)
        if (e->mine[k]->reader == reader && e->mine[k]->i_out >= 0) return true;
    return false;
}

static void advance(engine *e)
{
    const int32_t n = e->n_active;
    int32_t n_drawn = 0;
    for (int32_t i = 0, k = 0; k < n; k++) {
        request *r = e->mine[i];
        const int32_t rows = e->item[k].rows;
        const draw_row *drawn = r->i_out >= 0 ? drawer_draw(e->drawer, n_drawn++) : NULL;
        r->more = more_follows(e, i);
        if (rows > 0) leave_prefix(e, r);
        if (rows > 0 && r->state == REQ_PREFILL) {
            e->stats.prompt_tokens += (uint64_t)rows;
            tell_progress(e, r);
            if (scores(r) && tell_prompt(e, i)) continue;
            if (ends_with_prompt(r)) {
                end_prompt(e, i);
                continue;
            }
        }
        if (drawn && take_token(e, i, drawn)) continue;
        r->more = false;
        i++;
    }
}

static void tell_backend(engine *e, bool busy)
{
    if (e->busy != busy) stepper_busy(e->stepper, busy);
    e->busy = busy;
}

bool engine_take_turn(engine *e)
{
    receive(e);
    behind_flush(e);
    cache_arrive(stepper_cache(e->stepper));
    admit(e);
    if (e->n_active > 0) behind_busy(e);
    const bool runs = start(e);
    if (runs) {
        tell_backend(e, true);
        const uint64_t t0 = engine_now(e);
        const int32_t n = e->n_active;
        if (run_step(e)) {
            draw_all(e);
            advance(e);
            pace_took(&e->pace, e->item, n, engine_now(e) - t0);
            resume_push(e);
        }
        e->busy_ns += engine_now(e) - t0;
    }
    const bool more = e->n_mine > 0;
    e->waits = !more || (!runs && e->n_active > 0); /* a replay may have ended the last one */
    if (e->waits) tell_backend(e, false);
    if (!more) behind_idle(e);
    stats_show(e);
    return more;
}

void turn_end_all(engine *e)
{
    receive(e);
    while (e->n_mine > 0) turn_finish(e, e->n_mine - 1, CAIRN_FINISH_CANCELLED, TURN_NO_TEXT, NULL);
    tell_backend(e, false);
    behind_flush(e); /* somebody waits for an answer */
    stats_show(e);
}
