/* erf⁻¹ against mpmath at 120 bits; exp and log are held against libm in sample/test_sample.c. */
#include "test.h"

#include <math.h>

#include "base/fmath.h"

static void test_erfinv(void **state)
{
    static const struct {
        double y, x;
    } known[] = {{0, 0},
                 {1e-3, 0.00088622715746655212},
                 {0.25, 0.2253120550121781},
                 {-0.5, -0.47693627620446987},
                 {0.9, 1.1630871536766742},
                 {-0.99, -1.8213863677184495},
                 {0.999, 2.3267537655135245},
                 {0.9999998, 3.6764868620428295}};
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_true(fabs(fmath_erfinv(known[i].y) - known[i].x) <= 1e-9 * fabs(known[i].x));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_erfinv)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
