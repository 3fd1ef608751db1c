/* Teacher-forced scoring: one sequence through a stepper of its own, chunk by chunk; only rows that
   the caller wants go through the head. */
#include "engine/forward.h"

#include "engine/guard.h"

#include <string.h>

#include "base/diag.h"
#include "base/num.h"
#include "engine/step.h"

/* Of one step, where the caller leaves the chunk to us. */
enum { LOGITS_BYTES = 128 << 20 };

cairn_status forward_check_ids(const model *m, const int32_t *ids, size_t n, cairn_diag *dg)
{
    const int32_t most = guard_model_ctx(m); /* beyond it the rotation is not what was trained */
    if (n == 0 || n > (size_t)most)
        return diag_set(dg, CAIRN_E_ARG, "%s: found %zu ids; expected 1 to the context of %d",
                        m->src->path, n, most);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= m->shape.vocab)
            return diag_set(dg, CAIRN_E_ARG, "%s: found id %d at place %zu; expected 0 to %d",
                            m->src->path, ids[i], i, m->shape.vocab - 1);
    return CAIRN_OK;
}

static cairn_status check(const model *m, const int32_t *ids, size_t n, const cairn_score_opts *o,
                          cairn_diag *dg)
{
    TRY(forward_check_ids(m, ids, n, dg));
    if (o->chunk < 0) return diag_set(dg, CAIRN_E_ARG, "chunk is %d; expected 0 or more", o->chunk);
    if (o->first < 0 || (size_t)o->first >= n)
        return diag_set(dg, CAIRN_E_ARG, "first wanted position is %d; expected 0 to %zu", o->first,
                        n - 1);
    if (o->n_threads < 0 || o->n_threads > CAIRN_MAX_THREADS)
        return diag_set(dg, CAIRN_E_ARG, "%d threads; expected 0 to %d", o->n_threads,
                        CAIRN_MAX_THREADS);
    return CAIRN_OK;
}

static int32_t chunk_rows(const model *m, int32_t n, const cairn_score_opts *o)
{
    if (m->both) return n;
    if (o->chunk) return min_i32(o->chunk, n);
    const int32_t fits = LOGITS_BYTES / (int32_t)sizeof(float) / m->shape.vocab;
    return min_i32(n, max_i32(1, min_i32(STEP_ROWS, fits)));
}

/* What score and hidden differ in: what a finished chunk gives to the caller. */
typedef struct job {
    const model *m;
    stepper *s;
    cairn_logits_fn logits;
    cairn_hidden_fn hidden;
    void *ctx;
    float *row; /* [n_layer + 1][hidden] */
} job;

static bool give(job *j, int32_t i_row, int32_t i_out, int32_t pos)
{
    if (j->logits) return j->logits(j->ctx, pos, stepper_logits(j->s, i_out));
    const size_t h = (size_t)j->m->shape.hidden;
    for (int32_t t = 0; t <= j->m->shape.n_layer; t++)
        memcpy(j->row + (size_t)t * h, stepper_tap(j->s, t, i_row), h * sizeof(float));
    return j->hidden(j->ctx, pos, j->row);
}

static void walk(job *j, const int32_t *ids, int32_t n, int32_t chunk, int32_t first, seq_id q)
{
    for (int32_t at = 0; at < n; at += chunk) {
        const int32_t rows = min_i32(chunk, n - at);
        const int32_t wanted = max_i32(0, min_i32(rows, at + rows - first));
        stepper_begin(j->s);
        stepper_add(j->s, q, ids + at, rows, j->logits ? wanted : 0, n);
        stepper_run(j->s);
        for (int32_t i = 0; i < wanted; i++) {
            const int32_t row = rows - wanted + i;
            if (!give(j, row, i, at + row)) return;
        }
    }
}

static cairn_status run(job *j, const int32_t *ids, size_t n, const cairn_score_opts *o,
                        cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    const model *m = j->m;
    seq_id q;
    TRY(check(m, ids, n, o, dg));
    if (j->logits) TRY(model_check_head(m, "to score a text", dg));
    const int32_t chunk = chunk_rows(m, (int32_t)n, o);
    const stepper_opts so = {.max_rows = chunk,
                             .max_out = j->logits ? min_i32(chunk, (int32_t)n - o->first) : 1,
                             .max_seqs = 1,
                             .ctx_len = (int32_t)n,
                             .codec = stepper_codec(m),
                             .taps = j->hidden != NULL};
    if (j->hidden) {
        const size_t row = ((size_t)m->shape.n_layer + 1) * (size_t)m->shape.hidden;
        j->row = mem_alloc(row * sizeof *j->row, MEM_ENGINE);
        if (!j->row) return diag_set(dg, CAIRN_E_NOMEM, "no memory for hidden states");
    }
    TRY_GOTO(stepper_new(m, &so, &j->s, dg), out);
    TRY_GOTO(stepper_add_cache(j->s, (int32_t)n, (stepper_room){0}, dg), out);
    st = cache_open(stepper_cache(j->s), (int32_t)n, &q);
    if (st != CAIRN_OK) {
        (void)diag_set(dg, st, "no cache for a sequence of %zu positions", n);
        goto out;
    }
    if (o->n_threads) m->be->limit_threads(m->dev, o->n_threads);
    stepper_busy(j->s, true);
    walk(j, ids, (int32_t)n, chunk, o->first, q);
    stepper_busy(j->s, false);
    if (o->n_threads) m->be->limit_threads(m->dev, 0);
out:
    stepper_free(j->s);
    mem_free(j->row);
    return st;
}

cairn_status forward_score(const model *m, const int32_t *ids, size_t n, const cairn_score_opts *o,
                           cairn_logits_fn fn, void *ctx, cairn_diag *dg)
{
    job j = {.m = m, .logits = fn, .ctx = ctx};
    return run(&j, ids, n, o, dg);
}

cairn_status forward_hidden(const model *m, const int32_t *ids, size_t n, const cairn_score_opts *o,
                            cairn_hidden_fn fn, void *ctx, cairn_diag *dg)
{
    job j = {.m = m, .hidden = fn, .ctx = ctx};
    return run(&j, ids, n, o, dg);
}

cairn_status forward_score_bytes(const model *m, int32_t n, uint64_t *out, cairn_diag *dg)
{
    const int32_t ctx = min_i32(n, guard_model_ctx(m));
    const stepper_opts so = {.max_rows = chunk_rows(m, ctx, &(cairn_score_opts){0}),
                             .max_out = 1,
                             .max_seqs = 1,
                             .ctx_len = ctx,
                             .codec = stepper_codec(m)};
    const cache_opts co = {
        .codec = so.codec, .max_seqs = 1, .ctx_len = ctx, .max_step_rows = so.max_rows};
    stepper *s = NULL;
    uint64_t tables;
    if (n <= 0) {
        *out = 0;
        return CAIRN_OK;
    }
    TRY(cache_overhead(&m->cache, &co, false, &tables, dg));
    TRY(stepper_new(m, &so, &s, dg));
    *out = stepper_scratch(s) + tables + cache_bytes(&m->cache, &so.codec, so.max_rows, ctx);
    stepper_free(s);
    return CAIRN_OK;
}
