/* The vocabulary of model files: each call records one op (or two) and returns a value.
   A rule: at most one recording call in an argument list, since C does not order them. */
#ifndef NN_NN_H
#define NN_NN_H

#include "nn/weights.h"
#include "tensor/prog.h"

/* A forward pass being recorded. */
typedef struct fwd {
    prog *p;
    int32_t layer; /* of the ops recorded next; -1 outside the layers */
    bool taps;
    bool rope_pairs_consecutive; /* the file's q and k rows are permuted for pairs (2i, 2i+1) */
} fwd;

typedef struct heads {
    int32_t n, n_kv, dim;
} heads;

typedef struct attention {
    heads h;
    float scale, softcap; /* softcap 0: none */
    int32_t window;       /* 0: all */
} attention;

val embed(fwd *f, const weight *table, float scale);
val linear(fwd *f, val x, const weight *w);
val rms_norm(fwd *f, val x, const weight *gain, float eps);
/* The same over each head of width `dim`. */
val rms_norm_heads(fwd *f, val x, const weight *gain, int32_t dim, float eps);
val rope(fwd *f, val x, int32_t head_dim, const rope_spec *r);
val attend(fwd *f, val q, val k, val v, const attention *a);
val glu(fwd *f, glu_act act, val gate, val up);
val add(fwd *f, val a, val b);
val scale(fwd *f, val x, float by);
val softcap(fwd *f, val x, float cap);
void tap(fwd *f, val x, int32_t i_tap);

#endif
