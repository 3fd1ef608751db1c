/* The sampling chain against numpy, draws against their distribution, and hostile logits. */
#include "test.h"

#include <math.h>

#include "base/alloc.h"
#include "base/fmath.h"
#include "base/num.h"
#include "base/rng.h"
#include "sample/cut.h"
#include "sample/fexp.h"
#include "sample/sample.h"

enum { VOCAB = 40, N_IDS = 18 };

typedef struct golden {
    float temperature;
    int32_t top_k;
    float top_p, min_p, repetition;
    int32_t window;
    float presence, frequency;
    cairn_bias bias[3];
    size_t n_bias;
    int32_t n_prompt;
    int32_t ids[N_IDS];
    float logits[VOCAB];
    double logprob[VOCAB]; /* after the processors */
    double prob[VOCAB];    /* drawn from */
} golden;

static const golden goldens[] = {
#include "golden_sampling.inc"
};

static cairn_sampling how_of(const golden *g)
{
    cairn_sampling how = sample_neutral();
    how.temperature = g->temperature;
    how.top_k = g->top_k;
    how.top_p = g->top_p;
    how.min_p = g->min_p;
    how.repetition_penalty = g->repetition;
    how.repetition_window = g->window;
    how.presence_penalty = g->presence;
    how.frequency_penalty = g->frequency;
    how.seed = 1234;
    how.bias = g->bias;
    how.n_bias = g->n_bias;
    return how;
}

static sampler *make(int32_t vocab)
{
    sampler *s = NULL;
    assert_ok(sampler_new(vocab, 1, NULL, &s));
    return s;
}

static void reported_distribution(void **state)
{
    (void)state;
    sampler *s = make(VOCAB);
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        const golden *g = &goldens[i];
        const cairn_sampling how = how_of(g);
        const sample_in in = {&how, 0, g->ids, g->n_prompt, N_IDS, CAIRN_MAX_LOGPROBS, NULL, NULL};
        sample_out out;
        float x[VOCAB];
        memcpy(x, g->logits, sizeof x);
        assert_ok(sample_check(&how, VOCAB, NULL));
        assert_ok(sample_step(s, x, &in, &out, NULL));
        assert_true(fabs((double)out.logprob - g->logprob[out.id]) < 1e-5);
        assert_int_equal(out.n_top, CAIRN_MAX_LOGPROBS);
        for (int32_t k = 0; k < out.n_top; k++) {
            assert_true(fabs((double)out.top[k].logprob - g->logprob[out.top[k].id]) < 1e-5);
            if (k > 0) assert_true(out.top[k - 1].logprob >= out.top[k].logprob);
        }
    }
    sampler_free(s);
}

/* A token that must come has the log-probability that it would have been drawn with. */
static void forced_tokens(void **state)
{
    (void)state;
    sampler *s = make(VOCAB);
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        const golden *g = &goldens[i];
        const cairn_sampling how = how_of(g);
        for (int32_t id = 0; id < VOCAB; id++) {
            const sample_in in = {&how, 0, g->ids, g->n_prompt, N_IDS, i % 2 ? 2 : -1, &id, NULL};
            sample_out out;
            float x[VOCAB];
            memcpy(x, g->logits, sizeof x);
            assert_ok(sample_step(s, x, &in, &out, NULL));
            assert_int_equal(out.id, id);
            if (i % 2) assert_true(fabs((double)out.logprob - g->logprob[id]) < 1e-5);
        }
    }
    sampler_free(s);
}

/* Pearson's statistic of 16,000 draws (8,000 positions, 2 choices).  With at most 39 degrees of
   freedom, 90 is passed with probability under 1e-5; the draws are a function of the seed. */
static void draws(void **state)
{
    (void)state;
    sampler *s = make(VOCAB);
    enum { N_DRAWS = 16000 };
    static int32_t ids[N_DRAWS / 2];
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        const golden *g = &goldens[i];
        cairn_sampling how = how_of(g);
        int32_t count[VOCAB] = {0};
        double chi = 0;
        how.n_bias = 0; /* the processed logits are given, the processors are off */
        how.repetition_penalty = 1;
        how.presence_penalty = how.frequency_penalty = 0;
        for (int32_t n = 0; n < N_DRAWS; n++) {
            const sample_in in = {&how, (uint32_t)n & 1, ids, 0, n / 2, -1, NULL, NULL};
            sample_out out;
            float x[VOCAB];
            for (int k = 0; k < VOCAB; k++) x[k] = (float)g->logprob[k];
            assert_ok(sample_step(s, x, &in, &out, NULL));
            count[out.id]++;
        }
        for (int k = 0; k < VOCAB; k++) {
            const double want = N_DRAWS * g->prob[k];
            if (want == 0) assert_int_equal(count[k], 0);
            if (want > 0) chi += (count[k] - want) * (count[k] - want) / want;
        }
        if (chi > 90) fail_msg("case %zu: chi-square %g", i, chi);
    }
    sampler_free(s);
}

static int32_t step_at(sampler *s, const float *logits, const cairn_sampling *how, int32_t n,
                       cairn_status *st, cairn_diag *dg)
{
    static int32_t ids[1000];
    static float x[600];
    const sample_in in = {how, 0, ids, n, n, -1, NULL, NULL};
    sample_out out = {.id = -7};
    memcpy(x, logits, sizeof x);
    *st = sample_step(s, x, &in, &out, dg);
    return out.id;
}

static int32_t step(sampler *s, const float *logits, const cairn_sampling *how, cairn_status *st,
                    cairn_diag *dg)
{
    return step_at(s, logits, how, 0, st, dg);
}

/* Draws 1,000 tokens: exactly these appear. */
static void only(sampler *s, const float *x, const cairn_sampling *how, const int32_t *ids, int n)
{
    int32_t count[600] = {0};
    cairn_status st;
    for (int32_t i = 0; i < 1000; i++) count[step_at(s, x, how, i, &st, NULL)]++;
    for (int i = 0; i < n; i++) {
        assert_true(count[ids[i]] > 1000 / n / 2);
        count[ids[i]] = 0;
    }
    for (int i = 0; i < 600; i++) assert_int_equal(count[i], 0);
}

static void ties_go_to_the_lower_id(void **state)
{
    (void)state;
    sampler *s = make(600);
    cairn_status st;
    float x[600];
    cairn_sampling how = sample_neutral();
    for (int i = 0; i < 600; i++) x[i] = i == 41 || i == 300 || i == 599 ? 2.0f : -1.0f;
    assert_int_equal(step(s, x, &how, &st, NULL), 41);
    how.temperature = 1;
    how.top_k = 2;
    only(s, x, &how, (int32_t[]){41, 300}, 2);
    /* two of four equal tokens reach half of the mass */
    for (int i = 0; i < 600; i++) x[i] = i % 150 == 7 ? 0.0f : -200.0f;
    how.top_k = 0;
    how.top_p = 0.5f;
    only(s, x, &how, (int32_t[]){7, 157}, 2);
    how.top_p = 0.51f;
    only(s, x, &how, (int32_t[]){7, 157, 307}, 3);
    sampler_free(s);
}

static void hostile_logits(void **state)
{
    (void)state;
    sampler *s = make(600);
    const float bad[] = {NAN, -NAN, INFINITY};
    cairn_diag dg;
    cairn_status st;
    for (int i = 0; i < 6; i++) {
        cairn_sampling how = sample_neutral();
        how.temperature = i < 3 ? 0.0f : 1.0f;
        how.top_k = 3;
        how.top_p = 0.9f;
        float x[600] = {0};
        x[i * 117] = bad[i % 3];
        (void)step(s, x, &how, &st, &dg);
        assert_int_equal(st, CAIRN_E_INTERNAL);
        assert_says(&dg, "position 0");
        for (int k = 0; k < 600; k++) x[k] = -INFINITY;
        (void)step(s, x, &how, &st, &dg);
        assert_int_equal(st, CAIRN_E_INTERNAL);
        x[11] = -3e38f; /* one token left */
        assert_int_equal(step(s, x, &how, &st, &dg), 11);
        assert_ok(st);
    }
    sampler_free(s);
}

/* The draw hangs on (seed, choice, position) and on nothing else. */
static void randomness(void **state)
{
    (void)state;
    sampler *s = make(VOCAB);
    int32_t ids[64] = {0}, first[64], same = 0;
    for (uint64_t seed = 5; seed <= 6; seed++)
        for (uint32_t choice = 0; choice < 2; choice++)
            for (int32_t n = 0; n < 64; n++) {
                cairn_sampling how = sample_neutral();
                how.temperature = 1;
                how.seed = seed;
                const sample_in in = {&how, choice, ids, n / 2, n, -1, NULL, NULL};
                sample_out a, b;
                float x[VOCAB] = {0}, y[VOCAB] = {0};
                assert_ok(sample_step(s, x, &in, &a, NULL));
                assert_ok(sample_step(s, y, &in, &b, NULL));
                assert_int_equal(a.id, b.id);
                if (seed == 5 && choice == 0) first[n] = a.id;
                same += a.id == first[n];
            }
    assert_true(same >= 64 && same < 64 + 30); /* 192 others agree by chance: 4.8 expected */
    sampler_free(s);
}

static void bad_values(void **state)
{
    (void)state;
    const cairn_sampling good = sample_neutral();
    static const cairn_bias out_of = {VOCAB, 1}, nan = {1, NAN};
    static const cairn_str empty = {"", 0};
    static const struct {
        const char *says;
        cairn_sampling p; /* in what it names alone */
    } cases[] = {
        {"temperature", {.temperature = -0.1f}},
        {"temperature", {.temperature = NAN}},
        {"top_p", {.top_p = 1.1f}},
        {"min_p", {.min_p = -1}},
        {"top_k", {.top_k = -1}},
        {"repetition_penalty", {.repetition_penalty = 1e-4f}},
        {"repetition_window", {.repetition_window = -1}},
        {"presence_penalty", {.presence_penalty = INFINITY}},
        {"presence_window", {.presence_window = -1}},
        {"frequency_window", {.frequency_window = INT32_MIN}},
        {"typical_p", {.typical_p = 1.5f}},
        {"xtc_probability", {.xtc_probability = -0.5f}},
        {"xtc_threshold", {.xtc_threshold = 2}},
        {"mirostat is", {.mirostat = 3}},
        {"mirostat_tau", {.mirostat_tau = -1}},
        {"mirostat_eta", {.mirostat_eta = NAN}},
        {"dry_multiplier", {.dry_multiplier = -1}},
        {"dry_base", {.dry_base = 0.5f}},
        {"dry_allowed_length", {.dry_allowed_length = -1}},
        {"dry_window", {.dry_window = -1}},
        {"logit_bias", {.bias = &out_of, .n_bias = 1}},
        {"logit_bias", {.bias = &nan, .n_bias = 1}},
        {"logit biases", {.bias = &nan, .n_bias = CAIRN_MAX_BIAS + 1}},
        {"dry_breakers", {.dry_breakers = &empty, .n_dry_breakers = 1}},
        {"dry_breakers", {.dry_breakers = &empty, .n_dry_breakers = CAIRN_MAX_BREAKERS + 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cairn_diag dg;
        cairn_sampling p = good;
        unsigned char *to = (unsigned char *)&p;
        const unsigned char *from = (const unsigned char *)&cases[i].p;
        for (size_t k = 0; k < sizeof p; k++)
            if (from[k]) memcpy(to + k / 4 * 4, from + k / 4 * 4, 4);
        assert_int_equal(sample_check(&p, VOCAB, &dg), CAIRN_E_ARG);
        assert_says(&dg, cases[i].says);
    }
    assert_ok(sample_check(&good, VOCAB, NULL));
}

/* Selection against counting, on values with many ties, near and far below the greatest. */
static void cuts(void **state)
{
    (void)state;
    cutter *c = NULL;
    float x[257], w[257];
    assert_ok(cutter_new(257, &c));
    for (uint64_t seed = 0; seed < 60; seed++) {
        const float scale = seed % 3 == 0 ? 0.37f : seed % 3 == 1 ? 1e-6f : 3.7f;
        double sum = 0;
        float top = -INFINITY;
        for (int i = 0; i < 257; i++) {
            x[i] = (float)(int32_t)(rng_u64(seed, 0, (uint64_t)i) % 30) * scale - 5.0f * scale;
            if (i % 19 == 3 && seed % 2) x[i] = -INFINITY;
            w[i] = expf(x[i] - 6);
            sum += (double)w[i];
            top = x[i] > top ? x[i] : top;
        }
        cutter_begin(c, 257, x, w, top);
        for (int32_t k = 1; k <= 257; k += 16) {
            const cut t = cut_top_k(c, k);
            int32_t above = 0, equal = 0;
            for (int i = 0; i < 257; i++) above += x[i] > t.at;
            for (int i = 0; i < 257; i++) equal += x[i] == t.at;
            assert_int_equal(above + t.n_equal, k);
            assert_in_range(t.n_equal, 1, equal);
            const double mass = sum * k / 258;
            const cut m = cut_top_mass(c, mass);
            double got = 0, last = 0;
            int32_t left = m.n_equal;
            for (int i = 0; i < 257; i++) {
                const bool is = x[i] == m.at;
                if (is) last = (double)w[i];
                if (x[i] > m.at || (is && left-- > 0)) got += (double)w[i];
            }
            assert_true(got >= mass * (1 - 1e-12) && got - last < mass * (1 + 1e-12));
        }
    }
    cutter_free(c);
}

static void exp_and_log(void **state)
{
    (void)state;
    for (int i = 0; i < 87000; i++) {
        const float x = -(float)i * 1e-3f;
        const double want = exp((double)x);
        assert_true(fabs((double)fexp(x) - want) <= want * 1.2e-7);
    }
    assert_true(fexp(0) == 1.0f && fexp(-88) == 0.0f && fexp(-INFINITY) == 0.0f);
    for (double x = 1e-30; x < 1e30; x *= 1.37) assert_true(fabs(fmath_log(x) - log(x)) < 1e-13);
}

static cairn_status make_and_free(void *ctx)
{
    (void)ctx;
    sampler *s = NULL;
    const cairn_status st = sampler_new(VOCAB, 1, NULL, &s);
    if (st == CAIRN_OK) sampler_free(s);
    return st;
}

static void memory(void **state)
{
    (void)state;
    assert_int_equal(fault_loop(make_and_free, NULL), 12);
    sampler *s = make(VOCAB);
    const uint64_t calls = mem_calls();
    reported_distribution(NULL);
    const uint64_t of_making = mem_calls() - calls;
    assert_int_equal(of_making, 12); /* its own sampler, and nothing in 16 steps */
    sampler_free(s);
}

/* The memory guard takes the figure for what is allocated. */
static void bytes_held(void **state)
{
    (void)state;
    for (int32_t vocab = 1; vocab < 200000; vocab = vocab * 7 + 3) {
        sampler *s = NULL;
        const uint64_t before = mem_used_all();
        assert_ok(sampler_new(vocab, 1 + vocab / 3, NULL, &s));
        assert_int_equal(sampler_bytes(s), mem_used_all() - before);
        sampler_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reported_distribution),
        cmocka_unit_test(forced_tokens),
        cmocka_unit_test(draws),
        cmocka_unit_test(ties_go_to_the_lower_id),
        cmocka_unit_test(hostile_logits),
        cmocka_unit_test(randomness),
        cmocka_unit_test(bad_values),
        cmocka_unit_test(cuts),
        cmocka_unit_test(exp_and_log),
        cmocka_unit_test(memory),
        cmocka_unit_test(bytes_held),
    };
    return cmocka_run_group_tests_name("sample", tests, NULL, NULL);
}
