/* Will it fit: what a model takes by context and parallel requests, by the sums of cairn_engine_open,
   and the speed of decoding that the measured bandwidth of memory allows. */
#ifndef CAIRN_FIT_H
#define CAIRN_FIT_H

#include "cairn/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn_fit_opts {
    uint32_t struct_size; /* set by cairn_fit_opts_init */
    /* As cairn_engine_opts has them. */
    uint64_t memory_budget, host_bytes;
    int32_t score_len;
    /* Allocated beside the model; 0: what is now, of which an open engine has most. */
    uint64_t other_bytes;
    int32_t n_threads; /* 0: one for each core this process may use */
    int32_t ctx_len;   /* this alone; 0: 2,048, its doubles up to the model's, and the model's */
    int32_t max_seqs;  /* so many parallel requests alone; 0: 1, 4 and 16 */
    bool no_speed;     /* measures nothing: speeds are 0 */
} cairn_fit_opts;

/* Of requests of ctx_len positions, max_seqs at once; bytes.  Without prefixes, which take what is left. */
typedef struct cairn_fit_row {
    int32_t ctx_len, max_seqs;
    uint64_t needed_bytes; /* all in all: what is below, weights, and what is allocated already */
    uint64_t cache_bytes, table_bytes, scratch_bytes, request_bytes;
    double decode_tps; /* tokens a second of all together, each at the end of its context */
    bool fits;         /* into the budget */
} cairn_fit_row;
typedef void (*cairn_fit_fn)(void *ctx, const cairn_fit_row *row);

/* Kept prefixes and what a disk cache stages are not counted: an engine with them needs up to some 64 MiB more. */
typedef struct cairn_fit_report {
    uint32_t struct_size; /* set by cairn_fit_report_init */
    uint64_t budget_bytes, free_bytes, total_bytes;
    uint64_t weights_bytes;
    uint64_t other_bytes; /* of the program, its buffers and the vocabulary */
    uint64_t token_bytes; /* of weights that decoding one token reads */
    int32_t max_ctx; /* the longest context that one request may have; 0: the model does not fit */
    double read_gbs; /* measured; 0: it was not */
} cairn_fit_report;

CAIRN_API void cairn_fit_opts_init(cairn_fit_opts *o);
CAIRN_API void cairn_fit_report_init(cairn_fit_report *r);
/* `m` may be opened without weights.  Calls `fn` for each row, contexts rising.  Measuring takes about a second and
   up to 1 GiB for as long.  E_ARG: a context or a count out of range; E_NOMEM. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_fit(const cairn_model *m, const cairn_fit_opts *o,
                                                cairn_fit_fn fn, void *ctx, cairn_fit_report *out,
                                                cairn_diag *dg);

#ifdef __cplusplus
}
#endif
#endif
