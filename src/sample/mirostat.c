/* Mirostat (Basu et al. 2021, "Mirostat: a neural text decoding algorithm that directly controls perplexity"):
   the cut follows the surprise of what was drawn before.  Version 1 (algorithm 1) takes the greatest tokens for
   Zipf's law, estimates its exponent and cuts at the rank where the surprise would be mu; version 2 cuts
   at surprise mu itself.  Both after the temperature, as llama.cpp has them; surprise is in bits, and that of
   the drawn token is among what was left. */
#include <assert.h>
#include <string.h>

#include "base/fmath.h"
#include "base/num.h"
#include "sample/sample_priv.h"

static const double LN2 = 0.69314718055994530942;
enum { N_ESTIMATE = 100 }; /* the paper's m */

static void sort_descending(float *v, int32_t n)
{
    for (int32_t i = 1; i < n; i++) {
        const float x = v[i];
        int32_t k = i;
        for (; k > 0 && v[k - 1] < x; k--) v[k] = v[k - 1];
        v[k] = x;
    }
}

/* Least squares of ln(p_i / p_i+1) over ln((i + 1) / i), ranks i from 1. */
static double zipf_exponent(const float *v, int32_t n, double scale)
{
    double tb = 0, tt = 0;
    for (int32_t i = 1; i < n; i++) {
        const double t = fmath_log((double)(i + 1) / i);
        tb += t * (((double)v[i - 1] - (double)v[i]) * scale);
        tt += t * t;
    }
    return tb / tt;
}

/* ln((exponent - 1) / (1 - n^(1 - exponent))), continued to exponent 1. */
static double ln_of_zeta(double exponent, double n)
{
    const double e = exponent - 1, power = e * fmath_log(n);
    if (e < 1e-9 && e > -1e-9) return -fmath_log(fmath_log(n));
    return fmath_log(power > 600 ? e : e / (1 - fmath_exp(-power)));
}

/* The rank at which a token's surprise is mu. */
static int32_t rank_of(double exponent, double mu, int32_t vocab)
{
    const double ln_n = fmath_log((double)vocab);
    const double up = ln_of_zeta(exponent, (double)vocab) + mu * LN2;
    if (!(up > 0)) return 1;
    if (up >= exponent * ln_n) return vocab;
    return max_i32(1, (int32_t)fmath_exp(up / exponent));
}

static void keep_by_rank(sampler *s, const float *x, float top, float scale, double mu)
{
    float v[N_ESTIMATE];
    keep_top_k(s, x, top, N_ESTIMATE);
    if (s->n < 2) return;
    const int32_t n = s->n;
    memcpy(v, s->value, (size_t)n * sizeof *v);
    sort_descending(v, n);
    keep_top_k(s, x, top, rank_of(zipf_exponent(v, n, (double)scale), mu, s->vocab));
}

/* surprise of x: (ln W - (x - top) · scale) / ln 2, with W the sum of weights. */
static void keep_by_surprise(sampler *s, const float *x, int32_t best, float scale, double mu)
{
    const float top = x[best];
    const double ln_sum = fmath_log(weigh(s, x, s->vocab, top, scale));
    const double at = (double)top + (ln_sum - mu * LN2) / (double)scale;
    if (at > (double)top)
        keep_one(s, x, best);
    else
        keep_from(s, x, at > -3e38 ? (float)at : -3e38f);
}

void mirostat_keep(sampler *s, const float *x, int32_t best, const sample_in *in)
{
    const float scale = 1.0f / in->how->temperature;
    assert(in->state);
    if (in->how->mirostat == 1)
        keep_by_rank(s, x, x[best], scale, in->state->mu);
    else
        keep_by_surprise(s, x, best, scale, in->state->mu);
}

void mirostat_learn(const sample_in *in, float weight, double total)
{
    const double surprise = fmath_log(total / (double)weight) / LN2;
    const double wrong = surprise - (double)in->how->mirostat_tau;
    in->state->mu -= (double)in->how->mirostat_eta * wrong;
}
