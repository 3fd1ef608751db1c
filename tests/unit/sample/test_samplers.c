/* What each sampler leaves, against statements in numpy that llama.cpp's own samplers agreed with
   (tools/golden/make_samplers.py); then chances, state, and random settings on hostile logits. */
#include "test.h"

#include <math.h>

#include "base/rng.h"
#include "sample/sample.h"
#include "sample/sample_priv.h"

typedef enum kind { SMOOTH, TIES, HOLES, FAR, PEAK } kind;
enum { MAX_VOCAB = 262144 };

typedef struct golden {
    kind kind;
    uint32_t seed;
    int32_t vocab;
    cairn_sampling how; /* what it does not name is 0 */
    double mu;
    int32_t n;
    uint32_t sum, xor; /* of the ids, and of their products with 2654435761 */
    int32_t id[4];     /* the likeliest, or the first again */
    double p[4];
} golden;

static const golden goldens[] = {
#include "golden_samplers.inc"
};

static float logits[MAX_VOCAB];

/* As make_samplers.py makes them. */
static float logit(kind k, uint32_t seed, uint32_t i)
{
    uint32_t h = (i * 2654435761u) ^ (seed * 40503u);
    h = (h ^ (h >> 15)) * 2246822519u;
    h = (h ^ (h >> 13)) * 3266489917u;
    h ^= h >> 16;
    const float x = ((float)(h >> 8) / 16777216.0f - 0.5f) * 16.0f;
    switch (k) {
    case SMOOTH:
        return x;
    case TIES:
        return floorf(x) / 2;
    case HOLES:
        return h % 3 == 0 ? -INFINITY : floorf(x) / 2;
    case FAR:
        return h % 4 == 0 ? -3e38f : h % 4 == 1 ? x * 1000 : x;
    case PEAK:
        break;
    }
    return (float)(h ? __builtin_clz(h) : 32) * 1.5f + (float)(h & 1023) / 1024;
}

static void make_logits(kind k, uint32_t seed, int32_t vocab)
{
    bool any = false;
    for (int32_t i = 0; i < vocab; i++) {
        logits[i] = logit(k, seed, (uint32_t)i);
        any |= logits[i] > -INFINITY;
    }
    if (!any) make_logits(k, seed + 1000, vocab);
}

static cairn_sampling full(cairn_sampling how)
{
    const cairn_sampling n = sample_neutral();
    how.repetition_penalty = 1;
    if (how.top_p == 0) how.top_p = 1;
    if (how.typical_p == 0) how.typical_p = 1;
    how.mirostat_tau = n.mirostat_tau;
    how.mirostat_eta = n.mirostat_eta;
    how.dry_base = 1;
    return how;
}

/* weight = e^((x - top) / T) has the roundings of three f32 operations on an exponent of that size, and of
   fexp; the total has no more. */
static double bound_of(double ln_p)
{
    return 3e-7 * (2 + 2 * fabs(ln_p));
}

static void compare(const golden *g, const sample_rest *r, size_t i)
{
    uint32_t sum = 0, xor = 0;
    double total = 0;
    for (int32_t k = 0; k < r->n; k++) {
        const uint32_t id = (uint32_t)(r->ids ? r->ids[k] : k);
        sum += id;
        xor ^= id * 2654435761u;
        total += (double)r->weight[k];
    }
    if (r->n != g->n || sum != g->sum || xor != g->xor)
        fail_msg("case %zu: %d left, expected %d", i, r->n, g->n);
    assert_true(fabs(total - r->total) <= 1e-12 * total);
    for (int32_t at = 0; at < 4; at++) {
        int32_t k = 0;
        while ((r->ids ? r->ids[k] : k) != g->id[at]) k++;
        const double p = (double)r->weight[k] / r->total;
        if (fabs(p - g->p[at]) > g->p[at] * bound_of(log(g->p[at])) + 1e-30)
            fail_msg("case %zu: %.9g of id %d, expected %.9g", i, p, g->id[at], g->p[at]);
    }
}

static void kept_sets(void **state)
{
    (void)state;
    sampler *s = NULL;
    int32_t vocab = 0;
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        const golden *g = &goldens[i];
        const cairn_sampling how = full(g->how);
        sample_state st = {g->mu};
        const sample_in in = {.how = &how, .n_logprobs = -1, .state = &st};
        sample_out out;
        if (vocab != g->vocab) {
            sampler_free(s);
            vocab = g->vocab;
            assert_ok(sampler_new(vocab, 1, NULL, &s));
        }
        make_logits(g->kind, g->seed, vocab);
        assert_ok(sample_check(&how, vocab, NULL));
        assert_ok(sample_step(s, logits, &in, &out, NULL));
        const sample_rest r = sampler_rest(s);
        compare(g, &r, i);
        if (!how.mirostat) continue;
        int32_t k = 0;
        while (r.ids[k] != out.id) k++;
        const double wrong = -log2((double)r.weight[k] / r.total) - (double)how.mirostat_tau;
        assert_true(fabs(st.mu - (g->mu - (double)how.mirostat_eta * wrong)) < 1e-9);
    }
    sampler_free(s);
}

/* Of 20,000 positions XTC strikes at its probability's share, within 4 standard deviations, apart from what
   the token's own draw says. */
static void chance_of_xtc(void **state)
{
    (void)state;
    enum { N = 20000 };
    static int32_t ids[N];
    sampler *s = NULL;
    cairn_sampling how = full((cairn_sampling){.temperature = 1, .xtc_probability = 0.3f});
    how.xtc_threshold = 0.2f;
    int32_t struck = 0, low[2] = {0};
    assert_ok(sampler_new(4, N, NULL, &s));
    for (int32_t n = 0; n < N; n++) {
        float x[4] = {0, 0, -9, -9};
        const sample_in in = {.how = &how, .ids = ids, .n_ids = n, .n_logprobs = -1};
        sample_out out;
        assert_ok(sample_step(s, x, &in, &out, NULL));
        const bool is = sampler_rest(s).n == 3;
        struck += is;
        if (!is) low[out.id == 0]++;
    }
    assert_true(fabs(struck - 0.3 * N) < 4 * sqrt(0.21 * N));
    const int32_t rest = low[0] + low[1];
    assert_true(abs(low[0] - low[1]) < 4 * sqrt(rest));
    sampler_free(s);
}

/* Texts of one seed are the same after a state was copied byte by byte in their middle, and another request's
   steps between do not matter. */
static void mirostat_state(void **state)
{
    (void)state;
    enum { N = 200, VOCAB = 500 };
    static int32_t ids[2][N];
    sampler *s = NULL;
    assert_ok(sampler_new(VOCAB, N, NULL, &s));
    for (int32_t version = 1; version <= 2; version++) {
        cairn_sampling how =
            full((cairn_sampling){.temperature = 0.9f, .mirostat = version, .seed = 3});
        double surprise = 0;
        for (int run = 0; run < 2; run++) {
            sample_state st = sample_begin(&how);
            for (int32_t n = 0; n < N; n++) {
                unsigned char saved[sizeof st];
                sample_state other = {1.5};
                sample_in in = {
                    .how = &how, .ids = ids[run], .n_ids = n, .n_logprobs = 0, .state = &st};
                sample_out out;
                make_logits(SMOOTH, (uint32_t)n, VOCAB);
                assert_ok(sample_step(s, logits, &in, &out, NULL));
                ids[run][n] = out.id;
                if (run == 0) continue;
                surprise -= (double)out.logprob / log(2);
                in.state = &other;
                make_logits(SMOOTH, 7, VOCAB);
                assert_ok(sample_step(s, logits, &in, &out, NULL));
                memcpy(saved, &st, sizeof st);
                memset(&st, 0, sizeof st);
                memcpy(&st, saved, sizeof st);
            }
        }
        assert_memory_equal(ids[0], ids[1], sizeof ids[0]);
        assert_true(surprise / N > 3.5 && surprise / N < 6.5); /* it aims at 5 bits */
    }
    sampler_free(s);
}

/* The same history counts in the windows that are asked for. */
static void windows(void **state)
{
    (void)state;
    static const int32_t ids[] = {1, 1, 2, 3, 3, 3};
    static const struct {
        int32_t presence, frequency;
        float want[5];
    } cases[] = {
        {0, 0, {0, 0, 0, 1 + 3 * 8, 0}},               /* what was generated: 3 3 3 */
        {4, 2, {0, 0, 1, 1 + 2 * 8, 0}},               /* 2 3 3 3 and 3 3 */
        {99, 99, {0, 1 + 2 * 8, 1 + 8, 1 + 3 * 8, 0}}, /* everything */
    };
    sampler *s = NULL;
    assert_ok(sampler_new(5, 6, NULL, &s));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cairn_sampling how = full((cairn_sampling){0});
        how.presence_penalty = 1;
        how.frequency_penalty = 8;
        how.presence_window = cases[i].presence;
        how.frequency_window = cases[i].frequency;
        float x[5] = {0};
        const sample_in in = {.how = &how, .ids = ids, .n_prompt = 3, .n_ids = 6, .n_logprobs = -1};
        sample_out out;
        assert_ok(sample_step(s, x, &in, &out, NULL));
        for (int k = 0; k < 5; k++) assert_true(x[k] == -cases[i].want[k]);
    }
    sampler_free(s);
}

/* 0 to below 1: draw i of case n. */
static float unit(uint64_t n, uint64_t i)
{
    return (float)rng_unit(11, n, i);
}

static cairn_sampling random_settings(uint64_t n)
{
    cairn_sampling h = sample_neutral();
    h.temperature = unit(n, 0) < 0.1f ? 0 : expf(12 * unit(n, 1) - 8);
    h.top_k = unit(n, 2) < 0.5f ? 0 : (int32_t)(unit(n, 3) * 400);
    h.top_p = unit(n, 4) < 0.5f ? 1 : unit(n, 5) * unit(n, 5);
    h.min_p = unit(n, 6) < 0.5f ? 0 : unit(n, 7);
    h.typical_p = unit(n, 8) < 0.5f ? 1 : unit(n, 9);
    h.xtc_probability = unit(n, 10) < 0.5f ? 0 : 1;
    h.xtc_threshold = unit(n, 11) * unit(n, 11);
    h.mirostat = unit(n, 12) < 0.7f ? 0 : 1 + (unit(n, 13) < 0.5f);
    h.mirostat_tau = 10 * unit(n, 14);
    h.mirostat_eta = 10 * unit(n, 15);
    h.repetition_penalty = unit(n, 16) < 0.5f ? 1 : expf(8 * unit(n, 17) - 4);
    h.presence_penalty = 200 * unit(n, 18) - 100;
    h.frequency_penalty = 200 * unit(n, 19) - 100;
    h.frequency_window = (int32_t)(unit(n, 20) * 50);
    h.dry_multiplier = unit(n, 21) < 0.5f ? 0 : 1e6f * unit(n, 22);
    h.dry_base = 1 + 1e3f * unit(n, 23) * unit(n, 23);
    h.dry_allowed_length = (int32_t)(unit(n, 24) * 5);
    h.dry_window = (int32_t)(unit(n, 25) * 90);
    h.seed = n;
    return h;
}

/* Twice the same token: by this machine's passes and by the plain ones; where the sum of all weights is estimated
   first and where log-probabilities ask for it. */
static void any_settings(void **state)
{
    (void)state;
    static const int32_t vocabs[] = {1, 2, 3, 31, 256, 257, 700};
    static float again[700];
    int32_t ids[64];
    for (uint64_t n = 0; n < 4200; n++) {
        const int32_t vocab = vocabs[n % 7];
        const cairn_sampling how = random_settings(n);
        sample_state st[2] = {{50 * (double)unit(n, 30) - 20}, {0}};
        sampler *s = NULL;
        sample_out out[2];
        for (uint64_t i = 0; i < 64; i++)
            ids[i] = (int32_t)(rng_u64(12, n, i) % (uint64_t)(vocab < 4 ? vocab : 4));
        make_logits((kind)(n % 5), (uint32_t)n, vocab);
        for (int32_t i = 0; i < vocab; i++) /* a penalty of 55 leaves it finite */
            if (logits[i] < -1e36f && logits[i] > -INFINITY) logits[i] = -1e36f;
        memcpy(again, logits, (size_t)vocab * sizeof *again);
        st[1] = st[0];
        assert_ok(sampler_new(vocab, 64, NULL, &s));
        assert_ok(sample_check(&how, vocab, NULL));
        for (int i = 0; i < 2; i++) {
            const sample_in in = {.how = &how,
                                  .ids = ids,
                                  .n_prompt = 10,
                                  .n_ids = 64,
                                  .n_logprobs = i ? 5 : -1,
                                  .state = &st[i]};
            s->pass = i ? &pass_ref : pass_here();
            assert_ok(sample_step(s, i ? again : logits, &in, &out[i], NULL));
        }
        assert_true(out[0].id == out[1].id && st[0].mu == st[1].mu && isfinite(st[0].mu));
        assert_in_range(out[0].id, 0, vocab - 1);
        assert_true(logits[out[0].id] > -INFINITY);
        sampler_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_sets),      cmocka_unit_test(chance_of_xtc),
        cmocka_unit_test(mirostat_state), cmocka_unit_test(windows),
        cmocka_unit_test(any_settings),
    };
    return cmocka_run_group_tests_name("samplers", tests, NULL, NULL);
}
