/* A curve's distribution against a statement of its own in numpy (tools/golden/make_curves.py), and what is asked of
   a curve. */
#include "test.h"

#include <math.h>

#include "sample/sample.h"

enum { MAX_VOCAB = 5000 };

typedef struct golden {
    uint32_t seed;
    int32_t vocab;
    size_t n;
    cairn_knot knot[CAIRN_MAX_KNOTS];
    int32_t id[4];
    double p[4];
} golden;

static const golden goldens[] = {
#include "golden_curves.inc"
};

static float logits[MAX_VOCAB];

/* As make_curves.py makes them. */
static void make_logits(uint32_t seed, int32_t vocab)
{
    for (int32_t i = 0; i < vocab; i++) {
        uint32_t h = ((uint32_t)i * 2654435761u) ^ (seed * 40503u);
        h = (h ^ (h >> 15)) * 2246822519u;
        h = (h ^ (h >> 13)) * 3266489917u;
        h ^= h >> 16;
        const float x = ((float)(h >> 8) / 16777216.0f - 0.5f) * 16.0f;
        logits[i] = seed % 2 ? floorf(x) / 2 : x;
    }
}

static cairn_sampling by(const cairn_knot *knot, size_t n)
{
    cairn_sampling how = sample_neutral(); /* temperature 0: a curve draws all the same */
    how.curve = knot;
    how.n_curve = n;
    return how;
}

static void distributions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        const golden *g = &goldens[i];
        const cairn_sampling how = by(g->knot, g->n);
        const sample_in in = {.how = &how, .n_logprobs = 0};
        sampler *s = NULL;
        sample_out out;
        assert_ok(sampler_new(g->vocab, 1, NULL, &s));
        assert_ok(sample_check(&how, g->vocab, NULL));
        make_logits(g->seed, g->vocab);
        assert_ok(sample_step(s, logits, &in, &out, NULL));
        const sample_rest r = sampler_rest(s);
        assert_true(r.n == g->vocab && !r.ids && isfinite(out.logprob));
        /* A weight's exponent is rounded to f32 once as a logit of the curve and once as a difference. */
        for (int32_t at = 0; at < 4; at++) {
            const double p = (double)r.weight[g->id[at]] / r.total;
            const double bound = 3e-7 * (4 + 4 * fabs(log(g->p[at] + 1e-300)));
            if (fabs(p - g->p[at]) > g->p[at] * bound + 1e-30)
                fail_msg("case %zu: %.9g of id %d, expected %.9g", i, p, g->id[at], g->p[at]);
        }
        sampler_free(s);
    }
}

/* The reported log-probability stays that of the model, and what is excluded never comes. */
static void reported(void **state)
{
    (void)state;
    static const cairn_knot knots[] = {{0.0001f, 50}, {50, 50}}; /* as even as can be */
    const cairn_sampling how = by(knots, 2);
    sampler *s = NULL;
    assert_ok(sampler_new(8, 1000, NULL, &s));
    int seen = 0;
    for (int32_t n = 1; n < 400; n++) {
        float x[8] = {0, 1, 2, -INFINITY, 3, -INFINITY, -3e38f, 1};
        const sample_in in = {.how = &how, .n_logprobs = 0, .n_ids = n};
        sample_out out;
        double sum = 0;
        for (int i = 0; i < 8; i++) sum += exp((double)x[i]);
        assert_ok(sample_step(s, x, &in, &out, NULL));
        assert_true(out.id != 3 && out.id != 5 && out.id != 6);
        const float again[8] = {0, 1, 2, -INFINITY, 3, -INFINITY, -3e38f, 1};
        assert_true(fabs((double)out.logprob - ((double)again[out.id] - log(sum))) < 1e-5);
        seen |= 1 << out.id;
    }
    assert_int_equal(seen, 1 | 2 | 4 | 16 | 128);
    sampler_free(s);
}

static void refused(void **state)
{
    (void)state;
    static const cairn_knot wrong[][3] = {
        {{1, 1}, {1, 2}, {3, 3}},     {{1, 1}, {2, 0.5f}, {3, 3}},    {{1, 1}, {2, 2}, {101, 100}},
        {{-1, 1}, {2, 2}, {3, 3}},    {{1, 1}, {2, NAN}, {3, 3}},     {{NAN, 1}, {2, 2}, {3, 3}},
        {{0, 0}, {5e-8f, 2}, {3, 3}}, {{1, 1}, {2, 2}, {3, INFINITY}}};
    static const cairn_knot fine[33] = {{1, 1}, {2, 2}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const cairn_sampling how = by(wrong[i], 3);
        assert_int_equal(sample_check(&how, 8, NULL), CAIRN_E_ARG);
    }
    for (size_t n = 1; n <= 33; n += 32) {
        const cairn_sampling how = by(fine, n);
        assert_int_equal(sample_check(&how, 8, NULL), CAIRN_E_ARG);
    }
    const cairn_sampling none = by(NULL, 2), both = by(fine, 2);
    assert_int_equal(sample_check(&none, 8, NULL), CAIRN_E_ARG);
    assert_ok(sample_check(&both, 8, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(distributions), cmocka_unit_test(reported),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
