/* Our functions against libm in double: the stated errors hold on dense sweeps, and ends behave. */
#include "test.h"

#include <math.h>
#include <stdio.h>

#include "backend/cpu/kern/kern_math.h"
#include "base/half.h"

static double true_silu(double x)
{
    return x / (1 + exp(-x));
}
static double true_gelu_tanh(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
static double true_gelu_erf(double x)
{
    return 0.5 * x * erfc(-x * M_SQRT1_2);
}

static double true_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static double true_softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static const xielu_params xielu_case = {0.8f, 0.6f, 0.5f, -1e-6f};
static float our_xielu(float x)
{
    return kern_xielu(x, &xielu_case);
}
static double true_xielu(double x)
{
    const double ap = (double)xielu_case.alpha_p, an = (double)xielu_case.alpha_n;
    const double b = (double)xielu_case.beta, m = fmin(x, (double)xielu_case.eps);
    return x > 0 ? ap * x * x + b * x : an * (expm1(m) - x) + b * x;
}

typedef struct math_case {
    const char *name;
    float (*ours)(float);
    double (*theirs)(double);
    float lo, hi;
    double abs_err, rel_err; /* error <= abs_err + rel_err · |value| */
} math_case;

static const math_case cases[] = {
    {"exp", kern_exp, exp, -87.0f, 88.0f, 0, 9e-8},
    {"exp of nearly 0", kern_exp, exp, -1e-3f, 1e-3f, 0, 9e-8},
    {"tanh", kern_tanh, tanh, -12, 12, 0, 1.7e-7},
    {"tanh of nearly 0", kern_tanh, tanh, -1e-3f, 1e-3f, 0, 1e-7},
    {"erfc", kern_erfc, erfc, 0, 4, 3e-7, 0},
    {"erfc of more", kern_erfc, erfc, 0, 9, 0, 5e-6},
    {"silu", kern_silu, true_silu, -80, 100, 1e-35, 2.5e-7},
    {"gelu_tanh", kern_gelu_tanh, true_gelu_tanh, -3, 20, 2.5e-7, 2e-7},
    {"gelu_erf", kern_gelu_erf, true_gelu_erf, -12, 20, 2.5e-7, 2e-7},
    {"sigmoid", kern_sigmoid, true_sigmoid, -80, 100, 0, 2.5e-7},
    {"softplus", kern_softplus, true_softplus, -80, 100, 0, 2.5e-7},
    {"softplus of nearly 0", kern_softplus, true_softplus, -1e-2f, 1e-2f, 0, 2e-7},
    {"xielu", our_xielu, true_xielu, -8, 20, 7e-7, 2e-7},
    {"xielu of nearly 0", our_xielu, true_xielu, -1e-3f, 1e-3f, 1e-12, 2e-7},
};

static void test_errors(void **state)
{
    (void)state;
    enum { STEPS = 400000 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const math_case *c = &cases[i];
        double worst_abs = 0, worst_rel = 0;
        for (int k = 0; k <= STEPS; k++) {
            if (left_out()) continue;
            float x = c->lo + (c->hi - c->lo) * ((float)k / STEPS);
            double want = c->theirs((double)x), e = fabs((double)c->ours(x) - want);
            if (!(e <= c->abs_err + c->rel_err * fabs(want)))
                fail_msg("%s(%a): off by %g of %g", c->name, (double)x, e, want);
            worst_abs = fmax(worst_abs, e);
            if (want != 0) worst_rel = fmax(worst_rel, e / fabs(want));
        }
        printf("%-18s [%g, %g]: absolute %.3g, relative %.3g\n", c->name, (double)c->lo,
               (double)c->hi, worst_abs, worst_rel);
    }
}

static double ulp_error(float got, double want)
{
    float near = (float)want;
    double ulp = (double)(nextafterf(fabsf(near), INFINITY) - fabsf(near));
    return fabs((double)got - want) / ulp;
}

static void check_angle(float x, double *worst)
{
    if (left_out()) return;
    float s, c;
    kern_sincos(x, &s, &c);
    double e = fmax(ulp_error(s, sin((double)x)), ulp_error(c, cos((double)x)));
    if (!(e < 0.501)) fail_msg("sincos(%a): off by %g ulp", (double)x, e);
    *worst = fmax(*worst, e);
}

static void test_sincos(void **state)
{
    (void)state;
    double worst = 0;
    for (int k = 0; k < 400000; k++) check_angle((float)k * 0x1p-10f, &worst);
    for (int k = 0; k < 400000; k++) check_angle((float)k * 2.6214f, &worst); /* to 2^20 */
    for (int k = 0; k < 200000; k++) { /* the f32 angles nearest to multiples of π/2 */
        float x = (float)(k * M_PI_2);
        check_angle(x, &worst);
        check_angle(nextafterf(x, INFINITY), &worst);
        check_angle(-x, &worst);
    }
    printf("sine and cosine: %.4f ulp\n", worst);
}

static void test_ends(void **state)
{
    (void)state;
    float (*const all[])(float) = {kern_exp,       kern_tanh,     kern_erfc,    kern_silu,
                                   kern_gelu_tanh, kern_gelu_erf, kern_sigmoid, kern_softplus};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_true(isnan(all[i](NAN)));
        assert_true(isnan(all[i](-NAN)));
        assert_true(isnan(all[i](f32_from_bits(0x7fc12345))));
    }
    assert_true(kern_exp(-INFINITY) == 0 && kern_exp(-88) == 0 && kern_exp(-87) > 0);
    assert_true(isinf(kern_exp(INFINITY)) && isinf(kern_exp(89)) && isfinite(kern_exp(88)));
    assert_true(kern_exp(0) == 1 && kern_exp(-0.0f) == 1);
    assert_true(kern_tanh(INFINITY) == 1 && kern_tanh(-INFINITY) == -1 && kern_tanh(1e30f) == 1);
    assert_true(kern_tanh(0) == 0 && signbit(kern_tanh(-0.0f)));
    assert_true(kern_tanh(0x1p-140f) == 0x1p-140f);
    assert_true(kern_softplus(INFINITY) == INFINITY && kern_softplus(-INFINITY) == 0);
    assert_true(kern_softplus(25) == 25 && kern_sigmoid(INFINITY) == 1 &&
                kern_sigmoid(-1e30f) == 0);
    float (*const gates[])(float) = {kern_silu, kern_gelu_tanh, kern_gelu_erf};
    for (size_t i = 0; i < sizeof gates / sizeof *gates; i++) {
        assert_true(gates[i](1e30f) == 1e30f && gates[i](3e38f) == 3e38f);
        assert_true(gates[i](-1e30f) == 0 && gates[i](-3e38f) == 0);
        assert_true(gates[i](0) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_errors), cmocka_unit_test(test_sincos),
                                       cmocka_unit_test(test_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
