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
CAIRN_API CAIRN_MUST_USE cairn_status cairn_score(const cairn_model *m, const int32_t *ids,
                                                  size_t n, const cairn_score_opts *o,
                                                  cairn_logits_fn fn, void *ctx, cairn_diag *dg);
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
/* What the machine can do at most, on the model's threads and at its level of instructions. */
typedef struct cairn_machine_limits {
    uint32_t struct_size; /* set by cairn_machine_limits_init */
    double read_gbs;      /* GB/s read from memory, over at least 1 GiB */
    double int8_tops;  /* 10^12 operations a second of dots of bytes; a product and a sum are two */
    double f32_tflops; /* 10^12 operations a second of fused multiply-adds of floats */
    /* GB/s read of the model's own packed weights (1 GiB of them at most), again and again with nothing
       between, from wherever they then lie; 0: it has no MiB of them. */
    double weights_gbs;
} cairn_machine_limits;
CAIRN_API void cairn_machine_limits_init(cairn_machine_limits *l);
/* Measures them now. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_bench_machine(cairn_model *m, cairn_machine_limits *out,
                                                          cairn_diag *dg);

/* What the ops of one kind, over the same weights of all layers, took in a phase, and what they had to do.
   Bytes are those of weights as stored and of keys and values read; activations come from caches. */
enum { CAIRN_MAX_OP_LABEL = 96 }; /* bytes of a label, its end included; longer ones are cut */
typedef struct cairn_op_cost {
    const char *label; /* as "LINEAR ffn_gate+ffn_up Q4_K"; valid during the call */
    bool decode;       /* of decoding; else of prefill */
    int64_t n_runs;
    double seconds, bytes, int_ops, float_ops;
} cairn_op_cost;
typedef void (*cairn_op_cost_fn)(void *ctx, const cairn_op_cost *c);
/* One repeat of cairn_bench_run that looks at the clock between ops; `fn` gets every label once a phase, in
   the order of the program, and last "(between ops)": the rest of the phase's time. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_bench_ops(cairn_model *m, const cairn_bench_opts *o,
                                                      cairn_op_cost_fn fn, void *ctx,
                                                      cairn_diag *dg);

#ifdef __cplusplus
}
#endif
#endif
