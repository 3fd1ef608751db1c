/* The links of the sampling chain and the scratch that they share. */
#ifndef SAMPLE_SAMPLE_PRIV_H
#define SAMPLE_SAMPLE_PRIV_H

#include "sample/cut.h"
#include "sample/pass.h"
#include "sample/sample.h"

enum {
    RUN = PASS_RUN,
    MAX_SPARED = 64 /* ids that end a text or a line; a tokenizer has a few */
};

/* The draws of one position, each of a stream of its own. */
typedef enum sample_draw { DRAW_TOKEN, DRAW_XTC } sample_draw;

struct sampler {
    int32_t vocab, n_runs, n_pos;
    const tok *tok;   /* may be NULL */
    const pass *pass; /* of this machine */
    float *high;      /* [n_runs] the greatest of each run of what was looked at last */
    float *weight;    /* [vocab + RUN] of what is left */
    double *run;      /* [n_runs] sums of weight */
    int32_t *count;   /* [vocab] of ids in a history; all 0 between uses */
    int32_t *match;   /* [n_pos] how long a repeat ends there */
    cutter *cutter;
    /* what is left: ids, rising, and their logits; [vocab] */
    int32_t *id;
    float *value;
    float *score; /* [vocab] of what is left, by another measure */
    int32_t n;
    sample_rest rest;
    int32_t n_spared, spared[MAX_SPARED];
};

/* penalty.c, dry.c: change logits by the history. */
void penalty_apply(sampler *s, float *x, const sample_in *in);
void dry_apply(sampler *s, float *x, const sample_in *in);

/* weigh.c */
double sample_unit(const sample_in *in, sample_draw what); /* in [0, 1) */
/* Fills s->high; the greatest of the vocabulary, ties to the lower id; -1 when a logit is NaN or +inf, or all
   are -inf. */
int32_t weigh_best(sampler *s, const float *x);
/* The greatest of n ≥ 1, n at most the vocabulary; s->high is then that of their runs. */
float weigh_top(sampler *s, const float *x, int32_t n);
/* s->weight[i] = e^(scale · (x[i] - top)) for n values, x[i] ≤ top; answers their sum. */
double weigh(sampler *s, const float *x, int32_t n, float top, float scale);
/* What weigh answers of all with a scale of 1, within PASS_ESTIMATE: a third of the work. */
double weigh_roughly(const sampler *s, const float *x, float top);
/* The index at `u` of the way through n weights of that sum, of which one is 1 at least. */
int32_t weigh_draw(const sampler *s, int32_t n, double sum, double u);

/* keep.c: what is left. */
void keep_from(sampler *s, const float *x, float at); /* x[i] ≥ at, of all; at is finite */
void keep_one(sampler *s, const float *x, int32_t id);
void keep_cut(sampler *s, const float *key, cut c); /* of what is left, keys inside the cut */
/* top-k, top-p and min-p; sum: of the untempered weights of all; 0: not known. */
void keep_likely(sampler *s, const float *x, float top, double sum, const cairn_sampling *p);
void keep_top_k(sampler *s, const float *x, float top, int32_t k);

/* Of what is left: */
void typical_keep(sampler *s, float p);
void xtc_keep(sampler *s, const sample_in *in);
/* mirostat.c: of all, and what a drawn token of that weight teaches. */
void mirostat_keep(sampler *s, const float *x, int32_t best, const sample_in *in);
void mirostat_learn(const sample_in *in, float weight, double total);

/* curve.c: s->value[i], of all: the logarithm of what the curve makes of token i's probability e^(x[i] - lse). */
void curve_bend(sampler *s, const float *x, double lse, const cairn_sampling *p);

/* logprob.c: the best as logits; then everything reported as log-probabilities. */
void logprob_find(const sampler *s, const float *x, int32_t k, sample_out *out);
void logprob_report(double lse, sample_out *out);

#endif
