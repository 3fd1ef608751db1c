/* The sampling chain: its scratch, and its links in order. */
#include "sample/sample.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/diag.h"
#include "base/fmath.h"
#include "base/str.h"
#include "sample/sample_priv.h"

/* Below it 1/temperature leaves the range of f32 products: greedy, as its limit is. */
static const float LEAST_TEMPERATURE = 1e-6f;

static bool make_arrays(sampler *s, size_t n_pos)
{
    const size_t n = (size_t)s->vocab, n_runs = (size_t)s->n_runs;
    s->high = mem_alloc(n_runs * sizeof *s->high, MEM_ENGINE);
    s->weight = mem_alloc((n + RUN) * sizeof *s->weight, MEM_ENGINE);
    s->run = mem_alloc(n_runs * sizeof *s->run, MEM_ENGINE);
    s->count = mem_calloc(n, sizeof *s->count, MEM_ENGINE);
    s->match = mem_alloc(n_pos * sizeof *s->match, MEM_ENGINE);
    s->id = mem_alloc(n * sizeof *s->id, MEM_ENGINE);
    s->value = mem_alloc(n * sizeof *s->value, MEM_ENGINE);
    s->score = mem_alloc(n * sizeof *s->score, MEM_ENGINE);
    return s->high && s->weight && s->run && s->count && s->match && s->id && s->value &&
           s->score && cutter_new(s->vocab, &s->cutter) == CAIRN_OK;
}

/* Ids that end a text or are a line feed. */
static void find_spared(sampler *s)
{
    for (int32_t id = 0; s->tok && id < s->vocab && s->n_spared < MAX_SPARED; id++)
        if (tok_is_eos(s->tok, id) || str_is(tok_piece(s->tok, id), "\n"))
            s->spared[s->n_spared++] = id;
}

cairn_status sampler_new(int32_t vocab, int32_t n_pos, const tok *t, sampler **out)
{
    assert(vocab > 0 && n_pos > 0);
    sampler *s = mem_calloc(1, sizeof *s, MEM_ENGINE);
    if (!s) return CAIRN_E_NOMEM;
    s->vocab = vocab;
    s->n_runs = (vocab + RUN - 1) / RUN;
    s->n_pos = n_pos;
    s->tok = t;
    s->pass = pass_here();
    if (!make_arrays(s, (size_t)n_pos)) {
        sampler_free(s);
        return CAIRN_E_NOMEM;
    }
    find_spared(s);
    *out = s;
    return CAIRN_OK;
}

void sampler_free(sampler *s)
{
    if (!s) return;
    cutter_free(s->cutter);
    mem_free(s->score);
    mem_free(s->value);
    mem_free(s->id);
    mem_free(s->match);
    mem_free(s->count);
    mem_free(s->run);
    mem_free(s->weight);
    mem_free(s->high);
    mem_free(s);
}

uint64_t sampler_bytes(const sampler *s)
{
    const uint64_t n = (uint64_t)s->vocab, n_runs = (uint64_t)s->n_runs;
    return sizeof *s + n_runs * (sizeof *s->high + sizeof *s->run) + (n + RUN) * sizeof *s->weight +
           n * (sizeof *s->count + sizeof *s->score + sizeof *s->id + sizeof *s->value) +
           (uint64_t)s->n_pos * sizeof *s->match + cutter_bytes(s->cutter);
}

sample_rest sampler_rest(const sampler *s)
{
    return s->rest;
}

static bool cuts(const cairn_sampling *p)
{
    return p->mirostat || p->top_k > 0 || p->top_p < 1.0f || p->min_p > 0.0f ||
           p->typical_p < 1.0f || p->xtc_probability > 0.0f;
}

static void cut_off(sampler *s, const float *x, int32_t best, double sum, const sample_in *in)
{
    const cairn_sampling *p = in->how;
    if (p->mirostat) {
        mirostat_keep(s, x, best, in);
        return;
    }
    keep_likely(s, x, x[best], sum, p);
    typical_keep(s, p->typical_p);
    xtc_keep(s, in);
}

/* What is drawn from: logits of s->rest, and by what they are multiplied. */
static const float *bend_or_cut(sampler *s, const float *x, int32_t best, double sum,
                                const sample_in *in, float *scale)
{
    const cairn_sampling *p = in->how;
    s->rest = (sample_rest){.n = s->vocab, .weight = s->weight};
    if (p->n_curve) {
        *scale = 1.0f;
        curve_bend(s, x, (double)x[best] + fmath_log(sum), p);
        return s->value;
    }
    *scale = 1.0f / p->temperature;
    if (!cuts(p)) return x;
    cut_off(s, x, best, sum, in);
    s->rest.n = s->n;
    s->rest.ids = s->id;
    return s->value;
}

/* What is drawn from has the greatest logit as its greatest value. */
static bool keeps_best(const cairn_sampling *p)
{
    return !p->n_curve && (p->mirostat || (p->typical_p >= 1.0f && p->xtc_probability <= 0.0f));
}

/* Sets out->id, and its logit as out->logprob. */
static void choose(sampler *s, const float *x, int32_t best, double sum, const sample_in *in,
                   sample_out *out)
{
    const cairn_sampling *p = in->how;
    float scale;
    const float *left = bend_or_cut(s, x, best, sum, in, &scale);
    const int32_t n = s->rest.n;
    const bool weighed = left == x && scale == 1.0f && sum > 0; /* already, by sample_step */
    const float top = keeps_best(p) ? x[best] : weigh_top(s, left, n);
    s->rest.total = weighed ? sum : weigh(s, left, n, top, scale);
    const int32_t i = weigh_draw(s, n, s->rest.total, sample_unit(in, DRAW_TOKEN));
    if (p->mirostat && !p->n_curve) mirostat_learn(in, s->weight[i], s->rest.total);
    out->id = s->rest.ids ? s->rest.ids[i] : i;
    out->logprob = x[out->id];
}

static cairn_status no_best(int32_t pos, cairn_diag *dg)
{
    return diag_set(dg, CAIRN_E_INTERNAL,
                    "logits of position %d are not finite or exclude every token", pos);
}

cairn_status sample_step(sampler *s, float *logits, const sample_in *in, sample_out *out,
                         cairn_diag *dg)
{
    penalty_apply(s, logits, in);
    dry_apply(s, logits, in);
    const int32_t best = weigh_best(s, logits);
    if (best < 0) return no_best(in->n_ids, dg);
    *out = (sample_out){.id = in->forced ? *in->forced : best};
    const bool greedy =
        in->forced || (in->how->temperature < LEAST_TEMPERATURE && !in->how->n_curve);
    const bool wants = in->n_logprobs >= 0;
    if (greedy && !wants) return CAIRN_OK;
    double sum = 0;
    if (wants || in->how->n_curve) sum = weigh(s, logits, s->vocab, logits[best], 1.0f);
    const double lse = wants ? (double)logits[best] + fmath_log(sum) : 0;
    logprob_find(s, logits, in->n_logprobs, out);
    out->logprob = logits[out->id];
    if (!greedy) choose(s, logits, best, sum, in, out);
    if (wants)
        logprob_report(lse, out);
    else
        out->logprob = 0.0f;
    return CAIRN_OK;
}

cairn_status sample_score(sampler *s, const float *logits, int32_t id, int32_t n_logprobs,
                          int32_t pos, sample_out *out, cairn_diag *dg)
{
    assert(id >= 0 && id < s->vocab && n_logprobs >= 0);
    const int32_t best = weigh_best(s, logits);
    if (best < 0) return no_best(pos, dg);
    const double sum = weigh(s, logits, s->vocab, logits[best], 1.0f);
    *out = (sample_out){.id = id, .logprob = logits[id]};
    logprob_find(s, logits, n_logprobs, out);
    logprob_report((double)logits[best] + fmath_log(sum), out);
    return CAIRN_OK;
}
