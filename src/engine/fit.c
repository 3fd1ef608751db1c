/* The guard's own sums for contexts and counts that nobody has opened yet.  Programs are compiled for each, which
   maps their memory and touches none of it; weights are not read. */
#include "engine/fit.h"

#include "base/diag.h"
#include "base/machine.h"
#include "base/num.h"
#include "cairn/engine.h"
#include "engine/draw.h"
#include "engine/forward.h"
#include "engine/guard.h"
#include "engine/step.h"
#include "sample/sample.h"

enum {
    FIRST_CTX = 2048, /* a short conversation; less saves little */
    QUEUE = 64,       /* an engine's default */
    MAX_CTXS = 16     /* doubled from the first: to 32 million positions */
};
/* Of the measured bandwidth, what decoding reaches where nothing else holds it back: 90 to 92 % on a Xeon. */
#define DECODE_SHARE 0.9
#define NO_LIMIT     (UINT64_C(1) << 62)

static const int32_t seq_steps[] = {1, 4, 16};

typedef struct job {
    model m; /* a copy, whose device may be ours */
    const tok *tok;
    kv_scheme codec;
    uint64_t budget, host, live, free, total, weights, sampler;
    double read_gbs;
} job;

static guard_in ask(const job *j, int32_t ctx, int32_t seqs)
{
    return (guard_in){.m = &j->m,
                      .tok = j->tok,
                      .codec = j->codec,
                      .max_seqs = seqs,
                      .max_queue = QUEUE,
                      .max_step_rows = max_i32(STEP_ROWS, seqs),
                      .ctx_len = ctx,
                      .budget = j->budget,
                      .prefix = GUARD_NO_PREFIX,
                      .live = j->live,
                      .host = j->host,
                      .weights = j->weights,
                      .free = j->free,
                      .total = j->total};
}

static cairn_status count_scratch(const job *j, int32_t ctx, int32_t seqs, uint64_t *out,
                                  cairn_diag *dg)
{
    const stepper_opts o = {.max_rows = max_i32(STEP_ROWS, seqs),
                            .max_out = stepper_outs(seqs, max_i32(STEP_ROWS, seqs)),
                            .max_seqs = seqs,
                            .ctx_len = ctx,
                            .codec = j->codec};
    stepper *s = NULL;
    TRY(stepper_new(&j->m, &o, &s, dg));
    *out = stepper_scratch(s);
    stepper_free(s);
    return CAIRN_OK;
}

/* A step reads its weights once, and what each request has in its cache. */
static double predict(const job *j, int32_t ctx, int32_t seqs)
{
    const double kept = (double)cache_bytes(&j->m.cache, &j->codec, 1, ctx) * seqs;
    const double bytes = (double)model_step_bytes(&j->m, seqs) + kept;
    return j->read_gbs * 1e9 * DECODE_SHARE / bytes * seqs;
}

static cairn_status fit_row(const job *j, uint64_t budget, int32_t ctx, int32_t seqs,
                            cairn_fit_row *out, cairn_diag *dg)
{
    guard_in in = ask(j, ctx, seqs);
    guard_out fit;
    const uint64_t one = cache_bytes(&j->m.cache, &j->codec, in.max_step_rows, ctx);
    TRY(count_scratch(j, ctx, seqs, &in.scratch, dg));
    /* an engine has more than the one sampler that is there now */
    const int32_t lanes = drawer_lanes(j->m.be->threads(j->m.dev), seqs, j->sampler);
    in.live += in.scratch + (uint64_t)(lanes - 1) * j->sampler;
    in.budget = budget;
    const cairn_status st = guard_fit(&in, &fit, dg);
    if (st != CAIRN_OK && st != CAIRN_E_LIMIT) return st;
    if (st != CAIRN_OK || fit.cache_bytes < one * (uint64_t)seqs) { /* then what it would take */
        in.budget = NO_LIMIT;
        TRY(guard_fit(&in, &fit, dg));
    }
    *out = (cairn_fit_row){.ctx_len = ctx,
                           .max_seqs = seqs,
                           .needed_bytes = fit.reserved,
                           .cache_bytes = fit.cache_bytes,
                           .table_bytes = fit.overhead,
                           .scratch_bytes = fit.scratch_bytes,
                           .request_bytes = fit.request_bytes,
                           .decode_tps = predict(j, ctx, seqs),
                           .fits = fit.reserved <= budget};
    return CAIRN_OK;
}

/* The scratch grows with the context that programs are compiled for: the model's own, as an engine has it. */
static cairn_status fit_longest(const job *j, cairn_fit_report *r, cairn_diag *dg)
{
    guard_in in = ask(j, 0, 1);
    guard_out fit = {0};
    cairn_diag why = {0};
    TRY(count_scratch(j, guard_model_ctx(&j->m), 1, &in.scratch, dg));
    in.live += in.scratch;
    const cairn_status st = guard_fit(&in, &fit, &why);
    if (st != CAIRN_OK && st != CAIRN_E_LIMIT) return diag_set(dg, st, "%s", why.message);
    r->max_ctx = st == CAIRN_OK ? fit.ctx_len : 0;
    return CAIRN_OK;
}

static int32_t contexts(const job *j, int32_t only, int32_t out[MAX_CTXS])
{
    const int32_t most = guard_model_ctx(&j->m);
    int32_t n = 0;
    if (only) {
        out[0] = only;
        return 1;
    }
    for (int32_t ctx = FIRST_CTX; ctx < most && n < MAX_CTXS - 1; ctx *= 2) out[n++] = ctx;
    out[n++] = most;
    return n;
}

static cairn_status fit_all(const job *j, const cairn_fit_opts *o, cairn_fit_fn fn, void *ctx,
                            cairn_fit_report *r, cairn_diag *dg)
{
    int32_t list[MAX_CTXS];
    const int32_t n = contexts(j, o->ctx_len, list);
    for (int32_t i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof seq_steps / sizeof *seq_steps; k++) {
            cairn_fit_row row;
            const int32_t seqs = o->max_seqs ? o->max_seqs : seq_steps[k];
            TRY(fit_row(j, r->budget_bytes, list[i], seqs, &row, dg));
            fn(ctx, &row);
            if (o->max_seqs) break;
        }
    return fit_longest(j, r, dg);
}

static cairn_status check(const model *m, const cairn_fit_opts *o, cairn_diag *dg)
{
    if (o->ctx_len < 0 || o->ctx_len > guard_model_ctx(m))
        return diag_set(dg, CAIRN_E_ARG, "a context of %d; expected 1 to %d, or 0 for a table",
                        o->ctx_len, guard_model_ctx(m));
    if (o->max_seqs < 0 || o->max_seqs > CAIRN_MAX_SEQS)
        return diag_set(dg, CAIRN_E_ARG, "%d requests at once; expected 1 to %d, or 0 for a table",
                        o->max_seqs, CAIRN_MAX_SEQS);
    return model_check_head(m, "to generate", dg);
}

static cairn_status measure_reads(job *j, cairn_diag *dg)
{
    dev_limits max;
    const cairn_status st = j->m.be->measure(j->m.dev, &max);
    if (st != CAIRN_OK) return diag_set(dg, st, "memory's bandwidth could not be measured");
    j->read_gbs = max.read_gbs;
    return CAIRN_OK;
}

/* Rows that are looked up beside what products have of the same weight: the guard counts both. */
static uint64_t looked_up_bytes(const model *m)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < m->w.n; i++) {
        const weight *w = m->w.item[i];
        if (!w->f32 && w->gather && m->be->repacks(m->compute, w)) bytes += w->size;
    }
    return bytes;
}

cairn_status fit_model(const model *m, const tok *t, const cairn_fit_opts *o, cairn_fit_fn fn,
                       void *ctx, cairn_fit_report *out, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    sampler *s = NULL;
    cairn_fit_report r = {.struct_size = out->struct_size};
    job j = {.m = *m, .tok = t, .codec = stepper_codec(m), .budget = o->memory_budget};
    TRY(check(m, o, dg));
    if (!m->dev) TRY(m->be->open(&(dev_opts){m->compute, o->n_threads, NULL}, &j.m.dev, dg));
    /* an engine has one at least, whatever its context */
    if (sampler_new(m->shape.vocab, guard_model_ctx(m), t, &s) != CAIRN_OK) {
        st = diag_set(dg, CAIRN_E_NOMEM, "no memory for a sampler");
        goto out;
    }
    j.sampler = sampler_bytes(s);
    machine_memory(&j.free, &j.total);
    TRY_GOTO(forward_score_bytes(&j.m, o->score_len, &j.host, dg), out);
    j.host += o->host_bytes;
    j.weights = model_loaded_bytes(m) + looked_up_bytes(m);
    j.live = o->other_bytes;
    const uint64_t tiles = m->dev ? m->be->resident(m->dev) + m->be->spare(m->dev) : 0;
    if (!j.live) j.live = guard_left(mem_used_all(), tiles);
    if (!o->no_speed) TRY_GOTO(measure_reads(&j, dg), out);
    const guard_in in = ask(&j, 0, 1);
    r.budget_bytes = guard_budget(&in);
    r.free_bytes = j.free;
    r.total_bytes = j.total;
    r.weights_bytes = j.weights;
    r.other_bytes = guard_program_bytes(&in);
    r.token_bytes = model_token_bytes(m);
    r.read_gbs = j.read_gbs;
    TRY_GOTO(fit_all(&j, o, fn, ctx, &r, dg), out);
    *out = r;
out:
    sampler_free(s);
    if (!m->dev) m->be->close(j.m.dev);
    return st;
}
