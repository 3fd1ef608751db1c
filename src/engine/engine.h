/* The engine: requests in, events out, one owner thread.  The functions are those of cairn/engine.h
   with inner types. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "cairn/engine.h"
#include "model/model.h"
#include "text/tok.h"

typedef struct engine engine;

/* What tests put in place of the real thing; all zero outside of tests. */
typedef struct engine_hooks {
    uint64_t (*now_ns)(void *ctx); /* NULL: clock_ns */
    void *ctx;
    bool manual; /* no owner thread: whoever calls engine_turn is the owner */
} engine_hooks;

/* Options as the public ones, their struct_size ignored; `tok` may be NULL: no text, no EOS. */
cairn_status engine_open(const model *m, const tok *t, const cairn_engine_opts *o,
                         const engine_hooks *hooks, engine **out, cairn_diag *dg);
void engine_close(engine *e);
cairn_status engine_submit(engine *e, const cairn_request *r, cairn_event_fn fn, void *ctx,
                           cairn_request_id *out, cairn_diag *dg);
void engine_cancel(engine *e, cairn_request_id id);
void engine_stop(engine *e, cairn_request_id id);
void engine_flush(engine *e, uint32_t wait_ms,
                  cairn_flush *out); /* a manual engine's: from the owner */
void engine_unpin(engine *e, cairn_request_id id);
void engine_get_stats(engine *e, cairn_engine_stats *out); /* struct_size stays */

bool engine_wants_marks(const engine *e);

/* One turn: receive, admit, plan, run, sample, emit.  False: nothing to do.  Manual engines only. */
bool engine_turn(engine *e);

#endif
