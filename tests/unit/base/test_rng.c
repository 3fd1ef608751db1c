/* Philox4x32-10 against the published known answers (Random123's kat_vectors: counter, key, and the
   four words, of which ours are the first two), and what our callers count on. */
#include "test.h"

#include "base/rng.h"

static void known_answers(void **state)
{
    (void)state;
    static const struct {
        uint64_t seed, stream, index, want;
    } cases[] = {
        {0, 0, 0, 0xe169c58d6627e8d5u},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, 0x41c83b0e408f276du},
        {0x299f31d0a4093822u, 0x0370734413198a2eu, 0x85a308d3243f6a88u, 0x94fdccebd16cfe09u},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(rng_u64(cases[i].seed, cases[i].stream, cases[i].index) == cases[i].want);
}

static void every_argument_counts(void **state)
{
    (void)state;
    const uint64_t v = rng_u64(5, 6, 7);
    assert_true(rng_u64(5, 6, 7) == v);
    for (int bit = 0; bit < 64; bit++) {
        const uint64_t flip = (uint64_t)1 << bit;
        assert_true(rng_u64(5 ^ flip, 6, 7) != v);
        assert_true(rng_u64(5, 6 ^ flip, 7) != v);
        assert_true(rng_u64(5, 6, 7 ^ flip) != v);
    }
}

static void unit_is_even_and_below_one(void **state)
{
    (void)state;
    enum { N = 100000, BINS = 10 };
    int bin[BINS] = {0};
    double sum = 0;
    for (uint64_t i = 0; i < N; i++) {
        const double x = rng_unit(42, 1, i);
        assert_true(x >= 0 && x < 1);
        sum += x;
        bin[(int)(x * BINS)]++;
    }
    /* five standard deviations of what even bins would do */
    assert_true(sum / N > 0.5 - 0.0046 && sum / N < 0.5 + 0.0046);
    for (int i = 0; i < BINS; i++) assert_in_range(bin[i], 10000 - 475, 10000 + 475);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(every_argument_counts),
        cmocka_unit_test(unit_is_even_and_below_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
