/* A model run without a thread, a queue or sampling: teacher-forced logits, the check of the numerics
   contract, speed.  Each call makes its own stepper and leaves nothing behind. */
#ifndef ENGINE_FORWARD_H
#define ENGINE_FORWARD_H

#include "cairn/score.h"
#include "cairn/status.h"
#include "model/model.h"

/* As cairn_score and cairn_score_hidden. */
cairn_status forward_score(const model *m, const int32_t *ids, size_t n, const cairn_score_opts *o,
                           cairn_logits_fn fn, void *ctx, cairn_diag *dg);
cairn_status forward_hidden(const model *m, const int32_t *ids, size_t n, const cairn_score_opts *o,
                            cairn_hidden_fn fn, void *ctx, cairn_diag *dg);

/* Bytes that a score of one row takes where a prompt has up to n ids; 0 where n is. */
cairn_status forward_score_bytes(const model *m, int32_t n, uint64_t *out, cairn_diag *dg);

/* Ids are of the model, and the prompt is not longer than it can be. */
cairn_status forward_check_ids(const model *m, const int32_t *ids, size_t n, cairn_diag *dg);

/* As cairn_check_numerics.  Runs on 1 … max_threads threads and restores the model's number. */
cairn_status numerics_check(const model *m, const int32_t *ids, size_t n, int32_t max_threads,
                            void (*say)(void *ctx, const char *line), void *ctx,
                            cairn_numerics_report *out, cairn_diag *dg);

/* As cairn_bench_run. */
cairn_status measure_speed(const model *m, const cairn_bench_opts *o, double *prefill_tps,
                           double *decode_tps, cairn_diag *dg);
/* As cairn_bench_ops. */
cairn_status measure_ops(const model *m, const cairn_bench_opts *o, cairn_op_cost_fn fn, void *ctx,
                         cairn_diag *dg);

#endif
