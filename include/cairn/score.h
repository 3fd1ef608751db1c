/* Teacher-forced logits, and the check that they do not depend on how they were computed. */
#ifndef CAIRN_SCORE_H
#define CAIRN_SCORE_H

#include "cairn/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn_score_opts {
    uint32_t struct_size;
    int32_t chunk;     /* rows a step computes; 0: 512 */
    int32_t first;     /* first position whose logits are wanted */
    int32_t n_threads; /* at most CAIRN_MAX_THREADS; 0: the model's */
} cairn_score_opts;

/* `logits`: [vocab], of position `pos`; valid during the call.  Return false to stop. */
typedef bool (*cairn_logits_fn)(void *ctx, int32_t pos, const float *logits);
/* `hidden`: [n_layer + 1][hidden] of position `pos`: the embedding, then each layer's output. */
typedef bool (*cairn_hidden_fn)(void *ctx, int32_t pos, const float *hidden);

CAIRN_API void cairn_score_opts_init(cairn_score_opts *o);
/* Calls `fn` for positions first … n-1 in order.  Not for use while an engine runs on `m`
   if `n_threads` differs from the model's. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_score(cairn_model *m, const int32_t *ids, size_t n,
                                                  const cairn_score_opts *o, cairn_logits_fn fn,
                                                  void *ctx, cairn_diag *dg);
CAIRN_API CAIRN_MUST_USE cairn_status cairn_score_hidden(cairn_model *m, const int32_t *ids,
                                                         size_t n, const cairn_score_opts *o,
                                                         cairn_hidden_fn fn, void *ctx,
                                                         cairn_diag *dg);

typedef struct cairn_numerics_report {
    uint32_t struct_size; /* set by cairn_numerics_report_init */
    uint64_t n_comparisons;
    uint64_t n_different; /* logits whose bits differ */
    char first[256];      /* what differed first and where; empty if nothing did */
} cairn_numerics_report;
CAIRN_API void cairn_numerics_report_init(cairn_numerics_report *r);
/* Runs the prompt alone, in chunks of odd sizes, in batches with strangers, with few output rows,
   on 1 to `max_threads` threads, and compares every logit bit by bit.  `say`, if not NULL, gets one
   line for each comparison.  Writes the first out->struct_size bytes of the report. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_check_numerics(cairn_model *m, const int32_t *ids,
                                                           size_t n, int32_t max_threads,
                                                           void (*say)(void *ctx, const char *line),
                                                           void *ctx, cairn_numerics_report *out,
                                                           cairn_diag *dg);

/* Speed of prefill and decode, alone on the machine. */
typedef struct cairn_bench_opts {
    uint32_t struct_size;
    int32_t n_prompt; /* positions of each sequence that prefill computes; 0: no such phase */
    int32_t n_decode; /* steps of decoding; likewise */
    int32_t depth;    /* positions in the cache before either begins */
    int32_t batch;    /* sequences, at most CAIRN_MAX_SEQS of cairn/engine.h */
} cairn_bench_opts;
CAIRN_API void cairn_bench_opts_init(cairn_bench_opts *o);
/* One repeat: tokens per second of each phase, all sequences together; 0 for one left out. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_bench_run(cairn_model *m, const cairn_bench_opts *o,
                                                      double *prefill_tps, double *decode_tps,
                                                      cairn_diag *dg);
/* Machine limits in the same run: memory read bandwidth in GB/s over at least 1 GiB, and the peak
   of the integer dot product at this machine's best level, in 10^12 operations per second. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_bench_machine(cairn_model *m, double *read_gbs,
                                                          double *int8_tops, cairn_diag *dg);

#ifdef __cplusplus
}
#endif
#endif
