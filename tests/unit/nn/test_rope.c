/* Rotary parameters: bad ones are errors that say which, whatever a file holds; good ones give what the
   papers' formulas give in double. */
#include "test.h"

#include <math.h>

#include "nn/rope.h"

static rope_params sound(rope_kind kind)
{
    static const float divisors[8] = {1, 1, 2, 2, 3, 3, 4, 4};
    return (rope_params){.kind = kind,
                         .theta = 10000,
                         .dim = 16,
                         .factor = 4,
                         .ctx = 4096,
                         .ctx_orig = 1024,
                         .beta_fast = 32,
                         .beta_slow = 1,
                         .low_freq = 1,
                         .high_freq = 4,
                         .short_div = divisors,
                         .long_div = divisors};
}

static cairn_status make(const rope_params *p, rope_spec *out, cairn_diag *dg)
{
    static arena a;
    arena_deinit(&a);
    arena_init(&a, MEM_MODEL);
    return rope_make(p, &a, out, dg);
}

static void default_is_the_formula(void **state)
{
    (void)state;
    rope_spec r;
    const rope_params p = sound(ROPE_DEFAULT);
    assert_ok(make(&p, &r, NULL));
    assert_int_equal(r.n_freq, 8);
    for (int i = 0; i < 8; i++) {
        const double want = pow(10000.0, -2.0 * i / 16);
        assert_true(fabs((double)r.inv_freq[i] - want) <= 1.2e-7 * want);
    }
}

static void linear_divides(void **state)
{
    (void)state;
    rope_spec d, l;
    float plain[8];
    rope_params p = sound(ROPE_DEFAULT);
    assert_ok(make(&p, &d, NULL));
    memcpy(plain, d.inv_freq, sizeof plain);
    p.kind = ROPE_LINEAR;
    assert_ok(make(&p, &l, NULL));
    for (int i = 0; i < 8; i++) assert_true(l.inv_freq[i] == plain[i] / 4.0f);
}

static void long_has_two_lists(void **state)
{
    (void)state;
    rope_spec r;
    const rope_params p = sound(ROPE_LONG);
    assert_ok(make(&p, &r, NULL));
    assert_int_equal(r.switch_len, 1024);
    assert_non_null(r.inv_freq_long);
    assert_true(fabs((double)r.mscale - sqrt(1 + log(4) / log(1024))) < 1e-6);
}

static void bad_numbers_are_named(void **state)
{
    (void)state;
    static const struct {
        rope_kind kind;
        size_t field;
        double value;
        const char *says;
    } cases[] = {
        {ROPE_DEFAULT, offsetof(rope_params, theta), (double)INFINITY, "the base is inf"},
        {ROPE_DEFAULT, offsetof(rope_params, theta), (double)NAN, "the base is"},
        {ROPE_DEFAULT, offsetof(rope_params, theta), 0, "the base is 0"},
        {ROPE_DEFAULT, offsetof(rope_params, theta), 1e308, "the base is"},
        {ROPE_DEFAULT, offsetof(rope_params, theta), 1, "the base is 1"},
        {ROPE_LINEAR, offsetof(rope_params, factor), 0, "factor is 0"},
        {ROPE_YARN, offsetof(rope_params, factor), (double)INFINITY, "factor is inf"},
        {ROPE_YARN, offsetof(rope_params, beta_fast), 1e300, "beta_fast is"},
        {ROPE_YARN, offsetof(rope_params, beta_slow), -1, "beta_slow is -1"},
        {ROPE_YARN, offsetof(rope_params, mscale), (double)INFINITY, "mscale is inf"},
        {ROPE_YARN, offsetof(rope_params, attention_factor), (double)NAN, "attention_factor is"},
        {ROPE_LLAMA3, offsetof(rope_params, low_freq), 0, "low_freq_factor is 0"},
        {ROPE_LLAMA3, offsetof(rope_params, high_freq), 0.5, "high_freq_factor is 0.5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rope_spec r;
        cairn_diag dg = {0};
        rope_params p = sound(cases[i].kind);
        memcpy((char *)&p + cases[i].field, &cases[i].value, sizeof(double));
        assert_int_equal(make(&p, &r, &dg), CAIRN_E_CORRUPT);
        assert_says(&dg, cases[i].says);
    }
}

static void bad_shapes_are_named(void **state)
{
    (void)state;
    static const float zero[8] = {1, 1, 0, 1, 1, 1, 1, 1};
    rope_spec r;
    cairn_diag dg = {0};
    rope_params p = sound(ROPE_DEFAULT);
    p.dim = 7;
    assert_int_equal(make(&p, &r, &dg), CAIRN_E_CORRUPT);
    assert_says(&dg, "7 dimensions");
    p = sound(ROPE_DEFAULT);
    p.divisor = zero;
    assert_int_equal(make(&p, &r, &dg), CAIRN_E_CORRUPT);
    assert_says(&dg, "divisor 2 is 0");
    p = sound(ROPE_YARN);
    p.divisor = p.short_div;
    assert_int_equal(make(&p, &r, &dg), CAIRN_E_UNSUPPORTED);
    p = sound(ROPE_LONG);
    p.long_div = NULL;
    assert_int_equal(make(&p, &r, &dg), CAIRN_E_CORRUPT);
    p = sound(ROPE_LONG);
    p.ctx_orig = 1;
    assert_int_equal(make(&p, &r, &dg), CAIRN_E_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_is_the_formula), cmocka_unit_test(linear_divides),
        cmocka_unit_test(long_has_two_lists),     cmocka_unit_test(bad_numbers_are_named),
        cmocka_unit_test(bad_shapes_are_named),
    };
    return cmocka_run_group_tests_name("rope", tests, NULL, NULL);
}
