/* Kernels on f32 vectors and on attention's tiles.  Every level gives the reference's bits.
   In elementwise kernels y may be one of the operands exactly, never a shifted part of one; any n,
   any alignment; nothing outside the operands is touched. */
#ifndef KERN_VEC_H
#define KERN_VEC_H

#include "tensor/kvview.h"
#include "tensor/op.h"

enum { KERN_GLUS = GLU_CLAMPED, ATTEND_SPLIT = 256 };

/* C[i][16t + l] = (add ? C : +0), then for k = 0 … n-1: C = fmaf(A[i][k], B[t][k][l], C), where
   A[i] = a + i·lda, B[t][k] = b + t·strip + k·row (elements of the codec, 16 lanes read), and
   0 <= i < n_a, 0 <= t < n_strip.  Lanes never mix: garbage in a lane of B stays in its column. */
typedef struct kern_mm {
    float *c;
    const float *a;
    const void *b;
    size_t ldc, lda, row, strip;
    int32_t n_a, n_strip, n;
    int32_t group; /* of coded kinds */
    bool add;
    /* Two regions likely to be read next, each (n·n_strip / 2) lines of 64 bytes, fetched into the
       second-level cache on the way; NULL: none. */
    const void *ahead[2];
} kern_mm;

/* A convolution of n columns over k rows, the oldest first: n_old of them from `old` on, then `now`, rows
   (of w too) `ld` apart. */
typedef struct kern_conv {
    const float *old, *now, *w, *bias; /* bias NULL: +0 */
    size_t n_old, k, ld;
    bool silu;
} kern_conv;

static inline const float *kern_conv_row(const kern_conv *c, size_t j)
{
    return j < c->n_old ? c->old + j * c->ld : c->now + (j - c->n_old) * c->ld;
}

/* One row of the gated delta rule for one head: state s [n_key][n_value], read and written. */
typedef struct kern_delta {
    float *y, *s;
    const float *q, *k, *v;
    float decay, beta;
    int32_t n_key, n_value;
} kern_delta;

/* Scores of n queries in one split, those of one `pitch` floats after those of the one before: positions
   0 … 255 of it, valid are lo … hi.  Each becomes s·scale (then cap · tanh(· / cap) if cap > 0), *max
   their maximum, s[j] = exp(s[j] - *max), *sum their lane16 sum by j mod 16; max and sum of the next
   query lie `step` floats on.  Others in the tiles of 16 touched become 0, whatever they were. */
typedef struct kern_softmax {
    float *s, *max, *sum;
    size_t pitch, step;
    int32_t n, lo, hi;
    float scale, cap;
} kern_softmax;

/* What n_x splits of a query give together: sum = fma(w[c], l[c], sum) from +0, c rising, and `more` on top;
   y[i] = chain of fma(w[c], x[c·step + i], ·) likewise / sum, 0 <= i < n. */
typedef struct kern_merge {
    float *y;
    const float *x, *w, *l;
    size_t step, n_x, n;
    float more;
} kern_merge;

typedef struct kern_vec {
    /* lane16 (sixteen chains of fmaf by index mod 16, then +8, +4, +2, +1) of x·x */
    float (*sum_sq)(const float *x, size_t n);
    /* y = a + b; then the same of y */
    float (*add_sum_sq)(float *y, const float *a, const float *b, size_t n);
    /* lane16 of x, by additions */
    float (*sum)(const float *x, size_t n);
    /* y = x - mean; then lane16 of y·y */
    float (*center)(float *y, const float *x, float mean, size_t n);
    /* y = (x · inv) · g */
    void (*norm)(float *y, const float *x, float inv, const float *g, size_t n);
    void (*add)(float *y, const float *a, const float *b, size_t n);
    void (*scale)(float *y, const float *x, float s, size_t n);
    /* y = cap · tanh(x / cap) */
    void (*softcap)(float *y, const float *x, float cap, size_t n);
    /* y = act(g) · u */
    void (*glu[KERN_GLUS])(float *y, const float *g, const float *u, size_t n);
    /* GLU_CLAMPED */
    void (*glu_clamped)(float *y, const float *g, const float *u, size_t n, float alpha,
                        float limit);
    void (*xielu)(float *y, const float *x, const xielu_params *p, size_t n);
    /* y = bias; y = fma(w[j], x[j], y) by rising j; then silu(y) if wanted */
    void (*conv)(float *y, const kern_conv *c, size_t n);
    /* Of each column j: s[i][j] = RN(s[i][j]·decay), m = fma(s[i][j], k[i], m) from +0, by rising i;
       d = RN(RN(v[j] - m)·beta); s[i][j] = fma(k[i], d, s[i][j]), y[j] = fma(s[i][j], q[i], y[j]) */
    void (*delta)(const kern_delta *d);
    /* h = fma(u, b, RN(h · decay)); then lane16 of h·c */
    float (*scan)(float *h, float decay, float u, const float *b, const float *c, size_t n);
    /* n pairs (x1, x2): y1 = fma(x1, c, -RN(x2·s)), y2 = fma(x2, c, RN(x1·s)).
       Halves: x1 = x[i], x2 = x[n + i]; pairs: x1 = x[2i], x2 = x[2i + 1]. */
    void (*rope_halves)(float *y, const float *x, const float *c, const float *s, size_t n);
    void (*rope_pairs)(float *y, const float *x, const float *c, const float *s, size_t n);

    /* To the codec: f16 rne saturating, bf16 rne, f32 as is; NaN stays NaN. */
    void (*encode[KV_PLAIN_KINDS])(void *dst, const float *src, size_t n);
    /* src [n_rows][n_cols] of the codec, dense, to strips of 16 columns:
       dst[t·n_rows·16 + r·16 + l] = src[r][16t + l]; columns past n_cols become 0. */
    void (*widen[KV_PLAIN_KINDS])(float *dst, const void *src, int32_t n_rows, int32_t n_cols);
    void (*mm[KV_PLAIN_KINDS])(const kern_mm *j);
    /* Vectors (n_a) up to which mm of a cache's codec is no slower than widen once and mm of floats. */
    int32_t mm_direct;
    /* Coded kinds (tensor/kvview.h).  A group of n elements (a multiple of 16): a code a byte, and its numbers in f16. */
    void (*code[KV_KINDS])(uint8_t *codes, uint16_t num[2], const float *x, int32_t n);
    /* A tile of keys of n elements to floats [n][KV_TILE]; values have no tiles. */
    void (*open_tile[KV_KINDS])(float *dst, const void *tile, int32_t n, int32_t group);
    /* The first n elements (a multiple of 16) of a row to floats. */
    void (*open_row[KV_KINDS])(float *dst, const void *row, int32_t n, int32_t group);
    /* mm of coded tiles of keys, at b one after the other; and of n ≤ KV_BLOCK rows of values that are `row`
       bytes apart.  Fewer than n_strip columns' groups are never touched; `strip` is not looked at. */
    void (*mm_tiles[KV_KINDS])(const kern_mm *j);
    void (*mm_rows[KV_KINDS])(const kern_mm *j);
    int32_t
        mm_coded; /* vectors up to which they are no slower than opening once and mm of floats */
    void (*softmax)(const kern_softmax *j);
    void (*merge)(const kern_merge *j);
    /* y = fma(w, x, y) */
    void (*axpy)(float *y, float w, const float *x, size_t n);
    /* y = x / d */
    void (*divide)(float *y, const float *x, float d, size_t n);
} kern_vec;

/* Each fills the slots that its level has. */
void kern_vec_ref(kern_vec *v);
void kern_attend_ref(kern_vec *v);
void kern_code_ref(kern_vec *v);
void kern_delta_ref(kern_vec *v);
void kern_vec_avx2(kern_vec *v);
void kern_attend_avx2(kern_vec *v);
void kern_code_avx2(kern_vec *v);
void kern_delta_avx2(kern_vec *v);
void kern_vec_avx512(kern_vec *v);
void kern_attend_avx512(kern_vec *v);
void kern_code_avx512(kern_vec *v);
void kern_delta_avx512(kern_vec *v);
void kern_vec_neon(kern_vec *v);
void kern_attend_neon(kern_vec *v);
void kern_delta_neon(kern_vec *v);

#endif
