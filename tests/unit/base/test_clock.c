/* Time does not go back, and sleeping passes it. */
#include "test.h"

#include <time.h>

#include "base/clock.h"

static void never_goes_back(void **state)
{
    (void)state;
    uint64_t last = clock_ns();
    for (int i = 0; i < 100000; i++) {
        const uint64_t now = clock_ns();
        assert_true(now >= last);
        last = now;
    }
}

static void units_agree(void **state)
{
    (void)state;
    const uint64_t start = clock_ns();
    const double start_s = clock_s();
    const struct timespec nap = {0, 20 * 1000 * 1000};
    (void)nanosleep(&nap, NULL);
    const double passed = clock_s() - start_s;
    assert_true(passed >= 0.019);
    assert_true(clock_ns() - start >= 20u * 1000 * 1000);
    assert_true((double)(clock_ns() - start) * 1e-9 >= passed);
}

static void calendar_is_of_this_century(void **state)
{
    (void)state;
    assert_true(clock_unix_s() > 1700000000 && clock_unix_s() < 4000000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_goes_back),
        cmocka_unit_test(units_agree),
        cmocka_unit_test(calendar_is_of_this_century),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
