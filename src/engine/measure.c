/* Speed of prefill and decode: seeded ids through a stepper of its own, no sampling and no text, so
   that the figures are those of the model and the machine. */
#include "engine/forward.h"

#include <math.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/rng.h"
#include "cairn/engine.h"
#include "engine/guard.h"
#include "engine/step.h"

typedef struct bench {
    const model *m;
    cairn_bench_opts o;
    stepper *s;
    int32_t *id; /* [depth + max(prompt, decode)] */
    seq_id *seq; /* [batch] */
} bench;

static cairn_status check(const model *m, const cairn_bench_opts *o, cairn_diag *dg)
{
    const int32_t ctx = guard_model_ctx(m);
    if (o->batch < 1 || o->batch > CAIRN_MAX_SEQS)
        return diag_set(dg, CAIRN_E_ARG, "batch of %d; expected 1 to %d", o->batch, CAIRN_MAX_SEQS);
    if (o->n_prompt < 0 || o->n_decode < 0 || o->depth < 0 || o->depth > ctx ||
        max_i32(o->n_prompt, o->n_decode) > ctx - o->depth)
        return diag_set(dg, CAIRN_E_ARG,
                        "%s: found prompt %d, decode %d, depth %d; expected the depth and either "
                        "of them within the context of %d",
                        m->src->path, o->n_prompt, o->n_decode, o->depth, ctx);
    return CAIRN_OK;
}

/* Arithmetic on NaN has another speed, and no use. */
static cairn_status check_logits(const bench *b, cairn_diag *dg)
{
    const float *logits = stepper_logits(b->s, 0);
    for (int32_t i = 0; i < b->m->shape.vocab; i++)
        if (!isfinite(logits[i]))
            return diag_set(dg, CAIRN_E_CORRUPT,
                            "%s: logits are not finite; expected finite weights and parameters",
                            b->m->src->path);
    return CAIRN_OK;
}

static cairn_status open_all(bench *b, int32_t n_pos, cairn_diag *dg)
{
    for (int32_t i = 0; i < b->o.batch; i++) {
        const cairn_status st = cache_open(stepper_cache(b->s), n_pos, &b->seq[i]);
        if (st != CAIRN_OK)
            return diag_set(dg, st, "no cache for sequence %d of %d, %d positions each", i + 1,
                            b->o.batch, n_pos);
    }
    return CAIRN_OK;
}

static void close_all(bench *b)
{
    for (int32_t i = 0; i < b->o.batch; i++) cache_close(stepper_cache(b->s), b->seq[i]);
}

/* Positions from … from+n-1 of every sequence, one sequence after another; the last row of each has
   logits, as in serving. */
static void prefill(bench *b, int32_t from, int32_t n)
{
    for (int32_t i = 0; i < b->o.batch; i++)
        for (int32_t at = 0; at < n; at += STEP_ROWS) {
            const int32_t rows = min_i32(STEP_ROWS, n - at);
            stepper_begin(b->s);
            stepper_add(b->s, b->seq[i], b->id + from + at, rows, at + rows == n, from + n);
            stepper_run(b->s);
        }
}

static void decode(bench *b, int32_t from, int32_t n)
{
    for (int32_t at = from; at < from + n; at++) {
        stepper_begin(b->s);
        for (int32_t i = 0; i < b->o.batch; i++)
            stepper_add(b->s, b->seq[i], b->id + at, 1, 1, at + 1);
        stepper_run(b->s);
    }
}

/* The first step touches pages and wakes threads; it is not timed. */
static cairn_status warm_up(bench *b, cairn_diag *dg)
{
    TRY(open_all(b, 1, dg));
    decode(b, 0, 1);
    close_all(b);
    return check_logits(b, dg);
}

static cairn_status time_phase(bench *b, int32_t n, void (*phase)(bench *, int32_t, int32_t),
                               double *tps, cairn_diag *dg)
{
    if (n == 0) {
        *tps = 0;
        return CAIRN_OK;
    }
    TRY(open_all(b, b->o.depth + n, dg));
    prefill(b, 0, b->o.depth);
    const double t0 = clock_s();
    phase(b, b->o.depth, n);
    *tps = (double)n * b->o.batch / (clock_s() - t0);
    close_all(b);
    return check_logits(b, dg);
}

cairn_status measure_speed(const model *m, const cairn_bench_opts *o, double *prefill_tps,
                           double *decode_tps, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    TRY(model_check_head(m, "to measure", dg));
    TRY(check(m, o, dg));
    bench b = {.m = m, .o = *o};
    const int32_t len = max_i32(1, o->depth + max_i32(o->n_prompt, o->n_decode));
    const stepper_opts so = {.max_rows = max_i32(o->batch, min_i32(STEP_ROWS, len)),
                             .max_out = o->batch,
                             .max_seqs = o->batch,
                             .ctx_len = len,
                             .codec = stepper_codec(m)};
    double speed[2];
    b.id = mem_alloc((size_t)len * sizeof *b.id, MEM_ENGINE);
    b.seq = mem_alloc((size_t)o->batch * sizeof *b.seq, MEM_ENGINE);
    if (!b.id || !b.seq) {
        st = diag_set(dg, CAIRN_E_NOMEM, "no memory for %d ids", len);
        goto out;
    }
    for (int32_t i = 0; i < len; i++)
        b.id[i] = (int32_t)(rng_u64(1, 0, (uint64_t)i) % (uint64_t)m->shape.vocab);
    TRY_GOTO(stepper_new(m, &so, &b.s, dg), out);
    TRY_GOTO(stepper_add_cache(b.s, len, 0, dg), out);
    stepper_busy(b.s, true);
    st = warm_up(&b, dg);
    if (st == CAIRN_OK) st = time_phase(&b, o->n_prompt, prefill, &speed[0], dg);
    if (st == CAIRN_OK) st = time_phase(&b, o->n_decode, decode, &speed[1], dg);
    stepper_busy(b.s, false);
    if (st != CAIRN_OK) goto out;
    *prefill_tps = speed[0];
    *decode_tps = speed[1];
out:
    stepper_free(b.s);
    mem_free(b.seq);
    mem_free(b.id);
    return st;
}
