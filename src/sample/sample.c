/* The sampling chain.  Owns the scratch of one vocabulary; a request's history is the caller's. */
#include "sample/sample.h"

#include <assert.h>
#include <math.h>

#include "base/alloc.h"
#include "base/diag.h"
#include "base/fmath.h"
#include "base/num.h"
#include "base/rng.h"
#include "sample/cut.h"
#include "sample/fexp.h"

enum {
    LANES = 16, /* constant inner counts: the compiler uses vectors, and sums have one order */
    RUN = 256   /* weights are summed by runs: one pass to fill, a short one to find the draw */
};

/* Below it 1/temperature leaves the range of f32 products: greedy, as its limit is. */
static const float LEAST_TEMPERATURE = 1e-6f;

struct sampler {
    int32_t vocab;
    float *weight;  /* [vocab] */
    double *run;    /* [vocab / RUN + 1] sums of weight */
    int32_t *count; /* [vocab] occurrences in a history; all 0 between uses */
    int32_t *kept;  /* [vocab] ids that passed the cuts, rising */
    cutter *cutter;
};

cairn_status sampler_new(int32_t vocab, sampler **out)
{
    assert(vocab > 0);
    sampler *s = mem_calloc(1, sizeof *s, MEM_ENGINE);
    if (!s) return CAIRN_E_NOMEM;
    const size_t n = (size_t)vocab;
    s->vocab = vocab;
    s->weight = mem_alloc((n + RUN) * sizeof *s->weight, MEM_ENGINE);
    s->run = mem_alloc((n / RUN + 1) * sizeof *s->run, MEM_ENGINE);
    s->count = mem_calloc(n, sizeof *s->count, MEM_ENGINE);
    s->kept = mem_alloc(n * sizeof *s->kept, MEM_ENGINE);
    if (!s->weight || !s->run || !s->count || !s->kept ||
        cutter_new(vocab, &s->cutter) != CAIRN_OK) {
        sampler_free(s);
        return CAIRN_E_NOMEM;
    }
    *out = s;
    return CAIRN_OK;
}

void sampler_free(sampler *s)
{
    if (!s) return;
    cutter_free(s->cutter);
    mem_free(s->kept);
    mem_free(s->count);
    mem_free(s->run);
    mem_free(s->weight);
    mem_free(s);
}

static cairn_status want(const char *name, float v, float lo, float hi, cairn_diag *dg)
{
    if (v >= lo && v <= hi) return CAIRN_OK; /* NaN is not */
    return diag_set(dg, CAIRN_E_ARG, "%s is %g; expected %g to %g", name, (double)v, (double)lo,
                    (double)hi);
}

cairn_status sample_check(const cairn_sampling *p, int32_t vocab, cairn_diag *dg)
{
    TRY(want("temperature", p->temperature, 0, 100, dg));
    TRY(want("top_p", p->top_p, 0, 1, dg));
    TRY(want("min_p", p->min_p, 0, 1, dg));
    TRY(want("repetition_penalty", p->repetition_penalty, 1e-3f, 1e3f, dg));
    TRY(want("presence_penalty", p->presence_penalty, -100, 100, dg));
    TRY(want("frequency_penalty", p->frequency_penalty, -100, 100, dg));
    if (p->top_k < 0) return diag_set(dg, CAIRN_E_ARG, "top_k is %d; expected 0 or more", p->top_k);
    if (p->repetition_window < 0)
        return diag_set(dg, CAIRN_E_ARG, "repetition_window is %d; expected 0 or more",
                        p->repetition_window);
    for (size_t i = 0; i < p->n_bias; i++) {
        const cairn_bias *b = &p->bias[i];
        if (b->id < 0 || b->id >= vocab)
            return diag_set(dg, CAIRN_E_ARG, "logit_bias of id %d; the vocabulary has %d", b->id,
                            vocab);
        if (isnan(b->value) || b->value > 1e6f)
            return diag_set(dg, CAIRN_E_ARG, "logit_bias of id %d is %g; expected at most 1e6",
                            b->id, (double)b->value);
    }
    return CAIRN_OK;
}

/* Once for each distinct id of the window, prompt included. */
static void repetition(sampler *s, float *x, const sample_in *in)
{
    const float p = in->how->repetition_penalty;
    const int32_t window = in->how->repetition_window;
    if (p == 1.0f) return;
    const int32_t from = window ? max_i32(0, in->n_ids - window) : 0;
    for (int32_t i = from; i < in->n_ids; i++) {
        const int32_t id = in->ids[i];
        if (s->count[id]++ == 0) x[id] = x[id] < 0 ? x[id] * p : x[id] / p;
    }
    for (int32_t i = from; i < in->n_ids; i++) s->count[in->ids[i]] = 0;
}

/* Presence once for each distinct generated id; frequency for each occurrence. */
static void presence_frequency(sampler *s, float *x, const sample_in *in)
{
    const float once = in->how->presence_penalty, each = in->how->frequency_penalty;
    if (once == 0.0f && each == 0.0f) return;
    for (int32_t i = in->n_prompt; i < in->n_ids; i++) s->count[in->ids[i]]++;
    for (int32_t i = in->n_prompt; i < in->n_ids; i++) {
        const int32_t id = in->ids[i];
        if (!s->count[id]) continue;
        x[id] = (x[id] - once) - each * (float)s->count[id];
        s->count[id] = 0;
    }
}

static void process(sampler *s, float *x, const sample_in *in)
{
    for (size_t i = 0; i < in->how->n_bias; i++) x[in->how->bias[i].id] += in->how->bias[i].value;
    repetition(s, x, in);
    presence_frequency(s, x, in);
}

/* The greatest, ties to the lower id; -1 when a logit is NaN or +inf, or all are -inf. */
static int32_t best_of(const float *x, int32_t n)
{
    float lane[LANES];
    int32_t bad[LANES] = {0}, i = 0;
    for (int32_t k = 0; k < LANES; k++) lane[k] = -INFINITY;
    for (; i + LANES <= n; i += LANES)
        for (int32_t k = 0; k < LANES; k++) {
            lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k];
            bad[k] |= !(x[i + k] < INFINITY);
        }
    for (; i < n; i++) {
        lane[0] = x[i] > lane[0] ? x[i] : lane[0];
        bad[0] |= !(x[i] < INFINITY);
    }
    for (int32_t k = 1; k < LANES; k++) {
        lane[0] = lane[k] > lane[0] ? lane[k] : lane[0];
        bad[0] |= bad[k];
    }
    if (bad[0] || lane[0] == -INFINITY) return -1;
    for (i = 0; x[i] != lane[0]; i++) {
    }
    return i;
}

/* w[i] = e^(scale · (x[i] - top)) of RUN values; answers their sum, by lanes of index mod 16. */
static double weigh_run(const float *restrict x, float *restrict w, float top, float scale)
{
    double lane[LANES] = {0}, sum = 0;
    for (int32_t i = 0; i < RUN; i++) w[i] = fexp((x[i] - top) * scale);
    for (int32_t i = 0; i < RUN; i += LANES)
        for (int32_t k = 0; k < LANES; k++) lane[k] += (double)w[i + k];
    for (int32_t k = 0; k < LANES; k++) sum += lane[k];
    return sum;
}

/* The weights of n values into s->weight, their sums by runs into s->run; answers the sum. */
static double weigh(sampler *s, const float *x, int32_t n, float top, float scale)
{
    double sum = 0;
    for (int32_t at = 0, r = 0; at < n; at += RUN, r++) {
        if (n - at >= RUN) {
            s->run[r] = weigh_run(x + at, s->weight + at, top, scale);
        } else {
            float rest[RUN];
            for (int32_t i = 0; i < RUN; i++) rest[i] = at + i < n ? x[at + i] : -INFINITY;
            s->run[r] = weigh_run(rest, s->weight + at, top, scale);
        }
        sum += s->run[r];
    }
    return sum;
}

static void insert_top(sample_out *out, int32_t cap, int32_t id, float x)
{
    int32_t i = out->n_top < cap ? out->n_top++ : cap - 1;
    for (; i > 0 && out->top[i - 1].logprob < x; i--) out->top[i] = out->top[i - 1];
    out->top[i] = (cairn_logprob){id, x};
}

/* Leaves logits; `report` turns them into log-probabilities. */
static void find_top(const float *x, int32_t n, int32_t k, sample_out *out)
{
    k = min_i32(k, n);
    for (int32_t i = 0; i < n && k > 0; i++)
        if (out->n_top < k || x[i] > out->top[k - 1].logprob) insert_top(out, k, i, x[i]);
}

static void report(bool wants, double lse, sample_out *out)
{
    out->logprob = wants ? (float)((double)out->logprob - lse) : 0.0f;
    for (int32_t i = 0; i < out->n_top; i++)
        out->top[i].logprob = (float)((double)out->top[i].logprob - lse);
}

/* Moves the logits of tokens inside all cuts to the front of x, their ids to s->kept; answers how
   many.  `sum`: of the untempered weights that are there now, where top-p needs them. */
static int32_t cut_off(sampler *s, float *x, float top, double sum, const cairn_sampling *p)
{
    const int32_t n = s->vocab;
    cut c = {-INFINITY, n};
    const bool by_mass = p->top_p < 1.0f;
    const bool by_count = p->top_k > 0 && p->top_k < n;
    if (by_mass || by_count) cutter_begin(s->cutter, x, by_mass ? s->weight : NULL, top);
    if (by_count) c = cut_both(c, cut_top_k(s->cutter, p->top_k));
    if (by_mass) c = cut_both(c, cut_top_mass(s->cutter, (double)p->top_p * sum));
    if (p->min_p > 0.0f) c = cut_both(c, (cut){top + (float)fmath_log((double)p->min_p), n});
    int32_t n_kept = 0, equal = c.n_equal;
    for (int32_t i = 0; i < n; i++) {
        if (x[i] < c.at || (x[i] == c.at && equal-- <= 0)) continue;
        s->kept[n_kept] = i;
        x[n_kept++] = x[i];
    }
    return n_kept;
}

/* The index at `u` of the way through n weights. */
static int32_t draw(const sampler *s, int32_t n, double sum, double u)
{
    double left = u * sum;
    int32_t r = 0, pick = -1;
    while (r < (n - 1) / RUN && left >= s->run[r]) left -= s->run[r++];
    for (int32_t i = r * RUN; i < n; i++) { /* past the run's end only by a rounding */
        if (s->weight[i] == 0.0f) continue;
        pick = i;
        if (left < (double)s->weight[i]) break;
        left -= (double)s->weight[i];
    }
    return pick;
}

/* Sets out->id, and its logit as out->logprob. */
static void choose(sampler *s, float *x, int32_t best, double sum, const sample_in *in,
                   sample_out *out)
{
    const cairn_sampling *p = in->how;
    const bool cuts = p->top_k > 0 || p->top_p < 1.0f || p->min_p > 0.0f;
    const float top = x[best];
    const int32_t n = cuts ? cut_off(s, x, top, sum, p) : s->vocab;
    const double total = weigh(s, x, n, top, 1.0f / p->temperature);
    const int32_t i = draw(s, n, total, rng_unit(p->seed, in->choice, (uint64_t)in->n_ids));
    if (i < 0) return; /* a rounding left nothing behind the last run: the best stays */
    out->id = cuts ? s->kept[i] : i;
    out->logprob = x[i];
}

cairn_status sample_step(sampler *s, float *logits, const sample_in *in, sample_out *out,
                         cairn_diag *dg)
{
    process(s, logits, in);
    const int32_t best = best_of(logits, s->vocab);
    if (best < 0)
        return diag_set(dg, CAIRN_E_INTERNAL,
                        "logits of position %d are not finite or exclude every token", in->n_ids);
    *out = (sample_out){.id = in->forced ? *in->forced : best};
    const bool greedy = in->forced || in->how->temperature < LEAST_TEMPERATURE;
    if (greedy && in->n_logprobs < 0) return CAIRN_OK;
    const bool wants = in->n_logprobs >= 0;
    double sum = 0;
    if (wants || in->how->top_p < 1.0f) sum = weigh(s, logits, s->vocab, logits[best], 1.0f);
    const double lse = wants ? (double)logits[best] + fmath_log(sum) : 0;
    find_top(logits, s->vocab, in->n_logprobs, out);
    out->logprob = logits[out->id];
    if (!greedy) choose(s, logits, best, sum, in, out);
    report(wants, lse, out);
    return CAIRN_OK;
}
