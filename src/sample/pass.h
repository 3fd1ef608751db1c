/* Passes over many logits: the arithmetic of sampling that touches a whole vocabulary.  pass_ref.c is the
   definition, in plain C; the faster levels give its bits (tests/unit/sample/test_pass.c), so that a token does
   not depend on the machine.  They are written once, in pass_body.h.

   Whole runs only: callers fill up the last one with -inf, which weighs nothing. */
#ifndef SAMPLE_PASS_H
#define SAMPLE_PASS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    PASS_RUN =
        256, /* values are looked at by runs: a pass sums them up, a short one finds something */
    PASS_LANES = 16
};
/* Of a sum, how far an estimate may be off: 2^x by a polynomial of degree 4 is 2.7e-6, the roundings of a weight that
   counts (above 2^-30 of the greatest) 3e-6, f32 sums of 16 another 1e-6; the rest is room. */
#define PASS_ESTIMATE 2e-5

typedef struct pass {
    /* high[r] = the greatest of run r, -inf where there is none; NaN is passed over.  False: a value is NaN or
       +inf. */
    bool (*high)(const float *x, int32_t n_runs, float *high);
    /* w[i] = fexp((x[i] - top) · scale), x[i] ≤ top, none NaN, scale > 0; run[r] = their sum in run r, in f64:
       sixteen sums by index mod 16 in rising order, then these from 0 in theirs.  Answers the sum of run[], from 0
       in rising order. */
    double (*weigh)(const float *x, int32_t n_runs, float top, float scale, float *w, double *run);
    /* Which of n values, none NaN, are at `at` or above: as `first` + index, and they themselves, both in rising
       order.  Answers how many; id and value have room for n. */
    int32_t (*collect)(const float *x, int32_t n, float at, int32_t first, int32_t *id,
                       float *value);
    /* What weigh answers with a scale of 1, one x being top, to within PASS_ESTIMATE of it.  Its bits are each level's own:
       for what comes out the same on either side of that. */
    double (*estimate)(const float *x, int32_t n_runs, float top);
} pass;

extern const pass pass_ref;
#if defined(__x86_64__)
extern const pass pass_avx2, pass_avx512;
#endif
/* Of the level that the user asks for, else of the machine's best. */
const pass *pass_here(void);

#endif
