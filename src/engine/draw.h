/* The tokens of a step.  Requests share nothing while they draw, so the rows of a step are drawn side by side on
   the backend's threads: each row whole by one of them, into a place of its own, with what its own request
   remembers.  Which thread, and who else draws, cannot matter.  Owned by the engine thread; nothing is allocated
   after drawer_new. */
#ifndef ENGINE_DRAW_H
#define ENGINE_DRAW_H

#include "engine/request.h"
#include "engine/step.h"
#include "sample/sample.h"
#include "text/tok.h"

typedef struct draw_row {
    request *r;
    float *logits; /* [vocab] of its row; changed */
    cairn_status st;
    sample_out out; /* where st is OK */
    cairn_diag dg;  /* else */
} draw_row;

typedef struct drawer drawer;

typedef struct drawer_opts {
    int32_t vocab, n_pos; /* as sampler_new's */
    int32_t max_rows;     /* of a step */
    int32_t n_threads;    /* that the backend has */
    const tok *tok;       /* outlives it; NULL as for sampler_new */
} drawer_opts;

/* How many rows are drawn at once, each by a sampler of so many bytes. */
int32_t drawer_lanes(int32_t n_threads, int32_t max_rows, uint64_t sampler_bytes);
cairn_status drawer_new(const drawer_opts *o, drawer **out); /* E_NOMEM */
void drawer_free(drawer *d);
uint64_t drawer_bytes(const drawer *d); /* that it holds */

/* A step: begin, add at most max_rows requests, run. */
void drawer_begin(drawer *d);
void drawer_add(drawer *d, request *r, float *logits);
void drawer_run(drawer *d, stepper *s);
/* The i-th that was added; until the next begin. */
const draw_row *drawer_draw(const drawer *d, int32_t i);
/* One of its samplers, for the engine thread between two runs. */
sampler *drawer_sampler(const drawer *d);

#endif
