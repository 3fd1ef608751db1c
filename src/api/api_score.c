/* Public scoring and measuring: checks arguments, hands over to engine/. */
#include "api/api_model.h"

#include <string.h>

#include "base/diag.h"
#include "cairn/score.h"
#include "engine/forward.h"
#include "tensor/backend.h"

static cairn_status bad_size(cairn_diag *dg, const char *what)
{
    return diag_set(dg, CAIRN_E_ARG, "%s: options not initialised", what);
}

static cairn_status check_model(const cairn_model *m, cairn_diag *dg)
{
    if (!m) return diag_set(dg, CAIRN_E_ARG, "no model");
    if (!m->m->dev)
        return diag_set(dg, CAIRN_E_ARG,
                        "the model was opened without its weights; expected one opened with them");
    return CAIRN_OK;
}

void cairn_score_opts_init(cairn_score_opts *o)
{
    *o = (cairn_score_opts){.struct_size = sizeof *o};
}

static cairn_status score_opts(const cairn_model *m, const int32_t *ids, const cairn_score_opts *o,
                               cairn_score_opts *own, cairn_diag *dg)
{
    cairn_score_opts_init(own);
    TRY(check_model(m, dg));
    if (!ids) return diag_set(dg, CAIRN_E_ARG, "no ids");
    if (o && o->struct_size != sizeof *o) return bad_size(dg, "cairn_score");
    if (o) *own = *o;
    return CAIRN_OK;
}

cairn_status cairn_score(const cairn_model *m, const int32_t *ids, size_t n,
                         const cairn_score_opts *o, cairn_logits_fn fn, void *ctx, cairn_diag *dg)
{
    cairn_score_opts own;
    TRY(score_opts(m, ids, o, &own, dg));
    if (!fn) return diag_set(dg, CAIRN_E_ARG, "no callback");
    return forward_score(m->m, ids, n, &own, fn, ctx, dg);
}

cairn_status cairn_score_hidden(cairn_model *m, const int32_t *ids, size_t n,
                                const cairn_score_opts *o, cairn_hidden_fn fn, void *ctx,
                                cairn_diag *dg)
{
    cairn_score_opts own;
    TRY(score_opts(m, ids, o, &own, dg));
    if (!fn) return diag_set(dg, CAIRN_E_ARG, "no callback");
    return forward_hidden(m->m, ids, n, &own, fn, ctx, dg);
}

void cairn_numerics_report_init(cairn_numerics_report *r)
{
    *r = (cairn_numerics_report){.struct_size = sizeof *r};
}

cairn_status cairn_check_numerics(cairn_model *m, const int32_t *ids, size_t n, int32_t max_threads,
                                  void (*say)(void *ctx, const char *line), void *ctx,
                                  cairn_numerics_report *out, cairn_diag *dg)
{
    TRY(check_model(m, dg));
    if (!ids || !out) return diag_set(dg, CAIRN_E_ARG, "no ids or no place for the report");
    if (out->struct_size < sizeof out->struct_size)
        return diag_set(dg, CAIRN_E_ARG, "cairn_check_numerics: report not initialised");
    cairn_numerics_report r;
    TRY(numerics_check(m->m, ids, n, max_threads, say, ctx, &r, dg));
    r.struct_size = out->struct_size;
    memcpy(out, &r, out->struct_size < sizeof r ? out->struct_size : sizeof r);
    return CAIRN_OK;
}

void cairn_bench_opts_init(cairn_bench_opts *o)
{
    *o = (cairn_bench_opts){.struct_size = sizeof *o, .n_prompt = 512, .n_decode = 128, .batch = 1};
}

/* Our own copy of the options, or the defaults. */
static cairn_status bench_opts(const char *who, const cairn_bench_opts *o, cairn_bench_opts *own,
                               cairn_diag *dg)
{
    cairn_bench_opts_init(own);
    if (o && o->struct_size != sizeof *o) return bad_size(dg, who);
    if (o) *own = *o;
    return CAIRN_OK;
}

cairn_status cairn_bench_run(cairn_model *m, const cairn_bench_opts *o, double *prefill_tps,
                             double *decode_tps, cairn_diag *dg)
{
    cairn_bench_opts own;
    TRY(check_model(m, dg));
    TRY(bench_opts("cairn_bench_run", o, &own, dg));
    if (!prefill_tps || !decode_tps) return diag_set(dg, CAIRN_E_ARG, "no place for the speeds");
    return measure_speed(m->m, &own, prefill_tps, decode_tps, dg);
}

cairn_status cairn_bench_ops(cairn_model *m, const cairn_bench_opts *o, cairn_op_cost_fn fn,
                             void *ctx, cairn_diag *dg)
{
    cairn_bench_opts own;
    TRY(check_model(m, dg));
    TRY(bench_opts("cairn_bench_ops", o, &own, dg));
    if (!fn) return diag_set(dg, CAIRN_E_ARG, "nobody to tell the costs to");
    return measure_ops(m->m, &own, fn, ctx, dg);
}

void cairn_machine_limits_init(cairn_machine_limits *l)
{
    *l = (cairn_machine_limits){.struct_size = sizeof *l};
}

cairn_status cairn_bench_machine(cairn_model *m, cairn_machine_limits *out, cairn_diag *dg)
{
    TRY(check_model(m, dg));
    if (!out) return diag_set(dg, CAIRN_E_ARG, "no place for the limits");
    if (out->struct_size != sizeof *out) return bad_size(dg, "cairn_bench_machine");
    dev_limits l;
    const cairn_status st = m->m->be->measure(m->m->dev, &l);
    if (st != CAIRN_OK) return diag_set(dg, st, "the machine's limits could not be measured");
    out->read_gbs = l.read_gbs;
    out->int8_tops = l.int8_tops;
    out->f32_tflops = l.f32_tflops;
    out->weights_gbs = l.weights_gbs;
    return CAIRN_OK;
}
