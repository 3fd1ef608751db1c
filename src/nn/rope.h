/* Rotary frequencies of every scaling type, computed once at load. */
#ifndef NN_ROPE_H
#define NN_ROPE_H

#include "base/arena.h"
#include "tensor/op.h"

typedef enum rope_kind {
    ROPE_DEFAULT,
    ROPE_LINEAR,
    ROPE_DYNAMIC,
    ROPE_YARN,
    ROPE_LLAMA3,
    ROPE_LONG
} rope_kind;

typedef struct rope_params {
    rope_kind kind;
    double theta;
    int32_t dim;                       /* elements of a head that rotate */
    double factor;                     /* LINEAR, YARN, LLAMA3, LONG */
    int32_t ctx;                       /* positions of the model */
    int32_t ctx_orig;                  /* before scaling */
    double beta_fast, beta_slow;       /* YARN: 32, 1 */
    double mscale, mscale_all_dim;     /* YARN: 0: absent */
    double attention_factor;           /* YARN, LONG: 0: derived */
    double attention_scale;            /* multiplies that; 0: 1 */
    bool no_truncate;                  /* YARN: correction range kept fractional */
    double low_freq, high_freq;        /* LLAMA3: 1, 4 */
    const float *divisor;              /* [dim/2] given by the file, or NULL */
    const float *short_div, *long_div; /* LONG: [dim/2] each */
    bool interleaved;
} rope_params;

/* Fills `out`; its arrays live in `a`. */
cairn_status rope_make(const rope_params *p, arena *a, rope_spec *out, cairn_diag *dg);

/* Yarn's factor of attention for a factor of length. */
double rope_yarn_mscale(double factor, double mscale);

#endif
