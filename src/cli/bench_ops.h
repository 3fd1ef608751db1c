/* The table of bench --ops. */
#ifndef CLI_BENCH_OPS_H
#define CLI_BENCH_OPS_H

#include "base/json.h"
#include "cairn/score.h"

typedef struct bench_ops bench_ops;

/* Runs both phases of `o` once, op by op, and sorts what each op lost against `max`. */
cairn_status bench_ops_run(cairn_model *m, const cairn_bench_opts *o,
                           const cairn_machine_limits *max, bench_ops **out, cairn_diag *dg);
void bench_ops_free(bench_ops *b);
void bench_ops_text(const bench_ops *b, buf *out);
/* The key "ops" of an open object. */
void bench_ops_json(const bench_ops *b, json_writer *w);

#endif
