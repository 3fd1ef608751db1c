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
#include "engine/op_meter.h"
#include "engine/step.h"

typedef struct bench {
    const model *m;
    cairn_bench_opts o;
    stepper *s;
    op_meter *meter; /* or NULL */
    int32_t *id;     /* [depth + max(prompt, decode)] */
    seq_id *seq;     /* [batch] */
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

static void run(bench *b)
{
    stepper_run(b->s);
    if (b->meter) op_meter_step(b->meter);
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
            run(b);
        }
}

static void decode(bench *b, int32_t from, int32_t n)
{
    for (int32_t at = from; at < from + n; at++) {
        stepper_begin(b->s);
        for (int32_t i = 0; i < b->o.batch; i++)
            stepper_add(b->s, b->seq[i], b->id + at, 1, 1, at + 1);
        run(b);
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
                               double *seconds, cairn_diag *dg)
{
    *seconds = 0;
    if (n == 0) return CAIRN_OK;
    TRY(open_all(b, b->o.depth + n, dg));
    prefill(b, 0, b->o.depth);
    if (b->meter) op_meter_reset(b->meter);
    const double t0 = clock_s();
    phase(b, b->o.depth, n);
    *seconds = clock_s() - t0;
    close_all(b);
    return check_logits(b, dg);
}

static cairn_status bench_open(bench *b, const model *m, const cairn_bench_opts *o, cairn_diag *dg)
{
    *b = (bench){.m = m, .o = *o};
    TRY(model_check_head(m, "to measure", dg));
    TRY(check(m, o, dg));
    const int32_t len = max_i32(1, o->depth + max_i32(o->n_prompt, o->n_decode));
    const stepper_opts so = {.max_rows = max_i32(o->batch, min_i32(STEP_ROWS, len)),
                             .max_out = o->batch,
                             .max_seqs = o->batch,
                             .ctx_len = len,
                             .codec = stepper_codec(m)};
    b->id = mem_alloc((size_t)len * sizeof *b->id, MEM_ENGINE);
    b->seq = mem_alloc((size_t)o->batch * sizeof *b->seq, MEM_ENGINE);
    if (!b->id || !b->seq) return diag_set(dg, CAIRN_E_NOMEM, "no memory for %d ids", len);
    for (int32_t i = 0; i < len; i++)
        b->id[i] = (int32_t)(rng_u64(1, 0, (uint64_t)i) % (uint64_t)m->shape.vocab);
    TRY(stepper_new(m, &so, &b->s, dg));
    return stepper_add_cache(b->s, len, (stepper_room){0}, dg);
}

static void bench_close(bench *b)
{
    op_meter_free(b->meter);
    stepper_free(b->s);
    mem_free(b->seq);
    mem_free(b->id);
}

cairn_status measure_speed(const model *m, const cairn_bench_opts *o, double *prefill_tps,
                           double *decode_tps, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    bench b;
    double pre = 0, dec = 0;
    TRY_GOTO(bench_open(&b, m, o, dg), out);
    stepper_busy(b.s, true);
    st = warm_up(&b, dg);
    if (st == CAIRN_OK) st = time_phase(&b, o->n_prompt, prefill, &pre, dg);
    if (st == CAIRN_OK) st = time_phase(&b, o->n_decode, decode, &dec, dg);
    stepper_busy(b.s, false);
    if (st != CAIRN_OK) goto out;
    *prefill_tps = pre > 0 ? (double)o->n_prompt * o->batch / pre : 0;
    *decode_tps = dec > 0 ? (double)o->n_decode * o->batch / dec : 0;
out:
    bench_close(&b);
    return st;
}

cairn_status measure_ops(const model *m, const cairn_bench_opts *o, cairn_op_cost_fn fn, void *ctx,
                         cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    bench b;
    double s = 0;
    TRY_GOTO(bench_open(&b, m, o, dg), out);
    TRY_GOTO(op_meter_new(m, b.s, &b.meter, dg), out);
    stepper_busy(b.s, true);
    st = warm_up(&b, dg);
    if (st == CAIRN_OK) st = time_phase(&b, o->n_prompt, prefill, &s, dg);
    if (st == CAIRN_OK && o->n_prompt > 0) op_meter_report(b.meter, false, s, fn, ctx);
    if (st == CAIRN_OK) st = time_phase(&b, o->n_decode, decode, &s, dg);
    if (st == CAIRN_OK && o->n_decode > 0) op_meter_report(b.meter, true, s, fn, ctx);
    stepper_busy(b.s, false);
out:
    bench_close(&b);
    return st;
}
